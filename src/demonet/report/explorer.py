"""The explorer: every item of a run as a point that can be pointed at, searched for and coloured.

All items travel, packed: columns of small numbers, compressed, in base64. ``explorer.js`` unpacks and draws them.
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
"""More items than this are painted as one picture: a browser draws no more as SVG without a pause."""

_GRID = 65534
"""Places are rounded to this many steps across the longer side; one step more says that there is no place."""

_SCRIPT_TYPES = {"int8": "Int8Array", "int16": "Int16Array", "uint16": "Uint16Array", "int32": "Int32Array"}


@dataclass(frozen=True)
class View:
    """One way to lay the items out.

    Args:
        title: What stands above it.
        alt: What it shows, in words.
        caption: What stands below it.
        place: ``[items, 2]`` where each item stands; an item whose place is not finite is not drawn.
        edges: ``[2, m]`` items to join by a line.
    """

    title: str
    alt: str
    caption: str
    place: NDArray[np.float32]
    edges: NDArray[np.int64] | None = None

    @property
    def packed(self) -> dict[str, Any]:
        """As ``explorer.js`` reads it: one unit is as long on either axis."""
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
    """All items with what is known of them, laid out in one view or more that share one switch and one search.

    Args:
        noun: What an item is: ``"node"`` or ``"graph"``.
        size: What its size is: ``"degree"`` or ``"nodes"``.
        ids, class_names: One text an item, one text a class.
        y, prediction, confidence, part, sizes: As a :class:`~demonet.runs.run.Run` has them.
        views: The views by name.
        edge_count: For graphs the number of edges of each.
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
        """All of it, for ``explorer.js``."""
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
    """The name of the script's array type, and the numbers: little-endian, compressed, in base64."""
    return _SCRIPT_TYPES[column.dtype.name], _compress(column.astype(column.dtype.newbyteorder("<")).tobytes())


def _compress(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")
