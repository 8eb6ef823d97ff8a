"""The forms in which a layer takes edges, as the operators take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric import EdgeIndex
from torch_geometric.utils import is_torch_sparse_tensor

from demonet.checks import check_edge_index
from demonet.degree.count import By
from demonet.degree.keep import changes, lasting
from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import check_degree
from demonet.errors import DemonetError
from demonet.ops import aggregate, backend, neighbour_lists
from demonet.ops.library import library, ops, reversed_lists
from demonet.ops.reference import aggregate_scale, owner
from demonet.ops.scale import Lists


class _Sorted(NamedTuple):
    """Edges that were sorted, their changes so far, and what was made of them, by sizes, degree and flow."""

    counts: list[tuple[int, int] | None]
    edges: Tensor
    made: dict[Any, Any]


_SORTED: Any = WeakTensorKeyDictionary()  # by the tensor that was given, as long as it lives


def made_of(given: Tensor, index: Tensor, *, compare: bool) -> dict[Any, Any]:
    """What was made of edges before: empty if the tensor is another one, or was changed.

    They are the same if the tensor is, and torch has counted no change of it. In main memory NumPy may have changed
    them as well.

    Args:
        given: The edges as given.
        index: The same as one plain tensor.
        compare: Whether to compare edges in main memory number by number: a hundredth of sorting them.
    """
    inside = [] if index is given else [index]  # an ``EdgeIndex`` counts changes on its own
    counts = [changes(tensor) for tensor in (given, *inside)]
    known = _SORTED.get(given)
    same = known is not None and known.counts == counts
    if same and (None in counts or (compare and index.device.type == "cpu")):
        same = torch.equal(known.edges, index)
    if not same:
        with lasting():
            known = _SORTED[given] = _Sorted(counts, index.clone(), {})
    made: dict[Any, Any] = known.made
    return made


# In compiled code, edges are sorted once as well. The lists are copies: compiled code reuses the memory of results.
library.define(
    "kept_lists(Tensor edge_index, SymInt sources, SymInt targets, bool forward) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)


def _kept_lists(edge_index: Tensor, sources: int, targets: int, forward: bool) -> tuple[Tensor, ...]:
    made, key = made_of(edge_index, edge_index, compare=True), (sources, targets, forward)
    if key not in made:
        with lasting():
            lists = neighbour_lists(edge_index if forward else edge_index.flip(0), sources, targets)
            made[key] = (*lists, *reversed_lists(*lists[:2], targets, sources))
    return tuple(values.clone() for values in made[key])


@torch.library.register_fake("demonet::kept_lists", lib=library)
def _(edge_index: Tensor, sources: int, targets: int, forward: bool) -> tuple[Tensor, ...]:
    edges = edge_index.size(1)
    return tuple(edge_index.new_empty(size, dtype=torch.long) for size in (
        targets + 1, edges, edges, sources + 1, edges, edges
    ))  # fmt: skip


library.impl("kept_lists", _kept_lists, "CompositeExplicitAutograd")


class Edges:
    """The edges between sources and targets, given as ``edge_index``, ``EdgeIndex`` or ``torch.sparse`` ``adj_t``.

    An ``EdgeIndex`` that is sorted by target and knows its size, and an ``adj_t`` in CSR, are used as they are.
    Anything else is sorted in every call.

    Args:
        given: The edges.
        weight: ``[m]`` their weights or None; None for ``adj_t``, whose values are the weights.
        size: Number of sources and of targets.
        flow: PyG's flow; with ``"target_to_source"`` row 0 of the ``edge_index`` has the targets.

    Attributes:
        index: ``[2, m]`` the edges as one tensor, rows as given.
        weight: ``[m]`` weights in that order, or None.
        num_targets: Number of targets.
    """

    def __init__(self, given: Tensor, weight: Tensor | None, size: tuple[int, int], flow: str) -> None:
        if not isinstance(given, Tensor):
            raise DemonetError(f"edge_index is a {type(given).__name__}, not a tensor or a layout")
        self._given, self._size, self._forward = given, size, flow == "source_to_target"
        self.num_targets = size[1]
        self._csr = self._sorted = None
        self.weight = weight
        if is_torch_sparse_tensor(given):
            if given.shape != (size[1], size[0]):
                raise DemonetError(f"adj_t has shape {tuple(given.shape)}, not (targets, sources) = {size[::-1]}")
            if weight is not None or not self._forward:
                raise DemonetError(f"adj_t with edge_weight or flow={flow!r}", hint="its values are the weights")
            self._csr = given.to_sparse_csr()
            self.weight = self._csr.values()
            targets = owner(self._csr.crow_indices(), self._csr.col_indices().numel())
            self.index = torch.stack([self._csr.col_indices(), targets])
            return
        self.index = given.as_tensor() if isinstance(given, EdgeIndex) else given
        if weight is not None:
            check_length("edge weights", "edge", weight, self.index.size(1))
        if isinstance(given, EdgeIndex) and not backend.tracing():
            by_target = given.is_sorted_by_col if self._forward else given.is_sorted_by_row
            if by_target and given.sparse_size() == (size if self._forward else size[::-1]):
                self._sorted = given

    @property
    def pairs(self) -> Tensor:
        """``[2, m]`` sources and targets."""
        return self.index if self._forward else self.index.flip(0)

    def layout(self, by: By, *, compare: bool) -> DegreeLayout:
        """The layout of edges between nodes of one set, sorted when they come for the first time: all layers share it.

        Args:
            by: Which degree decides the task.
            compare: As in :func:`made_of`.
        """
        made, key = made_of(self._given, self.index, compare=compare), (self._size[1], by, self._forward)
        if key not in made:
            made[key] = DegreeLayout.from_edge_index(self.pairs, self._size[1], by=by)
        layout: DegreeLayout = made[key]
        return layout

    @property
    def ends(self) -> Ends:
        """The ends of the edges in the given order."""
        source, target = self.pairs.long()
        return Ends(source, target, self._size[1])

    def lists(self, *, back: bool) -> tuple[tuple[Tensor, ...], Tensor | None]:
        """Where the list of each target begins, and the sources, list after list; then the weights in that order.

        Args:
            back: Whether derivatives will flow: where they are known, the lists of the reversed edges follow.
        """
        if self._csr is not None:
            return (self._csr.crow_indices(), self._csr.col_indices()), self.weight
        if self._sorted is not None:
            check_edge_index(self.pairs, self._size)
            with lasting():  # it keeps its lists
                (pointer, neighbours), _ = self._sorted.get_csc() if self._forward else self._sorted.get_csr()
                if not back:
                    return (pointer, neighbours), self.weight
                reverse, entry = self._sorted.get_csr() if self._forward else self._sorted.get_csc()
            assert entry is not None
            return (pointer, neighbours, *reverse, entry), self.weight
        if backend.tracing() and not backend.exporting():
            pointer, neighbours, edge, *reverse = ops.kept_lists(self.index, *self._size, self._forward)
        else:
            pointer, neighbours, edge = neighbour_lists(self.pairs, *self._size)
            reverse = []
        return (pointer, neighbours, *reverse), None if self.weight is None else self.weight[edge]


class Ends(NamedTuple):
    """The ends of every edge, in the order of lists or in any other.

    Attributes:
        source, target: ``[m]``.
        targets: Number of targets.
        pointer: Where the list of each target begins and ends, where edges are in the order of lists.
    """

    source: Tensor
    target: Tensor
    targets: int
    pointer: Tensor | None = None

    @classmethod
    def of(cls, pointer: Tensor, neighbours: Tensor, *_: Tensor) -> Ends:
        """Those of lists."""
        return cls(neighbours.long(), owner(pointer, neighbours.numel()), pointer.numel() - 1, pointer)

    def sums(self, values: Tensor) -> Tensor:
        """``[targets]``: the sum of the values of the edges of each target."""
        if self.pointer is None:
            return values.new_zeros(self.targets).index_add(0, self.target, values)
        places = torch.arange(values.numel(), device=values.device)
        return aggregate(values[:, None], (self.pointer, places))[:, 0]

    def lengths(self, dtype: torch.dtype) -> Tensor:
        """``[targets]``: the number of edges of each."""
        if self.pointer is not None:
            return self.pointer.diff().to(dtype)
        return self.sums(torch.ones_like(self.target, dtype=dtype))


class Factors(NamedTuple):
    r"""What the terms of :math:`a_v = c_v \sum_{u \in N(v)} w_{vu} x_u + o_v x_v` are multiplied by; None is 1, or no
    term.

    Attributes:
        weight: ``[m]`` :math:`w`, in the order of the lists.
        scale: ``[targets]`` :math:`c`; None for that of ``aggr``.
        own: ``[targets]`` :math:`o`, of a node that is its own neighbour.
    """

    weight: Tensor | None = None
    scale: Tensor | None = None
    own: Tensor | None = None


def factors(
    ends: Ends,
    weight: Tensor | None,
    aggr: str,
    dtype: torch.dtype,
    *,
    loops: bool,
    sources: int | None = None,
    fill: Callable[[Tensor], Tensor] | None = None,
) -> Factors:
    r"""The factors of ``aggr="sym"``, and of nodes that are neighbours of themselves.

    Args:
        ends: The edges.
        weight: ``[m]`` their weights, or None.
        aggr: ``"sym"`` is :math:`1 / \sqrt{d_u d_v}`, where d is the sum of the weights of the edges of a node.
        dtype: Of the weights.
        loops: Whether a node is its own neighbour, once: not if its list has it.
        sources: Number of sources, where these are other nodes than the targets: d is that of its edges here then.
        fill: Appends the values of sources that are not targets.
    """
    wide = torch.promote_types(dtype, torch.float32)
    total = ends.sums(weight.to(wide)) if aggr == "sym" and weight is not None else ends.lengths(wide)
    loop = None
    if loops:
        loop = torch.ones_like(total)
        if sources is None:
            loop = loop - ends.sums((ends.source == ends.target).to(wide)).clamp(max=1)
        total = total + loop
    if aggr == "sum":
        return Factors(weight, None, loop)
    if aggr != "sym":
        scale = total.clamp(min=1).reciprocal() if aggr == "mean" else total.clamp(min=1).rsqrt()
        return Factors(weight, scale, None if loop is None else loop * scale)
    scale = _inverse_root(total)
    if sources is None:
        source = scale if fill is None else fill(scale[:, None])[:, 0]
    else:
        count = torch.ones_like(ends.source, dtype=wide) if weight is None else weight.to(wide)
        source = _inverse_root(total.new_zeros(sources).index_add(0, ends.source, count))
    spread = source.index_select(0, ends.source).to(dtype)
    weight = spread if weight is None else spread * weight
    return Factors(weight, scale, None if loop is None else loop * scale.square())


@dataclass(frozen=True, eq=False)
class Block:
    """The neighbours of some targets, for one convolution.

    Attributes:
        targets: Where the targets are among the rows that the convolution reads.
        degree: ``[targets]`` (``[targets, 2]`` for pairs) their degrees in the whole graph.
        pointer, neighbours: The list of every target, of rows that the convolution reads; None where sums are known.
        factors: What edges, sums and the targets' own rows are multiplied by.
    """

    targets: slice
    degree: Tensor
    pointer: Tensor | None = None
    neighbours: Tensor | None = None
    factors: Factors = Factors()  # noqa: RUF009

    @property
    def lists(self) -> tuple[Tensor, Tensor]:
        """Pointer and neighbours."""
        assert self.pointer is not None
        assert self.neighbours is not None
        return self.pointer, self.neighbours

    def part(self, start: int, stop: int) -> Block:
        """Some of the targets."""
        targets, degree = slice(self.targets.start + start, self.targets.start + stop), self.degree[start:stop]
        if self.pointer is None or self.neighbours is None:
            return Block(targets, degree)
        pointer = self.pointer[start : stop + 1]
        entries = slice(int(pointer[0]), int(pointer[-1]))
        found = Factors(
            part_of(self.factors.weight, entries),
            part_of(self.factors.scale, slice(start, stop)),
            part_of(self.factors.own, slice(start, stop)),
        )
        return Block(targets, degree, pointer - pointer[0], self.neighbours[entries], found)


def part_of(values: Tensor | None, place: slice | Tensor) -> Tensor | None:
    """Some of the values, where there are any."""
    return None if values is None else values[place]


class InPlace(NamedTuple):
    """A graph in the caller's order of nodes, for layers that need no groups.

    Attributes:
        degree: ``[n]`` the degrees that choose the task.
        lists: Pointer and neighbours of every node, itself among them where it is its own neighbour; then the lists of
            the reversed edges.
        weight: ``[m]`` the whole factor of every entry; None for that of ``aggr``.
        both: The same for a convolution that is one function.
        place: ``[n]`` where every node is in degree order; None where this is the caller's.
    """

    degree: Tensor
    lists: tuple[Tensor, ...]
    weight: Tensor | None
    both: Lists
    place: Tensor | None


def in_place(layout: DegreeLayout, aggr: str, dtype: torch.dtype, *, loops: bool) -> InPlace:
    """The graph of a layout in the caller's order, made once and kept with it; the arguments are those of
    :func:`factors`.
    """
    key = f"in place {aggr} {loops} {dtype}"
    if key not in layout.cache:
        with lasting():
            layout.cache[key] = _in_place(layout, aggr, dtype, loops=loops)
    found: InPlace = layout.cache[key]
    return found


def _in_place(layout: DegreeLayout, aggr: str, dtype: torch.dtype, *, loops: bool) -> InPlace:
    ends, n, weight = Ends.of(layout.pointer, layout.neighbours), layout.num_nodes, None
    source, target = ends.source, ends.target
    if aggr == "sym" or loops:
        weight, scale, own = factors(ends, None, aggr, dtype, loops=loops)
        weight = torch.ones(len(source), dtype=dtype, device=source.device) if weight is None else weight
        weight = weight if scale is None else weight * scale[target].to(dtype)
        if own is not None:
            loop = own.nonzero()[:, 0]
            weight = torch.cat([weight, own[loop].to(dtype)])
            target, source = torch.cat([target, loop]), torch.cat([source, loop])
    pairs = torch.stack([source, target])
    pairs = pairs if layout.order is None else layout.order[pairs]
    pointer, neighbours, entry = neighbour_lists(pairs, n, n)
    back = reversed_lists(pointer, neighbours, n, n)
    weight = None if weight is None else weight[entry].contiguous()
    back_weight = None if weight is None else weight[back[2]].contiguous()
    if pairs.size(1) < 2**31:  # half as much to read
        pointer, neighbours, *back = (one.int() for one in (pointer, neighbours, *back))
    same = [(pointer, back[0]), (neighbours, back[1])]
    if weight is not None and back_weight is not None:
        same.append((weight, back_weight))
    if all(torch.equal(one, other) for one, other in same):  # one copy of what is the same
        back, back_weight = (pointer, neighbours, back[2]), weight
    scale = aggregate_scale(pointer, aggr, dtype) if weight is None else None
    groups, large = layout.degrees.size(0), n >= backend.PIECE_GRAPH_ROWS and layout.order is None and pointer.is_cpu
    offsets = layout.offsets if large and backend.enough_rows(backend.ROWS_PER_SCALE, groups, n) else None
    scale = None if scale is None else scale[:, None]
    both = Lists(pointer, neighbours, weight, back[0], back[1], back_weight, scale, offsets)
    place = None if layout.order is None else layout.leave(torch.arange(n, device=pointer.device))
    return InPlace(layout.leave(layout.key), (pointer, neighbours, *back), weight, both, place)


def _inverse_root(total: Tensor) -> Tensor:
    """``1 / sqrt(total)``, zero where that is not positive."""
    return torch.where(total > 0, total, 1).rsqrt() * (total > 0)


def check_degrees(degree: Tensor, count: int, by: By) -> None:
    """Raise for anything but a degree of every node. Those on a GPU are not read: nothing waits for it."""
    check_length("degrees", "node", degree, count, dim=2 if by == "pair" else 1)
    if degree.is_cpu and not (backend.tracing() or backend.mapped()):
        check_degree(degree, by)


def check_length(name: str, what: str, values: Tensor, count: int, dim: int = 1) -> None:
    """Raise for anything but one entry per item."""
    if not isinstance(values, Tensor):
        raise DemonetError(f"{name} are a {type(values).__name__}, not a tensor")
    if values.dim() != dim:
        raise DemonetError(f"{name} of shape {list(values.shape)}", hint=f"{dim}-dimensional, one for each {what}")
    if values.size(0) != count:
        raise DemonetError(f"{values.size(0)} {name} for {count} {what}s", hint=f"one for each {what}")
