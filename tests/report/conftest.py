"""A page on which every text is hostile, and runs of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from demonet.report.figures import accuracy_bars, embedding_scatter, learning_curves
from demonet.report.page import Facts, Figure, Page, Table, Text
from demonet.report.table_cells import Column, Estimate
from demonet.runs.run import Run

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
    n = len(HOSTILE)
    history = {"train_loss": [1.0, 0.6, 0.5], "val_loss": [1.1, 0.8, 0.9], "val_accuracy": [0.3, 0.6, 0.6]}
    xy = np.random.default_rng(0).normal(size=(2 * n, 2))
    pairs = [(i, i + n) for i in range(n)]
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
    bars = accuracy_bars(dict.fromkeys(HOSTILE, (0.5, 0.1)), highlight=HOSTILE[:1], title=HOSTILE[0])
    curves = learning_curves(dict.fromkeys(HOSTILE, history), title=HOSTILE[1])
    scatter = embedding_scatter(xy, HOSTILE * 2, HOSTILE * 2, pairs=pairs, title=HOSTILE[3], axes=HOSTILE[:2])
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
    """A run that learnt something, of any size; keywords replace what it has."""

    def make(count=60, classes=3, *, kind="nodes", seed=0, **changes) -> Run:
        random = np.random.default_rng(seed)
        y = random.integers(0, classes, count)
        scores = random.normal(size=(count, classes)) + 2 * np.eye(classes)[y]
        probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        degree = np.minimum(random.zipf(1.7, count), 5000)
        degrees, degree_counts = np.unique(degree, return_counts=True)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789"))[random.integers(0, 36, (count, 10))]
        fall = np.linspace(1, 0.2, 30)
        contents = {
            "kind": kind,
            "config": {
                **{"name": "made up", "task": "classify", "metric": "accuracy", "files": {"edges": "edges.csv"}},
                **{"preset": "default", "seed": seed, **changes.pop("config", {})},
            },
            "metrics": {
                **{"test_accuracy": 0.7, "val_accuracy": 0.75, "macro_f1": 0.68, "epochs": 30, "seconds": 1.25},
                **{"floors": {"majority": 0.3, "degree only": 0.4}, "split": {"train": 1, "val": 1, "test": 1}},
                **{"model": "network", "val_metric": 0.75, "test_metric": 0.7, **changes.pop("metrics", {})},
            },
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
        return Run(**{**contents, **changes})

    return make


def _scored(metric, value, **more):
    floors = {"mean": value + 1, "degree-knn": value / 2}
    return {
        **{"metric": metric, "val_metric": value, "test_metric": value, "test_metric_interval": [value / 2, value * 2]},
        **{"floors": floors, "epochs": 30, "seconds": 1.25, "split": {"train": 1, "val": 1, "test": 1}, **more},
    }


@pytest.fixture(scope="session")
def make_numbers(make_run):
    """A regression with some unknown targets."""

    def make(count=60, columns=1, **changes) -> Run:
        random = np.random.default_rng(5)
        y = random.normal(size=(count, columns))
        outputs = (y + random.normal(scale=0.4, size=y.shape)).astype(np.float32)
        y[::7] = np.nan
        metrics = _scored("rmse", 0.4, rmse=0.4, mae=0.3, r2=0.8)
        names = [f"target {i}" for i in range(columns)]
        config = {"task": "regress", "metric": "rmse", "name": "numbers"}
        run = make_run(count, y=y, outputs=outputs, class_names=names, config=config, metrics=metrics, **changes)
        curves = {"train_loss": [1.0, 0.5], "val_loss": [1.0, 0.6], "val_metric": [1.0, None], "best_epoch": 0}
        run.history.clear()
        run.history.update(curves)
        return run

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
        metrics = _scored("average-precision", 0.5, macro_f1=0.7, labels=[{"name": name, **row} for name in names])
        config = {"task": "multilabel", "metric": "average-precision", "name": "labels"}
        return make_run(count, y=y, outputs=outputs, class_names=names, config=config, metrics=metrics, **changes)

    return make
