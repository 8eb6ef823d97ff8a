"""A page on which every text is hostile, and runs of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.figures import interval_bars, learning_curves
from demonet.report.page import Facts, Figure, Page, Table, Text
from demonet.report.table_cells import Column, Estimate
from demonet.runs.evaluate import interval_of
from demonet.runs.run import Run
from demonet.train.metrics import METRICS
from demonet.train.objective import value_of

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"'`{{ 7 * 7 }}",
    '<b>bold</b> &lt;i&gt; $x^2$ %{x} <a href="javascript:alert(3)">link</a>',
    "<!--<script> \u2028\u2029 \ud800",
)


@pytest.fixture(scope="session")
def hostile() -> tuple[str, ...]:
    return HOSTILE


@pytest.fixture(scope="session")
def hostile_page() -> Page:
    """One section of each kind and one figure of each builder, hostile text wherever a user's text goes."""
    history = {"train_loss": [1.0, 0.6, 0.5], "val_loss": [1.1, 0.8, 0.9], "val_accuracy": [0.3, 0.6, 0.6]}
    table = Table(
        [
            Column(HOSTILE[0]),
            Column(HOSTILE[1], best="max"),
            "a column with a rather long name",
            Column("nodes", best="max"),
        ],
        [[text, Estimate(0.5 + i / 100, 0.04), text, 1000 * i] for i, text in enumerate(HOSTILE)],
        caption=HOSTILE[3],
        title=HOSTILE[4],
    )
    bars = interval_bars(dict.fromkeys(HOSTILE, (0.5, 0.4, 0.6)), highlight=HOSTILE[:1], title=HOSTILE[0])
    curves = learning_curves(dict.fromkeys(HOSTILE, history))
    points = [Series(name, [i, i], [0, i], mark="points", hover=[name] * 2) for i, name in enumerate(HOSTILE)]
    scatter = Chart(HOSTILE[3], [Panel(HOSTILE[0], points)], Axis(HOSTILE[0]), Axis(HOSTILE[1]))
    return Page(
        HOSTILE[0],
        HOSTILE[1],
        [
            Facts(
                dict(zip(HOSTILE, (Estimate(0.75, 0.06), 131, 0.5, None, HOSTILE[0]), strict=True)), title=HOSTILE[2]
            ),
            Text("\n\n".join(HOSTILE), title=HOSTILE[3]),
            table,
            Figure(bars, HOSTILE[0], HOSTILE[3], title=HOSTILE[1], half=True),
            Figure(curves, HOSTILE[2], HOSTILE[3], title=HOSTILE[1], half=True),
            Figure(scatter, HOSTILE[3], HOSTILE[3], title=HOSTILE[1]),
        ],
    )


@pytest.fixture(scope="session")
def make_run():
    """A run that learnt something, of any size, with the metrics that it has; keywords replace what it has."""

    def make(count=60, classes=3, *, kind="nodes", seed=0, **changes) -> Run:
        random = np.random.default_rng(seed)
        y = random.integers(0, classes, count)
        scores = random.normal(size=(count, classes)) + 2 * np.eye(classes)[y]
        probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        degree = np.minimum(random.zipf(1.7, count), 5000)
        degrees, degree_counts = np.unique(degree, return_counts=True)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789"))[random.integers(0, 36, (count, 10))]
        fall = np.linspace(1, 0.2, 30)
        metrics = changes.pop("metrics", {})
        contents = {
            "kind": kind,
            "config": {
                **{"name": "made up", "task": "classify", "metric": "accuracy", "files": {"edges": "edges.csv"}},
                **{"preset": "default", "seed": seed, **changes.pop("config", {})},
            },
            "metrics": {},
            "history": {
                **{"train_loss": fall.tolist(), "val_loss": (fall + 0.2).tolist()},
                **{"val_metric": (1 - fall).tolist(), "best_epoch": 20},
            },
            "class_names": [f"class {index}" for index in range(classes)],
            "ids": ["".join(row) for row in letters],
            "y": y,
            "part": (np.arange(count) % 3).astype(np.int8),
            "outputs": probabilities.astype(np.float32),
            "degree": degree,
            "edge_count": 2 * degree if kind == "graphs" else None,
            "place": random.normal(size=(count, 2)).astype(np.float32),
            "degrees": degrees,
            "degree_counts": degree_counts,
            "degree_task": np.log2(degrees).astype(np.int64),
        }
        run = Run(**{**contents, **changes})
        run.metrics.update(_measured(run) | metrics)
        return run

    return make


def _measured(run: Run) -> dict:
    items = np.flatnonzero((run.part == 2) & run.known)
    given = METRICS[run.config["metric"]], run.task, run.y[items], run.outputs[items]
    value, interval = (value_of(*given), interval_of(*given, 20)) if items.size else (None, None)
    floors = {} if value is None else {"majority": 0.3, "degree-knn": 0.4}
    tested = {"test_metric": value, "test_metric_interval": interval, "floors": floors}
    sizes = {name: int((run.part == part).sum()) for part, name in enumerate(("train", "val", "test"))}
    return {
        **{"model": "network", "rule": "strict", "strict": tested, "refit": None, **tested},
        **{"val_metric": 0.75, "macro_f1": 0.68, "epochs": 30, "seconds": 1.25, "split": sizes},
    }


@pytest.fixture(scope="session")
def make_numbers(make_run):
    """A regression with some unknown targets."""

    def make(count=60, columns=1, **changes) -> Run:
        random = np.random.default_rng(5)
        y = random.normal(size=(count, columns))
        outputs = (y + random.normal(scale=0.4, size=y.shape)).astype(np.float32)
        y[::7] = np.nan
        names = [f"target {i}" for i in range(columns)]
        config = {"task": "regress", "metric": "rmse", "name": "numbers"}
        metrics = {"rmse": 0.4, "mae": 0.3, "r2": 0.8}
        curves = {"train_loss": [1.0, 0.5], "val_loss": [1.0, 0.6], "val_metric": [1.0, None], "best_epoch": 0}
        made = {"y": y, "outputs": outputs, "class_names": names, "config": config, "metrics": metrics}
        return make_run(count, **made, history=curves, **changes)

    return make


@pytest.fixture(scope="session")
def make_labels(make_run):
    """A multi-label run with some unknown labels."""

    def make(labels=3, count=80, **changes) -> Run:
        random = np.random.default_rng(6)
        y = random.integers(0, 2, (count, labels)).astype(np.float64)
        outputs = np.clip(0.5 + 0.3 * (y - 0.5) + random.normal(scale=0.25, size=y.shape), 0, 1).astype(np.float32)
        y[::6], y[1::9, 0] = np.nan, np.nan
        row = {"positives": 9, "known": 20, "precision": 0.8, "recall": 0.7, "f1": 0.75, "average_precision": None}
        names = [f"label {i}" for i in range(labels)]
        config = {"task": "multilabel", "metric": "average-precision", "name": "labels"}
        metrics = {"labels": [{"name": name, **row} for name in names]}
        made = {"y": y, "outputs": outputs, "class_names": names, "config": config, "metrics": metrics}
        return make_run(count, **made, **changes)

    return make
