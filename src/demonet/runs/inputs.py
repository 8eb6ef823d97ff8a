"""The input of a run: one graph or many, read once from files or by the name of a data set of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from demonet.checks import labelled
from demonet.data import catalog, download
from demonet.data.columns import Columns
from demonet.data.graph_set import GraphSet
from demonet.data.ids import ids_of
from demonet.data.load import load
from demonet.data.read import ReadResult, read_problem
from demonet.data.readers.base import InputFiles, ReadOptions
from demonet.distributed.store import Store, is_store
from demonet.errors import DemonetError
from demonet.options import Reading
from demonet.train.metrics import Task

_SHOWN_CLASSES = 8
_NAMED = {"classify": "classes", "multilabel": "labels", "regress": "targets"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Inputs(ReadResult):
    """What was read, and how it is called.

    Attributes:
        undirected: In a plan also the warning that they are read as directed.
        kind: What the items are.
        name: A short name.
        ids: The id of each item, as text.
        files: The files that were read: ``edges``, ``labels``, ``features``.
        checksums: The sha256 of each of them.
        task: What is predicted; :func:`~demonet.runs.targets.with_targets` decides.
        names: The name of each class, label or target column.
        known: Of a prediction for the items of training: their targets and parts, as a :class:`~demonet.runs.Run` has
            them.
        store: The store that was read, if it was one.
        standing: Of a prediction: how far the graph is the one of training, where that makes a difference.
        rows: Of a prediction: the items to list, in their order; None for all in the order of the file.
        reasons: Of a prediction: for the first of these items, what moved the answer, in words.
        decision: Of a prediction: what it is made by, see :class:`~demonet.train.metrics.Metric`.
    """

    kind: Literal["nodes", "graphs"]
    name: str
    ids: list[str]
    files: dict[str, Path]
    checksums: dict[str, str]
    task: Task = "classify"
    names: list[Any]
    known: tuple[NDArray[Any], NDArray[np.int8]] | None = None
    store: Store | None = None
    standing: str = ""
    rows: NDArray[np.int64] | None = None
    reasons: tuple[str, ...] = ()
    decision: tuple[float, ...] = ()

    @property
    def counts(self) -> NDArray[np.int64]:
        """``[classes]`` how many items have each class."""
        return torch.bincount(self.data.y[self.data.y >= 0], minlength=len(self.names)).numpy()

    @property
    def class_counts(self) -> str:
        """The classes with their numbers of items, in parentheses; of many classes, the largest; otherwise nothing."""
        if self.task != "classify":
            return ""
        pairs = list(zip(self.names, self.counts.tolist(), strict=True))
        if len(pairs) > _SHOWN_CLASSES:
            pairs = sorted(pairs, key=lambda pair: -pair[1])[:_SHOWN_CLASSES]
        more = ", ..." if len(self.names) > _SHOWN_CLASSES else ""
        return f" ({', '.join(f'{name} {count:,}' for name, count in pairs)}{more})"

    @property
    def graphs(self) -> list[Data]:
        """The graphs as a list; a single graph is a list of one."""
        return [self.data] if isinstance(self.data, Data) else list(self.data)

    @property
    def num_edges(self) -> int:
        """Columns of all edge indices together."""
        return sum(graph.edge_index.size(1) for graph in self.graphs)

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of graphs, nodes, edges, attributes, classes (or labels, or targets) and labelled items."""
        graphs, y = self.graphs, self.data.y
        loops = sum(int((graph.edge_index[0] == graph.edge_index[1]).sum()) for graph in graphs)
        return {
            **({"graphs": len(graphs)} if self.kind == "graphs" else {}),
            "nodes": sum(int(graph.num_nodes) for graph in graphs),
            "edges": self.num_edges if self.directed else (self.num_edges + loops) // 2,
            "attributes": 0 if graphs[0].x is None else int(graphs[0].x.size(1)),
            _NAMED[self.task]: len(self.names),
            "labelled": 0 if y is None else int(labelled(y).sum()),
        }


def read_inputs(
    edges: str,
    labels: str | None,
    features: str | None,
    reading: Reading,
    columns: Columns | None = None,
    *,
    check_label: Callable[[Any], str | None] | None = None,
) -> Inputs:
    """Read files, a folder, or a data set of the paper.

    Args:
        edges: A file or folder that :func:`~demonet.data.read_graph` or :func:`~demonet.data.read_graphs` reads, a
            store, or the name of a data set of the paper.
        labels: A table of ids and labels, or the name of an attribute in ``edges``.
        features: A table or matrix of node attributes, or the name of one in ``edges``.
        reading: How to read them.
        columns: How a table of attributes is encoded, as learned in training.
        check_label: What is wrong with a label, if anything.
    """
    if _is_name(edges):
        return _known(edges, labels, features, reading)
    if is_store(edges):
        return _stored(Path(edges), labels, features, reading)
    opened = InputFiles()
    options = ReadOptions(**vars(reading), columns=columns, check_label=check_label)
    found = read_problem(Path(edges), labels, features, options, opened)
    given = {"edges": edges, "labels": labels, "features": features}
    files = {part: Path(name) for part, name in given.items() if name is not None and Path(name) in opened.checksums}
    checksums = {part: opened.checksums[path] for part, path in files.items()}
    return _inputs(found, Path(edges).stem, files, checksums)


def _is_name(edges: str) -> bool:
    """Whether it is the name of a data set, not a path. A folder of that name without graphs, such as a run, is not."""
    if any(mark in edges for mark in "./\\"):
        return False
    path = Path(edges)
    if not path.exists():
        return True
    return path.is_dir() and edges.lower() in map(str.lower, catalog.CATALOG) and not any(path.glob("*_A.txt*"))


def _stored(path: Path, labels: str | None, features: str | None, reading: Reading) -> Inputs:
    """A store, which is read as it was written."""
    store, plain = Store(path), Reading(items=reading.items, self_loops=reading.self_loops)
    given = {"labels": labels, "features": features} | {name: getattr(reading, name) for name in vars(reading)}
    for argument, value in given.items():
        if value != getattr(plain, argument, None):
            raise DemonetError("not allowed, a store has its own", argument=argument, file=path)
    if reading.self_loops not in (None, store.facts["self_loops"]):
        problem = f"the store was written with {store.facts['self_loops']!r}"
        raise DemonetError(problem, argument="self_loops", file=path, hint="write it again")
    if reading.items == "graphs":
        raise DemonetError("a store has one graph", argument="items", file=path)
    name = str(store.facts["name"])
    return replace(_inputs(store.read(), name, {"edges": path}, {"edges": store.checksum}), store=store)


def _known(name: str, labels: str | None, features: str | None, reading: Reading) -> Inputs:
    """A data set of the paper."""
    try:
        entry = catalog.find(name)
    except DemonetError as error:
        raise DemonetError(f"no such file, and {error.message}", file=name, hint=error.hint) from None
    for argument, value in (("labels", labels), ("features", features)):
        if value is not None:
            raise DemonetError(f"not allowed, {entry.name} has its own", argument=argument)
    data, opened = load(entry.name, self_loops=reading.self_loops or "drop"), InputFiles()
    folder = download.locate(entry) or download.fetch(entry)
    opened.read_folder(folder, ())
    files, checksums = {"edges": folder}, {"edges": opened.checksums[folder]}
    columns = [str(name) for name in data.node_label_names] or None if isinstance(data, GraphSet) else None
    return _inputs(ReadResult(data, columns=columns), entry.name, files, checksums)


def _inputs(read: ReadResult, name: str, files: dict[str, Path], checksums: dict[str, str]) -> Inputs:
    data, many = read.data, isinstance(read.data, GraphSet)
    names = data.class_names if isinstance(data, GraphSet) else data.get("class_names")
    return Inputs(
        **vars(read),
        kind="graphs" if many else "nodes",
        name=data.name if isinstance(data, GraphSet) else name,
        ids=list(map(str, data.graph_ids if isinstance(data, GraphSet) else ids_of(data))),
        files=files,
        checksums=checksums,
        names=list(names or []),
    )
