"""Made-up rows of every part, as the ledger would give them: most cells there, some short of runs, some not yet run."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from demonet.runs.statistics import spread
from demonet_study.report.grid import ResultRow
from demonet_study.report.parts import PARTS

LEVEL = {"demonet-default": 0.1, "majority": -0.35, "gin": 0.06, "gcn": -0.08, "sage": -0.12}
FACTS = {"runs behind these numbers": "4,213", "their processor time": "31 h", "device": "cpu", "code": "9f86d081"}


def filled(row: ResultRow, values) -> ResultRow:
    """The row with these runs."""
    mean, std, ci95 = spread(list(values))
    made = {"seconds": 1.5, "peak_memory_mb": 300.0, "device": "cpu", "code": "9f86d081"} if len(values) else {}
    return replace(row, mean=mean, std=std, ci95=ci95, runs=len(values), values=tuple(map(float, values)), **made)


def row(part="nodes", dataset="brazil", method="gcn", values=(), **changes) -> ResultRow:
    """One row by hand; as many runs are wanted as there are values."""
    nothing = dict.fromkeys(("train_fraction", "mean", "std", "ci95", "paper", "paper_std"), math.nan)
    cost = {"seconds": math.nan, "peak_memory_mb": math.nan, "device": "", "code": ""}
    place = {"part": part, "dataset": dataset, "method": method, "preset": "", "variant": "", "split": "thirds"}
    return filled(ResultRow(**place | nothing | cost | {"runs": 0, "wanted": len(values)} | changes), values)


def made_up(empty: ResultRow, random: np.random.Generator) -> ResultRow:
    """Runs around the printed number or around a guess; one cell in 25 has none, one in 16 too few."""
    if random.random() < 0.04:
        return empty
    runs = min(10 if random.random() < 0.06 else empty.wanted, empty.wanted)
    if empty.part == "properties":
        return filled(empty, [1.0 if math.isnan(empty.paper) else empty.paper])
    if empty.part == "speed":
        slower = {"gat": 4.0, "demonet-weight": 0.8, "demonet-hash": 0.7}.get(empty.method, 1.5)
        return filled(empty, slower * float(empty.dataset.rpartition("-")[2]) / 1000 * random.lognormal(0, 0.1, runs))
    if empty.part == "identity":
        return filled(empty, abs(random.normal(0.3 if empty.method == "gcn" else 0.05, 0.05, runs)))
    share = 0 if math.isnan(empty.train_fraction) else 0.15 * empty.train_fraction
    guess = 0.55 + LEVEL.get(empty.method, 0.0) + share
    centre = (guess if math.isnan(empty.paper) else empty.paper) + random.normal(0, 0.03)
    width = 0.06 if empty.dataset in ("brazil", "MUTAG") else 0.02
    return filled(empty, np.clip(random.normal(centre, width, runs), 0, 1))


def paper_rows(seed: int = 0, quick: bool = False) -> dict[str, list[ResultRow]]:
    """Every part, in full or as ``--quick`` has it."""
    random = np.random.default_rng(seed)
    return {name: [made_up(empty, random) for empty in part.rows({}, quick=quick)] for name, part in PARTS.items()}


def points(seed: int = 0) -> dict[str, dict[str, dict]]:
    """Pictures of the identity part: twins together, near each other, or anywhere."""
    random = np.random.default_rng(seed)
    noise = {"DEMO-Net, default, degree": 0.0, "GCN, identity": 0.5, "struc2vec": 0.2, "GraphWave": 0.01}
    found: dict[str, dict[str, dict]] = {}
    for graph, roles in (("mirrored-karate", 27), ("barbell", 7), ("cycle", 1)):
        role = [node % roles for node in range(max(2 * roles, 12))]
        middle = random.normal(size=(roles, 2))
        found[graph] = {
            name: {"xy": (middle[role] + width * random.normal(size=(len(role), 2))).tolist(), "roles": role}
            for name, width in noise.items()
        }
    return found
