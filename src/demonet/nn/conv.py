"""DEMOConv (Eq. 5): the degree-specific graph convolution, as a PyTorch Geometric layer."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.utils import is_torch_sparse_tensor

from demonet.checks import check_sides
from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.nn.check import check_degrees, check_layout, check_options, check_weights
from demonet.nn.dropout import Dropout
from demonet.nn.weights import make_weights
from demonet.ops import aggregate, conv, neighbour_lists
from demonet.ops.reference import activate, aggregate_scale, owner
from demonet.ops.sparse import Reversed, is_sparse, sparse_aggregate, sparse_linear, sparse_rows

Scheme = Literal["weight", "hash", "smooth"]
Features = Tensor | tuple[Tensor, Tensor | None]


class DEMOConv(MessagePassing):
    r"""The degree-specific graph convolution of `"DEMO-Net: Degree-specific Graph Neural Networks for Node and Graph
    Classification" <https://arxiv.org/abs/1906.02319>`_ (Eq. 5), before its activation.

    .. math::
        h_v = W_0 x_v \;\circ\; \hat W_{\deg(v)} \, s(\deg v) \sum_{u \in N(v)} w_{vu} \, x_u

    The seed's own features go through one map :math:`W_0` that all nodes share (Eq. 6), the sum over its neighbours
    through the matrix of its degree: :math:`W_g + W_d` (``scheme="weight"``, Eq. 7), one matrix read through hash
    functions (``"hash"``, Eq. 10), or :math:`W_s + \sum_b B_b(\log(1 + d)) V_b` (``"smooth"``). The sum is linear, so
    it is taken first, and every scheme is then one matrix product grouped by degree.

    Args:
        in_channels: Width of the input; a pair ``(source, target)`` for bipartite graphs; -1 reads it from the first
            input.
        out_channels: Width of the whole output. Concatenated, the seed has ``out // 2`` columns, the first ones.
        tasks: Which degrees share a matrix.
        scheme: ``"weight"``, ``"hash"`` or ``"smooth"``.
        aggr: ``"sum"`` (:math:`s = 1`, the paper), ``"mean"`` (:math:`1/d`) or ``"sqrt"`` (:math:`1/\sqrt d`), where
            d counts the arcs that are summed.
        combine: :math:`\circ`: ``"concat"`` (the paper) or ``"add"``.
        bias: One vector, added last.
        dropout: Probability with which entries of the two halves are dropped while training.
        hash_size, seed: ``H`` of the hash scheme, and where its hash functions come from.
        basis_size: Number of splines of the smooth scheme.
        degree_scale: Initial size of the degrees' own matrices beside the shared one.

    Shapes:
        - **input:** features ``(n, in)`` or ``((n_source, in_source), (n_target, in_target))``, dense or
          ``torch.sparse``; an ``edge_index (2, m)``, ``EdgeIndex``, ``torch.sparse`` ``adj_t`` or
          :class:`~demonet.DegreeLayout`; edge weights ``(m,)``, degrees ``(n_target,)``
        - **output:** ``(n_target, out)``, rows in the caller's order

    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> conv = DEMOConv(8, 16, DegreeTasks.exact(torch.tensor([1, 2, 1])))
    >>> conv(torch.randn(3, 8), edge_index).shape
    torch.Size([3, 16])
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        tasks: DegreeTasks,
        *,
        scheme: Scheme = "weight",
        aggr: Literal["sum", "mean", "sqrt"] = "sum",
        combine: Literal["concat", "add"] = "concat",
        bias: bool = False,
        dropout: float = 0.0,
        hash_size: int = 256,
        seed: int = 0,
        basis_size: int = 5,
        degree_scale: float = 1.0,
        **kwargs: Any,
    ) -> None:
        check_options(in_channels, out_channels, tasks, scheme, aggr, combine, dropout, hash_size, basis_size)
        super().__init__(aggr="sum", node_dim=0, **kwargs)  # the scale of 'mean' and 'sqrt' is applied here, not there
        self.in_channels, self.out_channels = in_channels, out_channels
        self.tasks, self.scheme, self.scaling, self.combine = tasks, scheme, aggr, combine
        self.drop, self.keep_sums, self.reversed = Dropout(dropout), True, Reversed()
        source, target = in_channels if isinstance(in_channels, tuple) else (in_channels, in_channels)
        seed_width = out_channels // 2 if combine == "concat" else out_channels
        width = out_channels - seed_width if combine == "concat" else out_channels
        self.seed = Linear(target, seed_width, bias=False, weight_initializer="glorot")
        self.weights = make_weights(scheme, source, width, tasks, hash_size, seed, basis_size, degree_scale)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        super().reset_parameters()
        self.seed.reset_parameters()
        self.weights.reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def degree_weight(self, degree: Tensor) -> Tensor:
        """``[len(degree), in_channels, width of the neighbourhood half]``: the matrices that those degrees use."""
        if self.weights.is_open:
            raise DemonetError(f"in_channels={self.in_channels} is still open", hint="call the layer once before")
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
            x: Node features, or a pair ``(source, target)`` of them. Their values are not looked at here; the models
                and the training refuse NaN.
            edge_index: The graph, in any of the forms above. Arcs go from row 0 to row 1 and are used as given.
            edge_weight: ``[m]`` weights in the sum; the degree still counts arcs.
            degree: ``[n_target]`` true degrees, for sampled neighbourhoods: they choose the task.
            size: ``(n_source, n_target)``; read from ``x`` if not given.
        """
        source, target = x if isinstance(x, (tuple, list)) else (x, x)
        check_sides(source, target, size)
        if self.weights.is_open:
            self.weights.materialize(source.size(1))
        if target is not None and self.seed.in_channels == -1:
            self.seed(torch.empty(0, target.size(1), device=target.device))  # sparse rows never reach its lazy hook
        self._same_width(source)
        if isinstance(edge_index, DegreeLayout):
            if target is not source:
                raise DemonetError("a DegreeLayout holds one set of nodes", hint="pass an edge_index for a pair")
            return self._on_layout(source, edge_index, edge_weight, degree)
        num_targets = target.size(0) if target is not None else size[1] if size is not None else source.size(0)
        a, pointer, neighbours = self._aggregate(source, edge_index, edge_weight, num_targets)
        if degree is None:
            degree = self._count(pointer, neighbours, bipartite=target is not source)
        check_degrees(self.tasks, degree, num_targets)
        return self.join(target, self.weights.by_row(a, degree), num_targets)

    def neighbourhood(self, x: Tensor, layout: DegreeLayout, edge_weight: Tensor | None = None) -> Tensor:
        """The part of the layer without parameters, rows in degree order: for constant ``x`` it is done once."""
        return self.weights.fold(self._aggregate_rows(x, layout, edge_weight), layout)

    def update_rows(self, x: Tensor, folded: Tensor, layout: DegreeLayout, activation: str = "none") -> Tensor:
        """The part with the parameters: rows ``x`` and their :meth:`neighbourhood`, both in degree order."""
        check_layout(self.tasks, layout)
        matrices = self._fusible(x, layout)
        if matrices is None:
            return activate(self.join(x, self.weights.by_group(folded, layout), x.size(0)), activation)
        return self._fused(x, folded, matrices, layout, activation)

    def rows(
        self, x: Tensor, layout: DegreeLayout, edge_weight: Tensor | None = None, activation: str = "none"
    ) -> Tensor:
        """The whole layer and an activation after it, rows in degree order."""
        self.takes(x, layout)
        matrices = self._fusible(x, layout) if edge_weight is None else None
        if matrices is None:
            return self.update_rows(x, self.neighbourhood(x, layout, edge_weight), layout, activation)
        return self._fused(x, None, matrices, layout, activation)

    def fused(self, layout: DegreeLayout) -> tuple[Tensor, Tensor, Tensor | None] | None:
        """The seed map, the matrix of every group and the bias, where these are all of the layer; otherwise None."""
        matrices = None if self.drop.acts else self.weights.for_groups(layout)
        return None if matrices is None else (self.seed.weight.t(), matrices, self.bias)

    def takes(self, x: Tensor, layout: DegreeLayout) -> None:
        """Refuse what the layer cannot do with a layout."""
        if self.explain:
            raise DemonetError("an explanation is about arcs", hint="pass the edge_index instead of the layout")
        if self.flow != "source_to_target":
            raise DemonetError(f"flow={self.flow!r} with a layout", hint="lay out edge_index.flip(0) instead")
        self._same_width(x)
        check_layout(self.tasks, layout)

    def _fusible(self, x: Tensor, layout: DegreeLayout) -> Tensor | None:
        """The matrix of every group, where the layer can be one operator: not where each half has its own dropout."""
        apart = self.drop.acts and self.combine == "add"
        return None if apart or is_sparse(x) else self.weights.for_groups(layout)

    def _fused(self, x: Tensor, a: Tensor | None, matrices: Tensor, layout: DegreeLayout, activation: str) -> Tensor:
        whole = partial(conv, x, a, self.seed.weight.t(), matrices, layout, aggr=self.scaling, keep=self.keep_sums)
        if not self.drop.acts:
            return whole(self.bias, combine=self.combine, activation=activation)
        out = self.drop.beside(whole(), self.seed.out_channels)
        return activate(out if self.bias is None else out + self.bias, activation)

    def join(self, seed: Tensor | None, neighbours: Tensor, num_rows: int) -> Tensor:
        r""":math:`W_0 x_v \circ` the neighbourhood half, with dropout on both and the bias last."""
        if seed is None:
            half = neighbours.new_zeros(num_rows, self.seed.out_channels)
        elif is_sparse(seed):
            half = sparse_linear(seed, self.seed.weight.t(), self.reversed)
        else:
            half = self.seed(seed)
        half, neighbours = self.drop.halves(half, neighbours)
        out = torch.cat([half, neighbours], dim=1) if self.combine == "concat" else half + neighbours
        return out if self.bias is None else out + self.bias

    def _on_layout(self, x: Tensor, layout: DegreeLayout, edge_weight: Tensor | None, degree: Tensor | None) -> Tensor:
        if x.size(0) != layout.num_nodes:
            raise DemonetError(f"{x.size(0)} rows of features for a layout of {layout.num_nodes} nodes")
        rows = sparse_rows(x, layout.order) if is_sparse(x) else layout.enter(x)
        if degree is None:
            return layout.leave(self.rows(rows, layout, edge_weight))
        check_degrees(self.tasks, degree, layout.num_nodes)
        a = self._aggregate_rows(rows, layout, edge_weight)
        return layout.leave(self.join(rows, self.weights.by_row(a, layout.enter(degree)), x.size(0)))

    def _aggregate_rows(self, x: Tensor, layout: DegreeLayout, edge_weight: Tensor | None) -> Tensor:
        """The aggregated neighbourhood of every row, rows in degree order."""
        if edge_weight is not None:
            check_weights(edge_weight, layout.num_arcs)
            edge_weight = edge_weight[layout.arc.long()]
        summed = sparse_aggregate if is_sparse(x) else aggregate
        return summed(x, layout, edge_weight, aggr=self.scaling)

    def _aggregate(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, num_targets: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The aggregated neighbourhood of every target, and the lists it was summed over."""
        forward = self.flow == "source_to_target"
        weight: Tensor | None
        if is_torch_sparse_tensor(edge_index):
            if edge_index.shape != (num_targets, x.size(0)):
                shape = (num_targets, x.size(0))
                raise DemonetError(f"adj_t has shape {tuple(edge_index.shape)}, not (targets, sources) = {shape}")
            if edge_weight is not None or not forward:
                raise DemonetError(f"adj_t with edge_weight or flow={self.flow!r}", hint="its values are the weights")
            adjacency = edge_index.to_sparse_csr()
            pointer, neighbours = adjacency.crow_indices(), adjacency.col_indices()
            weight = edge_weight = adjacency.values().to(x.dtype)
            if self.explain:
                edge_index = torch.stack([neighbours, owner(pointer, neighbours.numel())])
        else:
            if isinstance(edge_index, EdgeIndex):
                edge_index = edge_index.as_tensor()
            arcs = edge_index if forward else edge_index.flip(0)
            pointer, neighbours, arc = neighbour_lists(arcs, x.size(0), num_targets)
            if edge_weight is not None:
                check_weights(edge_weight, arc.size(0))
            weight = None if edge_weight is None else edge_weight[arc]
        if self.explain:
            # The explainer puts its mask on the messages, so here they have to exist one by one, in the given order.
            size = (x.size(0), num_targets) if forward else (num_targets, x.size(0))
            a = self.propagate(edge_index, x=x, edge_weight=edge_weight, size=size)
            scale = aggregate_scale(pointer, self.scaling, a.dtype)
            a = a if scale is None else a * scale[:, None]
        else:
            summed = sparse_aggregate if is_sparse(x) else aggregate
            a = summed(x, (pointer, neighbours), weight, aggr=self.scaling)
        return a, pointer, neighbours

    def message(self, x_j: Tensor, edge_weight: Tensor | None) -> Tensor:
        """What a neighbour sends."""
        return x_j if edge_weight is None else edge_weight.view(-1, 1) * x_j

    def _count(self, pointer: Tensor, neighbours: Tensor, *, bipartite: bool) -> Tensor:
        """The degree that decides each target's task."""
        incoming = pointer.diff()
        if self.tasks.by == "in":
            return incoming
        if bipartite:
            raise DemonetError(f"tasks by {self.tasks.by!r} degree in a bipartite graph", hint="pass degree=")
        outgoing = torch.zeros_like(incoming).index_add(0, neighbours.long(), torch.ones_like(neighbours).long())
        return outgoing if self.tasks.by == "out" else torch.stack([incoming, outgoing], 1)

    def _same_width(self, x: Tensor) -> None:
        if x.size(1) != self.weights.in_channels:
            raise DemonetError(f"{x.size(1)} feature columns for in_channels={self.in_channels}")

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """A width left open is that of the saved seed map: the hashed matrix itself does not know it."""
        seed = state_dict.get(f"{prefix}seed.weight")
        if isinstance(seed, UninitializedParameter):
            seed = None
        if seed is not None and self.weights.is_open and not isinstance(self.in_channels, tuple):
            self.weights.materialize(seed.size(1))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, scheme={self.scheme!r}, "
            f"aggr={self.scaling!r}, combine={self.combine!r}, num_tasks={self.tasks.num_tasks})"
        )
