"""Files for users: predictions, embeddings and the model card."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demonet.atomic import check_file, is_stream, replacing
from demonet.errors import DemonetError
from demonet.runs.evaluate import decided, shown
from demonet.runs.run import Run
from demonet.runs.tables import Column, write_csv, write_parquet
from demonet.train.metrics import METRICS, Task

_PARTS = ("train", "val", "test")
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

{model} that
{does}. Made with demonet {version}, {how}, seed {seed}.

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

{metrics}

{others}
{candidates}
## Limits

{limits}

## Files

`model.safetensors` is the model (`demonet predict RUN EDGES`), `predictions.csv` every prediction, `split.json` who was
trained on and tested, `metrics.json` and `config.json` the numbers, `report.html` the page to look at.
"""
_PAPER = "([DEMO-Net, KDD'19](https://arxiv.org/abs/1906.02319))"
_MODELS = {
    "network": f"A degree-specific graph neural network {_PAPER}",
    "kernel": f"A kernel machine, the closed form of a degree-specific graph neural network {_PAPER},",
    "auto": f"A weighted average of several models, among them degree-specific ones {_PAPER},",
}
RULE = (
    "Strict: model and simple baselines are fitted on the training part alone. Refit: both are fitted again on "
    "training and validation items, with everything that validation chose kept; this is the model that is saved."
)
PRIVACY = (
    "A kernel machine contains its training data: `model.safetensors` has the attributes and degrees of the labelled "
    "nodes, or the labelled graphs. Do not publish it if these are private."
)


def write_predictions(
    path: Path,
    noun: str,
    ids: Sequence[str],
    names: Sequence[str],
    outputs: NDArray[np.float32],
    task: Task = "classify",
    y: NDArray[Any] | None = None,
    part: NDArray[np.int8] | None = None,
    *,
    excel: bool = False,
) -> None:
    """Write predictions as CSV, see :func:`~demonet.runs.tables.write_csv`, or as ``.parquet``.

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
        excel: Put an apostrophe before names that a spreadsheet would compute, such as ``=HYPERLINK(...)``.
    """
    if excel:
        ids, names = [inert(name) for name in ids], [inert(name) for name in names]
    columns = [Column(noun, ids)]
    if y is not None and part is not None:
        if y.ndim == 1:
            columns.append(Column("label", y, names))
        else:
            several = [f"{name} label" for name in names] if len(names) > 1 else ["label"]
            columns += [Column(name, y[:, place], gaps=True) for place, name in enumerate(several)]
        columns.append(Column("part", part, _PARTS))
    predicted = decided(task, outputs)
    each = [Column(name, outputs[:, place]) for place, name in enumerate(names)]
    if task == "classify":
        confidence = np.take_along_axis(outputs, predicted[:, None], 1)[:, 0]
        columns += [Column("prediction", predicted, names), Column("confidence", confidence), *each]
    elif task == "multilabel":
        columns += [Column(name, predicted[:, place].astype(np.int64)) for place, name in enumerate(names)]
        columns += [replace(column, name=f"{column.name} probability") for column in each]
    else:
        columns += each if len(names) > 1 else [replace(each[0], name="prediction")]
    with replacing(path) as temporary:
        (write_parquet if path.suffix.lower() == ".parquet" else write_csv)(temporary, columns)


def inert(name: str) -> str:
    """A name as a spreadsheet shows it, and never computes it.

    >>> inert("=1+1"), inert("a=1"), inert("-3.5")
    ("'=1+1", 'a=1', '-3.5')
    """
    number = re.fullmatch(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", name, re.IGNORECASE)
    return f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") and not number else name


def write_embeddings(path: Path, noun: str, ids: Sequence[str], embedding: NDArray[np.float32]) -> None:
    """Write ids and ``e0, e1, ...`` as ``.parquet`` or ``.csv``, or the matrix alone as ``.npy``; CSV to a stream."""
    check_suffix(path)
    columns = [Column(noun, ids), *(Column(f"e{place}", embedding[:, place]) for place in range(embedding.shape[1]))]
    with replacing(path) as temporary:
        if path.suffix.lower() == ".npy":
            with temporary.open("wb") as stream:
                np.save(stream, embedding, allow_pickle=False)
        else:
            (write_parquet if path.suffix.lower() == ".parquet" else write_csv)(temporary, columns)


def check_suffix(path: Path, inputs: Iterable[str | Path | None] = ()) -> None:
    """Fail early if embeddings cannot be written to a file: its suffix or its folder is wrong, or it is an input.

    A stream gets CSV.
    """
    if path.suffix.lower() not in SUFFIXES and not is_stream(path):
        raise DemonetError(
            f"unknown suffix {path.suffix!r}", argument="out", file=path, hint=f"use {', '.join(SUFFIXES)}"
        )
    check_file(path, inputs=inputs)


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
        version=config["versions"]["demonet"],
        model=_MODELS[run.model],
        how=_how(run),
        seed=config["seed"],
        data="\n".join(f"- {escaped(name)}: {value:,}" for name, value in sizes.items()),
        counts="\n".join(f"| {escaped(n)} | {c:,} |" for n, c in zip(run.class_names, counted, strict=True)),
        split=(
            f"{split['train']:,} {run.kind} for training, {split['val']:,} for {chosen_by(run)}, {split['test']:,} "
            f"for one test at the end ({escaped(split['name'])}, hash `{split['hash']}`)."
        ),
        metrics="\n".join(_metric_rows(run)),
        others="\n".join(_other_numbers(run)),
        candidates="\n".join(_candidate_rows(run)),
        limits="\n".join(f"- {limit}" for limit in _limits(run)),
    )


def escaped(text: str) -> str:
    r"""Text on one line with Markdown characters escaped.

    >>> print(escaped("a|b <script>"))
    a\|b \<script\>
    """
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&$-])", r"\\\1", " ".join(text.split()))


def _how(run: Run) -> str:
    config = run.config
    if run.model == "network":
        return f"preset `{config['preset']}`, scheme `{config['scheme']}`"
    return f"model `{run.model}`" + (f", effort `{run.metrics['effort']}`" if "effort" in run.metrics else "")


def chosen_by(run: Run) -> str:
    """What the validation part is for."""
    return {"network": "choosing the epoch", "auto": "choosing weights"}.get(run.model, "the comparison of settings")


def _metric_rows(run: Run) -> list[str]:
    """A table: the model and its floors, a column for each rule."""
    metrics, title = run.metrics, escaped(run.metric.title)
    if metrics["test_metric"] is None:
        return ["Nothing was held out for a test."]
    columns = {rule: metrics[rule] for rule in ("refit", "strict") if metrics.get(rule)}
    named = len(columns) > 1
    heads = [f"test {title}{f', {rule}' if named else ''}" for rule in columns]
    rows = [f"| | {' | '.join(heads)} |", "|---|" + "---|" * len(columns)]
    bold = ["**"] + [""] * (len(columns) - 1)
    cells = [
        f"{mark}{shown(found['test_metric'])}{mark}{_interval(found['test_metric_interval'])}"
        for mark, found in zip(bold, columns.values(), strict=True)
    ]
    rows.append(f"| **DEMO-Net** | {' | '.join(cells)} |")
    inductive = metrics.get("inductive")
    if inductive and "refit" in inductive:
        cells = [
            f"{shown(inductive[r]['test_metric'])}{_interval(inductive[r]['test_metric_interval'])}" for r in columns
        ]
        rows.append(f"| DEMO-Net, on another graph | {' | '.join(cells)} |")
    for name in metrics["floors"]:
        values = [found["floors"].get(name) for found in columns.values()]
        cells = ["" if value is None else shown(value) for value in values]
        rows.append(f"| {_BASELINE_NAMES.get(name, name)} | {' | '.join(cells)} |")
    over = metrics.get("cv")
    if over and over["interval"]:
        means = [over[rule]["test_metric"] for rule in columns]
        cells = [f"{shown(float(np.mean(values)))} ± {shown(float(np.std(values, ddof=1)))}" for values in means]
        cells[0] += _interval(over["interval"], "95 % interval of the mean")
        rows.append(f"| DEMO-Net, mean of {over['splits']} splits | {' | '.join(cells)} |")
    told = [RULE] if named else []
    if inductive:
        told.append(left_out_sentence(run))
    return [*rows, *(line for sentence in told for line in ("", sentence))]


def left_out_sentence(run: Run) -> str:
    """What happens on another graph than the fitted one, and the test score that holds there; empty if nothing does."""
    inductive = run.metrics.get("inductive")
    if not inductive:
        return ""
    names, weight = ", ".join(inductive["left_out"]), sum(inductive["left_out"].values())
    told = (
        f"Candidates that know the nodes of this graph by their ids ({names}; weight {weight:.2f}) are used while it "
        "changes, and left out for another graph"
    )
    found = inductive.get("refit", {})
    if found.get("test_metric") is None:
        return f"{told}."
    value = f"{shown(found['test_metric'])}{_interval(found['test_metric_interval'])}"
    return f"{told}: without them, test {run.metric.title} is {value}."


def _interval(bounds: list[float] | None, name: str = "95 % interval") -> str:
    return f" ({name} {shown(bounds[0])} to {shown(bounds[1])})" if bounds else ""


def _candidate_rows(run: Run) -> list[str]:
    """The candidates of an ensemble, what it gained, and what the degree is worth."""
    metrics, lines = run.metrics, [""]
    if metrics.get("candidates"):
        title, judged = escaped(run.metric.title), metrics["judged"]
        lines += [
            "## Candidates",
            "",
            f"| candidate | {judged['by']} {title} | weight | seconds | |",
            "|---|---|---|---|---|",
        ]
        for row in sorted(metrics["candidates"], key=lambda row: -row["weight"]):
            score = "" if row["score"] is None else f"{shown(row['score'])}{_interval(row['interval'])}"
            note = "" if row["status"] == "fitted" else f"{row['status']}: "
            seconds = row["seconds"] + row["refit_seconds"]
            note = escaped(f"{note}{row['reason']}")
            lines.append(f"| {row['name']} | {score} | {row['weight']:.3f} | {seconds:.1f} | {note} |")
        lines += ["", gain_sentence(run, escaped(run.metric.title)), ""]
    effect = metrics.get("degree_effect")
    if effect:
        told = effect.get("verdict") or f"Not measured: {effect['skipped']}."
        lines += ["## Does the degree matter here?", "", told, ""]
    return lines


def gain_sentence(run: Run, title: str) -> str:
    """What the average gained over its best candidate, on the items that the weights were chosen on.

    Args:
        run: Of the model ``"auto"``.
        title: That of its metric, escaped where needed.
    """
    gains, judged = run.metrics["gain"], run.metrics["judged"]
    told = []
    for metric, gain in gains.items():
        if not gain:
            continue
        bounds = gain["interval"]
        apart = bounds and any(round(bound, 3) for bound in bounds)
        within = f", 95 % interval {signed(bounds[0])} to {signed(bounds[1])}" if apart else ""
        verb = "better" if gain["difference"] > 0 else "worse"
        size = f"{abs(gain['difference']):.3f} {verb}" if round(gain["difference"], 3) else "level"
        told.append(
            f"{title if metric == run.metric.name else METRICS[metric].title} {shown(gain['ensemble_score'])}, where "
            f"the best candidate, {gain['best']}, has {shown(gain['best_score'])} ({size}{within})"
        )
    numbers = "; ".join(told)
    how = f"{judged['items']:,} {run.kind} of {judged['by']}"
    return f"On {how} the ensemble has {numbers}. Its weights were chosen on these items, which flatters it."


def signed(value: float) -> str:
    """A difference with its sign.

    >>> signed(0.01234), signed(-0.0001)
    ('+0.012', '+0.000')
    """
    return f"{round(value, 3) + 0.0:+.3f}"


def _other_numbers(run: Run) -> list[str]:
    metrics, lines = run.metrics, []
    if metrics["val_metric"] is not None:
        validation = f"- validation {escaped(run.metric.title)} {shown(metrics['val_metric'])}, strict"
        lines.append(f"{validation}; that part is for {chosen_by(run)}")
    others = {"test_accuracy": "accuracy", "macro_f1": "macro F1", "average_precision": "average precision"}
    others |= {"rmse": "RMSE", "mae": "MAE", "r2": "R²"}
    lines += [
        f"- {title} on the test part {shown(metrics[key])}"
        for key, title in others.items()
        if metrics.get(key) is not None and title != run.metric.title
    ]
    epochs = f"{metrics['epochs']:,} epochs in " if "epochs" in metrics else ""
    return [*lines, f"- {epochs}{metrics['seconds']:.1f} seconds"]


def _limits(run: Run) -> list[str]:
    limits = []
    value, floors, sign = run.metrics["test_metric"], run.metrics["floors"], 1 if run.metric.larger_is_better else -1
    if value is not None and floors:
        best = max(floors, key=lambda name: sign * floors[name])
        if sign * floors[best] >= sign * value:
            limits.append(f"It does not beat {_BASELINE_NAMES.get(best, best)} on this test: prefer the simpler model.")
    if run.metrics["split"]["test"] < 200:
        limits.append("The test part is small: the interval above is wide, and another split can move it by points.")
    if run.model == "kernel" or any(
        row["kind"] == "kernel" and row["weight"] for row in run.metrics.get("candidates", [])
    ):
        limits.append(PRIVACY)
    if "adjacency" in run.config.get("features", "").split("+"):
        limits.append("Its features are rows of the adjacency matrix, so it works on this graph only.")
    else:
        limits.append("Predictions for degrees not seen in training are less certain.")
    if run.config["sizes"].get("attributes"):
        limits.append("Another graph needs the same attributes, in columns of the same names.")
    limits.append("It was tested on random items of the same data, not on data of another time or source.")
    return limits
