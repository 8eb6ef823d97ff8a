"""A run as files, and back: all but the graph itself, so that its page can be made again without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.runs.card import model_card
from demonet.runs.folder import (
    AGAIN,
    ARRAYS,
    CARD,
    CONFIG,
    METRICS,
    PREDICTIONS,
    READY,
    SPLIT,
    WORK,
    Workshop,
    read_json,
    state_of,
    write_json,
)
from demonet.runs.run import Run
from demonet.runs.tables import write_predictions
from demonet.tensorfile import read_tensors, write_tensors

FORMAT = "demonet-run-2"
FORMAT_1 = "demonet-run-1"  # without a checksum
_ARRAYS = ("y", "part", "probabilities", "degree", "place", "degrees", "degree_counts", "degree_task")
_OPTIONAL = ("edge_count", "edges", "drawing")
_FACTS = ("kind", "history", "class_names", "ids", "columns")


def save_run(run: Run, split: Split, shop: Workshop) -> None:
    """Write all files of a run but its model and its page."""
    arrays = {name: getattr(run, name) for name in (*_ARRAYS, *_OPTIONAL)}
    tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items() if a is not None}
    write_tensors(shop.draft(ARRAYS), FORMAT, tensors, {name: getattr(run, name) for name in _FACTS})
    noun = run.kind.removesuffix("s")
    write_predictions(shop.draft(PREDICTIONS), noun, run.ids, run.class_names, run.probabilities)
    split.save(shop.draft(SPLIT))
    write_json(shop.draft(CONFIG), run.config)
    write_json(shop.draft(METRICS), run.metrics)
    shop.draft(CARD).write_text(model_card(run), encoding="utf-8", errors="replace")


def load_run(out: str | Path) -> Run:
    """A finished run from its folder."""
    out = Path(out)
    if not out.is_dir():
        raise DemonetError("no such folder", file=out, hint="demonet fit EDGES --labels LABELS --out RUN makes one")
    unfinished = state_of(out) == "interrupted"
    if not (out / ARRAYS).is_file() or (unfinished and (out / WORK / READY).exists()):
        problem = "the run in this folder is not finished" if unfinished else "there is no run in this folder"
        raise DemonetError(problem, file=out, hint=f"demonet fit: {AGAIN}" if unfinished else None)
    tensors, facts, _ = read_tensors(out / ARRAYS, FORMAT, unchecked=(FORMAT_1,))
    try:
        arrays: dict[str, Any] = {name: tensors[name].numpy() for name in _ARRAYS}
        arrays |= {name: tensors[name].numpy() for name in _OPTIONAL if name in tensors}
        facts = {name: facts[name] for name in _FACTS}
    except KeyError as error:
        raise DemonetError(f"{error.args[0]} is missing", file=out / ARRAYS) from None
    config, metrics = read_json(out / CONFIG), read_json(out / METRICS)
    return Run(config=config, metrics=metrics, **{"edge_count": None} | facts | arrays)
