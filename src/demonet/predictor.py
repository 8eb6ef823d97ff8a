"""``demonet.fit`` and ``demonet.predict``: the commands of the same names, for files or data frames.

.. code-block:: python

    import demonet

    model = demonet.fit("edges.csv", "labels.csv", effort="quick")
    model.leaderboard()                      # the model beside simple baselines, on the test part
    model.importance()                       # columns, structure and degree
    model.rank("high", top=20)               # who is most likely of this class
    model.explain("k17")                     # why this one
    model.predict("next-month.csv")          # the same graph later, or another one
    model.save("run")                        # the folder that `demonet fit` writes
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from demonet.errors import DemonetError, needed
from demonet.options import Reading, Settings
from demonet.runs import Run, RunProgress, embed_run, explain_run, fit_run, load_run, predict_run
from demonet.runs.facts import RunFacts
from demonet.runs.folder import FILES, MANIFEST, PAGE
from demonet.runs.inference import ranked_by
from demonet.runs.outputs import prediction_columns
from demonet.runs.tables import Column, arrow_table

Source = Any  # a path, the name of a data set, or a pandas data frame
Frame = Any  # a pandas data frame
_pandas = partial(needed, "pandas", "notebook")


def fit(
    edges: Source,
    labels: Source = None,
    features: Source = None,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: RunProgress | None = None,
    **options: Any,
) -> Predictor:
    """Fit a model as ``demonet fit`` does: hold out a test part, choose on validation, test once.

    Args:
        edges: A table of edges: a file, or a data frame; also the other inputs of :func:`~demonet.runs.fit_run`.
        labels: A table of ids and labels, or the name of an attribute in ``edges``.
        features: A table of ids and attributes.
        out: The folder of the run; a temporary one if None, which :meth:`Predictor.save` copies.
        resume: Continue an interrupted run in ``out``.
        overwrite: Replace the run in ``out``.
        progress: Callbacks that show progress.
        **options: The options of the command, by their names in :class:`~demonet.runs.Reading` and
            :class:`~demonet.runs.Settings`: ``effort="quick"``, ``metric="average-precision"``, ``directed=True``.
    """
    known = {each.name: kind for kind in (Reading, Settings) for each in fields(kind)}
    given: dict[Any, dict[str, Any]] = {Reading: {}, Settings: {}}
    for name, value in options.items():
        if name not in known:
            raise DemonetError(f"unknown option {name!r}", hint=f"there are {', '.join(known)}")
        given[known[name]][name] = value
    temporary = None
    if out is None:
        temporary = tempfile.TemporaryDirectory(prefix="demonet-")
        out = Path(temporary.name) / "run"
    with _files(edges=edges, labels=labels, features=features) as files:
        fit_run(
            **files,
            out=out,
            reading=Reading(**given[Reading]),
            settings=Settings(**given[Settings]),
            resume=resume,
            overwrite=overwrite,
            progress=progress,
            page=_write_page,
        )
    found = Predictor(out, temporary)
    found._given = {"edges": edges, "features": features}
    return found


def predict(folder: str | Path, edges: Source, features: Source = None, labels: Source = None, **reading: Any) -> Frame:
    """Predict with a finished run, see :meth:`Predictor.predict`."""
    return Predictor(folder).predict(edges, features, labels, **reading)


class Predictor:
    """A finished run: its scores, its predictions, and predictions for other graphs.

    Args:
        folder: The folder of the run.
        temporary: What removes the folder when this object is gone.

    Attributes:
        folder: The folder of the run; ``folder / "report.html"`` is its page.
    """

    def __init__(self, folder: str | Path, temporary: Any = None) -> None:
        self.folder, self._temporary = Path(folder), temporary
        self._given: dict[str, Source] | None = None  # after `fit`, what it was given, which may be data frames

    @cached_property
    def run(self) -> Run:
        """Everything that the folder says about the run."""
        return load_run(self.folder)

    @property
    def metrics(self) -> dict[str, Any]:
        """The content of ``metrics.json``."""
        return self.run.metrics

    def leaderboard(self) -> Frame:
        """The model and the simple baselines, each with its test metric by every rule, and its 95 % interval."""
        facts = RunFacts(self.run)
        names = ["name", "kind", "rule", self.run.metric.title, "low", "high"]
        rows = [
            [one.name, one.kind, rule, score.value, *(score.interval or (np.nan, np.nan))]
            for one in facts.methods
            for rule, score in one.scores.items()
        ]
        return _pandas().DataFrame(rows, columns=names)

    def candidates(self) -> Frame:
        """The candidates of the ensemble, from the largest weight to the smallest."""
        return _pandas().DataFrame(RunFacts(self.run).candidates)

    def importance(self) -> Frame:
        """What matters: columns, structure and degree, by the change of the metric if they are shuffled."""
        return _pandas().DataFrame(RunFacts(self.run).importance)

    def predictions(self) -> Frame:
        """Every item of the fitted graph with its label, part and prediction, as ``predictions.csv`` has them."""
        run = self.run
        known = run.ids, run.class_names, run.outputs, run.task, run.y, run.part
        return _frame(prediction_columns(run.kind.removesuffix("s"), *known, decision=run.decision))

    def rank(self, name: str | None = None, top: int | None = 20) -> Frame:
        """The items of the fitted graph with the largest probability of a class or label, or the largest number.

        Args:
            name: The class, label or target; by default the positive class or the only target.
            top: How many; None for all.
        """
        run = self.run
        order = np.argsort(-run.outputs[:, ranked_by(run, name)], kind="stable")[:top]
        return self.predictions().iloc[order].reset_index(drop=True)

    def predict(
        self, edges: Source, features: Source = None, labels: Source = None, *, top: int | None = None, **options: Any
    ) -> Frame:
        """Predictions for the same graph later, or for another one; see :func:`~demonet.runs.predict_run`.

        Args:
            edges, features: Files or data frames, as for :func:`fit`; they are read as those of the fit.
            labels: Labels that became known since, by id.
            top: Only so many rows, ranked.
            **options: What is read in another way, ``rank`` for the class to rank by, and other options of
                :func:`~demonet.runs.predict_run`.
        """
        with _files(edges=edges, features=features, labels=labels) as files:
            inputs, names, outputs = predict_run(self.folder, **files, top=top, **options)
        known = inputs.known or (None, None)
        given = inputs.kind.removesuffix("s"), inputs.ids, names, outputs, inputs.task, *known
        found: dict[str, Any] = {"rows": inputs.rows, "reasons": inputs.reasons, "decision": inputs.decision}
        return _frame(prediction_columns(*given, **found))

    def explain(self, item: str, edges: Source = None, features: Source = None, **options: Any) -> Frame:
        """What moved the prediction for one item: columns, neighbours and known labels, the strongest first.

        Args:
            item: The id of a node or graph.
            edges, features: As for :meth:`predict`; by default the files of the fit.
            **options: ``output`` for a class other than the predicted one, and what is read in another way.
        """
        if edges is None:
            given = self._given or self.run.config["files"]
            edges, features = given["edges"], given.get("features")
        with _files(edges=edges, features=features) as files:
            found = explain_run(self.folder, item=str(item), **files, **options)
        return _pandas().DataFrame(found, columns=["kind", "name", "value", "effect"])

    def embed(self, edges: Source, features: Source = None, **reading: Any) -> Frame:
        """Embeddings, one row per item, indexed by id; see :func:`~demonet.runs.embed_run`."""
        with _files(edges=edges, features=features) as files:
            inputs, embedding = embed_run(self.folder, **files, **reading)
        return _pandas().DataFrame(embedding, index=inputs.ids).add_prefix("e")

    def report(self) -> Path:
        """The page of the run, one HTML file; it is written again if it is missing."""
        page = self.folder / PAGE
        if not page.exists():
            _write_page(self.run, page)
        return page

    def save(self, folder: str | Path) -> Predictor:
        """Copy the run to a new folder, which ``demonet predict`` reads, and return it."""
        folder = Path(folder)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise DemonetError("exists already", file=folder, hint="use a new folder")
        load_run(self.folder)  # checks its files
        folder.mkdir(parents=True, exist_ok=True)
        for name in [*FILES, MANIFEST]:  # the manifest last: until then it is no run
            if (self.folder / name).exists():
                shutil.copyfile(self.folder / name, folder / name)
        return Predictor(folder)

    def __repr__(self) -> str:
        run = self.run
        value = run.metrics["test_metric"]
        score = "not tested" if value is None else f"test {run.metric.title} {value:.3f}"
        return f"Predictor({str(self.folder)!r}: {run.config['name']}, {len(run.ids):,} {run.kind}, {score})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        facts = RunFacts(self.run)
        paragraphs = [f"<p>{escape(text)}</p>" for text in (facts.answer, facts.sure)]
        board = self.leaderboard()
        return "".join(paragraphs) + board[board["rule"] == self.run.metrics["rule"]].to_html(index=False, na_rep="")


@contextmanager
def _files(**sources: Source) -> Iterator[dict[str, Any]]:
    """Each source as something that the readers take: a data frame becomes a Parquet file for the while."""
    with tempfile.TemporaryDirectory(prefix="demonet-") as folder:
        yield {name: _file(name, source, Path(folder)) for name, source in sources.items()}


def _file(name: str, source: Source, folder: Path) -> str | None:
    if source is None or isinstance(source, str | Path):
        return None if source is None else str(source)
    if type(source).__name__ != "DataFrame":
        raise DemonetError(f"a {type(source).__name__}", argument=name, hint="use a path or a pandas data frame")
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / f"{name}.parquet"
    try:
        parquet.write_table(pa.Table.from_pandas(source, preserve_index=False), path)
    except (pa.ArrowException, TypeError) as error:
        raise DemonetError(f"a column of mixed types: {error}", argument=name, hint="use one type a column") from None
    return str(path)


def _frame(columns: list[Column]) -> Frame:
    _pandas()
    return arrow_table(columns).to_pandas()


def _write_page(run: Run, path: Path) -> None:
    from demonet.report.page import write
    from demonet.report.run import run_page

    write(run_page(run), path)
