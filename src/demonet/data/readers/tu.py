"""The TU format: a folder ``DS`` with ``DS_A.txt``, ``DS_graph_indicator.txt``, ``DS_graph_labels.txt`` and more.

Any of the files may be compressed with gzip (``DS_A.txt.gz``). ``DS_graph_attributes.txt`` has targets of a regression;
a folder has them, or graph labels, or both, or neither: then the graphs are unlabelled. Edge labels and edge attributes
are not read: no model here uses them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from demonet.data.graph_set import Collection
from demonet.data.ids import LabelTable, encode_classes
from demonet.data.readers.base import InputFiles
from demonet.data.readers.tables import Kind
from demonet.data.readers.text import TextTable
from demonet.errors import DemonetError

_EDGE_PARTS = {"edge labels": "_edge_labels.txt", "edge attributes": "_edge_attributes.txt"}
_GRAPH_PARTS = ("_graph_labels.txt", "_graph_attributes.txt")
_MEMBERS = ("_A.txt", "_graph_indicator.txt", "_node_labels.txt", "_node_attributes.txt", *_GRAPH_PARTS)


def read_tu(folder: Path, files: InputFiles) -> Collection:
    """The graphs of a TU folder, where nodes and graphs are counted from 1."""
    members = files.read_folder(folder, _MEMBERS)
    adjacency = [name for name in members if name.endswith("_A.txt")]
    if len(adjacency) != 1:
        raise DemonetError(f"{len(adjacency)} files *_A.txt, but a TU folder has one", file=folder)
    prefix = adjacency[0].removesuffix("_A.txt")

    def table(part: str) -> TextTable:
        name = f"{prefix}_{part}.txt"
        if name not in members:
            raise DemonetError("no such file", file=folder / name)
        return TextTable(members[name], folder / name, header=False)

    indicator, edge_table = table("graph_indicator"), table("A")
    graph = _integers(indicator, 1)[:, 0]
    targets = _columns(table("graph_attributes"), "number") if f"{prefix}_graph_attributes.txt" in members else None
    labels: list[int | None]
    if f"{prefix}_graph_labels.txt" in members:
        labels = _integers(table("graph_labels"), 1)[:, 0].tolist()
    else:
        labels = [None] * (len(targets) if targets is not None else int(graph.max(initial=0)))
    if targets is not None and len(targets) != len(labels):
        problem = f"{len(targets)} graph attributes for {len(labels)} graphs"
        raise DemonetError(problem, file=folder / f"{prefix}_graph_attributes.txt")
    _check_range(graph, len(labels), "graph", indicator)
    edges = _integers(edge_table, 2)
    _check_range(edges, len(graph), "node", edge_table)
    has_labels, has_attributes = (f"{prefix}_node_{part}.txt" in members for part in ("labels", "attributes"))
    node_labels = _integers(table("node_labels"), None)[:, 0] if has_labels else None
    attributes = _columns(table("node_attributes"), "number") if has_attributes else None
    for what, rows in (("labels", node_labels), ("attributes", attributes)):
        if rows is not None and len(rows) != len(graph):
            problem = f"{len(rows)} node {what} for {len(graph)} nodes"
            raise DemonetError(problem, file=folder / f"{prefix}_node_{what}.txt")
    y, class_names = encode_classes(labels)
    order = np.argsort(graph, kind="stable")  # nodes need not be listed graph by graph
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return Collection(
        source=place[edges[:, 0] - 1],
        target=place[edges[:, 1] - 1],
        graph=graph[order] - 1,
        y=y,
        class_names=class_names,
        node_labels=None if node_labels is None else node_labels[order].tolist(),
        attributes=None if attributes is None else attributes[order],
        node_ids=order + 1,
        file=edge_table.file,
        graph_ids=list(range(1, len(labels) + 1)),
        unused=sorted({part for part in _EDGE_PARTS for path in folder.iterdir() if _EDGE_PARTS[part] in path.name}),
        label_table=None if targets is None else _label_table(targets, beside_classes=labels[0] is not None),
    )


def _label_table(targets: np.ndarray, *, beside_classes: bool) -> LabelTable:
    count = targets.shape[1]
    names = ["target"] if count == 1 else [f"target {number}" for number in range(1, count + 1)]
    return LabelTable(names, targets, beside_classes=beside_classes)


def _integers(table: TextTable, width: int | None) -> np.ndarray:
    if width is not None and table.width != width:
        raise DemonetError(f"{table.width} columns, expected {width}", file=table.file, line=1)
    return _columns(table, "int id")


def _columns(table: TextTable, kind: Kind) -> np.ndarray:
    return np.stack(table.columns(range(table.width), [kind] * table.width), axis=1)


def _check_range(ids: np.ndarray, limit: int, what: str, table: TextTable) -> None:
    bad = np.argwhere((ids < 1) | (ids > limit))
    if bad.size:
        line = table.line(int(bad[0][0]))
        raise DemonetError(f"{what} {ids[tuple(bad[0])]} of {limit}", file=table.file, line=line)
