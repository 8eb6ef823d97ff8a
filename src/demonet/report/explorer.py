"""The explorer: an interactive plot of every item of a run, with search and colours.

Items are embedded in the page as compressed columns in base64; ``explorer.js`` unpacks and draws them.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from demonet.errors import DemonetError
from demonet.report.figures import SYMBOLS
from demonet.report.page import Section
from demonet.report.palette import CATEGORICAL, NEUTRAL

MOST_POINTS = 2000
"""More items are drawn on a canvas, because SVG is too slow for them."""

_GRID = 65534
"""Positions are rounded to this many steps across the longer side; one step more means no position."""

_SCRIPT_TYPES = {"int8": "Int8Array", "int16": "Int16Array", "uint16": "Uint16Array", "int32": "Int32Array"}


@dataclass(frozen=True)
class View:
    """One layout of the items.

    Args:
        title: The title above it.
        alt: A description in words.
        caption: The text below it.
        place: ``[items, 2]`` the position of each item; an item without a finite position is not drawn.
        edges: ``[2, m]`` pairs of items joined by a line.
    """

    title: str
    alt: str
    caption: str
    place: NDArray[np.float32]
    edges: NDArray[np.int64] | None = None

    @property
    def packed(self) -> dict[str, Any]:
        """The data for ``explorer.js``; both axes have the same unit."""
        known = np.isfinite(self.place).all(1)
        inside = self.place[known].astype(np.float64)
        corner = inside.min(0) if len(inside) else np.zeros(2)
        unit = float(np.ptp(inside, axis=0).max()) / _GRID if len(inside) else 0.0
        unit = unit or 1 / _GRID
        steps = np.full(self.place.shape, _GRID + 1, dtype=np.uint16)
        steps[known] = np.rint((inside - corner) / unit).astype(np.uint16)
        packed = {"title": self.title, "corner": corner.tolist(), "unit": unit, "absent": _GRID + 1}
        packed |= {"x": pack(steps[:, 0]), "y": pack(steps[:, 1])}
        return packed if self.edges is None else {**packed, "edges": pack(self.edges.T.astype(np.int32))}


@dataclass(frozen=True)
class Explorer(Section):
    """All items in one or more views that share the choice of colours and the search.

    Args:
        noun: What an item is: ``"node"`` or ``"graph"``.
        size: What its size is: ``"degree"`` or ``"nodes"``.
        ids, class_names: The id of each item and the name of each class.
        y, prediction, confidence, part, sizes: As in :class:`~demonet.runs.Run`.
        views: The views by name.
        edge_count: For graphs, the number of edges of each.
    """

    kind: ClassVar[str] = "explorer"
    plots: ClassVar[bool] = True
    noun: str
    size: str
    ids: Sequence[str]
    class_names: Sequence[str]
    y: NDArray[np.int64]
    prediction: NDArray[np.int64]
    confidence: NDArray[np.float32]
    part: NDArray[np.int8]
    sizes: NDArray[np.int64]
    views: Mapping[str, View]
    edge_count: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        columns: list[NDArray[Any]] = [self.y, self.prediction, self.confidence, self.part, self.sizes]
        columns += [view.place for view in self.views.values()]
        lengths = {len(self.ids), *(len(column) for column in columns)}
        if len(lengths) > 1:
            raise DemonetError(f"an explorer's columns differ in length: {sorted(lengths)}")

    @property
    def json(self) -> str:
        """The data for ``explorer.js``."""
        columns: dict[str, NDArray[Any]] = {
            "y": self.y.astype(np.int16),
            "prediction": self.prediction.astype(np.int16),
            "confidence": np.rint(np.nan_to_num(self.confidence) * 65535).astype(np.uint16),
            "part": self.part.astype(np.int8),
            "size": self.sizes.astype(np.int32),
        }
        if self.edge_count is not None:
            columns["edges"] = self.edge_count.astype(np.int32)
        return json.dumps(
            {
                "noun": self.noun,
                "size": self.size,
                "mostPoints": MOST_POINTS,
                "colours": [light for light, _ in CATEGORICAL],
                "neutral": NEUTRAL[0],
                "symbols": SYMBOLS,
                "classes": list(self.class_names),
                "ids": _compress(json.dumps(list(self.ids)).encode()),
                "columns": {name: pack(column) for name, column in columns.items()},
                "views": {name: view.packed for name, view in self.views.items()},
            }
        )


def pack(column: NDArray[Any]) -> tuple[str, str]:
    """The name of a JavaScript array type, and the numbers: little-endian, compressed, in base64."""
    return _SCRIPT_TYPES[column.dtype.name], _compress(column.astype(column.dtype.newbyteorder("<")).tobytes())


def _compress(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")
