"""Files for users: predictions, embeddings and the model card."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demonet.atomic import replacing
from demonet.errors import DemonetError, Hint
from demonet.options import Decimal
from demonet.runs.evaluate import shown
from demonet.runs.facts import RunFacts, interval_text
from demonet.runs.run import Run
from demonet.runs.tables import Column, check_table, header_of, write_table
from demonet.train.metrics import Task
from demonet.train.objective import decided

_PARTS = ("train", "val", "test")
# By task: what the model does, what is predicted, what a prediction comes with, and the heading of a table of names.
_CARD_WORDS: dict[str, tuple[str, str, str, str]] = {
    "classify": (
        "sorts {what} into {count} classes",
        "the class",
        "Each prediction comes with a probability for\nevery class.",
        "class | labelled {items}",
    ),
    "multilabel": (
        "predicts {count} labels of {what}",
        "the labels",
        "Each prediction comes with a probability for\nevery label.",
        "label | {items} that have it",
    ),
    "regress": (
        "predicts {count} for {what}",
        "the numbers",
        "Predictions are in the units of\nthe labels and come without an interval of their own.",
        "target | labelled {items}",
    ),
}
_PAPER = "([DEMO-Net, KDD'19](https://arxiv.org/abs/1906.02319))"
_MODELS = {
    "network": f"A degree-specific graph neural network {_PAPER}",
    "kernel": f"A kernel machine, the closed form of a degree-specific graph neural network {_PAPER},",
    "auto": f"A weighted average of several models, among them degree-specific ones {_PAPER},",
}


def write_predictions(path: Path, *given: Any, excel: Decimal | None = None, **options: Any) -> None:
    """Write the table of :func:`prediction_columns`, whose arguments these are, as ``.csv``, ``.parquet`` or ``.xlsx``.

    ``excel`` is the decimal mark of a spreadsheet: see :func:`~demonet.runs.tables.write_csv`; names that it would
    compute, such as ``=HYPERLINK(...)``, have an apostrophe before them.
    """
    spelled = inert if excel and path.suffix.lower() != ".xlsx" else str  # a text in a workbook is never computed
    write_table(path, prediction_columns(*given, spelled=spelled, **options), excel)


def prediction_columns(
    noun: str,
    ids: Sequence[str],
    names: Sequence[str],
    outputs: NDArray[np.float32],
    task: Task = "classify",
    y: NDArray[Any] | None = None,
    part: NDArray[np.int8] | None = None,
    *,
    rows: NDArray[np.int64] | None = None,
    decision: Sequence[float] = (),
    reasons: Sequence[str] = (),
    spelled: Callable[[str], str] = str,
) -> list[Column]:
    """The table of predictions.

    The first column, ``noun``, has the ids. With ``y``, the true ``label`` follows, empty if it is unknown (with
    several columns, ``NAME label`` for each), and the ``part``: ``train``, ``val``, ``test``, or empty. The others
    depend on the task: ``prediction,confidence`` and a probability for each class; or 0 or 1 for each label, then the
    probability of each (``NAME probability``); or ``prediction`` (with several target columns, one column of that name
    for each). A name that another column has already is followed by ``probability`` or ``prediction``.

    Args:
        noun: ``"node"`` or ``"graph"``.
        ids: The id of each row.
        names: The name of each class, label or target column.
        outputs: ``[rows, names]`` probabilities or values.
        task: ``"classify"``, ``"multilabel"`` or ``"regress"``.
        y: ``[rows]`` classes, -1 for unknown; or ``[rows, names]`` labels or numbers, NaN for unknown.
        part: ``[rows]`` 0 training, 1 validation, 2 test, -1 none of them.
        rows: The rows of the table, in their order; all if None.
        decision: What predictions are made by, see :class:`~demonet.train.metrics.Metric`.
        reasons: What moved the first of these rows, in words, for a last column; empty for the others.
        spelled: How ids and names are spelled.
    """
    if rows is not None:
        ids, outputs = [ids[row] for row in rows], outputs[rows]
        y, part = (None if each is None else each[rows] for each in (y, part))
    ids, names = list(map(spelled, ids)), list(map(spelled, names))
    columns = [Column(noun, ids)]
    if y is not None and part is not None:
        if y.ndim == 1:
            columns.append(Column("label", y, names))
        else:
            several = [f"{name} label" for name in names] if len(names) > 1 else ["label"]
            columns += [Column(name, y[:, place], gaps=True) for place, name in enumerate(several)]
        columns.append(Column("part", part, _PARTS))
    predicted = decided(task, outputs, decision)
    each = [Column(name, outputs[:, place]) for place, name in enumerate(names)]
    if task == "classify":
        confidence = np.take_along_axis(outputs, predicted[:, None], 1)[:, 0]
        columns += [Column("prediction", predicted, names), Column("confidence", confidence), *each]
    elif task == "multilabel":
        columns += [Column(name, predicted[:, place].astype(np.int64)) for place, name in enumerate(names)]
        columns += [replace(column, name=f"{column.name} probability") for column in each]
    else:
        columns += each if len(names) > 1 else [replace(each[0], name="prediction")]
    if reasons:
        columns.append(Column("reasons", [*reasons, *[""] * (len(ids) - len(reasons))]))
    return _distinct(columns, " probability" if task == "classify" else " prediction")


def _distinct(columns: Sequence[Column], suffix: str) -> list[Column]:
    """Columns of different names: one that another column has already is followed by a suffix."""
    found: dict[str, Column] = {}
    for column in columns:
        name = column.name
        while name in found:
            name += suffix
        found[name] = replace(column, name=name)
    return list(found.values())


def inert(name: str) -> str:
    """A name as a spreadsheet shows it, and never computes it.

    Names with a semicolon or a tab in them count, too: a spreadsheet that separates columns there sees what follows as
    a cell of its own. A name that begins with an apostrophe gets another, so that names stay different.

    >>> inert("=1+1"), inert("a=1"), inert("-3.5"), inert("a;=1"), inert("'=1"), inert("\\uff1d1")
    ("'=1+1", 'a=1', '-3.5', "'a; =1", "''=1", "'\\uff1d1")
    """
    number = re.fullmatch(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", name, re.IGNORECASE)
    apart = re.sub(r"([;\t])(?=[\s'\"]*[=+\-@\uff1d\uff0b\uff0d\uff20])", r"\1 ", name)
    starts = name.lstrip()[:1] in tuple("=+-@'\uff1d\uff0b\uff0d\uff20") or name[:1] in ("\t", "\r", "\n")
    return f"'{apart}" if (starts or apart != name) and not number else name


def write_embeddings(path: Path, noun: str, ids: Sequence[str], embedding: NDArray[np.float32]) -> None:
    """Write ids and ``e0, e1, ...`` as a table, or the matrix alone as ``.npy``."""
    if path.suffix.lower() == ".npy":
        with replacing(path) as temporary, temporary.open("wb") as stream:
            np.save(stream, embedding, allow_pickle=False)
    else:
        check_table(path, also=[".npy"])
        values = (Column(f"e{place}", embedding[:, place]) for place in range(embedding.shape[1]))
        write_table(path, [Column(noun, ids), *values])


def check_output(path: Path, inputs: Iterable[str | Path | None], *, overwrite: bool, also: Sequence[str] = ()) -> None:
    """Fail early if predictions or embeddings cannot be written, as ``check_table``, or are not what is in the file."""
    check_table(path, inputs, also=also)
    if not overwrite and path.is_file() and path.stat().st_size and not _is_output(*header_of(path)):
        hint = Hint("{overwrite} replaces it", overwrite=True)
        raise DemonetError("exists, and has no columns of predictions or embeddings", file=path, hint=hint)


def _is_output(noun: str = "", *names: str) -> bool:
    """Whether these are columns of :func:`prediction_columns`, or of embeddings, and nobody else's.

    Several numbers without labels beside them might be anybody's.

    >>> _is_output("node", "label", "part", "prediction", "confidence", "yes", "no"), _is_output("node", "e0", "e1")
    (True, True)
    >>> _is_output("node", "label", "part"), _is_output("node", "width", "height"), _is_output()
    (False, False, False)
    """
    end = names.index("part") if "part" in names else 0
    labels = names[:end] if all(name == "label" or name.endswith(" label") for name in names[:end]) else ()
    rest = names[end + 1 :] if labels else names
    rest = rest[:-1] if rest[-1:] == ("reasons",) else rest
    half = len(rest) // 2
    numbers = len(labels) > 1 and labels == tuple(f"{name} label" for name in rest)
    tags = half > 0 and rest[half:] == tuple(f"{name} probability" for name in rest[:half])
    embedding = len(rest) > 0 and rest == tuple(f"e{place}" for place in range(len(rest)))
    return noun in ("node", "graph") and (rest[:1] == ("prediction",) or numbers or tags or embedding)


@cache
def _card() -> Any:
    """The template of model cards, compiled."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("demonet.runs", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"text": escaped, "shown": shown, "interval": interval_text}
    return environment.get_template("model_card.md")


def model_card(run: Run) -> str:
    """The model card as Markdown; names from the data are escaped."""
    count, nodes = len(run.class_names), run.kind == "nodes"
    number = ("a number" if count == 1 else f"{count} numbers") if run.task == "regress" else count
    does, predicted, with_it, heading = _CARD_WORDS[run.task]
    card: str = _card().render(
        run=run,
        config=run.config,
        metrics=run.metrics,
        split=run.metrics["split"],
        facts=RunFacts(run),
        models=_MODELS,
        words={
            "does": does.format(what="the nodes of a graph" if nodes else "whole graphs", count=number),
            "predicted": predicted,
            "whose": "nodes of this graph, or of others like it" if nodes else "graphs like these",
            "with_it": with_it,
            "heading": heading.format(items=run.kind),
        },
    )
    return card


def escaped(text: str) -> str:
    r"""Text on one line with Markdown characters escaped.

    >>> print(escaped("a|b <script>"))
    a\|b \<script\>
    """
    return re.sub(r"([\\`*_{}\[\]<>#!|~&$])", r"\\\1", " ".join(text.split()))
