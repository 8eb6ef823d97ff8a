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
from demonet.runs.run import Run

SUFFIXES = (".parquet", ".csv", ".npy")
_BASELINE_NAMES = {
    "majority": "the commonest class for everyone",
    "degree-knn": "nearest neighbours on the degree alone",
    "attribute-lr": "logistic regression on the attributes alone",
}
_CARD = """\
# Model card: DEMO-Net on {name}

A degree-specific graph neural network ([DEMO-Net, KDD'19](https://arxiv.org/abs/1906.02319)) that sorts
{what} into {classes} classes. Made with demonet {version}, preset `{preset}`, scheme `{scheme}`, seed {seed}.

## Intended use

{use}. Each prediction comes with a probability for
every class; these were not calibrated, so read them as an order, not as frequencies.

## Data

{data}

| class | labelled {items} |
|---|---|
{counts}

## Split

{split}

## Metrics

| | test accuracy |
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
    path: Path, noun: str, ids: Sequence[str], class_names: Sequence[str], probabilities: NDArray[np.float32]
) -> None:
    """Write a CSV file with the columns ``noun,prediction,confidence`` and one per class; names are quoted as needed.

    Args:
        path: The file.
        noun: ``"node"`` or ``"graph"``.
        ids: The id of each row.
        class_names: The name of each class.
        probabilities: ``[rows, classes]``, written with 9 digits, which restore every float32.
    """
    best = probabilities.argmax(1)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n", quoting=_quoting([*ids, *class_names]))
        writer.writerow([noun, "prediction", "confidence", *class_names])
        for name, place, row in zip(ids, best.tolist(), probabilities.tolist(), strict=True):
            numbers = [f"{value:.9g}" for value in row]
            writer.writerow([name, class_names[place], numbers[place], *numbers])


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
    counted = np.bincount(run.y[run.y >= 0], minlength=len(run.class_names)).tolist()
    return _CARD.format(
        name=escaped(str(config["name"])),
        what="the nodes of a graph" if nodes else "whole graphs",
        use=f"Predicting the class of {'nodes of this graph, or of others like it' if nodes else 'graphs like these'}",
        items=run.kind,
        classes=len(run.class_names),
        version=config["versions"]["demonet"],
        preset=config["preset"],
        scheme=config["scheme"],
        seed=config["seed"],
        data="\n".join(f"- {escaped(name)}: {value:,}" for name, value in sizes.items()),
        counts="\n".join(f"| {escaped(n)} | {c:,} |" for n, c in zip(run.class_names, counted, strict=True)),
        split=(
            f"{split['train']:,} {run.kind} were trained on, {split['val']:,} chose the epoch, {split['test']:,} were "
            f"tested once, after that ({escaped(split['name'])}, hash `{split['hash']}`)."
        ),
        metrics="\n".join(_metric_rows(metrics)),
        others="\n".join(_other_numbers(metrics)),
        limits="\n".join(f"- {limit}" for limit in _limits(run)),
    )


def escaped(text: str) -> str:
    r"""Text on one line with Markdown characters escaped.

    >>> print(escaped("a|b <script>"))
    a\|b \<script\>
    """
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&$-])", r"\\\1", " ".join(text.split()))


def _metric_rows(metrics: dict[str, Any]) -> list[str]:
    if metrics["test_accuracy"] is None:
        return ["| nothing was held out for a test | |"]
    low, high = metrics["test_interval"]
    rows = [f"| **DEMO-Net** | **{metrics['test_accuracy']:.3f}** (95 % interval {low:.3f} to {high:.3f}) |"]
    rows += [f"| {_BASELINE_NAMES.get(name, name)} | {value:.3f} |" for name, value in metrics["floors"].items()]
    if "cv" in metrics:
        over = metrics["cv"]
        low, high = over["interval"]
        text = f"{over['mean']:.3f} ± {over['std']:.3f} (95 % interval of the mean {low:.3f} to {high:.3f})"
        rows.append(f"| DEMO-Net, mean of {over['splits']} splits | {text} |")
    return rows


def _other_numbers(metrics: dict[str, Any]) -> list[str]:
    lines = [f"- validation accuracy {metrics['val_accuracy']:.3f}, from which the epoch was chosen"]
    if metrics["macro_f1"] is not None:
        lines.append(f"- macro F1 on the test part {metrics['macro_f1']:.3f}")
    return [*lines, f"- {metrics['epochs']:,} epochs in {metrics['seconds']:.1f} seconds"]


def _limits(run: Run) -> list[str]:
    limits = []
    accuracy, floors = run.metrics["test_accuracy"], run.metrics["floors"]
    if accuracy is not None and floors and max(floors.values()) >= accuracy:
        best = max(floors, key=floors.__getitem__)
        limits.append(f"It does not beat {_BASELINE_NAMES.get(best, best)} on this test: prefer the simpler model.")
    if run.metrics["split"]["test"] < 200:
        limits.append("The test part is small: the interval above is wide, and another split can move it by points.")
    if "adjacency" in run.config["features"].split("+"):
        limits.append("Its features are rows of the adjacency matrix: it knows this graph and refuses any other.")
    else:
        limits.append("Degrees never seen in training fall back on what all degrees share, and are less certain.")
    if run.config["sizes"].get("attributes"):
        limits.append("Another graph needs the same attributes, in columns of the same names.")
    limits.append("It was tested on items drawn at random from the same data. Other times and places were not tested.")
    return limits
