"""The TU format: a folder ``DS`` with ``DS_A.txt``, ``DS_graph_indicator.txt``, ``DS_graph_labels.txt`` and more.

Edge labels and edge attributes are not read: no model here takes them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from demonet.data.readers.collection import Collection
from demonet.data.readers.text import TextTable
from demonet.errors import DemonetError


def read_tu(folder: Path) -> Collection:
    """A TU folder; nodes and graphs count from 1 there."""
    adjacency = sorted(folder.glob("*_A.txt"))
    if len(adjacency) != 1:
        raise DemonetError(f"{len(adjacency)} files *_A.txt, where a TU folder has one", file=folder)
    prefix = adjacency[0].name.removesuffix("_A.txt")
    indicator = folder / f"{prefix}_graph_indicator.txt"
    graph = _integers(indicator, 1)[:, 0]
    file = folder / f"{prefix}_graph_labels.txt"
    labels = _integers(file, 1)[:, 0]
    _check_range(graph, len(labels), "graph", indicator)
    edges = _integers(adjacency[0], 2)
    _check_range(edges, len(graph), "node", adjacency[0])
    file = folder / f"{prefix}_node_labels.txt"
    node_labels = _integers(file, None)[:, 0] if file.exists() else None
    file = folder / f"{prefix}_node_attributes.txt"
    attributes = _numbers(file) if file.exists() else None
    for what, rows in (("labels", node_labels), ("attributes", attributes)):
        if rows is not None and len(rows) != len(graph):
            problem = f"{len(rows)} node {what} for {len(graph)} nodes"
            raise DemonetError(problem, file=folder / f"{prefix}_node_{what}.txt")
    order = np.argsort(graph, kind="stable")  # node lines need not come graph by graph
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return Collection(
        source=place[edges[:, 0] - 1],
        target=place[edges[:, 1] - 1],
        graph=graph[order] - 1,
        labels=labels.tolist(),
        node_labels=None if node_labels is None else node_labels[order].tolist(),
        attributes=None if attributes is None else attributes[order],
        node_ids=order + 1,
        file=adjacency[0],
        graph_ids=list(range(1, len(labels) + 1)),
    )


def _integers(path: Path, width: int | None) -> np.ndarray:
    table = TextTable(path, header=False)
    if width is not None and table.width != width:
        raise DemonetError(f"{table.width} columns, where there should be {width}", file=path, line=1)
    return np.stack(table.columns(range(table.width), ["int id"] * table.width), axis=1)


def _numbers(path: Path) -> np.ndarray:
    table = TextTable(path, header=False)
    return np.stack(table.columns(range(table.width), ["number"] * table.width), axis=1)


def _check_range(ids: np.ndarray, limit: int, what: str, path: Path) -> None:
    bad = np.argwhere((ids < 1) | (ids > limit))
    if bad.size:
        row = int(bad[0][0])
        line = TextTable(path, header=False).line(row)
        raise DemonetError(f"{what} {ids[tuple(bad[0])]}, where there are {limit}", file=path, line=line)
