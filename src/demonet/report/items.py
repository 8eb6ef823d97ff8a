"""Lists of items that one can search, sort and save, and the surroundings of a node.

Items are in the page as compressed columns in base64; ``items.js`` unpacks them and shows what is asked for.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from demonet.escape import visible
from demonet.report.page import Section
from demonet.report.palette import CATEGORICAL, NEUTRAL
from demonet.report.table_cells import Cell, Column, Shown, show_column

SHOWN = 10
"""Rows of the first list that are in the page without a script."""
PARTS = ("training", "validation", "test")

_SCRIPT_TYPES = {"int8": "Int8Array", "int16": "Int16Array", "int32": "Int32Array", "float32": "Float32Array"}


@dataclass(frozen=True, eq=False)
class Field:
    """What is known of each item.

    Args:
        name: The head of its column.
        values: ``[items]`` numbers, NaN for unknown; or the index of a name, -1 for unknown.
        names: The names.
        digits: Digits after the decimal point.
    """

    name: str
    values: NDArray[Any]
    names: Sequence[str] | None = None
    digits: int = 3

    def cell(self, item: int) -> Cell:
        """The value of an item."""
        value = self.values[item]
        if self.names is not None:
            return visible(self.names[value]) if value >= 0 else None
        return None if np.isnan(value) else value

    @property
    def packed(self) -> dict[str, Any]:
        """The data for ``items.js``."""
        kind = np.float32 if self.values.dtype.kind == "f" else np.int32
        names = None if self.names is None else list(self.names)
        return {"name": self.name, "names": names, "digits": self.digits, "values": pack(self.values.astype(kind))}


@dataclass(frozen=True)
class ItemList:
    """One order of the items.

    Args:
        name: What it is called.
        by: The key of the field that it is sorted by; unknown values are last.
        fields: The keys of its columns.
        descending: Whether the largest value is first.
        part: The part that it shows at first: an index of ``PARTS``, -1 for items without a label, None for all.
    """

    name: str
    by: str
    fields: Sequence[str]
    descending: bool = True
    part: int | None = None


@dataclass(frozen=True)
class Items(Section):
    """Lists of items with a search, a choice of the list and of the part, heads that sort, and files to save.

    Args:
        noun: What an item is: ``"node"`` or ``"graph"``.
        ids: The id of each item.
        part: ``[items]`` the index of a part in ``PARTS``, -1 for none.
        fields: What is known of the items, by key.
        lists: The lists; the first is shown at first.
        reasons: What moved the predictions of some items, by their numbers.
        caption: The text below.
        edges: ``[2, m]`` of nodes: the edges from which ``items.js`` draws surroundings; None for none.
        colour: The key of the field that colours them.
    """

    listing: ClassVar[bool] = True
    noun: str
    ids: Sequence[str]
    part: NDArray[np.int8]
    fields: Mapping[str, Field]
    lists: Sequence[ItemList]
    reasons: Mapping[int, Sequence[str]] = field(default_factory=dict)
    caption: str = ""
    edges: NDArray[np.int64] | None = None
    colour: str = ""

    def order(self, one: ItemList) -> NDArray[np.int64]:
        """The items of a list in its order, those with equal values in the order of the data."""
        values = self.fields[one.by].values.astype(np.float64)
        items = np.flatnonzero((self.part == one.part) if one.part is not None else np.ones(len(self.ids), bool))
        items = items[np.argsort(-values[items] if one.descending else values[items], kind="stable")]
        return np.concatenate([items[~np.isnan(values[items])], items[np.isnan(values[items])]])

    @property
    def head(self) -> list[Column]:
        """The columns of the first list."""
        columns = [Column(self.fields[key].name, self.fields[key].digits) for key in self.lists[0].fields]
        return [Column(self.noun), *columns, *([Column("why")] if self.reasons else [])]

    @property
    def shown(self) -> list[list[Shown]]:
        """The first rows of the first list."""
        first = self.order(self.lists[0])[:SHOWN].tolist()
        cells: list[list[Cell]] = [
            [
                self.ids[item],
                *(self.fields[key].cell(item) for key in self.lists[0].fields),
                *(["; ".join(self.reasons.get(item, ())) or None] if self.reasons else []),
            ]
            for item in first
        ]
        columns = [show_column(column, [row[i] for row in cells]) for i, column in enumerate(self.head)]
        return [list(row) for row in zip(*columns, strict=True)]

    @property
    def parts(self) -> list[tuple[str, str, int]]:
        """Choices of a part: value, name and number of items."""
        names = {-1: "without a label", 2: "of the test", 1: "of validation", 0: "of training"}
        found = [(str(part), name, int((self.part == part).sum())) for part, name in names.items()]
        return [choice for choice in found if choice[2]] + [("", "all", len(self.ids))]

    @property
    def json(self) -> str:
        """The data for ``items.js``."""
        return json.dumps(
            {
                "noun": self.noun,
                "ids": _compress(json.dumps(list(self.ids)).encode()),
                "part": pack(self.part.astype(np.int8)),
                "parts": PARTS,
                "fields": {key: one.packed for key, one in self.fields.items()},
                "lists": [
                    {"by": one.by, "fields": list(one.fields), "descending": one.descending, "part": one.part}
                    for one in self.lists
                ],
                "reasons": {str(item): list(told) for item, told in self.reasons.items()},
                "edges": None if self.edges is None else pack(self.edges.T.astype(np.int32)),
                "colour": self.colour,
                "colours": [light for light, _ in CATEGORICAL],
                "neutral": NEUTRAL[0],
            }
        )


@dataclass(frozen=True)
class Surroundings(Section):
    """A picture of the neighbours of a node that is chosen in the list or by its id."""

    listing: ClassVar[bool] = True
    plots: ClassVar[bool] = True
    noun: str
    caption: str


@dataclass(frozen=True)
class Threshold(Section):
    """From which probability on items count as positive: what is found, missed and raised in vain, and what it costs.

    Args:
        names: The classes or labels.
        y: For each, ``[items]`` whether it is true of a test item.
        probability: For each, ``[items]`` its probability.
        kind_of_items: ``"nodes"`` or ``"graphs"``.
        caption: The text below.
    """

    listing: ClassVar[bool] = True
    plots: ClassVar[bool] = True
    names: Sequence[str]
    y: Sequence[NDArray[Any]]
    probability: Sequence[NDArray[Any]]
    kind_of_items: str
    caption: str

    STEPS: ClassVar[int] = 400
    """Of more distinct probabilities, an even sample."""

    @property
    def json(self) -> str:
        """Thresholds from 1 down to 0, and how many true and false items are at or above each."""
        found = []
        for name, true, probability in zip(self.names, self.y, self.probability, strict=True):
            at, items, hits = ranked(true, probability)
            some = np.unique(np.linspace(0, len(at) - 1, min(len(at), self.STEPS)).astype(int))
            steps = {
                "at": [None, *at[some].tolist()],  # nothing is above the largest
                "hits": [0, *hits[some].tolist()],
                "alarms": [0, *(items - hits)[some].tolist()],
            }
            found.append({"name": name, "positives": int(true.sum()), "items": len(true), **steps})
        return json.dumps({"items": self.kind_of_items, "classes": found})


def ranked(true: NDArray[Any], probability: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """The distinct probabilities from the largest on, and how many items, and true ones, are at or above each."""
    order = np.argsort(-probability, kind="stable")
    at, hits = probability[order].astype(float), np.cumsum(true[order])
    last = np.flatnonzero(np.append(at[1:] != at[:-1], True))
    return at[last], last + 1, hits[last]


def pack(column: NDArray[Any]) -> tuple[str, str]:
    """The name of a JavaScript array type, and the numbers: little-endian, compressed, in base64."""
    return _SCRIPT_TYPES[column.dtype.name], _compress(column.astype(column.dtype.newbyteorder("<")).tobytes())


def _compress(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")
