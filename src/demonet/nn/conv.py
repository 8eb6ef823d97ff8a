"""DEMOConv (Eq. 5): the degree-specific graph convolution, as a PyTorch Geometric layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.dense.linear import Linear

from demonet.degree.count import count_degree
from demonet.degree.keep import Memo, lasting
from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks, OpenTasks
from demonet.errors import DemonetError
from demonet.nn.dropout import Dropout
from demonet.nn.edges import Edges, check_length
from demonet.nn.weights import make_weights
from demonet.nn.weights.base import set_to_zero
from demonet.ops import Options, Weights, aggregate, backend, conv
from demonet.ops.backend import is_sparse
from demonet.ops.reference import activate, aggregate_scale
from demonet.ops.sparse import sparse_aggregate, sparse_linear, sparse_rows

Scheme = str  # a name in demonet.nn.weights.SCHEMES
Features = Tensor | tuple[Tensor, Tensor | None]


class DEMOConv(MessagePassing):
    r"""The degree-specific graph convolution of `"DEMO-Net: Degree-specific Graph Neural Networks for Node and Graph
    Classification" <https://arxiv.org/abs/1906.02319>`_ (Eq. 5), with or without its activation :math:`\sigma`.

    .. math::
        h_v = \sigma\Big(W_0 x_v \;\circ\; \hat W_{\deg(v)} \, s(\deg v) \sum_{u \in N(v)} w_{vu} \, x_u\Big)

    The features of the seed :math:`v` are multiplied by one matrix :math:`W_0` (Eq. 6), the sum over its neighbours
    by the matrix of its degree: :math:`W_g + W_d` (``scheme="weight"``, Eq. 7), one matrix read through hash
    functions (``"hash"``, Eq. 10), or :math:`W_s + \sum_b B_b(\log(1 + d)) V_b` (``"smooth"``). The sum is
    computed first, so every scheme is one matrix product grouped by degree.

    The defaults are those that work best on graphs with attributes and few labels. The paper's layer is
    ``DEMOConv(..., tasks, scheme="weight", aggr="sum", combine="concat")``, or ``scheme="hash"``.

    Args:
        in_channels: Width of the input; a pair ``(source, target)`` for bipartite graphs; -1 reads it from the first
            input.
        out_channels: Width of the whole output. With ``combine="concat"`` the first ``out_channels // 2`` columns are
            the seed's, the others the neighbourhood's.
        tasks: Which degrees share a matrix. Scheme ``"smooth"`` uses only their largest degree. By default degrees 0,
            1, 2-3, 4-7, ... share one, and the largest degree is that of the first graph that the layer is called with
            (:class:`~demonet.degree.OpenTasks`). Give tasks where the first graph is a sample.
        scheme: ``"smooth"``, ``"weight"`` or ``"hash"`` (the paper's), or another name in
            :data:`demonet.nn.weights.SCHEMES`.
        aggr: ``"mean"`` (:math:`s = 1/d`), ``"sum"`` (:math:`1`, the paper) or ``"sqrt"`` (:math:`1/\sqrt d`), where
            d is the number of edges that are summed.
        combine: :math:`\circ`: ``"add"`` or ``"concat"`` (the paper).
        bias: One vector, added before the activation.
        dropout: Probability with which entries of the two halves are dropped while training.
        hash_size, hash_seed: ``H`` of the hash scheme, and the seed of its hash functions.
        basis_size: Number of splines of the smooth scheme.
        degree_scale: Initial scale of the degree-specific matrices relative to the shared one.
        act: The activation, ``"relu"``, ``"elu"`` or None. With a layout it is part of the fused operator.
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
        keep_sums: Whether the sums over neighbours are kept for the derivatives, or computed again to save memory.

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

    # Sums over neighbours are operators. PyG's own propagate serves explainers; it would also generate code for every
    # class, in a file that every process leaves in the temporary folder.
    _orig_propagate = _jinja_propagate = MessagePassing.propagate

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        pass

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        tasks: DegreeTasks | None = None,
        *,
        scheme: Scheme = "smooth",
        aggr: Literal["sum", "mean", "sqrt"] = "mean",
        combine: Literal["concat", "add"] = "add",
        bias: bool = False,
        dropout: float = 0.0,
        hash_size: int = 256,
        hash_seed: int = 0,
        basis_size: int = 5,
        degree_scale: float = 1.0,
        act: Literal["relu", "elu"] | None = None,
        cached: bool = False,
        **kwargs: Any,
    ) -> None:
        source, target = in_channels if isinstance(in_channels, tuple) else (in_channels, in_channels)
        tasks = OpenTasks() if tasks is None else tasks
        if not isinstance(tasks, DegreeTasks):
            raise DemonetError(f"tasks is a {type(tasks).__name__}", hint="for example DegreeTasks.exact(degree)")
        if any(width < 1 and width != -1 for width in (source, target)):
            raise DemonetError(f"in_channels={in_channels}: at least 1, or -1 to read it from the first input")
        if aggr not in ("sum", "mean", "sqrt"):
            raise DemonetError(f"aggr={aggr!r} is not one of 'sum', 'mean', 'sqrt'")
        if combine not in ("concat", "add"):
            raise DemonetError(f"combine={combine!r} is not one of 'concat', 'add'")
        if act not in (None, "relu", "elu"):
            raise DemonetError(f"act={act!r} is not one of None, 'relu', 'elu'")
        if combine == "concat" and out_channels < 2:
            raise DemonetError(f"out_channels={out_channels} cannot hold two halves", hint="use combine='add'")
        if not 0.0 <= dropout < 1.0:
            raise DemonetError(f"dropout={dropout} is not in [0, 1)")
        if hash_size < 1 or basis_size < 2:
            raise DemonetError(f"hash_size={hash_size}, basis_size={basis_size}: at least 1 and 2 are needed")
        super().__init__(aggr="sum", node_dim=0, **kwargs)
        self.aggr = aggr
        self.in_channels, self.out_channels = in_channels, out_channels
        self.tasks, self.scheme, self.combine = tasks, scheme, combine
        self.act, self.cached = act, cached
        self.drop, self.keep_sums = Dropout(dropout), True
        self._columns: Memo[Sequence[Tensor]] = Memo()
        self._sums: Memo[tuple[Tensor, Tensor]] = Memo()
        seed_width = out_channels // 2 if combine == "concat" else out_channels
        width = out_channels - seed_width if combine == "concat" else out_channels
        self.seed = Linear(target, seed_width, bias=False, weight_initializer="glorot")
        options = {"hash_size": hash_size, "hash_seed": hash_seed, "basis_size": basis_size}
        self.weights = make_weights(scheme, source, width, tasks, degree_scale=degree_scale, **options)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def reset_parameters(self) -> None:
        """Draw all parameters again; tasks that were taken from a graph are open again."""
        super().reset_parameters()
        self.tasks.reset_parameters()
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
        return self.weights.matrices(degree)

    def forward(
        self,
        x: Features,
        edge_index: Tensor | DegreeLayout,
        edge_weight: Tensor | None = None,
        degree: Tensor | None = None,
        size: tuple[int, int] | None = None,
    ) -> Tensor:
        """One convolution.

        Args:
            x: Node features, or a pair ``(source, target)`` of them. The layer does not check for NaN; the models do.
            edge_index: The graph, in any of the forms above. Edges go from row 0 to row 1 and are used as given.
            edge_weight: ``[m]`` weights in the sum, in the order of the ``edge_index``, also with a layout; the degree
                still counts edges.
            degree: ``[n_target]`` (``[n_target, 2]`` for tasks by pair) degrees that choose the task, for sampled
                neighbourhoods: those in the whole graph. Counted from the edges if not given.
            size: ``(n_source, n_target)``; read from ``x`` if not given.
        """
        source, target = x if isinstance(x, (tuple, list)) else (x, x)
        _check_sides(source, target, size)
        self._materialize(source, target)
        activation = self.act or "none"
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
            one_set = target is source and not self.explain and not backend.tracing()
            if not one_set or not (self.cached or (degree is None and not is_sparse(source))):
                if degree is None and self.tasks.by != "in" and target is not source:
                    raise DemonetError(f"tasks by {self.tasks.by!r} degree in a bipartite graph", hint="pass degree=")
                a = self._aggregate(source, edges, num_targets)
                degree = count_degree(edges.pairs, num_targets, self.tasks.by) if degree is None else degree
                self._check_degree(degree, num_targets)
                return self.convolve(target, degree, self.weights.fold(a, degree), activation)
            layout, edge_weight = edges.layout(self.tasks.by, compare=not self.cached), edges.weight
        if degree is not None:
            self._check_degree(degree, num_targets)
            rows, degree = _enter(source, layout), layout.enter(degree)
            out = self.convolve(rows, degree, self.neighbourhood(rows, layout, edge_weight, degree), activation)
            return layout.leave(out)
        rows, sums = self._constant_part(source, layout, edge_weight) or (_enter(source, layout), None)
        if sums is None and edge_weight is not None:
            sums = self.neighbourhood(rows, layout, edge_weight)
        return layout.leave(self.convolve(rows, layout, sums, activation))

    def _check_degree(self, degree: Tensor, count: int) -> None:
        check_length("degrees", "node", degree, count, dim=2 if self.tasks.by == "pair" else 1)

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

        def compute() -> tuple[Tensor, Tensor]:
            rows = _enter(x, layout)
            return rows, self.neighbourhood(rows, layout, edge_weight)

        return self._sums.get(given, compute, at_once=False)

    def _aggregate(self, x: Tensor, edges: Edges, num_targets: int) -> Tensor:
        """The aggregated neighbourhood of every target."""
        pointer, neighbours, weight = edges.lists()
        weight = None if weight is None else weight.to(x.dtype)
        if self.explain:
            # PyG's explainers put a mask on every message, so messages have to exist, in the given order.
            size = (x.size(0), num_targets)
            size = size if self.flow == "source_to_target" else size[::-1]
            a = self.propagate(edges.index, x=x, edge_weight=edges.weight, size=size)
            scale = aggregate_scale(pointer, self.aggr, a.dtype)
            return a if scale is None else a * scale[:, None]
        back = edges.reversed_lists() if x.requires_grad and not is_sparse(x) else []
        return self._summed(x, (pointer, neighbours, *back), weight)

    def message(self, x_j: Tensor, edge_weight: Tensor | None) -> Tensor:
        """The message of a neighbour, for explainers."""
        return x_j if edge_weight is None else edge_weight.view(-1, 1) * x_j

    # ------------------------------------- rows in degree order, or with their degrees: what forward and models call

    def convolve(
        self,
        x: Tensor | None,
        graph: DegreeLayout | Tensor,
        neighbourhood: Tensor | None = None,
        activation: str = "none",
    ) -> Tensor:
        r"""Eq. 5 with an activation, :math:`\sigma(W_0 x_v \circ \hat W_{\deg(v)} a_v)`, for rows that are prepared.

        Training and evaluation, whole graphs, blocks of their rows, sampled neighbourhoods and parts of a graph in
        several processes all end here.

        Args:
            x: ``[n, in_channels]`` rows; None is zero.
            graph: The layout whose order they have; or ``[n]`` (``[n, 2]`` for pairs) their degrees, in any order.
            neighbourhood: :meth:`neighbourhood` of the rows; with a layout None, to sum over its lists here.
            activation: ``"none"``, ``"elu"`` or ``"relu"``.
        """
        layout, degree = (graph, graph.key) if isinstance(graph, DegreeLayout) else (None, graph)
        if self.tasks.is_open:
            self.tasks.see(degree if layout is None else layout.degrees)
        sparse = x is not None and is_sparse(x)
        if layout is not None and x is not None:
            self._check_layout(x, layout)
            matrices = None
            if not sparse and not (self.drop.active and backend.exporting()):
                matrices = self.weights.for_groups(layout)
            if neighbourhood is None and (matrices is None or x.dtype == torch.float16):
                neighbourhood = self.neighbourhood(x, layout)
            if matrices is not None:
                weights = Weights(self.seed.weight.t(), matrices, self.bias)
                widths = (self.seed.out_channels, self.weights.width)
                noise = self.drop.noise(x.size(0), widths, x) if self.drop.active else None
                return conv(x, neighbourhood, weights, layout, self.options(activation), noise)
        assert neighbourhood is not None
        if layout is None or is_sparse(neighbourhood):
            half = self.weights.by_folded(neighbourhood, degree)
        else:
            half = self.weights.by_group(neighbourhood, layout)
        if x is None:
            own = half.new_zeros(half.size(0), self.seed.out_channels)
        else:
            own = sparse_linear(x, self.seed.weight.t(), self._columns) if sparse else self.seed(x)
        own, half = self.drop.halves(own, half)
        out = torch.cat([own, half], dim=1) if self.combine == "concat" else own + half
        return activate(out if self.bias is None else out + self.bias, activation)

    def neighbourhood(
        self,
        x: Tensor,
        graph: DegreeLayout | tuple[Tensor, ...],
        edge_weight: Tensor | None = None,
        degree: Tensor | None = None,
        scale: Tensor | None = None,
    ) -> Tensor:
        r"""The aggregated neighbourhood :math:`a_v` of every row, hashed where the scheme does that first.

        It is the part of the layer without parameters: for constant ``x`` it is computed once.

        Args:
            x: ``[n, in_channels]`` the rows that are read, in degree order.
            graph: The layout; or pointer and neighbours of some targets.
            edge_weight: ``[m]`` weights in the sum, in the order of the ``edge_index``; for lists, in theirs.
            degree: The degrees of the targets, where they are not those of the layout.
            scale: ``[targets]`` what the sums are multiplied by, in the place of ``aggr``.
        """
        if isinstance(graph, DegreeLayout):
            self._check_layout(x, graph)
            degree = graph.key if degree is None else degree
            if edge_weight is not None:
                check_length("edge weights", "edge", edge_weight, graph.num_edges)
                edge_weight = graph.edges_enter(edge_weight)
        assert degree is not None
        return self.weights.fold(self._summed(x, graph, edge_weight, scale), degree)

    def options(self, activation: str = "none") -> Options:
        """The options of this layer's operators."""
        return Options(self.aggr, self.combine, activation, self.keep_sums)

    def remove_term(self, term: str) -> None:
        r"""Set one of the terms :math:`W_0 x_v` (``"seed"``), :math:`W_g a_v` (``"shared"``) and :math:`W_d a_v`
        (``"degree"``) to zero. It is not trained any more; everything else stays, including the width.
        """
        if self.weights.is_open:
            raise DemonetError(f"without={term!r} with in_channels=-1", hint="give the number of features")
        if term == "seed":
            set_to_zero(self.seed, "weight")
        else:
            self.weights.remove_term(term)

    def _summed(self, x: Tensor, lists: Any, weight: Tensor | None, scale: Tensor | None = None) -> Tensor:
        """The scaled sums over neighbours. Half precision ends at 65504, so those sums are made in single precision."""
        if scale is not None:
            return aggregate(x, lists, weight) * scale[:, None]
        summed = sparse_aggregate if is_sparse(x) else aggregate
        if x.dtype != torch.float16:
            return summed(x, lists, weight, aggr=self.aggr)
        wide = summed(x.float(), lists, None if weight is None else weight.float(), aggr=self.aggr)
        narrow = wide.to(x.dtype)
        if not torch.compiler.is_compiling() and not bool(narrow.isfinite().all()):
            row = int((~narrow.isfinite()).any(1).nonzero()[0])
            problem = f"a sum over neighbours is {float(wide[row].abs().max()):.3g}, more than float16 can hold"
            raise DemonetError(problem, hint="use bfloat16 or float32, or aggr='mean'")
        return narrow

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
        if self.weights.is_open:
            self.weights.materialize(source.size(1))
        if target is not None and self.seed.in_channels == -1:
            # One call with no rows fixes the width of PyG's lazy Linear; sparse features are never passed to it.
            with lasting():
                self.seed(torch.empty(0, target.size(1), dtype=self.seed.weight.dtype, device=target.device))
        if source.size(1) != self.weights.in_channels:
            raise DemonetError(f"{source.size(1)} feature columns for in_channels={self.in_channels}")

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take a width that is still open (-1) from the saved seed map; the matrix of the hash scheme lacks it."""
        seed = state_dict.get(f"{prefix}seed.weight")
        if isinstance(seed, UninitializedParameter):
            seed = None
        if seed is not None and self.weights.is_open and not isinstance(self.in_channels, tuple):
            self.weights.materialize(seed.size(1))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, scheme={self.scheme!r}, "
            f"aggr={self.aggr!r}, combine={self.combine!r}, num_tasks={self.tasks.num_tasks})"
        )


def _enter(x: Tensor, layout: DegreeLayout) -> Tensor:
    """Dense or sparse rows in degree order."""
    return sparse_rows(x, layout.order) if is_sparse(x) else layout.enter(x)


def _check_sides(source: Tensor, target: Tensor | None, size: tuple[int, int] | None) -> None:
    """Check the shape and type of a layer's features, and their number of rows against ``size``."""
    for side, rows in enumerate((source, target)):
        if rows is None:
            continue
        if rows.dim() != 2 or not rows.is_floating_point():
            raise DemonetError(f"features are {list(rows.shape)} of {rows.dtype}, not real numbers [nodes, columns]")
        if size is not None and rows.size(0) != size[side]:
            raise DemonetError(f"{rows.size(0)} rows of features for size={tuple(size)}")
