"""DEMOConv (Eq. 5): the degree-specific graph convolution, as a PyTorch Geometric layer."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks, OpenTasks, check_degree
from demonet.degree.union import merged
from demonet.errors import DemonetError
from demonet.nn.convolve import Convolution, Features, Seed, check_sides
from demonet.nn.dropout import Dropout
from demonet.nn.edges import Block, Edges
from demonet.nn.weights import make_weights
from demonet.ops import backend
from demonet.ops.backend import is_sparse

Scheme = str  # a name in demonet.nn.weights.SCHEMES
AGGRS = ("sum", "mean", "sqrt", "sym")
COMBINES = ("concat", "add", "share")
ACTS = (None, "relu", "elu")


class DEMOConv(Convolution):
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

    Rows are multiplied before they are summed where that is cheaper (:func:`~demonet.nn.convolve.transform_first`).

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
        super().__init__(**kwargs)
        self.aggr = aggr
        self.in_channels, self.out_channels = in_channels, out_channels
        self.tasks, self.scheme, self.combine = tasks, scheme, combine
        self.act, self.cached = act, cached
        self.drop = Dropout(dropout)
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
        check_sides(source, target, size)
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
                return self._along_edges(source, target, edges, degree, activation)
            layout, edge_weight = edges.layout(self.tasks.by, compare=not self.cached), edges.weight
        if self._needs_no_groups(source, degree, edge_weight):
            return self._in_place(source, self._placed(source, layout), activation)
        return self._in_degree_order(source, layout, edge_weight, degree, activation)

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
