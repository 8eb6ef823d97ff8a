"""DEMOConv (Eq. 5): the degree-specific graph convolution, as a PyTorch Geometric layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.dense.linear import Linear

from demonet.checks import check_edge_index
from demonet.degree.count import count_degree
from demonet.degree.keep import Memo, lasting
from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks, OpenTasks, check_degree
from demonet.degree.union import merged
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
from demonet.nn.weights import make_weights
from demonet.nn.weights.base import Removable
from demonet.ops import Options, Weights, aggregate, backend, conv, grouped
from demonet.ops.backend import is_sparse
from demonet.ops.library import reversed_lists
from demonet.ops.noise import RowNoise
from demonet.ops.reference import activate, aggregate_scale, owner
from demonet.ops.scale import scale_conv
from demonet.ops.sparse import csr, sparse_aggregate, sparse_linear, sparse_rows

Scheme = str  # a name in demonet.nn.weights.SCHEMES
Features = Tensor | tuple[Tensor, Tensor | None]
Lists = tuple[Tensor, ...]
AGGRS = ("sum", "mean", "sqrt", "sym")
COMBINES = ("concat", "add", "share")
ACTS = (None, "relu", "elu")
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


class DEMOConv(MessagePassing):
    r"""The degree-specific graph convolution of `"DEMO-Net: Degree-specific Graph Neural Networks for Node and Graph
    Classification" <https://arxiv.org/abs/1906.02319>`_ (Eq. 5), with or without its activation :math:`\sigma`.

    .. math::
        h_v = \sigma\Big(W_0 x_v \;\circ\; \hat W_{\deg(v)} \, s(\deg v) \sum_{u \in N(v)} w_{vu} \, x_u\Big)

    The features of the seed :math:`v` are multiplied by one matrix :math:`W_0` (Eq. 6), the sum over its neighbours
    by the matrix of its degree:

    - ``scheme="scale"``: :math:`W \, \mathrm{diag}(1 + \gamma(d))`, and a bias :math:`\beta(d)`, both zero at first;
    - ``"smooth"``: :math:`W_s + \sum_b B_b(\log(1 + d)) V_b`;
    - ``"weight"``: :math:`W_g + W_d` (Eq. 7);
    - ``"hash"``: one matrix read through hash functions (Eq. 10).

    Rows are multiplied before they are summed where that is cheaper (:func:`~demonet.nn.conv.transform_first`).

    With its degree term at zero the layer is one of PyG's: ``aggr="sym", combine="share"`` is ``GCNConv``,
    ``aggr="mean", combine="add"`` is ``SAGEConv``, ``aggr="sum", combine="add"`` is ``GraphConv``, and ``aggr="sum",
    combine="share"`` is ``GINConv`` with a linear map.

    The defaults are a graph convolution with a degree term that starts at zero, so that the layer can stand in the
    place of ``GCNConv``. The paper's layer is ``DEMOConv(..., tasks, scheme="weight", aggr="sum", combine="concat",
    bias=False)``, or ``scheme="hash"``.

    Args:
        in_channels: Width of the input; a pair ``(source, target)`` for bipartite graphs; -1 reads it from the first
            input.
        out_channels: Width of the whole output. With ``combine="concat"`` the first ``out_channels // 2`` columns are
            the seed's, the others the neighbourhood's.
        tasks: Which degrees share a matrix. Schemes ``"scale"`` and ``"smooth"`` use only their largest degree. By
            default degrees 0, 1, 2-3, 4-7, ..., 128+ share one, and the largest degree is that of the first graph that
            the layer is called with (:class:`~demonet.degree.OpenTasks`). Give tasks where the first graph is a sample.
        scheme: One of those above, or another name in :data:`demonet.nn.weights.SCHEMES`.
        aggr: ``"mean"`` (:math:`s = 1/d`), ``"sum"`` (:math:`1`, the paper), ``"sqrt"`` (:math:`1/\sqrt d`) or
            ``"sym"`` (:math:`1/\sqrt{d_u d_v}` for each neighbour), where d is the number of edges that are summed;
            with edge weights, ``"sym"`` takes their sum.
        combine: :math:`\circ`: ``"add"``, ``"concat"`` (the paper), or ``"share"``: no :math:`W_0`; the node is one
            more of its own neighbours, unless it has a loop. A loop that is there twice counts twice;
            ``GCNConv`` counts it once.
        residual: With ``combine="share"``, add :math:`W_0 x_v` as well; the others have it anyway.
        bias: One vector, added before the activation.
        dropout: Probability with which entries of the two halves are dropped while training.
        hash_size, hash_seed: ``H`` of the hash scheme, and the seed of its hash functions.
        basis_size: Number of splines of the smooth scheme.
        degree_scale: Initial scale of the degree-specific matrices relative to the shared one.
        act: The activation, ``"relu"``, ``"elu"`` or None. With a layout it is part of the fused operator.
        without: A term that is left out, see :meth:`remove_term`.
        cached: Keep the sums over neighbours of features that need no gradient, and take an ``edge_index`` or ``adj_t``
            for the same if it is the same tensor. An input that is another tensor, or that was changed in place, is
            noticed and computed anew, so mini-batches stay right. Pass the same tensor in every call. Changes that
            torch does not count (through ``tensor.data`` or a NumPy array) are not noticed. Without it, an
            ``edge_index`` is sorted once as well, but edges in main memory are compared in every call with those that
            were sorted. Bipartite graphs and compiled calls are not cached.
        **kwargs: Arguments of :class:`torch_geometric.nn.MessagePassing`.

    Attributes:
        seed: The map :math:`W_0` of the seed (Eq. 6).
        weights: The scheme, a :class:`~demonet.nn.weights.DegreeWeights`.
        aggr: As given. PyG only sums messages here; the scale is applied to their sum.

    Shapes:
        - **input:** features ``(n, in)`` or ``((n_source, in_source), (n_target, in_target))``, dense or
          ``torch.sparse``; an ``edge_index (2, m)``, ``EdgeIndex``, ``torch.sparse`` ``adj_t`` or
          :class:`~demonet.DegreeLayout`; edge weights ``(m,)``, degrees ``(n_target,)``
        - **output:** ``(n_target, out)``, rows in the caller's order

    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> DEMOConv(8, 16)(torch.randn(3, 8), edge_index).shape
    torch.Size([3, 16])
    >>> conv = DEMOConv(8, 16, DegreeTasks.exact(torch.tensor([1, 2, 1])), scheme="weight")
    >>> conv(torch.randn(3, 8), edge_index).shape
    torch.Size([3, 16])
    """

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        # Sums over neighbours are operators. PyG's own propagate serves explainers; it would also generate code for
        # every class, in a file that every process leaves in the temporary folder.
        type(self)._orig_propagate = type(self)._jinja_propagate = type(self).propagate

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        tasks: DegreeTasks | None = None,
        *,
        scheme: Scheme = "scale",
        aggr: Literal["sum", "mean", "sqrt", "sym"] = "sym",
        combine: Literal["concat", "add", "share"] = "share",
        bias: bool = True,
        residual: bool = False,
        dropout: float = 0.0,
        hash_size: int = 256,
        hash_seed: int = 0,
        basis_size: int = 5,
        degree_scale: float = 1.0,
        act: Literal["relu", "elu"] | None = None,
        without: Literal["none", "seed", "shared", "degree"] = "none",
        cached: bool = False,
        **kwargs: Any,
    ) -> None:
        widths: tuple[Any, ...] = in_channels if isinstance(in_channels, tuple) else (in_channels, in_channels)
        tasks = OpenTasks() if tasks is None else tasks
        if not isinstance(tasks, DegreeTasks):
            raise DemonetError(f"tasks is a {type(tasks).__name__}", hint="for example DegreeTasks.exact(degree)")
        if len(widths) != 2 or not all(isinstance(w, Integral) and (int(w) > 0 or w == -1) for w in widths):
            hint = "a whole number of at least 1, or -1 to read it from the first input; or a pair of them"
            raise DemonetError(f"in_channels={in_channels!r}", hint=hint)
        source, target = widths
        for name, value, allowed in (("aggr", aggr, AGGRS), ("combine", combine, COMBINES), ("act", act, ACTS)):
            if value not in allowed:
                raise DemonetError(f"{name}={value!r} is not one of {', '.join(map(repr, allowed))}")
        if combine == "share" and source != target:
            raise DemonetError(
                f"in_channels={in_channels} with combine='share'", hint="combine='add' has a matrix for each side"
            )
        counts: dict[str, tuple[Any, int]] = {"hash_size": (hash_size, 1), "basis_size": (basis_size, 2)}
        counts["out_channels"] = out_channels, 2 if combine == "concat" else 1  # two halves
        for name, (count, least) in counts.items():
            if not isinstance(count, Integral) or int(count) < least:
                raise DemonetError(f"{name}={count!r} is not a whole number of at least {least}")
        if not 0.0 <= dropout < 1.0:
            raise DemonetError(f"dropout={dropout} is not in [0, 1)")
        if not 0.0 <= degree_scale < math.inf:
            raise DemonetError(f"degree_scale={degree_scale} is not a number of at least 0")
        if "node_dim" in kwargs:
            raise DemonetError(f"node_dim={kwargs['node_dim']}", hint="rows are nodes: the dimension is always 0")
        super().__init__(aggr="sum", node_dim=0, **kwargs)
        self.aggr = aggr
        self._hooks = [
            hooks for name, hooks in vars(self).items() if name.endswith("_hooks") and "_forward_" in name[1:]
        ]
        overridden = {name for name in _STEPS if getattr(type(self), name) is not getattr(DEMOConv, name)}
        if "message_and_aggregate" in overridden:
            problem = f"{type(self).__name__}.message_and_aggregate would not be called"
            raise DemonetError(problem, hint="override message and aggregate, or propagate")
        self._has_own_messages = bool(overridden)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.tasks, self.scheme, self.combine = tasks, scheme, combine
        self.act, self.cached = act, cached
        self.drop = Dropout(dropout)
        self._columns: Memo[Sequence[Tensor]] = Memo()
        self._sums: Memo[tuple[Tensor, Tensor]] = Memo()
        self._mixed_lists: Memo[tuple[Lists, Tensor]] = Memo()
        seed_width = out_channels // 2 if combine == "concat" else out_channels
        width = out_channels - seed_width if combine == "concat" else out_channels
        # Where the layer is one of PyG's, parameters start as they do there.
        init = "kaiming_uniform" if scheme == "scale" and combine != "share" else "glorot"
        self.seed: Seed | None = None
        if combine != "share" or residual:
            self.seed = Seed(target, seed_width, bias=False, weight_initializer=init)
        options = {"hash_size": hash_size, "hash_seed": hash_seed, "basis_size": basis_size, "init": init}
        self.weights = make_weights(scheme, source, width, tasks, degree_scale=degree_scale, **options)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        if without != "none":
            self.remove_term(without)

    def reset_parameters(self) -> None:
        """Draw all parameters again; tasks that were taken from a graph are open again."""
        super().reset_parameters()
        self.tasks.reset_parameters()
        if self.seed is not None:
            self.seed.reset_parameters()
        self.weights.reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def degree_weight(self, degree: Tensor) -> Tensor:
        """``[len(degree), in_channels, width of the neighbourhood half]``: the matrices that those degrees use."""
        if self.weights.is_open:
            raise DemonetError(f"in_channels={self.in_channels} is still open", hint="call the layer once before")
        if self.tasks.is_open:
            raise DemonetError("the degree tasks are still open", hint="call the layer once before")
        check_degree(degree, self.tasks.by)
        return self.weights.matrices(degree)

    def forward(
        self,
        x: Features,
        edge_index: Tensor | DegreeLayout | list[DegreeLayout] | Block,
        edge_weight: Tensor | None = None,
        degree: Tensor | tuple[Tensor | None, Tensor | None] | None = None,
        size: tuple[int, int] | None = None,
    ) -> Tensor:
        """One convolution.

        Args:
            x: Node features, or a pair ``(source, target)`` of them. The layer does not check for NaN; the models do.
            edge_index: The graph, in any of the forms above. Edges go from row 0 to row 1 and are used as given. Also
                the list of layouts in a batch of PyG's ``DataLoader``; or a block of a
                :class:`~demonet.nn.blocks.NodeBatch`, for its targets' rows alone.
            edge_weight: ``[m]`` weights in the sum, in the order of the ``edge_index``, also with a layout; the degree
                still counts edges.
            degree: ``[n_target]`` (``[n_target, 2]`` for tasks by pair) degrees that choose the task, for sampled
                neighbourhoods: those in the whole graph. Counted from the edges if not given. Of a pair ``(source,
                target)``, as ``to_hetero`` passes it, the second is read.
            size: ``(n_source, n_target)``; read from ``x`` if not given.
        """
        activation = self.act or "none"
        degree = degree[1] if isinstance(degree, tuple) else degree
        if size is None and self._is_plain_call(x, edge_index) and self._needs_no_groups(x, degree, edge_weight):
            assert isinstance(edge_index, Tensor)
            return self._in_place(x, self._graph_of(x, edge_index), activation)
        source, target = x if isinstance(x, (tuple, list)) and len(x) == 2 else (x, x)
        _check_sides(source, target, size)
        self._materialize(source, target)
        if isinstance(edge_index, Block):
            return self.convolve_block(source, edge_index, activation)
        if isinstance(edge_index, list):
            edge_index = merged(edge_index)
        if isinstance(edge_index, DegreeLayout):
            if target is not source:
                raise DemonetError("a DegreeLayout has one set of nodes", hint="pass an edge_index for a pair")
            if self.flow != "source_to_target":
                raise DemonetError(f"flow={self.flow!r} with a layout", hint="lay out edge_index.flip(0) instead")
            num_targets, layout = source.size(0), edge_index
            if num_targets != layout.num_nodes:
                raise DemonetError(f"{num_targets} rows of features for a layout of {layout.num_nodes} nodes")
        else:
            num_targets = target.size(0) if target is not None else size[1] if size is not None else source.size(0)
            edges = Edges(edge_index, edge_weight, (source.size(0), num_targets), self.flow)
            one_set = target is source and not self.passes_messages and not backend.tracing()
            if not one_set or not (self.cached or (degree is None and not is_sparse(source))):
                if degree is None and self.tasks.by != "in" and target is not source:
                    raise DemonetError(f"tasks by {self.tasks.by!r} degree in a bipartite graph", hint="pass degree=")
                neighbours = self._edges_to_sum(source, target, edges)
                if degree is None:
                    degree = count_degree(edges.pairs, num_targets, self.tasks.by)
                else:
                    check_degrees(degree, num_targets, self.tasks.by)
                return self.convolve(target, degree, neighbours, activation)
            layout, edge_weight = edges.layout(self.tasks.by, compare=not self.cached), edges.weight
        if self._needs_no_groups(source, degree, edge_weight):
            return self._in_place(source, self._placed(source, layout), activation)
        if degree is not None:
            check_degrees(degree, num_targets, self.tasks.by)
            rows, degree = _enter(source, layout), layout.enter(degree)
            return layout.leave(self.convolve(rows, degree, self.neighbours(rows, layout, edge_weight), activation))
        rows, sums = self._constant_part(source, layout, edge_weight) or (_enter(source, layout), None)
        given = self.neighbours(rows, layout, edge_weight) if sums is None else sums
        return layout.leave(self.convolve(rows, layout, given, activation))

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
            _check_sides(x, x, None)
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

    # ------------------------------------- rows in degree order, or with their degrees: what forward and models call

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
            if fused:
                assert matrices is not None
                assert x is not None
                assert self.seed is not None
                assert layout is not None
                weights = Weights(self.seed.weight.t(), matrices, self.bias)
                noise = self.drop.noise(x.size(0), self.halves, x) if self.drop.active else None
                return conv(x, a, weights, layout, self.options(activation), noise)
            assert a is not None
            if matrices is not None and layout is not None:
                half = grouped(a, matrices, layout)
            elif layout is None or is_sparse(a):
                half = self.weights.by_folded(a, degree)
            else:
                half = self.weights.by_group(a, layout)
        own = half[:, :0] if self.seed is None else self._own(x, half)
        if self.drop.active:
            own, half = self.drop.halves(own, half)
        if self.seed is None:
            out = half
        else:
            out = torch.cat([own, half], dim=1) if self.combine == "concat" else own + half
        out = out if self.bias is None else out + self.bias.to(out.dtype)
        return out if activation == "none" else activate(out, activation)

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

    def convolve_block(self, x: Tensor, block: Block, activation: str = "none", sums: Tensor | None = None) -> Tensor:
        """:meth:`convolve` for the targets of a block; ``x`` has the rows that it reads, or where the sums are known
        those of the targets.
        """
        given = Neighbours(x, block.lists, block.factors) if sums is None else sums
        return self.convolve(slice_rows(x, block.targets), block.degree, given, activation)

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

    def options(self, activation: str = "none") -> Options:
        """The options of this layer's operators."""
        aggr = self.aggr if self.is_plain else "sum"  # otherwise operators are given the sums
        return Options(aggr, "concat" if self.combine == "concat" else "add", activation)

    def remove_term(self, term: str) -> None:
        r"""Set one of the terms :math:`W_0 x_v` (``"seed"``), :math:`W_g a_v` (``"shared"``) and :math:`W_d a_v`
        (``"degree"``) to zero for good: it is not trained, ``reset_parameters`` leaves it at zero, and a ``state_dict``
        that has it is refused. Everything else stays, including the width.
        """
        if self.weights.is_open:
            raise DemonetError(f"without={term!r} with in_channels=-1", hint="give the number of features")
        if term == "seed":
            if self.seed is None:
                raise DemonetError("without='seed' with combine='share'", hint="one matrix serves node and neighbours")
            self.seed.set_to_zero("weight")
        else:
            self.weights.remove_term(term)

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

    # ------------------------------------------------------------------------- products before sums, where cheaper

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

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take a width that is still open (-1) from the saved seed map; the matrix of the hash scheme lacks it."""
        seed = state_dict.get(f"{prefix}seed.weight")
        if isinstance(seed, UninitializedParameter):
            seed = None
        if seed is not None and self.weights.is_open and not isinstance(self.in_channels, tuple):
            self.weights.materialize(seed.size(1))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __repr__(self) -> str:
        tasks = f", num_tasks={self.tasks.num_tasks}" if self.weights.uses_tasks else ""
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, scheme={self.scheme!r}, "
            f"aggr={self.aggr!r}, combine={self.combine!r}{tasks})"
        )


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


def _check_sides(source: Tensor, target: Tensor | None, size: tuple[int, int] | None) -> None:
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
