"""What every kernel takes: a graph, the weights of a convolution and its options."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from demonet.degree.keep import lasting
from demonet.degree.layout import DegreeLayout
from demonet.ops import backend
from demonet.ops.schedule.cpu import Blocks, Buffers, Piece, cut_blocks, cut_pieces
from demonet.ops.schedule.gpu import Groups, Tiles, cut_groups, cut_lists

T = TypeVar("T")


class Options(NamedTuple):
    """Options of a convolution.

    Attributes:
        aggr: How sums over neighbours are scaled: ``"sum"``, ``"mean"`` or ``"sqrt"``.
        combine: ``"concat"`` or ``"add"``.
        activation: ``"none"``, ``"elu"`` or ``"relu"``.
        keep: Whether the sums are kept for the derivatives; otherwise they are computed again (less memory).
    """

    aggr: str = "sum"
    combine: str = "concat"
    activation: str = "none"
    keep: bool = True


class Weights(NamedTuple):
    """Weights of a convolution.

    Attributes:
        seed: ``[F, S]``, the map of the seed (Eq. 6).
        matrices: ``[groups, F, W]``, the matrix of every group of rows (Eq. 7).
        bias: ``[S + W]``, or ``[W]`` when the halves are added, or None.
    """

    seed: Tensor
    matrices: Tensor
    bias: Tensor | None = None

    def width(self, combine: str) -> int:
        """Columns of the output."""
        return self.matrices.size(2) + (0 if combine == "add" else self.seed.size(1))

    def halves(self, y: Tensor, combine: str) -> tuple[Tensor, Tensor]:
        """The columns of the seed and those of the neighbourhood, in an output or its derivative."""
        return (y, y) if combine == "add" else (y[:, : self.seed.size(1)], y[:, self.seed.size(1) :])


class BothTiles(NamedTuple):
    """The tiles of lists and of the reversed lists; as plain tensors, one after the other, in ``torch.library``."""

    forth: Tiles
    back: Tiles

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> BothTiles:
        """Read from plain tensors."""
        count = len(Tiles._fields)
        return cls(Tiles(*tensors[:count]), Tiles(*tensors[count : 2 * count]))

    @property
    def reversed(self) -> list[Tensor]:
        """Plain tensors for the sum along the reversed edges."""
        return [*self.back, *self.forth]


class Graph:
    """Rows in groups of one degree and their neighbour lists, with the schedules of the kernels.

    Attributes:
        offsets: ``[groups + 1]`` where the rows of each group begin and end.
        pointer, neighbours: The neighbour list of every row.
        back_pointer, back_neighbours: The lists of the reversed edges, along which derivatives flow.
    """

    def __init__(
        self,
        offsets: Tensor,
        pointer: Tensor,
        neighbours: Tensor,
        back_pointer: Tensor,
        back_neighbours: Tensor,
        *tables: Tensor,
    ) -> None:
        self.offsets, self.pointer, self.neighbours = offsets, pointer, neighbours
        self.back_pointer, self.back_neighbours = back_pointer, back_neighbours
        self._made = _made_for(offsets, pointer)
        self._tables = tables
        if tables:
            given = *BothTiles.of(tables), Groups(*tables[2 * len(Tiles._fields) :])
            self._made.update(zip(("tiles", "back_tiles", "groups"), given, strict=True))

    @classmethod
    def of(cls, layout: DegreeLayout) -> Graph:
        """The graph of a layout, built once."""
        graph: Graph | None = layout.cache.get("graph")
        if graph is None:
            layout.cache["graph"] = graph = cls(*_lists(layout))
        return graph

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What a kernel derives from the graph, made when it is asked for first."""
        return _once(self._made, name, make)

    @property
    def tensors(self) -> list[Tensor]:
        """What it was made of, to pass through ``torch.library``."""
        return [self.offsets, *self.lists, *self.back, *self._tables]

    @property
    def lists(self) -> tuple[Tensor, Tensor]:
        """Pointer and neighbours."""
        return self.pointer, self.neighbours

    @property
    def back(self) -> tuple[Tensor, Tensor]:
        """The same of the reversed edges."""
        return self.back_pointer, self.back_neighbours

    @property
    def blocks(self) -> Blocks:
        """Groups of rows for grouped products on a CPU."""
        return self.once("blocks", lambda: cut_blocks(self.offsets))

    def pieces_for(self, x: Tensor) -> list[Piece]:
        """Rows for convolutions on a CPU: in one piece if the graph is small; 16-bit sums over pieces lose too much."""
        n = x.size(0)
        if n >= backend.PIECE_GRAPH_ROWS and x.dtype in (torch.float32, torch.float64):
            return self.once("pieces", lambda: cut_pieces(self.offsets, self.lists, self.back))
        return self.once("whole", lambda: [Piece(slice(0, n), self.lists, self.back, self.blocks)])

    @property
    def tiles(self) -> Tiles:
        """Neighbour lists for Triton kernels."""
        return self.once("tiles", lambda: cut_lists(self.pointer, self.offsets))

    @property
    def back_tiles(self) -> Tiles:
        """Reversed lists for Triton kernels."""
        return self.once("back_tiles", lambda: cut_lists(self.back_pointer))

    @property
    def groups(self) -> Groups:
        """Groups of rows for Triton kernels."""
        return self.once("groups", lambda: cut_groups(self.offsets, self.pointer.numel() - 1))

    @property
    def buffers(self) -> Buffers:
        """Memory for large results, the same in every epoch."""
        return self.once("buffers", Buffers)


# Schedules by the offsets of a graph. They are found again where only tensors are passed on, as in compiled code.
_SCHEDULES: Any = WeakTensorKeyDictionary()


def _made_for(offsets: Tensor, pointer: Tensor) -> dict[str, Any]:
    """The schedules made so far for a graph."""
    known = _SCHEDULES.get(offsets)
    if known is None or known[0]() is not pointer:
        _SCHEDULES[offsets] = known = (weakref.ref(pointer), {})
    made: dict[str, Any] = known[1]
    return made


def _once(made: dict[str, Any], name: str, make: Callable[[], T]) -> T:
    if name not in made:
        with lasting():
            made[name] = make()
    found: T = made[name]
    return found


def tiles_of(pointer: Tensor) -> Tiles:
    """The tiles of lists whose graph is not known."""
    return _once(_made_for(pointer, pointer), "tiles", lambda: cut_lists(pointer))


def buffers_of(pointer: Tensor) -> Buffers:
    """Memory for sums over lists whose graph is not known, as long as the lists are there."""
    return _once(_made_for(pointer, pointer), "buffers", Buffers)


def tensors_of(layout: DegreeLayout, x: Tensor) -> list[Tensor]:
    """The arguments of :class:`Graph` for operators on ``x``, with schedules where Triton kernels will read them."""
    graph = _scheduled(layout, x)
    return [*_lists(layout), *([] if graph is None else [*graph.tiles, *graph.back_tiles, *graph.groups])]


def tiles_for(layout: DegreeLayout, x: Tensor) -> list[Tensor]:
    """:class:`BothTiles` as plain tensors, where Triton kernels run on ``x``."""
    graph = _scheduled(layout, x)
    return [] if graph is None else [*graph.tiles, *graph.back_tiles]


def _scheduled(layout: DegreeLayout, x: Tensor) -> Graph | None:
    """The graph where Triton kernels run on ``x``; while tracing only if it is already there."""
    if backend.family(x) != "triton" or (backend.tracing() and "graph" not in layout.cache):
        return None
    return Graph.of(layout)


def _lists(layout: DegreeLayout) -> Sequence[Tensor]:
    return (layout.offsets, layout.pointer, layout.neighbours, layout.back_pointer, layout.back_neighbours)
