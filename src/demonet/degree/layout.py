"""DegreeLayout: a graph in degree order, built once and used in every layer and epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from demonet.checks import check_edge_index
from demonet.degree.count import By, check_by, count_degree
from demonet.degree.keep import lasting
from demonet.degree.lists import NeighbourLists, counting_sort, neighbour_lists
from demonet.errors import DemonetError


@dataclass(frozen=True, eq=False)
class DegreeLayout:
    r"""A graph whose nodes are sorted by degree.

    Sorted by degree, the nodes of one task are one contiguous slice of rows, and each task is one matrix product.

    Pass it wherever an ``edge_index`` goes: ``conv(x, layout)`` takes and returns rows in the caller's node order.
    :meth:`sorted` gives the same graph for callers who keep their rows in degree order themselves (:meth:`enter` and
    :meth:`leave` convert between the two orders), as the models do and as :class:`~demonet.transforms.ToDegreeLayout`
    arranges for a ``Data``: nothing is reordered then.

    Attributes:
        order: ``[n]`` the node in each row, or None when nodes are numbered by row already.
        rank: ``[n]`` the row of each node, or None likewise.
        key: ``[n]`` (``[n, 2]`` for pairs) the degree of each row that decides its task.
        degrees: ``[groups]`` (``[groups, 2]``) the distinct values of ``key``, ascending.
        offsets: ``[groups + 1]`` where the rows of each of them begin and end.
        pointer: ``[n + 1]`` where the neighbour list of each row begins and ends.
        neighbours: ``[m]`` the rows of the neighbours, list after list, ascending inside a list.
        edge: ``[m]`` the column of each of them in the ``edge_index``: ``edge_weight[edge]`` is in list order; or None
            when the edges are in list order already.
        back_pointer, back_neighbours: The same lists for the reversed edges, along which gradients flow. On an
            undirected graph they are the very same tensors.
        back_entry: ``[m]`` the position in ``neighbours`` of each reversed edge.
        by: Which degree decides the task: of incoming edges, of outgoing edges, or the pair of both.
    """

    order: Tensor | None
    rank: Tensor | None
    key: Tensor
    degrees: Tensor
    offsets: Tensor
    pointer: Tensor
    neighbours: Tensor
    edge: Tensor | None
    back_pointer: Tensor
    back_neighbours: Tensor
    back_entry: Tensor
    by: By = "in"

    @classmethod
    @lasting()
    def from_edge_index(cls, edge_index: Tensor, num_nodes: int | None = None, *, by: By = "in") -> DegreeLayout:
        """Lay out a graph, or the disjoint union of a batch of graphs, in time linear in its nodes and edges.

        Args:
            edge_index: ``[2, m]`` edges from row 0 to row 1, used as given: an undirected graph lists both directions.
            num_nodes: Number of nodes; by default the largest id plus one.
            by: Which degree decides the task, ``"in"``, ``"out"`` or ``"pair"``.
        """
        check_by(by)
        if torch._C._get_tracing_state() is not None:
            raise DemonetError("torch.jit.trace would keep this graph for all later calls", hint="use torch.export")
        if isinstance(edge_index, EdgeIndex):
            edge_index = edge_index.as_tensor()
        check_edge_index(edge_index, num_nodes)
        if num_nodes is None:
            num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
        source, target = edge_index.long()
        incoming, outgoing = count_degree(edge_index, num_nodes, by="pair").unbind(1)
        return cls.of_rows(source, target, incoming, outgoing, by=by)

    @classmethod
    def of_rows(
        cls, source: Tensor, target: Tensor, incoming: Tensor, outgoing: Tensor, *, more: int = 0, by: By = "in"
    ) -> DegreeLayout:
        """:meth:`from_edge_index` of checked edges, with the degrees of the nodes.

        Args:
            source, target: ``[m]`` the ends of the edges.
            incoming, outgoing: ``[n]`` the degrees of each node.
            more: How many sources there are beside the nodes, numbered after them: the lists read their rows after
                those of the nodes. Such a layout is for layers that are given the sums over neighbours.
            by: Which degree decides the task.
        """
        num_nodes, device = incoming.numel(), incoming.device
        # The last sort decides first: slices of one in-degree stay whole inside every task.
        keys = {"in": [incoming], "out": [incoming, outgoing], "pair": [outgoing, incoming]}[by]
        order = torch.arange(num_nodes, device=device)
        for key in keys:
            order = order[counting_sort(key[order], int(key.max()) + 1 if num_nodes else 1)[0]]
        rank = torch.empty_like(order)
        rank[order] = torch.arange(num_nodes, device=device)

        row = torch.cat([rank, torch.arange(num_nodes, num_nodes + more, device=device)]) if more else rank
        forward = neighbour_lists(row[source], rank[target], num_nodes + more, num_nodes)
        key = {"in": incoming, "out": outgoing, "pair": torch.stack([incoming, outgoing], 1)}[by][order]
        degrees, counts = torch.unique_consecutive(key, return_counts=True, dim=0)
        offsets = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        return cls(order, rank, key, degrees, offsets, *_compact(forward, num_nodes + more), by)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.key.size(0)

    @property
    def num_edges(self) -> int:
        """Number of edges; an undirected edge is two."""
        return self.neighbours.numel()

    @property
    def degree(self) -> Tensor:
        """``[n]`` (``[n, 2]`` for pairs): the degree of each node that decides its task, in the caller's order."""
        return self.leave(self.key)

    @cached_property
    def cache(self) -> dict[str, Any]:
        """What operators derive from the layout on first use; shared with :meth:`sorted`, not copied or moved."""
        return {}

    @property
    def is_undirected(self) -> bool:
        """Whether every edge has its reverse."""
        return self.back_neighbours is self.neighbours

    def enter(self, x: Tensor) -> Tensor:
        """Rows from the caller's node order to degree order."""
        return x if self.order is None or self.rank is None else permuted(x, self.order, self.rank)

    def leave(self, x: Tensor) -> Tensor:
        """Rows from degree order back to the caller's node order."""
        return x if self.order is None or self.rank is None else permuted(x, self.rank, self.order)

    def sorted(self) -> DegreeLayout:
        """The same graph with its nodes numbered by row, so that nothing is left to reorder."""
        if self.order is None:
            return self
        layout = replace(self, order=None, rank=None)
        layout.__dict__["cache"] = self.cache  # nothing in it depends on how the caller numbers nodes
        return layout

    def in_list_order(self) -> DegreeLayout:
        """:meth:`sorted`, for callers who keep their edges, and what belongs to them, in list order as well."""
        layout = replace(self.sorted(), edge=None)
        layout.__dict__["cache"] = self.cache
        return layout

    def edges_enter(self, values: Tensor) -> Tensor:
        """Values of edges from the order of the ``edge_index`` to list order."""
        return values if self.edge is None else values[self.edge.long()]

    def to(self, device: torch.device | str | int, non_blocking: bool = False) -> DegreeLayout:
        """The layout on another device."""
        moved: dict[int, Tensor] = {}  # by identity: an undirected graph keeps sharing its lists

        def move(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            if id(value) not in moved:
                moved[id(value)] = value.to(device=device, non_blocking=non_blocking)
            return moved[id(value)]

        return DegreeLayout(**{each.name: move(getattr(self, each.name)) for each in fields(self)})

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles start with an empty cache."""
        return {name: value for name, value in self.__dict__.items() if name != "cache"}

    def cpu(self) -> DegreeLayout:
        """The layout in main memory; PyG's ``data.cpu()`` calls this."""
        return self.to("cpu")

    def cuda(self, device: int | str | torch.device | None = None, non_blocking: bool = False) -> DegreeLayout:
        """The layout on a GPU; PyG's ``data.cuda()`` calls this."""
        return self.to(torch.device("cuda") if device is None else device, non_blocking)

    def __repr__(self) -> str:
        kind = "undirected" if self.is_undirected else "directed"
        return f"DegreeLayout({self.num_nodes} nodes, {self.num_edges} edges, {len(self.degrees)} degrees, {kind})"


def _compact(forward: NeighbourLists, num_sources: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Both directions of the lists, in 32-bit integers where those suffice, shared where they are equal."""
    target = torch.repeat_interleave(forward.pointer.diff(), output_size=forward.source.numel())
    entry, pointer = counting_sort(forward.source, num_sources)  # stable: by target inside a source
    backward = NeighbourLists(pointer, target[entry], entry)
    small = max(num_sources, forward.source.numel()) < 2**31
    lists = NeighbourLists(*(tensor.int() if small else tensor for tensor in forward))
    entry = entry.int() if small else entry
    if torch.equal(backward.pointer, forward.pointer) and torch.equal(backward.source, forward.source):
        return (*lists, lists.pointer, lists.source, entry)
    pointer, source = (tensor.int() if small else tensor for tensor in backward[:2])
    return (*lists, pointer, source, entry)


# Rows in another order, with a derivative that is a permutation too.


def _plain(x: Tensor, index: Tensor) -> Tensor:
    return x.index_select(0, index)


_select: Callable[[Tensor, Tensor], Tensor] = _plain


def select_by(kernel: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Let a kernel of :mod:`demonet.ops` select rows, in place of ``index_select``."""
    global _select
    _select = kernel


def permuted(x: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
    """``x[index]``, where ``index`` is a permutation.

    The derivative of ``index_select`` adds into zeros, because an index may occur twice. Here it selects again.
    """
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return _plain(x, index)
    if not x.requires_grad:
        return _select(x, index)
    out: Tensor = _Permuted.apply(x, index, inverse)
    return out


class _Permuted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(index, inverse)
        ctx.save_for_forward(index, inverse)
        return _select(x, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        index, inverse = ctx.saved_tensors
        return permuted(grad, inverse, index), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return permuted(tangent, *ctx.saved_tensors)


torch.export.register_dataclass(DegreeLayout, serialized_type_name="demonet.DegreeLayout")


class AddDegreeLayout(BaseTransform):
    """Attach ``data.layout``, the :class:`DegreeLayout` of a graph (or of a batch: apply it to the batch).

    >>> from torch_geometric.data import Data
    >>> data = AddDegreeLayout()(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3))
    >>> data.layout
    DegreeLayout(3 nodes, 2 edges, 2 degrees, undirected)
    """

    def __init__(self, by: By = "in") -> None:
        self.by: By = by

    def forward(self, data: Data) -> Data:
        """Attach the layout."""
        data.layout = DegreeLayout.from_edge_index(data.edge_index, data.num_nodes, by=self.by)
        return data
