"""The explorer: an interactive plot of every item of a run, with search and colours.

Items are embedded in the page as compressed columns in base64; ``explorer.js`` unpacks and draws them.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from demonet.errors import DemonetError
from demonet.report.chart_plotly import SYMBOLS
from demonet.report.page import Section
from demonet.report.palette import CATEGORICAL, NEUTRAL

MOST_POINTS = 2000
"""More items are drawn on a canvas, because SVG is too slow for them."""

_GRID = 65534
"""Positions are rounded to this many steps across the longer side; one step more means no position."""

_SCRIPT_TYPES = {
    **{"int8": "Int8Array", "int16": "Int16Array", "uint16": "Uint16Array", "int32": "Int32Array"},
    "float32": "Float32Array",
}
FEW = 5
"""With more choices of colour, a list replaces the row of buttons."""


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
class Channel:
    """What is known of each item: shown in its details, and a choice of colours if it has one.

    Args:
        term: Its name in the details; not among them if empty, unless it is the present choice of colours.
        values: ``[items]`` numbers, NaN for unknown; or the index of a name, -1 for unknown.
        names: The names.
        colour: Its name as a choice of colours; None if it is not a choice.
        scale: Of numbers: ``"log"`` for sizes, ``"linear"``, or ``"diverging"`` from 0.
        missing: What unknown is called.
    """

    term: str
    values: NDArray[Any]
    names: Sequence[str] | None = None
    colour: str | None = None
    scale: Literal["log", "linear", "diverging"] = "linear"
    missing: str = "unknown"

    @property
    def packed(self) -> dict[str, Any]:
        """The data for ``explorer.js``; probabilities take two bytes each."""
        values, unit = self.values, 1.0
        if self.names is not None:
            values = values.astype(np.int16 if len(self.names) < 1 << 15 else np.int32)
        elif values.dtype.kind in "iu":
            values = values.astype(np.int32)
        elif np.isfinite(values).all() and np.all((values >= 0) & (values <= 1)):
            values, unit = np.rint(values * 65535).astype(np.uint16), 1 / 65535
        else:
            values = values.astype(np.float32)
        shown = {"term": self.term, "names": None if self.names is None else list(self.names), "colour": self.colour}
        return {**shown, "scale": self.scale, "missing": self.missing, "unit": unit, "values": pack(values)}


@dataclass(frozen=True)
class Explorer(Section):
    """All items in one or more views that share the choice of colours and the search.

    Args:
        noun: What an item is: ``"node"`` or ``"graph"``.
        ids: The id of each item.
        channels: What is known of the items, by name.
        views: The views by name.
    """

    kind: ClassVar[str] = "explorer"
    plots: ClassVar[bool] = True
    noun: str
    ids: Sequence[str]
    channels: Mapping[str, Channel]
    views: Mapping[str, View]

    def __post_init__(self) -> None:
        columns: list[NDArray[Any]] = [channel.values for channel in self.channels.values()]
        columns += [view.place for view in self.views.values()]
        lengths = {len(self.ids), *(len(column) for column in columns)}
        if len(lengths) > 1:
            raise DemonetError(f"an explorer's columns differ in length: {sorted(lengths)}")

    @property
    def colours(self) -> list[tuple[str, str]]:
        """The choices of colour: the name of a channel, and what it is called."""
        return [(name, channel.colour) for name, channel in self.channels.items() if channel.colour]

    @property
    def few(self) -> bool:
        """Whether the choices fit in a row of buttons."""
        return len(self.colours) <= FEW

    @property
    def json(self) -> str:
        """The data for ``explorer.js``."""
        return json.dumps(
            {
                "noun": self.noun,
                "mostPoints": MOST_POINTS,
                "colours": [light for light, _ in CATEGORICAL],
                "neutral": NEUTRAL[0],
                "symbols": SYMBOLS,
                "ids": _compress(json.dumps(list(self.ids)).encode()),
                "channels": {name: channel.packed for name, channel in self.channels.items()},
                "views": {name: view.packed for name, view in self.views.items()},
            }
        )


def pack(column: NDArray[Any]) -> tuple[str, str]:
    """The name of a JavaScript array type, and the numbers: little-endian, compressed, in base64."""
    return _SCRIPT_TYPES[column.dtype.name], _compress(column.astype(column.dtype.newbyteorder("<")).tobytes())


def _compress(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")
