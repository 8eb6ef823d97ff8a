"""What every kernel takes: a graph, the weights of a convolution and its options."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.ops import backend
from demonet.ops.schedule.buffers import Buffers
from demonet.ops.schedule.cpu import Blocks, Piece, Tiers, cut_blocks, cut_pieces, cut_tiers
from demonet.ops.schedule.gpu import Groups, Tiles, cut_groups, cut_lists


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
        self._settings = backend.current()
        if tables:
            self.tiles, self.back_tiles, self.groups = Tiles(*tables[:6]), Tiles(*tables[6:12]), Groups(*tables[12:])

    @classmethod
    def of(cls, layout: DegreeLayout) -> Graph:
        """The graph of a layout, built once for the backend's settings."""
        graph: Graph | None = layout.cache.get("graph")
        if graph is None or graph._settings is not backend.current():
            layout.cache["graph"] = graph = cls(*_lists(layout))
        return graph

    @property
    def lists(self) -> tuple[Tensor, Tensor]:
        """Pointer and neighbours."""
        return self.pointer, self.neighbours

    @property
    def back(self) -> tuple[Tensor, Tensor]:
        """The same of the reversed edges."""
        return self.back_pointer, self.back_neighbours

    @cached_property
    def blocks(self) -> Blocks:
        """Groups of rows for grouped products on a CPU."""
        return cut_blocks(self.offsets)

    @cached_property
    def pieces(self) -> list[Piece]:
        """Rows for the fused loss of a large graph on a CPU."""
        return cut_pieces(self.offsets, self.lists, self.back)

    @cached_property
    def tiers(self) -> Tiers:
        """Rows for the fused loss of a small graph on a CPU."""
        return cut_tiers(self.offsets, self.lists, self.back)

    @cached_property
    def tiles(self) -> Tiles:
        """Neighbour lists for Triton kernels."""
        return cut_lists(self.pointer, self.offsets)

    @cached_property
    def back_tiles(self) -> Tiles:
        """Reversed lists for Triton kernels."""
        return cut_lists(self.back_pointer)

    @cached_property
    def groups(self) -> Groups:
        """Groups of rows for Triton kernels."""
        return cut_groups(self.offsets, self.pointer.numel() - 1)

    @cached_property
    def buffers(self) -> Buffers:
        """Memory for large results, the same in every epoch."""
        return Buffers()

    @property
    def tables(self) -> list[Tensor]:
        """The schedules for Triton kernels as plain tensors, to pass through ``torch.library``."""
        return [*self.tiles, *self.back_tiles, *self.groups]


def tensors_of(layout: DegreeLayout, x: Tensor) -> list[Tensor]:
    """The arguments of :class:`Graph` for operators on ``x``, with schedules where Triton kernels will read them."""
    return [*_lists(layout), *tables_of(layout, x)]


def tables_of(layout: DegreeLayout, x: Tensor) -> list[Tensor]:
    """:attr:`Graph.tables` where Triton kernels run on ``x``; none while tracing, unless they are already there."""
    if backend.family(x) != "triton" or (backend.tracing() and "graph" not in layout.cache):
        return []
    return Graph.of(layout).tables


def _lists(layout: DegreeLayout) -> Sequence[Tensor]:
    return (layout.offsets, layout.pointer, layout.neighbours, layout.back_pointer, layout.back_neighbours)
