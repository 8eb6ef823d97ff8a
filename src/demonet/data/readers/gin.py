"""The text format of GIN and DGCNN: the number of graphs; for each, ``n label`` and n lines ``tag d neighbours...``.

Neighbours count from 0 inside the graph. Numbers after the neighbours are attributes of the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from demonet.data.graph_set import Collection
from demonet.data.ids import encode_classes
from demonet.data.readers.base import as_lines, numbered_lines
from demonet.data.values import is_integer, is_number
from demonet.errors import DemonetError

_Line = tuple[int, list[str]]


def read_gin(content: bytes, path: Path) -> Collection:
    """The graphs of a file."""
    lines = _lines(as_lines(content, path))
    (num_graphs,) = _integers(_next(lines, path, "the number of graphs"), 1, path)
    source: list[int] = []
    target: list[int] = []
    graph: list[int] = []
    tags: list[int] = []
    labels: list[int] = []
    rows: list[list[float]] = []
    for g in range(num_graphs):
        n, label = _integers(_next(lines, path, f"graph {g} of {num_graphs}"), 2, path)
        start = len(tags)
        labels.append(label)
        for i in range(n):
            line, fields = _next(lines, path, f"node {i} of {n} in graph {g}")
            tag, degree = _integers((line, fields[:2]), 2, path)
            neighbours = _integers((line, fields[2 : 2 + max(degree, 0)]), degree, path)
            wrong = [v for v in neighbours if not 0 <= v < n]
            if wrong:
                raise DemonetError(f"neighbour {wrong[0]} in a graph of {n} nodes", file=path, line=line)
            source += [start + i] * degree
            target += [start + v for v in neighbours]
            rows.append(_attributes(line, fields[2 + degree :], rows, path))
            tags.append(tag)
            graph.append(g)
    extra = next(lines, None)
    if extra is not None:
        raise DemonetError(f"more lines after {num_graphs} graphs", file=path, line=extra[0])
    attributes = np.array(rows, dtype=np.float64)
    return Collection(
        np.array(source, dtype=np.int64),
        np.array(target, dtype=np.int64),
        np.array(graph, dtype=np.int64),
        *encode_classes(labels),
        node_labels=tags,
        attributes=attributes if attributes.size else None,
        node_ids=np.concatenate([np.arange(n) for n in np.bincount(graph, minlength=1)]) if graph else np.arange(0),
        file=path,
    )


def _lines(text: bytes) -> Iterator[_Line]:
    for number, line in numbered_lines(text):
        if fields := line[1].decode("utf-8", "replace").split():
            yield number, fields


def _next(lines: Iterator[_Line], path: Path, what: str) -> _Line:
    line = next(lines, None)
    if line is None:
        raise DemonetError(f"the file ends before {what}", file=path)
    return line


def _integers(line: _Line, count: int, path: Path) -> list[int]:
    number, fields = line
    if len(fields) != count:
        raise DemonetError(f"{len(fields)} numbers, expected {count}", file=path, line=number)
    for text in fields:
        if not is_integer(text):
            raise DemonetError(f"{text[:60]!r} is not an integer", file=path, line=number)
    return [int(text) for text in fields]


def _attributes(line: int, fields: list[str], rows: list[list[float]], path: Path) -> list[float]:
    for text in fields:
        if not is_number(text) or not np.isfinite(float(text)):
            raise DemonetError(f"attribute {text[:60]!r} is not a finite number", file=path, line=line)
    if rows and len(rows[0]) != len(fields):
        raise DemonetError(f"{len(fields)} attributes, but the first node has {len(rows[0])}", file=path, line=line)
    return [float(text) for text in fields]
