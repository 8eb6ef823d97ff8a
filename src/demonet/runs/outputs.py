"""Files for users: predictions, embeddings and the model card."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demonet.atomic import replacing
from demonet.errors import DemonetError
from demonet.runs.evaluate import decided, shown
from demonet.runs.run import Run
from demonet.train.metrics import Task

_PARTS = {0: "train", 1: "val", 2: "test", -1: ""}
SUFFIXES = (".parquet", ".csv", ".npy")
_BASELINE_NAMES = {
    "majority": "the most frequent answer for everyone",
    "mean": "the mean for everyone",
    "degree-knn": "nearest neighbours on the degree alone",
    "attribute-lr": "logistic regression on the attributes alone",
    "attribute-ridge": "linear regression on the attributes alone",
}
# By task: what the model does, what is predicted, what a prediction comes with, and the heading of a table of names.
_CARD_WORDS: dict[str, tuple[str, str, str, str]] = {
    "classify": (
        "sorts {what} into {count} classes",
        "the class",
        "Each prediction comes with a probability for\nevery class; these were not calibrated, so read them as an "
        "order, not as frequencies.",
        "class | labelled {items}",
    ),
    "multilabel": (
        "predicts {count} labels of {what}",
        "the labels",
        "Each label is predicted from\nprobability 0.5 on; probabilities were not calibrated, so read them as an "
        "order, not as frequencies.",
        "label | {items} that have it",
    ),
    "regress": (
        "predicts {count} for {what}",
        "the numbers",
        "Predictions are in the units of\nthe labels and come without an interval of their own.",
        "target | labelled {items}",
    ),
}
_CARD = """\
# Model card: DEMO-Net on {name}

A degree-specific graph neural network ([DEMO-Net, KDD'19](https://arxiv.org/abs/1906.02319)) that
{does}. Made with demonet {version}, preset `{preset}`, scheme `{scheme}`, seed {seed}.

## Intended use

{use}. {with_it}

## Data

{data}

| {heading} |
|---|---|
{counts}

## Split

{split}

## Metrics

| | test {metric} |
|---|---|
{metrics}

{others}

## Limits

{limits}

## Files

`model.safetensors` is the model (`demonet predict RUN EDGES`), `predictions.csv` every prediction, `split.json` who was
trained on and tested, `metrics.json` and `config.json` the numbers, `report.html` the page to look at.
"""


def write_predictions(
    path: Path,
    noun: str,
    ids: Sequence[str],
    names: Sequence[str],
    outputs: NDArray[np.float32],
    task: Task = "classify",
    y: NDArray[Any] | None = None,
    part: NDArray[np.int8] | None = None,
) -> None:
    """Write predictions as a CSV file; names are quoted as needed, numbers have 9 digits, which restore every float32.

    The first column, ``noun``, has the ids. With ``y``, the true ``label`` follows, empty if it is unknown (with
    several columns, ``NAME label`` for each), and the ``part``: ``train``, ``val``, ``test``, or empty. The others
    depend on the task: ``prediction,confidence`` and a probability for each class; or 0 or 1 for each label, then the
    probability of each (``NAME probability``); or ``prediction`` (with several target columns, one column of that name
    for each).

    Args:
        path: The file.
        noun: ``"node"`` or ``"graph"``.
        ids: The id of each row.
        names: The name of each class, label or target column.
        outputs: ``[rows, names]`` probabilities or values.
        task: ``"classify"``, ``"multilabel"`` or ``"regress"``.
        y: ``[rows]`` classes, -1 for unknown; or ``[rows, names]`` labels or numbers, NaN for unknown.
        part: ``[rows]`` 0 training, 1 validation, 2 test, -1 none of them.
    """
    known = [[]] * len(ids) if y is None or part is None else _known(y, part, names)
    first = [] if y is None else ["label", "part"] if len(known[0]) == 2 else [*(f"{n} label" for n in names), "part"]
    header = {
        "classify": ["prediction", "confidence", *names],
        "multilabel": [*names, *(f"{name} probability" for name in names)],
        "regress": ["prediction"] if len(names) == 1 else list(names),
    }[task]
    predicted = decided(task, outputs).tolist()
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n", quoting=_quoting([*ids, *names]))
        writer.writerow([noun, *first, *header])
        for name, true, found, row in zip(ids, known, predicted, outputs.tolist(), strict=True):
            numbers = [f"{value:.9g}" for value in row]
            decided_as = [names[found], numbers[found]] if task == "classify" else found if task == "multilabel" else []
            writer.writerow([name, *true, *decided_as, *numbers])


def _known(y: NDArray[Any], part: NDArray[np.int8], names: Sequence[str]) -> list[list[str]]:
    """The true label or labels and the part of each row, as text."""
    parts = [_PARTS[number] for number in part.tolist()]
    if y.ndim == 1:
        return [["" if code < 0 else names[code], name] for code, name in zip(y.tolist(), parts, strict=True)]
    rows = [["" if value != value else f"{value:.9g}" for value in row] for row in y.tolist()]
    return [[*row, name] for row, name in zip(rows, parts, strict=True)]


def write_embeddings(path: Path, noun: str, ids: Sequence[str], embedding: NDArray[np.float32]) -> None:
    """Write ids and ``e0, e1, ...`` as ``.parquet`` or ``.csv``, or the matrix alone as ``.npy``."""
    check_suffix(path)
    names = [f"e{column}" for column in range(embedding.shape[1])]
    with replacing(path) as temporary:
        if path.suffix.lower() == ".npy":
            with temporary.open("wb") as stream:
                np.save(stream, embedding, allow_pickle=False)
        elif path.suffix.lower() == ".parquet":
            import pyarrow as pa
            from pyarrow import parquet

            table = pa.table([pa.array(list(ids), pa.string()), *np.ascontiguousarray(embedding.T)], [noun, *names])
            parquet.write_table(table, temporary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as out:
                writer = csv.writer(out, lineterminator="\n", quoting=_quoting(ids))
                writer.writerow([noun, *names])
                writer.writerows(
                    [name, *(f"{v:.9g}" for v in row)] for name, row in zip(ids, embedding.tolist(), strict=True)
                )


def check_suffix(path: Path) -> None:
    """Fail early if embeddings cannot be written to a file: its suffix or its folder is wrong."""
    if path.suffix.lower() not in SUFFIXES:
        raise DemonetError(
            f"unknown suffix {path.suffix!r}", argument="out", file=path, hint=f"use {', '.join(SUFFIXES)}"
        )
    check_folder(path)


def check_folder(path: Path) -> None:
    """Fail early if a file cannot be written because its folder does not exist."""
    if not path.parent.is_dir():
        raise DemonetError("the folder does not exist", file=path)
    if path.is_dir():
        raise DemonetError("this is a folder", file=path, hint="use a file name")


def _quoting(names: Sequence[str]) -> Any:
    """Quote as needed; quote everything if a name has a carriage return, which Python before 3.13 does not quote."""
    return csv.QUOTE_ALL if any("\r" in name for name in names) else csv.QUOTE_MINIMAL


def model_card(run: Run) -> str:
    """The model card as Markdown; names from the data are escaped."""
    metrics, config = run.metrics, run.config
    sizes, split = config["sizes"], metrics["split"]
    nodes = run.kind == "nodes"
    what = "the nodes of a graph" if nodes else "whole graphs"
    whose = "nodes of this graph, or of others like it" if nodes else "graphs like these"
    does, predicted, with_it, heading = _CARD_WORDS[run.task]
    count: Any = len(run.class_names)
    if run.task == "regress":
        count = "a number" if count == 1 else f"{count} numbers"
    if run.task == "classify":
        counted = np.bincount(run.y[run.y >= 0], minlength=len(run.class_names)).tolist()
    else:
        counted = (run.y == 1 if run.task == "multilabel" else ~np.isnan(run.y)).sum(0).tolist()
    return _CARD.format(
        name=escaped(str(config["name"])),
        does=does.format(what=what, count=count),
        use=f"Predicting {predicted} of {whose}",
        with_it=with_it,
        heading=heading.format(items=run.kind),
        metric=run.metric.title,
        version=config["versions"]["demonet"],
        preset=config["preset"],
        scheme=config["scheme"],
        seed=config["seed"],
        data="\n".join(f"- {escaped(name)}: {value:,}" for name, value in sizes.items()),
        counts="\n".join(f"| {escaped(n)} | {c:,} |" for n, c in zip(run.class_names, counted, strict=True)),
        split=(
            f"{split['train']:,} {run.kind} for training, {split['val']:,} for choosing the epoch, {split['test']:,} "
            f"for one test at the end ({escaped(split['name'])}, hash `{split['hash']}`)."
        ),
        metrics="\n".join(_metric_rows(metrics)),
        others="\n".join(_other_numbers(run)),
        limits="\n".join(f"- {limit}" for limit in _limits(run)),
    )


def escaped(text: str) -> str:
    r"""Text on one line with Markdown characters escaped.

    >>> print(escaped("a|b <script>"))
    a\|b \<script\>
    """
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&$-])", r"\\\1", " ".join(text.split()))


def _metric_rows(metrics: dict[str, Any]) -> list[str]:
    if metrics["test_metric"] is None:
        return ["| nothing was held out for a test | |"]
    interval = metrics["test_metric_interval"]
    text = f" (95 % interval {shown(interval[0])} to {shown(interval[1])})" if interval else ""
    rows = [f"| **DEMO-Net** | **{shown(metrics['test_metric'])}**{text} |"]
    rows += [f"| {_BASELINE_NAMES.get(name, name)} | {shown(value)} |" for name, value in metrics["floors"].items()]
    over = metrics.get("cv")
    if over and over["interval"]:
        low, high = over["interval"]
        spread = f"{shown(over['mean'])} ± {shown(over['std'])}"
        text = f"{spread} (95 % interval of the mean {shown(low)} to {shown(high)})"
        rows.append(f"| DEMO-Net, mean of {over['splits']} splits | {text} |")
    return rows


def _other_numbers(run: Run) -> list[str]:
    metrics, lines = run.metrics, []
    if metrics["val_metric"] is not None:
        lines.append(f"- validation {run.metric.title} {shown(metrics['val_metric'])}, from which the epoch was chosen")
    others = {"test_accuracy": "accuracy", "macro_f1": "macro F1", "average_precision": "average precision"}
    others |= {"rmse": "RMSE", "mae": "MAE", "r2": "R²"}
    lines += [
        f"- {title} on the test part {shown(metrics[key])}"
        for key, title in others.items()
        if metrics.get(key) is not None and title != run.metric.title
    ]
    return [*lines, f"- {metrics['epochs']:,} epochs in {metrics['seconds']:.1f} seconds"]


def _limits(run: Run) -> list[str]:
    limits = []
    value, floors, sign = run.metrics["test_metric"], run.metrics["floors"], 1 if run.metric.larger_is_better else -1
    if value is not None and floors:
        best = max(floors, key=lambda name: sign * floors[name])
        if sign * floors[best] >= sign * value:
            limits.append(f"It does not beat {_BASELINE_NAMES.get(best, best)} on this test: prefer the simpler model.")
    if run.metrics["split"]["test"] < 200:
        limits.append("The test part is small: the interval above is wide, and another split can move it by points.")
    if "adjacency" in run.config["features"].split("+"):
        limits.append("Its features are rows of the adjacency matrix, so it works on this graph only.")
    else:
        limits.append("Predictions for degrees not seen in training are less certain.")
    if run.config["sizes"].get("attributes"):
        limits.append("Another graph needs the same attributes, in columns of the same names.")
    limits.append("It was tested on random items of the same data, not on data of another time or source.")
    return limits
