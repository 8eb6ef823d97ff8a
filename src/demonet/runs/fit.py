"""`fit_run`: from files to a folder with a model and all there is to know about it."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from demonet.runs.floors import student
from demonet.runs.folder import MODEL, PAGE, READY, Workshop, check_out, check_same, workshop
from demonet.runs.inputs import Inputs, checksums, read_inputs
from demonet.runs.picture import picture
from demonet.runs.run import Run
from demonet.runs.scalars import check_tensorboard
from demonet.runs.settings import Reading, Settings
from demonet.runs.store import load_run, save_run
from demonet.runs.threads import fitting_threads
from demonet.runs.trial import Plan, load_estimator, make_plan, run_trial
from demonet.runs.watch import Watch
from demonet.train.presets import preset

_PACKAGES = ("demonet", "torch", "torch_geometric", "numpy", "scikit-learn")


def fit_run(
    edges: str | Path,
    labels: str | Path | None = None,
    features: str | Path | None = None,
    *,
    out: str | Path,
    reading: Reading | None = None,
    settings: Settings | None = None,
    resume: bool = False,
    overwrite: bool = False,
    watch: Watch | None = None,
    page: Callable[[Run, Path], None] | None = None,
) -> Run:
    """Read, hold out, train, test once, and write the folder of a run.

    The folder has ``model.safetensors``, ``config.json``, ``metrics.json``, ``split.json``, ``predictions.csv``,
    ``MODEL_CARD.md`` and ``run.safetensors``, from which the page is made. Until it is complete, everything is in its
    subfolder ``unfinished``, and a finished run that is there already stays as it is.

    Args:
        edges: A graph, or many, in a file or folder; or the name of a set of the paper.
        labels: A table of id and label, or the name of an attribute inside ``edges``.
        features: A table or matrix of node attributes.
        out: The folder.
        reading: How files are read.
        settings: How the model is made.
        resume: Go on with an interrupted run; what it was asked for and its files must be the same.
        overwrite: Start afresh in the folder of another run, which is replaced at the end.
        watch: Told of every step.
        page: Writes a page about the run to a path, as one more file of the folder.
    """
    out, reading, settings, watch = Path(out), reading or Reading(), settings or Settings(), watch or Watch()
    state = check_out(out, resume=resume, overwrite=overwrite)
    if settings.log == "tensorboard":
        check_tensorboard()
    if reading.self_loops is None:
        reading = replace(reading, self_loops=preset(settings.preset, "nodes").self_loops)
    inputs = read_inputs(str(edges), _text(labels), _text(features), reading)
    plan = make_plan(inputs, reading, settings)
    watch.say(_described(plan))
    asked = _asked(plan)
    if state == "finished" and not overwrite:
        run = load_run(out)
        check_same(run.config["asked"], asked, out)
        watch.say(f"{out} is finished already")
        return run
    with workshop(out, overwrite=overwrite) as shop, fitting_threads(inputs):
        shop.remember(asked)
        if not shop.path(READY).exists():
            _work(plan, asked, shop, watch, page)
        shop.publish()
    return load_run(out)


def _work(
    plan: Plan, asked: dict[str, Any], shop: Workshop, watch: Watch, page: Callable[[Run, Path], None] | None
) -> None:
    """All trials, then all files."""
    results = []
    for number in range(len(plan.splits)):
        results.append(run_trial(plan, number, shop, watch))
        watch.say(_told(results[-1], number, len(plan.splits)))
    split = plan.splits[0]
    metrics: dict[str, Any] = {
        **results[0],
        "seed": plan.settings.seed,
        "split": {
            "name": split.name,
            "seed": split.seed,
            "hash": split.hash,
            **{part: getattr(split, part).numel() for part in ("train", "val", "test")},
        },
    }
    if len(results) > 1:
        metrics["cv"] = _over_splits(results)
    estimator = load_estimator(shop.path(MODEL), plan.inputs)
    run = picture(plan, estimator, _config(plan, asked, estimator.preset_), metrics)
    save_run(run, split, shop)
    if page is not None:
        page(run, shop.draft(PAGE))
    shop.draft(MODEL).write_bytes(shop.path(MODEL).read_bytes())


def _over_splits(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Every number on every split, and the mean test accuracy with its deviation and Student's interval."""
    accuracies = [result["test_accuracy"] for result in results]
    return {
        "splits": len(results),
        "mean": float(np.mean(accuracies)),
        "std": float(np.std(accuracies, ddof=1)),
        "interval": student(accuracies),
        **{name: [result[name] for result in results] for name in ("test_accuracy", "val_accuracy", "macro_f1")},
        "floors": {name: [result["floors"][name] for result in results] for name in results[0]["floors"]},
    }


def _asked(plan: Plan) -> dict[str, Any]:
    """What makes this run the one it is: every setting, and the files by their checksums."""
    settings = asdict(plan.settings) | {"device": plan.settings.uses, "split": None}
    files = dict(plan.inputs.files)
    if plan.settings.split is not None:
        files["split"] = plan.settings.split
    sums = {f"{part} file": checksum for part, checksum in checksums(files).items()}
    return {name: value for name, value in {**asdict(plan.reading), **settings, **sums}.items() if value is not None}


def _config(plan: Plan, asked: dict[str, Any], used: Any) -> dict[str, Any]:
    """What was trained on what and how, as plain JSON."""
    inputs = plan.inputs
    return {
        "name": inputs.name,
        "kind": inputs.kind,
        "files": {part: str(path) for part, path in inputs.files.items()},
        "sizes": sizes(inputs),
        "preset": used.name,
        "family": used.family,
        "scheme": used.model.scheme,
        "features": used.features,
        "tasks": used.tasks,
        "seed": plan.settings.seed,
        "device": plan.settings.uses,
        "threads": torch.get_num_threads(),
        "model": asdict(used.model),
        "train": asdict(used.train),
        "reading": asdict(plan.reading),
        "asked": asked,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
    }


def sizes(inputs: Inputs) -> dict[str, int]:
    """How large a problem is."""
    graphs, y = inputs.graphs, inputs.data.y
    loops = sum(int((graph.edge_index[0] == graph.edge_index[1]).sum()) for graph in graphs)
    arcs = sum(graph.edge_index.size(1) for graph in graphs)
    one_way = inputs.kind == "nodes" and not graphs[0].is_undirected()
    return {
        **({"graphs": len(graphs)} if inputs.kind == "graphs" else {}),
        "nodes": sum(int(graph.num_nodes) for graph in graphs),
        "edges": arcs if one_way else (arcs + loops) // 2,
        "attributes": 0 if graphs[0].x is None else int(graphs[0].x.size(1)),
        "classes": len(inputs.class_names),
        "labelled": 0 if y is None else int((y >= 0).sum()),
    }


def _text(name: str | Path | None) -> str | None:
    return None if name is None else str(name)


def _described(plan: Plan) -> str:
    counted = sizes(plan.inputs)
    split = plan.splits[0]
    parts = ", ".join(f"{value:,} {name}" for name, value in counted.items() if value)
    held = " / ".join(f"{getattr(split, part).numel():,}" for part in ("train", "val", "test"))
    return f"{plan.inputs.name}: {parts}; {held} to train / validate / test"


def _told(result: dict[str, Any], number: int, count: int) -> str:
    tested = "" if result["test_accuracy"] is None else f", test {result['test_accuracy']:.3f}"
    which = "trained" if count == 1 else f"split {number + 1} of {count}"
    best = f"best epoch {result['best_epoch']} of {result['epochs']}"
    return f"{which}: validation {result['val_accuracy']:.3f}{tested} ({best}, {result['seconds']:.1f} s)"
