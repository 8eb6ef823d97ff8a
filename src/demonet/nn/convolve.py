"""How a degree-specific convolution is computed: in which order of rows, products and sums, and what is kept.

What it computes is in :class:`~demonet.DEMOConv`. Rows stay in the caller's order where one matrix serves all degrees;
otherwise they are put into degree order, where each degree is one slice, or every row comes with its degree. Messages
along the edges exist for hooks and explainers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeGuard

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.dense.linear import Linear

from demonet.checks import check_edge_index
from demonet.degree.count import count_degree
from demonet.degree.keep import Memo, lasting
from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.nn.dropout import Dropout
from demonet.nn.edges import (
    Block,
    Edges,
    Ends,
    Factors,
    InPlace,
    check_degrees,
    check_length,
    factors,
    in_place,
    made_of,
)
from demonet.nn.weights.base import DegreeWeights, Removable
from demonet.ops import Options, Weights, aggregate, backend, conv, grouped
from demonet.ops.backend import is_sparse
from demonet.ops.library import reversed_lists
from demonet.ops.noise import RowNoise
from demonet.ops.reference import activate, aggregate_scale, owner
from demonet.ops.scale import scale_conv
from demonet.ops.sparse import csr, sparse_aggregate, sparse_linear, sparse_rows

Features = Tensor | tuple[Tensor, Tensor | None]
Lists = tuple[Tensor, ...]
_STEPS = ("propagate", "message", "aggregate", "update", "message_and_aggregate")  # of PyG's layers


class Neighbours(NamedTuple):
    """What a convolution sums for each of its targets, before it is summed.

    Attributes:
        rows: ``[sources, in_channels]`` the rows that are read.
        lists: Pointer and neighbours of every target; the lists of the reversed edges may follow.
        factors: What edges, sums and the targets' own rows are multiplied by.
        layout: The layout whose lists these are, if any.
        whole: Whether the weights of edges are whole factors, so that nothing else is multiplied.
        edges: ``[2, m]`` the edges in their given order, where these are not in lists: messages are passed along them.
    """

    rows: Tensor
    lists: Lists
    factors: Factors
    layout: DegreeLayout | None = None
    whole: bool = False
    edges: Ends | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing is weighted, and the lists are those of a layout."""
        return self.layout is not None and all(factor is None for factor in self.factors)


def transform_first(
    rows: int,
    edges: int,
    columns: int,
    width: int,
    matrices: int = 1,
    reads: int = 1,
    *,
    balance: float = 20.0,
    fused: bool = False,
    degrees: int = 0,
) -> bool:
    """Whether to multiply rows before they are summed, rather than after: it reads and writes less.

    Sums of rows are read for every edge, written, and read again by the product. Products with all ``matrices`` are
    written, and ``reads`` of them are read for every edge, again in the derivative. Making the matrices and multiplying
    with more than one of them counts as well.

    Args:
        rows, edges: Of the graph.
        columns, width: Of the input and of the output.
        matrices: How many matrices every row is multiplied by.
        reads: How many of these products an edge reads.
        balance: Multiplications in the time of one number read or written.
        fused: Whether the kernel that sums products goes on with them, so that nothing is read again.
        degrees: Where sums would be kept for all calls, by how many matrices they are multiplied. They are mixed, each
            of them, in every call, and their derivatives likewise; or rows are multiplied by all ``matrices``.

    >>> transform_first(rows=100, edges=500, columns=1433, width=16)
    True
    >>> transform_first(rows=100, edges=500, columns=16, width=16)
    False
    """
    if fused:
        return width <= columns
    sums: float = (edges + 2 * rows) * columns
    products = 2 * (rows * matrices + edges * reads) * width
    more = (matrices - 1) * columns * width * (1 + rows / balance)
    if degrees:
        sums = min(sums, 2 * rows * columns + min(4 * degrees * columns * width, more))
    return products + more < sums


class Seed(Linear, Removable):
    """The map of the seed (Eq. 6), which can be removed."""

    in_channels: int
    out_channels: int
    weight: Tensor


class Convolution(MessagePassing):
    """What :class:`~demonet.DEMOConv` inherits: its :meth:`convolve`, and all that leads to it.

    Args:
        **kwargs: Arguments of :class:`torch_geometric.nn.MessagePassing`.
    """

    in_channels: int | tuple[int, int]
    tasks: DegreeTasks
    combine: str
    cached: bool
    drop: Dropout
    seed: Seed | None
    weights: DegreeWeights
    bias: Tensor | None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(aggr="sum", node_dim=0, **kwargs)
        self._hooks = [
            hooks for name, hooks in vars(self).items() if name.endswith("_hooks") and "_forward_" in name[1:]
        ]
        overridden = {name for name in _STEPS if getattr(type(self), name) is not getattr(Convolution, name)}
        if "message_and_aggregate" in overridden:
            problem = f"{type(self).__name__}.message_and_aggregate would not be called"
            raise DemonetError(problem, hint="override message and aggregate, or propagate")
        self._has_own_messages = bool(overridden)
        self._columns: Memo[Sequence[Tensor]] = Memo()
        self._sums: Memo[tuple[Tensor, Tensor]] = Memo()
        self._mixed_lists: Memo[tuple[Lists, Tensor]] = Memo()

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        # Sums over neighbours are operators. PyG's own propagate serves explainers; it would also generate code for
        # every class, in a file that every process leaves in the temporary folder.
        type(self)._orig_propagate = type(self)._jinja_propagate = type(self).propagate

    @property
    def passes_messages(self) -> bool:
        """Whether a message along every edge has to exist: for explainers, hooks, ONNX, and subclasses that have their
        own ``propagate``, ``message``, ``aggregate`` or ``update``. It is slower than the operators.
        """
        if self.explain or self._has_own_messages or any(self._hooks):
            return True
        return backend.tracing() and backend.onnx()

    def _propagated(self, given: Neighbours) -> Tensor:
        """The sums of messages, which PyG passes along the edges in their given order."""
        ends = Ends.of(*given.lists) if given.edges is None else given.edges
        size, index = (given.rows.size(0), ends.targets), torch.stack([ends.source, ends.target])
        if self.flow != "source_to_target":
            size, index = size[::-1], index.flip(0)
        a = self.propagate(index, x=given.rows, edge_weight=given.factors.weight, size=size)
        if given.factors.scale is not None or given.whole or self.aggr == "sum":
            return a
        scale = ends.lengths(torch.promote_types(a.dtype, torch.float32)).clamp(min=1)
        return a * (scale.reciprocal() if self.aggr == "mean" else scale.rsqrt())[:, None].to(a.dtype)

    def register_message_and_aggregate_forward_pre_hook(self, hook: Any) -> Any:
        """Not there: messages and their sums are two steps here.

        Raises:
            DemonetError: Always.
        """
        raise DemonetError("hooks of message_and_aggregate are never called here", hint="hook message or aggregate")

    register_message_and_aggregate_forward_hook = register_message_and_aggregate_forward_pre_hook

    def message(self, x_j: Tensor, edge_weight: Tensor | None) -> Tensor:
        """The message of a neighbour. As in ``GCNConv``, weights have the factors of ``aggr="sym"``."""
        return x_j if edge_weight is None else edge_weight.view(-1, 1) * x_j

    # --------------------------------------------------------------------------------------- rows in the caller's order

    def _needs_no_groups(self, x: Tensor, degree: Tensor | None, edge_weight: Tensor | None) -> bool:
        """Whether rows can stay in the caller's order: all have one matrix, and nothing but the edges is given.

        Dropout draws its numbers in degree order, so that compiled and sampled calls drop the same entries. Those of a
        key are found in any order.
        """
        if degree is not None or edge_weight is not None or self.weights.stack_size != 1:
            return False
        if self.drop.active and not (backend.family(x) == "triton" and self._is_one_function(x)):
            return False
        return not (backend.tracing() or self.passes_messages)

    def _is_plain_call(self, x: Features, edge_index: Any) -> TypeGuard[Tensor]:
        """Whether x and an ``edge_index`` are plain tensors."""
        return type(x) is Tensor and type(edge_index) is Tensor and edge_index.layout == x.layout == torch.strided

    def _graph_of(self, x: Tensor, edge_index: Tensor) -> InPlace:
        """The graph of a plain ``edge_index`` for :meth:`_in_place`; checks are made once for all layers like this."""
        made = made_of(edge_index, edge_index, compare=not self.cached)
        like = self.flow, self.tasks.by, self.aggr, self.combine, x.dtype, x.shape
        graph: InPlace | None = made.get((*like, self.weights.in_channels))
        if graph is None:
            check_sides(x, x, None)
            self._materialize(x, x)
            edges = Edges(edge_index, None, (x.size(0), x.size(0)), self.flow)
            graph = self._placed(x, edges.layout(self.tasks.by, compare=not self.cached))
            made[*like, self.weights.in_channels] = graph
        return graph

    def _placed(self, x: Tensor, layout: DegreeLayout) -> InPlace:
        self._check_layout(x, layout)
        return in_place(layout, self.aggr, x.dtype, loops=self.combine == "share")

    def _in_place(self, x: Tensor, graph: InPlace, activation: str) -> Tensor:
        """The convolution of rows in the caller's order."""
        if self.tasks.is_open:
            self.tasks.see(graph.degree)
        given, sums = Neighbours(x, graph.lists, Factors(graph.weight), whole=graph.weight is not None), None
        if self.cached and not x.requires_grad and not is_sparse(x):
            kept = self._sums.get([x, graph.degree], lambda: (graph.degree, self._summed(given, None)), at_once=False)
            sums = None if kept is None else kept[1]
        splines = self.weights.splines(graph.degree) if self._is_one_function(x) else None
        if splines is None:
            return self.convolve(x, graph.degree, given if sums is None else sums, activation)
        own, matrix, noise = None if self.seed is None else self.seed(x), self.weights.shared, None
        if self.drop.active:
            key = self.drop.noise(x.size(0), self.halves, x)
            noise = RowNoise(key.values, key.p, graph.place, self.halves[0])
        ends = (splines, self.bias, own, activation, noise)
        if sums is not None:
            return scale_conv(sums, graph.both, matrix, *ends, product_first=False, known=True)
        first = self._transforms(given, None, fused=backend.family(x) == "triton")
        return scale_conv(x, graph.both, matrix, *ends, product_first=first)

    def _is_one_function(self, x: Tensor) -> bool:
        """Whether the whole convolution may be one function, which has one dtype and no tracing inside."""
        matrix = self.weights.shared
        if self.combine == "concat" or is_sparse(x) or x.dtype != matrix.dtype or x.dtype == torch.float16:
            return False
        if x.size(0) == 0 or self.drop.source is not None:
            return False
        return backend.eager(x, matrix) and not torch.is_autocast_enabled(x.device.type)

    # --------------------------------------------------------------------------------------------- sums over neighbours

    def _along_edges(
        self, source: Tensor, target: Tensor | None, edges: Edges, degree: Tensor | None, activation: str
    ) -> Tensor:
        """The convolution of edges that are not laid out; every row comes with its degree."""
        if degree is None and self.tasks.by != "in" and target is not source:
            raise DemonetError(f"tasks by {self.tasks.by!r} degree in a bipartite graph", hint="pass degree=")
        neighbours = self._edges_to_sum(source, target, edges)
        if degree is None:
            degree = count_degree(edges.pairs, edges.num_targets, self.tasks.by)
        else:
            check_degrees(degree, edges.num_targets, self.tasks.by)
        return self.convolve(target, degree, neighbours, activation)

    def _in_degree_order(
        self, x: Tensor, layout: DegreeLayout, edge_weight: Tensor | None, degree: Tensor | None, activation: str
    ) -> Tensor:
        """The convolution of rows that are put into degree order and back."""
        if degree is not None:
            check_degrees(degree, layout.num_nodes, self.tasks.by)
            rows, degree = _enter(x, layout), layout.enter(degree)
            return layout.leave(self.convolve(rows, degree, self.neighbours(rows, layout, edge_weight), activation))
        rows, sums = self._constant_part(x, layout, edge_weight) or (_enter(x, layout), None)
        given = self.neighbours(rows, layout, edge_weight) if sums is None else sums
        return layout.leave(self.convolve(rows, layout, given, activation))

    def _edges_to_sum(self, source: Tensor, target: Tensor | None, edges: Edges) -> Neighbours:
        """The neighbours of every target of edges that are not laid out."""
        sources = None if target is source else source.size(0)
        if self.passes_messages:
            ends = edges.ends
            if not backend.tracing():
                check_edge_index(edges.pairs, (source.size(0), ends.targets))
            found = self._factors(ends, edges.weight, source.dtype, sources=sources)
            return Neighbours(source, (), found, edges=ends)
        lists, weight = edges.lists(back=source.requires_grad and not is_sparse(source))
        return Neighbours(source, lists, self._factors(lists, weight, source.dtype, sources=sources))

    def _constant_part(
        self, x: Tensor, layout: DegreeLayout, edge_weight: Tensor | None
    ) -> tuple[Tensor, Tensor] | None:
        """The rows in degree order and their neighbourhood, kept if ``cached``; None where x is new or has a gradient.

        A hidden layer gets a new tensor in every call, also where no gradient is recorded. So only what comes twice is
        kept.
        """
        given = [x, layout.neighbours, edge_weight]
        if not self.cached or backend.tracing() or any(one is not None and one.requires_grad for one in given):
            return None
        if self.passes_messages:
            return None
        sparse, mixed = is_sparse(x), self.weights.stack_size > 1
        if (sparse or mixed) and self._transforms(self.neighbours(x, layout, edge_weight), layout, kept=not sparse):
            return None  # sums would not be sparse, or cost more than all that they save

        def compute() -> tuple[Tensor, Tensor]:
            rows = _enter(x, layout)
            return rows, self.neighbourhood(rows, layout, edge_weight)

        return self._sums.get(given, compute, at_once=False)

    def neighbours(
        self,
        x: Tensor,
        layout: DegreeLayout,
        edge_weight: Tensor | None = None,
        fill: Callable[[Tensor], Tensor] | None = None,
    ) -> Neighbours:
        """What is summed for every row of a layout.

        Args:
            x: ``[n, in_channels]`` the rows that are read, in degree order.
            layout: The graph.
            edge_weight: ``[m]`` weights in the sum, in the order of the ``edge_index``.
            fill: Of a part of a graph, appends rows of other parts, see
                :attr:`demonet.nn.prepared.GraphInput.fill`.
        """
        self._check_layout(x, layout)
        found = self.factors(layout, edge_weight, x.dtype, fill)
        return Neighbours(x, (layout.pointer, layout.neighbours), found, layout)

    def factors(
        self,
        layout: DegreeLayout,
        edge_weight: Tensor | None,
        dtype: torch.dtype,
        fill: Callable[[Tensor], Tensor] | None = None,
    ) -> Factors:
        """What edges, sums and own rows of a layout are multiplied by; the arguments are as in :meth:`neighbours`."""
        if edge_weight is not None:
            check_length("edge weights", "edge", edge_weight, layout.num_edges)
            edge_weight = layout.edges_enter(edge_weight)
        if self.is_plain or edge_weight is not None or fill is not None or backend.tracing():
            return self._factors((layout.pointer, layout.neighbours), edge_weight, dtype, fill=fill)
        key = f"factors {self.aggr} {self.combine == 'share'} {dtype}"
        if key not in layout.cache:
            with lasting():
                layout.cache[key] = self._factors((layout.pointer, layout.neighbours), None, dtype)
        found: Factors = layout.cache[key]
        return found

    def _factors(self, edges: Ends | Lists, weight: Tensor | None, dtype: torch.dtype, **options: Any) -> Factors:
        weight = None if weight is None else weight.to(dtype)
        if self.is_plain:
            return Factors(weight)
        ends = edges if isinstance(edges, Ends) else Ends.of(*edges)
        return factors(ends, weight, self.aggr, dtype, loops=self.combine == "share", **options)

    def neighbourhood(
        self,
        x: Tensor,
        layout: DegreeLayout,
        edge_weight: Tensor | None = None,
        fill: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        r"""The aggregated neighbourhood :math:`a_v` of every row, hashed where the scheme does that first.

        It is the part of the layer without parameters: for constant ``x`` it is computed once. The arguments are those
        of :meth:`neighbours`.
        """
        a = self._summed(self.neighbours(x, layout, edge_weight, fill), slice_rows(x, slice(0, layout.num_nodes)))
        return self.weights.fold(a, layout.key)

    def _summed(self, given: Neighbours, own: Tensor | None) -> Tensor:
        """The scaled sums over neighbours, and what a node adds as its own neighbour.

        Half precision ends at 65504, so those sums are made in single precision.
        """
        x, (weight, scale, loop) = given.rows, given.factors
        lists = given.lists if given.layout is None else given.layout
        aggr = self.aggr if scale is None and not given.whole else "sum"
        messages = self.passes_messages
        if is_sparse(x):
            if messages:
                raise DemonetError("messages of sparse features", hint="hooks and explainers need x.to_dense()")
            return _sparse_sums(x, given, own, aggr)
        if x.dtype != torch.float16:
            a = self._propagated(given) if messages else aggregate(x, lists, weight, aggr=aggr)
            return self._with_own(a if scale is None else a * scale[:, None].to(a.dtype), loop, own)
        wide = Factors(*(None if one is None else one.float() for one in given.factors))
        sums = self._summed(given._replace(rows=x.float(), factors=wide), None if own is None else own.float())
        narrow = sums.to(x.dtype)
        if not torch.compiler.is_compiling() and not bool(narrow.isfinite().all()):
            row = int((~narrow.isfinite()).any(1).nonzero()[0])
            problem = f"a sum over neighbours is {float(sums[row].abs().max()):.3g}, more than float16 can hold"
            raise DemonetError(problem, hint="use bfloat16 or float32, or aggr='mean'")
        return narrow

    def _with_own(self, a: Tensor, loop: Tensor | None, own: Tensor | None) -> Tensor:
        return a if loop is None or own is None else torch.addcmul(a, own.to(a.dtype), loop[:, None].to(a.dtype))

    # ---------------------------------------------------------------------- rows in degree order, or with their degrees

    def convolve(
        self,
        x: Tensor | None,
        graph: DegreeLayout | Tensor,
        sums: Tensor | Neighbours | None = None,
        activation: str = "none",
    ) -> Tensor:
        r"""Eq. 5 with an activation, :math:`\sigma(W_0 x_v \circ \hat W_{\deg(v)} a_v)`, for rows that are prepared.

        Training and evaluation, whole graphs, blocks of their rows, sampled neighbourhoods and parts of a graph in
        several processes all end here.

        Args:
            x: ``[n, in_channels]`` rows; None is zero.
            graph: The layout whose order they have; or ``[n]`` (``[n, 2]`` for pairs) their degrees, in any order.
            sums: :meth:`neighbourhood` of the rows; or :meth:`neighbours`, to be summed here; with a layout None, for
                its own lists.
            activation: ``"none"``, ``"elu"`` or ``"relu"``.
        """
        layout, degree = (graph, graph.key) if isinstance(graph, DegreeLayout) else (None, graph)
        if self.tasks.is_open:
            self.tasks.see(degree if layout is None else layout.degrees)
        if layout is not None and x is not None:
            self._check_layout(x, layout)
        if sums is None:
            assert layout is not None
            assert x is not None
            sums = self.neighbours(x, layout)
        a = sums if isinstance(sums, Tensor) else None
        sparse = x is not None and is_sparse(x)
        if self.weights.stack_size == 1:
            y = self._by_one_matrix(x, sums, self.weights.stack()[0])
            if self.combine != "concat" and not self.drop.active:
                own = None if self.seed is None else self._own(x, y)
                return self.weights.finish(y, degree, self.bias, own, activation)
            half = self.weights.finish(y, degree)
        elif isinstance(sums, Neighbours) and self._transforms(sums, layout):
            half = self._transformed(sums, x, degree, layout)
        else:
            matrices = None
            if layout is not None and not sparse and not (self.drop.active and backend.exporting()):
                matrices = self.weights.for_groups(layout)
            fused = matrices is not None and x is not None and self.seed is not None
            if isinstance(sums, Neighbours) and not (fused and self._operator_sums(sums, x)):
                a = self.weights.fold(self._summed(sums, x), degree)
            if layout is not None and matrices is not None and x is not None and self.seed is not None:
                weights = Weights(self.seed.weight.t(), matrices, self.bias)
                noise = self.drop.noise(x.size(0), self.halves, x) if self.drop.active else None
                return conv(x, a, weights, layout, self.options(activation), noise)
            assert a is not None
            if layout is None or is_sparse(a):
                half = self.weights.by_folded(a, degree)
            else:
                half = self.weights.by_group(a, layout) if matrices is None else grouped(a, matrices, layout)
        own = half[:, :0] if self.seed is None else self._own(x, half)
        if self.drop.active:
            own, half = self.drop.halves(own, half)
        if self.combine == "concat":
            out = torch.cat([own, half], dim=1)
        else:
            out = half if self.seed is None else own + half
        out = out if self.bias is None else out + self.bias.to(out.dtype)
        return activate(out, activation)

    def convolve_block(self, x: Tensor, block: Block, activation: str = "none", sums: Tensor | None = None) -> Tensor:
        """:meth:`convolve` for the targets of a block; ``x`` has the rows that it reads, or where the sums are known
        those of the targets.
        """
        given = Neighbours(x, block.lists, block.factors) if sums is None else sums
        return self.convolve(slice_rows(x, block.targets), block.degree, given, activation)

    def _own(self, x: Tensor | None, half: Tensor) -> Tensor:
        """The seed's half."""
        assert self.seed is not None
        if x is None:
            return half.new_zeros(half.size(0), self.seed.out_channels)
        own: Tensor = sparse_linear(x, self.seed.weight.t(), self._columns) if is_sparse(x) else self.seed(x)
        return own

    def _by_one_matrix(self, x: Tensor | None, sums: Tensor | Neighbours, matrix: Tensor) -> Tensor:
        """The sums over neighbours times a matrix that all degrees share, in the cheaper order."""
        kept = self.weights._columns
        if isinstance(sums, Tensor) or not self._transforms(sums, None):
            return _product(sums if isinstance(sums, Tensor) else self._summed(sums, x), matrix, kept)
        y, own = _product(sums.rows, matrix, kept), None
        if sums.factors.own is not None and x is not None:
            own = y if x is sums.rows else _product(x, matrix)
        return self._summed(sums._replace(rows=y), own)

    @property
    def is_plain(self) -> bool:
        """Whether sums have no factors but those of ``aggr``, so that operators can make them."""
        return self.aggr != "sym" and self.combine != "share"

    def _operator_sums(self, given: Neighbours, x: Tensor | None) -> bool:
        if not self.is_plain or self.passes_messages:
            return False
        return given.is_plain and x is given.rows and given.rows.dtype != torch.float16

    @property
    def halves(self) -> tuple[int, int]:
        """The widths of what dropout acts on: the map of the seed (0 without one) and the neighbourhood's."""
        return 0 if self.seed is None else self.seed.out_channels, self.weights.width

    def options(self, activation: str = "none") -> Options:
        """The options of this layer's operators."""
        aggr = self.aggr if self.is_plain else "sum"  # otherwise operators are given the sums
        return Options(aggr, "concat" if self.combine == "concat" else "add", activation)

    # ------------------------------------------------------------------------------ products before sums, where cheaper

    def _transforms(
        self, given: Neighbours, layout: DegreeLayout | None, *, fused: bool = False, kept: bool = False
    ) -> bool:
        """Whether rows are multiplied before they are summed, see :func:`transform_first`."""
        x, weights = given.rows, self.weights
        size = weights.stack_size
        if size == 0 and layout is not None and not backend.tracing():
            size = layout.degrees.size(0)
        if not size or x.dtype == torch.float16 or self.passes_messages:
            return False
        rows, edges, columns = x.size(0), given.lists[1].size(0), x.size(1)
        if backend.tracing() and backend.exporting():
            rows = edges = 1  # no choice may depend on the example's size
        if is_sparse(x) and not backend.tracing():
            columns = max(1, columns // 2)  # sums of sparse rows are not sparse, but reading the rows costs less
        reads = 1 if size == 1 or weights.stack_size == 0 else weights.reads_each
        balance = 20.0 if x.device.type == "cpu" else 200.0
        options: dict[str, Any] = {"balance": balance, "fused": fused}
        if kept and layout is not None:
            options["degrees"] = layout.degrees.size(0)
        return transform_first(rows, edges, columns, weights.width, size, reads, **options)

    def _transformed(self, given: Neighbours, x: Tensor | None, degree: Tensor, layout: DegreeLayout | None) -> Tensor:
        """The neighbourhood's half: rows times the matrices of the stack, then summed, then mixed."""
        weights = self.weights
        if weights.stack_size:
            stack = weights.stack()
        else:
            assert layout is not None
            stack = weights.matrices(layout.degrees)
        flat = stack.transpose(0, 1).flatten(1)
        y, own = _product(given.rows, flat, weights._columns), None
        if given.factors.own is not None and x is not None:
            own = y if x is given.rows else _product(x, flat)
        if weights.stack_size:
            matrix, share = weights.reads(degree)
        else:
            assert layout is not None
            matrix = owner(layout.offsets, layout.num_nodes)[:, None]
            share = torch.ones(matrix.shape, dtype=y.dtype, device=y.device)
        return weights.finish(self._mixed(given, y, own, (matrix, share), degree), degree)

    def _mixed(
        self, given: Neighbours, y: Tensor, own: Tensor | None, reads: tuple[Tensor, Tensor], degree: Tensor
    ) -> Tensor:
        """Sums over neighbours of those products that each target reads."""
        (matrix, share), (pointer, neighbours) = reads, given.lists[:2]
        size, each = y.size(1) // self.weights.width, matrix.size(1)

        def make() -> tuple[Lists, Tensor]:
            target = owner(pointer, neighbours.numel())
            places = (neighbours.long()[:, None] * size + matrix[target]).flatten()
            starts = pointer.long() * each
            back = () if backend.tracing() else reversed_lists(starts, places, matrix.size(0), y.size(0) * size)
            return (starts, places, *back), share[target].flatten()

        facts = self.tasks.max_degree, share.dtype, size
        found = make() if backend.tracing() else self._mixed_lists.get([pointer, neighbours, degree], make, facts=facts)
        assert found is not None
        lists, part = found
        weight, scale, loop = given.factors
        part = part.to(y.dtype)
        part = part if weight is None else part * weight.to(y.dtype).repeat_interleave(each)
        out = aggregate(y.reshape(-1, self.weights.width), lists, part)
        if scale is None:
            scale = aggregate_scale(pointer, self.aggr, y.dtype)
        out = out if scale is None else out * scale[:, None].to(out.dtype)
        if loop is None or own is None:
            return out
        chosen = own.view(own.size(0), size, -1).gather(1, matrix[..., None].expand(-1, -1, self.weights.width))
        return self._with_own(out, loop, (chosen * share[..., None].to(y.dtype)).sum(1))

    # ----------------------------------------------------------------------------------------------------------- checks

    def _check_layout(self, x: Tensor, layout: DegreeLayout) -> None:
        """Raise for what the layer cannot do with a layout."""
        if self.explain:
            raise DemonetError("explanations need edges", hint="pass the edge_index instead of the layout")
        if x.size(1) != self.weights.in_channels:
            raise DemonetError(f"{x.size(1)} feature columns for in_channels={self.in_channels}")
        if layout.by != self.tasks.by:
            raise DemonetError(
                f"the layout is by {layout.by!r} degree, the tasks by {self.tasks.by!r}",
                hint=f"build it with DegreeLayout.from_edge_index(..., by={self.tasks.by!r})",
            )

    def _materialize(self, source: Tensor, target: Tensor | None) -> None:
        """Fix widths that were left open (-1), then check the width of the input."""
        if self.weights.in_channels == -1:
            self.weights.materialize(source.size(1))
        if target is not None and self.seed is not None and self.seed.in_channels == -1:
            # One call with no rows fixes the width of PyG's lazy Linear; sparse features are never passed to it.
            with lasting():
                self.seed(torch.empty(0, target.size(1), dtype=self.seed.weight.dtype, device=target.device))
        for side in (source, target if self.combine == "share" else None):
            if side is not None and side.size(1) != self.weights.in_channels:
                hint = None if side is source else "combine='add' has a matrix for each side"
                raise DemonetError(f"{side.size(1)} feature columns for in_channels={self.in_channels}", hint=hint)


def _product(x: Tensor, matrix: Tensor, kept: Memo[Sequence[Tensor]] | None = None) -> Tensor:
    """Dense or sparse rows times a matrix."""
    return sparse_linear(x, matrix, kept) if is_sparse(x) else x @ matrix


def _enter(x: Tensor, layout: DegreeLayout) -> Tensor:
    """Dense or sparse rows in degree order."""
    return sparse_rows(x, layout.order) if is_sparse(x) else layout.enter(x)


def slice_rows(x: Tensor, place: slice) -> Tensor:
    """Consecutive rows, dense or sparse."""
    if place.start == 0 and place.stop == x.size(0):
        return x
    return sparse_rows(x, torch.arange(place.start, place.stop, device=x.device)) if is_sparse(x) else x[place]


def _sparse_sums(x: Tensor, given: Neighbours, own: Tensor | None, aggr: str) -> Tensor:
    """Scaled sums of sparse rows, and the targets' own rows."""
    pointer, neighbours = given.lists[:2]
    weight, scale, loop = given.factors
    if scale is not None:
        spread = scale.to(x.dtype)[owner(pointer, neighbours.numel())]
        weight = spread if weight is None else weight.to(x.dtype) * spread
    a = sparse_aggregate(x, (pointer, neighbours), weight, aggr=aggr)
    if loop is None or own is None:
        return a
    own = own if own.layout == torch.sparse_csr else own.to_sparse_csr()
    values = own.values() * loop.to(x.dtype).repeat_interleave(own.crow_indices().diff())
    own = csr(own.crow_indices(), own.col_indices(), values, (own.size(0), own.size(1)))
    if not is_sparse(a):
        return a + own.to_dense()
    return (a.to_sparse_coo() + own.to_sparse_coo()).to_sparse_csr()


def check_sides(source: Tensor, target: Tensor | None, size: tuple[int, int] | None) -> None:
    """Check the shape and type of a layer's features, and their number of rows against ``size``."""
    for side, rows in enumerate((source, target)):
        if rows is None and side == 1:
            continue
        if not isinstance(rows, Tensor):
            raise DemonetError(f"features are a {type(rows).__name__}, not a tensor or a pair of them")
        if rows.dim() != 2 or rows.size(1) == 0 or not rows.is_floating_point():
            raise DemonetError(f"features are {list(rows.shape)} of {rows.dtype}, not real numbers [nodes, columns]")
        if size is not None and rows.size(0) != size[side]:
            raise DemonetError(f"{rows.size(0)} rows of features for size={tuple(size)}")
