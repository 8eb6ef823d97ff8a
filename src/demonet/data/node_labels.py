"""Labels of nodes or graphs, from a file, a mapping or a sequence: class names of any type become 0, 1, 2, ..."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from demonet.data.ids import Ids, Numbering, id_at, make_ids
from demonet.data.readers.columns import Table, is_integer
from demonet.data.readers.edge_list import open_table
from demonet.errors import DemonetError


class Labelled:
    """Which ids have which label, and where each row stands in its file."""

    def __init__(self, ids: Ids, labels: list[Any], table: Table | None = None) -> None:
        self.ids, self.labels, self.table = ids, labels, table

    @classmethod
    def read(cls, path: Path, kind: str) -> Labelled:
        """A table with an id and a label in its first two columns; no label means that there is none."""
        table = open_table(path, words=kind == "str")
        if table.width < 2:
            raise DemonetError("one column, where an id and a label belong", file=path)
        ids, labels = table.columns([0, 1], ["str id" if kind == "str" else "id", "text"])
        if all(label is None or is_integer(label) for label in labels):
            labels = [None if label is None else int(label) for label in labels]
        return cls(ids, labels, table)

    def where(self, row: int) -> dict[str, Any]:
        """The file and line of a row, for an error."""
        return {} if self.table is None else {"file": self.table.file, "line": self.table.line(row)}

    def encode(self, numbering: Numbering) -> tuple[Tensor, list[Any]]:
        """One class a node, -1 where there is none, and the names of the classes in order."""
        codes, names = encode_classes(self.labels)
        rows = np.flatnonzero(codes >= 0)
        numbers, codes = numbering.find(self.ids)[rows], codes[rows]
        y = np.full(numbering.node_ids.size, -1, dtype=np.int64)
        y[numbers[::-1]] = codes[::-1]  # the first label of a node stays
        clash = np.flatnonzero(y[numbers] != codes)
        if clash.size:
            row = int(rows[clash[0]])
            first, second = names[y[numbers[clash[0]]]], self.labels[row]
            problem = f"{id_at(self.ids, row)!r} is labelled {second!r}, and {first!r} before"
            raise DemonetError(problem, **self.where(row), hint="one label each")
        return torch.from_numpy(y), names


def encode_classes(labels: Iterable[Any]) -> tuple[np.ndarray, list[Any]]:
    """Class numbers in the order of the class names, -1 for None or NaN."""
    values = [None if label is None or label != label else label for label in labels]
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    try:
        names = sorted({value for value in values if value is not None})
    except TypeError:  # of several types: text order within each type
        try:
            names = sorted({v for v in values if v is not None}, key=lambda v: (type(v).__name__, str(v)))
        except TypeError as error:
            raise DemonetError(f"a label cannot be a class name: {error}") from None
    number = {name: i for i, name in enumerate(names)}
    return np.array([-1 if value is None else number[value] for value in values], dtype=np.int64), names


def from_mapping(labels: Any) -> Labelled:
    """A dict, or anything with ``items()``, from id to label."""
    pairs = list(labels.items())
    return Labelled(make_ids(key for key, _ in pairs), [value for _, value in pairs])


def from_sequence(labels: Any, nodes: Ids) -> Labelled:
    """One label a node, in the order of the nodes; in a tensor of integers, -1 is no label."""
    if isinstance(labels, Tensor):
        integers = not labels.is_floating_point()
        labels = labels.tolist()
        labels = [None if integers and label == -1 else label for label in labels]
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise DemonetError(f"labels of shape {labels.shape} for {len(nodes)} nodes", hint="one label a node")
    labels = list(labels)  # a label may itself be a sequence, such as a tuple
    if len(labels) != len(nodes):
        raise DemonetError(f"{len(labels)} labels for {len(nodes)} nodes", hint="one label a node")
    return Labelled(nodes, labels)
