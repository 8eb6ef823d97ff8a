"""Made-up rows of every part, as the ledger would give them: most cells there, some short of runs, some not yet run."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from demonet.experiments.parts import PARTS
from demonet.experiments.parts.row import Row, spread

LEVEL = {"demonet-default": 0.1, "majority": -0.35, "gin": 0.06, "gcn": -0.08, "sage": -0.12}


def filled(row: Row, values) -> Row:
    """The row with these runs."""
    mean, std, ci95 = spread(values)
    made = {"seconds": 1.5, "peak_memory_mb": 300.0, "device": "cpu", "code": "abc123"} if len(values) else {}
    return replace(row, mean=mean, std=std, ci95=ci95, runs=len(values), values=tuple(map(float, values)), **made)


def row(part="nodes", dataset="brazil", method="gcn", values=(), **changes) -> Row:
    """One row by hand."""
    nothing = dict.fromkeys(("train_fraction", "mean", "std", "ci95", "paper", "paper_std"), math.nan)
    empty = Row(
        part=part, dataset=dataset, method=method, preset="", variant="", split="thirds", **nothing, runs=0,
        wanted=len(values), seconds=math.nan, peak_memory_mb=math.nan, device="", code="",
    )  # fmt: skip
    return filled(replace(empty, **changes), list(values))


def accuracies(empty: Row, random: np.random.Generator) -> Row:
    """Runs around the printed number, or around a guess."""
    if random.random() < 0.04:
        return empty
    runs = 10 if random.random() < 0.06 else empty.wanted
    share = 0 if math.isnan(empty.train_fraction) else 0.15 * empty.train_fraction
    centre = empty.paper if not math.isnan(empty.paper) else 0.55 + LEVEL.get(empty.method, 0.0) + share
    centre += random.normal(0, 0.04)
    width = 0.06 if empty.dataset in ("brazil", "MUTAG") else 0.02
    return filled(empty, np.clip(random.normal(centre, width, min(runs, empty.wanted)), 0, 1))


def paper_rows(seed: int = 0) -> dict[str, list[Row]]:
    """Every part."""
    random = np.random.default_rng(seed)
    rows = {part: [accuracies(empty, random) for empty in PARTS[part].rows({})] for part in PARTS}
    return rows
