"""NodeDEMONet and GraphDEMONet: convolutions, and a head that classifies nodes or graphs; DEMONet without a head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.nn.models.basic_gnn import BasicGNN

from demonet.degree.count import count_degree
from demonet.degree.keep import Memo
from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.nn.blocks import NodeBatch, WholeGraph, put_together, row_blocks
from demonet.nn.config import ModelConfig
from demonet.nn.conv import DEMOConv
from demonet.nn.convolve import slice_rows
from demonet.nn.dropout import Dropout
from demonet.nn.fused import After, deep_levels, stack_loss
from demonet.nn.head import LinearCrossEntropy
from demonet.nn.prepared import GraphInput, LayerInput, layer_input, prepare
from demonet.nn.recompute import recomputed
from demonet.ops import ReadOut, read_out
from demonet.ops.backend import is_sparse
from demonet.ops.reference import activate
from demonet.ops.sparse import sparse_linear

Graph = Tensor | DegreeLayout | None


def _convolve(conv: DEMOConv, h: Tensor, given: LayerInput, activation: str = "none", *, number: int) -> Tensor:
    """One convolution and an activation; for the first one of a model, sums over neighbours may be precomputed."""
    sums = given.neighbourhood if number == 0 else None
    if isinstance(given.graph, tuple):
        return conv.convolve_block(h, given.graph[number], activation, sums)
    if not isinstance(given.graph, DegreeLayout):
        return activate(conv(h, given.graph, given.edge_weight, given.degree), activation)
    graph = given.graph if given.degree is None else given.degree
    if sums is not None:
        return conv.convolve(h, graph, sums, activation)
    rows = h if given.fill is None else given.fill(h)
    neighbours = conv.neighbours(rows, given.graph, given.edge_weight, given.fill)
    return conv.convolve(h, graph, neighbours, activation)


class Stem(nn.Module):
    """A linear map of dense or sparse features to the width of the hidden layers, with dropout before and after it."""

    def __init__(self, in_channels: int, config: ModelConfig) -> None:
        super().__init__()
        self.linear, self.drop = nn.Linear(in_channels, config.hidden), Dropout(config.dropout)
        self.drop_entries = Dropout(config.input_dropout)
        self._columns: Memo[Sequence[Tensor]] = Memo()

    def forward(self, x: Tensor) -> Tensor:
        """``[n, hidden]``."""
        if not is_sparse(x):
            return self.drop(self.linear(self.drop_entries(x)))
        out = sparse_linear(x, self.linear.weight.t(), self._columns, self.drop_entries)
        return self.drop(out + self.linear.bias)


class Layer(nn.Module):
    """One hidden layer: convolution and activation, with ``norm`` between them; ``refine`` adds a second linear map."""

    def __init__(self, in_channels: int, tasks: DegreeTasks, config: ModelConfig, number: int) -> None:
        super().__init__()
        self.conv = DEMOConv(in_channels, config.hidden, tasks, **config.conv_options(number))
        self.activation = config.activation
        self.after: After | None = None
        if config.refine:
            activation = _activation(config)
            second = nn.Linear(config.hidden, config.hidden)
            norm, dropout = nn.BatchNorm1d(config.hidden), Dropout(config.dropout)
            self.after = After(norm, activation, second, activation, dropout)
        elif config.stem or config.norm != "none":
            kind = {"none": nn.Identity, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}[config.norm]
            self.after = After(kind(config.hidden), _activation(config), Dropout(config.dropout))

    def forward(self, h: Tensor, given: LayerInput, *, number: int) -> Tensor:
        """``h^k`` from ``h^{k-1}``, k being ``number + 1``."""
        if self.after is None:
            return _convolve(self.conv, h, given, self.activation, number=number)
        return self.after(_convolve(self.conv, h, given, number=number))


def _activation(config: ModelConfig) -> nn.Module:
    return nn.ELU() if config.activation == "elu" else nn.ReLU()


class DegreeNetwork(nn.Module):
    """What both models share: the hidden layers, ``h^0 = x``, ``h^1``, ..., ``h^K``."""

    def __init__(
        self, in_channels: int, tasks: DegreeTasks, config: ModelConfig | None, changes: dict[str, Any]
    ) -> None:
        super().__init__()
        self.config = (config or ModelConfig()).changed(**changes)
        self.tasks, self.in_channels = tasks, in_channels
        self.stem = Stem(in_channels, self.config) if self.config.stem else None
        first = self.config.hidden if self.config.stem else in_channels
        widths = [first] + [self.config.hidden] * self.config.layers
        self.layers = nn.ModuleList(Layer(width, tasks, self.config, k) for k, width in enumerate(widths[:-1]))

    def prepare(self, x: Tensor, edge_index: Tensor | DegreeLayout, **options: Any) -> GraphInput:
        """Check a graph, sort it by degree and sum the features over neighbours, once for all epochs.

        Pass the result to the model in place of ``x``, without edges.

        Args:
            x: ``[n, in_channels]`` features.
            edge_index: Edges, or a layout.
            **options: ``edge_weight [m]``; for graph models ``batch [n]`` and ``num_graphs``; ``sums=False`` leaves the
                sums of the first convolution, which take as much memory as the features, to each call.

        Raises:
            DemonetError: For invalid features or node ids, with their position.
        """
        if x.dim() == 2 and x.size(1) != self.in_channels:
            raise DemonetError(f"{x.size(1)} feature columns for a model made for {self.in_channels}")
        dtype = next(self.parameters()).dtype
        if x.dtype != dtype:
            raise DemonetError(f"features are {x.dtype}, the model is {dtype}", hint=f"x.to({dtype})")
        sums = options.pop("sums", True) and self.stem is None
        return prepare(self._first_conv(), x, edge_index, sums=sums, **options)

    def convolutions(self) -> list[DEMOConv]:
        """All degree-specific convolutions."""
        return [module for module in self.modules() if isinstance(module, DEMOConv)]

    def hidden_layers(self) -> list[Layer]:
        """The hidden layers, the first one first."""
        return [cast(Layer, layer) for layer in self.layers]

    def degree_parameters(self) -> list[nn.Parameter]:
        """Parameters that belong to single degrees: training decays them by ``degree_decay``."""
        return [parameter for conv in self.convolutions() for parameter in conv.weights.degree_parameters()]

    def _first_conv(self) -> DEMOConv:
        return self.hidden_layers()[0].conv

    def extra_repr(self) -> str:
        """Arguments shown by ``print``."""
        return str(self.config)

    def representations(
        self,
        x: Tensor | GraphInput,
        edge_index: Graph = None,
        edge_weight: Tensor | None = None,
        degree: Tensor | None = None,
    ) -> list[Tensor]:
        """``[h^0, ..., h^K]``, each ``[n, width]``, rows in the caller's order."""
        given = layer_input(x, edge_index, edge_weight, degree=degree)
        return [given.leave(h) for h in self._levels(given)]

    def _levels(self, given: LayerInput) -> list[Tensor]:
        levels = [given.x]
        h = given.x if self.stem is None else self.stem(given.x)
        if (found := deep_levels(self, h, given)) is not None:
            return [given.x, *found]
        for k, layer in enumerate(self.layers):
            h = self._layer(partial(layer, given=given, number=k), h, cast(Layer, layer).after)
            levels.append(h)
        return levels

    def _layer(self, step: Callable[[Tensor], Tensor], h: Tensor, norm: nn.Module | None = None) -> Tensor:
        if not self.config.recompute:
            return step(h)
        return recomputed(step, h, norm, generators=h.device.type == "cpu")  # elsewhere keys of dropout are on the tape


class NodeDEMONet(DegreeNetwork):
    """DEMO-Net for nodes: hidden layers, then a head that gives every node a score per class.

    Args:
        in_channels: Number of features.
        num_classes: Number of classes.
        tasks: Which degrees share a matrix.
        config: The shape of the model.
        **changes: Single fields of the configuration, such as ``scheme="hash"``, ``layers=5`` or ``norm="batch"``.

    >>> import torch
    >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> model = NodeDEMONet(8, 4, DegreeTasks.exact(torch.tensor([1, 2, 1])), scheme="smooth")
    >>> model(torch.randn(3, 8), edge_index).shape
    torch.Size([3, 4])
    """

    def __init__(
        self, in_channels: int, num_classes: int, tasks: DegreeTasks, config: ModelConfig | None = None, **changes: Any
    ) -> None:
        super().__init__(in_channels, tasks, config, changes)
        config = self.config
        width = config.hidden if config.layers or config.stem else in_channels
        self.head: nn.Module
        if config.head == "degree":
            options = config.conv_options(config.layers)
            options["combine"] = "share" if config.combine == "share" else "add"
            self.head = DEMOConv(width, num_classes, tasks, **options)
        elif config.head == "mlp":
            self.head = nn.Sequential(nn.Linear(width, config.hidden), nn.ReLU(), nn.Linear(config.hidden, num_classes))
        else:
            self.head = LinearCrossEntropy(width, num_classes)

    def forward(
        self,
        x: Tensor | GraphInput | NodeBatch | WholeGraph,
        edge_index: Graph = None,
        edge_weight: Tensor | None = None,
        degree: Tensor | None = None,
    ) -> Tensor:
        """``[n, num_classes]`` scores before the softmax, rows in the caller's order.

        Args:
            x: ``[n, in_channels]`` features; or without edges what :meth:`prepare` returned, a
                :class:`~demonet.nn.blocks.NodeBatch` of it, or a :class:`~demonet.nn.blocks.WholeGraph`.
            edge_index: Edges, or a layout.
            edge_weight: ``[m]`` weights in the sums.
            degree: ``[n]`` (``[n, 2]`` for tasks by pair) degrees that choose the tasks, for sampled neighbourhoods:
                those in the whole graph. Counted from the edges if not given.
        """
        given = self._input(x, edge_index, edge_weight, degree)
        if isinstance(given, WholeGraph):
            return given.graph.layout.leave(self._in_blocks(given, head=True))
        if isinstance(x, NodeBatch) and not self.training and x.x.size(0) > x.rows:
            return self._in_blocks(x, head=True)
        return given.leave(self._head(self._levels(given)[-1], given))

    def _head(self, h: Tensor, given: LayerInput) -> Tensor:
        head = self.head
        if not isinstance(head, DEMOConv):
            return cast(Tensor, head(h))
        return self._layer(partial(_convolve, head, given=given, number=len(self.layers)), h)

    def _input(
        self, x: Any, edge_index: Graph, edge_weight: Tensor | None, degree: Tensor | None
    ) -> LayerInput | WholeGraph:
        if not isinstance(x, NodeBatch | WholeGraph):
            return layer_input(x, edge_index, edge_weight, degree=degree)
        if any(given is not None for given in (edge_index, edge_weight, degree)):
            raise DemonetError("a prepared graph together with edges, weights or degrees", hint="it has its own")
        if isinstance(x, WholeGraph):
            return x
        return LayerInput(x.x, x.blocks, None, x.neighbourhood, None, None, None)

    def _in_blocks(self, whole: WholeGraph | NodeBatch, head: bool, *, again: bool = False) -> Tensor:
        """Scores, or what the head reads, of all targets: every layer block by block of rows."""
        if self.training:
            raise DemonetError("a WholeGraph is for evaluation", hint="call model.eval() first")
        if whole.x.dim() < 2:
            raise DemonetError(
                "a WholeGraph with once=True was passed to a model before", hint="prepare the graph again"
            )
        h = whole.x
        if self.stem is not None:
            h = put_together((self.stem(part) for part in row_blocks(whole.x, whole.rows)), whole.x.size(0))
        steps: list[tuple[DEMOConv, Any]] = [(layer.conv, layer) for layer in self.hidden_layers()]
        if head and isinstance(self.head, DEMOConv):
            steps.append((self.head, partial(_convolve, self.head)))
        for number, (conv, step) in enumerate(steps):
            h = put_together(self._step_in_blocks(whole, h, number, conv, step), whole.num_targets(number))
            if number == 0 and isinstance(whole, WholeGraph) and whole.once and not again:
                whole.forget_features()
        return self._head_in_blocks(h, whole.rows) if head and not isinstance(self.head, DEMOConv) else h

    def _step_in_blocks(
        self, whole: WholeGraph | NodeBatch, h: Tensor, number: int, conv: DEMOConv, step: Any
    ) -> Iterator[Tensor]:
        known = whole.neighbourhood if number == 0 else None
        for block in whole.parts(number, conv):
            rows, sums, here = h, None, block
            if known is not None:
                rows, sums = slice_rows(h, block.targets), slice_rows(known, block.targets)
                here = replace(block, targets=slice(0, rows.size(0)))
            blocks = (here,) * (number + 1)
            yield step(rows, LayerInput(rows, blocks, None, sums, None, None, None), number=number)

    def _head_in_blocks(self, h: Tensor, rows: int) -> Tensor:
        return put_together((self.head(part) for part in row_blocks(h, rows)), h.size(0))

    def loss(self, x: Tensor | GraphInput, target: Tensor, share: Tensor, edge_index: Graph = None) -> Tensor:
        r"""Weighted cross-entropy over all nodes, :math:`\sum_v s_v \, \mathrm{CE}_v`.

        With a linear head on convolutions alone, it is one function on a GPU (:mod:`demonet.nn.fused`).

        Args:
            x, edge_index: As in :meth:`forward`.
            target: ``[n]`` the class of every node, in the caller's order; any class where the share is zero.
            share: ``[n]`` float32, :math:`s_v`, the weight of every node; zero leaves it out.
        """
        given = layer_input(x, edge_index)
        if given.layout is not None:  # one number of each row is reordered, instead of its scores
            target, share = given.layout.enter(target), given.layout.enter(share)
        if not isinstance(self.head, LinearCrossEntropy):
            scores = self._head(self._levels(given)[-1], given)
            return F.cross_entropy(scores, target, reduction="none") @ share.to(scores.dtype)
        if (found := stack_loss(self, given, target, share)) is not None:
            return found
        return self.head.weighted_loss(self._levels(given)[-1], target, share)

    def loss_on(self, part: Any) -> Tensor | None:
        """:meth:`loss` on one batch of a problem.

        Training calls it, where a model has it, so that not all scores have to be computed.

        Args:
            part: Has ``inputs``, the arguments of :meth:`forward`, and ``spread``, the ``target`` and ``share`` of
                :meth:`loss`.

        Returns:
            The loss, or None where the graph is not prepared.
        """
        return self.loss(part.inputs[0], *part.spread) if isinstance(part.inputs[0], GraphInput) else None

    def embed(
        self,
        x: Tensor | GraphInput | NodeBatch | WholeGraph,
        edge_index: Graph = None,
        edge_weight: Tensor | None = None,
        degree: Tensor | None = None,
    ) -> Tensor:
        """The paper's ``e_v``: what the head reads of each node, ``[n, width]``, rows in the caller's order.

        The arguments are those of :meth:`forward`.
        """
        given = self._input(x, edge_index, edge_weight, degree)
        if isinstance(given, WholeGraph):
            return given.graph.layout.leave(self._in_blocks(given, head=False))
        return given.leave(self._levels(given)[-1])

    def scores_and_embedding(self, x: GraphInput | WholeGraph) -> tuple[Tensor, Tensor]:
        """:meth:`forward` and :meth:`embed` of a prepared graph, in one pass where the head reads single rows."""
        if not isinstance(x, WholeGraph):
            given = layer_input(x)
            h = self._levels(given)[-1]
            return given.leave(self._head(h, given)), given.leave(h)
        by_row = not isinstance(self.head, DEMOConv)
        h = self._in_blocks(x, head=False, again=not by_row)
        scores = self._head_in_blocks(h, x.rows) if by_row else self._in_blocks(x, head=True)
        return x.graph.layout.leave(scores), x.graph.layout.leave(h)

    def _first_conv(self) -> DEMOConv:
        return super()._first_conv() if self.layers else cast(DEMOConv, self.head)


class GraphDEMONet(DegreeNetwork):
    r"""DEMO-Net for graphs: every layer read out, the input included (Eq. 12), then a head.

    .. math:: h_G = \mathrm{CONCAT}_{k=0..K} \; \mathrm{pool}(h^k)

    Args:
        in_channels: Number of features.
        num_classes: Number of classes.
        tasks: Which degrees share a matrix, and a block of the readout.
        config: The shape of the model.
        **changes: Single fields of the configuration, such as ``pooling="mean"`` (the paper's DEMO-Net_m).
    """

    def __init__(
        self, in_channels: int, num_classes: int, tasks: DegreeTasks, config: ModelConfig | None = None, **changes: Any
    ) -> None:
        super().__init__(in_channels, tasks, config, changes)
        config = self.config
        if config.head == "degree":
            raise DemonetError("head='degree' reads nodes, not graphs", hint="use 'linear' or 'mlp'")
        blocks = {"degree": tasks.num_tasks, "mean": 1, "sum": 1, "sum+degree": 1 + tasks.num_tasks}[config.pooling]
        width = blocks * (in_channels + config.hidden * config.layers)
        if config.head == "mlp":
            self.head: nn.Module = nn.Sequential(
                nn.BatchNorm1d(width),
                nn.Linear(width, config.hidden),
                nn.ReLU(),
                Dropout(config.dropout),
                nn.Linear(config.hidden, num_classes),
            )
        else:
            self.head = nn.Linear(width, num_classes)

    def forward(
        self,
        x: Tensor | GraphInput,
        edge_index: Graph = None,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Tensor:
        """``[graphs, num_classes]`` scores before the softmax."""
        scores: Tensor = self.head(self.embed(x, edge_index, batch, edge_weight, num_graphs))
        return scores

    def embed(
        self,
        x: Tensor | GraphInput,
        edge_index: Graph = None,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Tensor:
        """The paper's ``g_i``: the readout of each graph (Eq. 12), ``[graphs, width]``."""
        given = layer_input(x, edge_index, edge_weight, batch, num_graphs)
        levels = self._levels(given)  # before counting degrees: the convolutions check the edges
        if isinstance(given.graph, DegreeLayout):
            degree = given.graph.key
        else:
            degree = count_degree(given.graph, given.x.size(0), self.tasks.by)
        return self._read_out(levels, degree, given)

    def _read_out(self, levels: list[Tensor], degree: Tensor, given: LayerInput) -> Tensor:
        """All levels in one pass."""
        if any(is_sparse(h) for h in levels):
            raise DemonetError("a readout needs dense features", hint="x.to_dense()")
        pooling, (batch, num_graphs) = self.config.pooling, given.graphs()
        if pooling in ("mean", "sum"):
            return read_out(ReadOut(batch, torch.zeros_like(batch), num_graphs, 1, pooling), levels)
        task, num_tasks = self.tasks(degree), self.tasks.num_tasks
        return read_out(ReadOut(batch, task, num_graphs, num_tasks, total=pooling == "sum+degree"), levels)


def _first_rows(values: Any, h: Any) -> Any:
    """As many of the values as there are rows, or None; in pairs those of sources and of targets."""
    if isinstance(h, tuple):
        return tuple(map(_first_rows, values, h))
    return None if values is None else values[: h.size(0)]


torch.fx.wrap("_first_rows")  # one step for `to_hetero`, which traces the model and passes pairs


class DEMONet(BasicGNN):
    r"""Degree-specific convolutions (:class:`DEMOConv`) with the interface of :class:`torch_geometric.nn.models.GCN`.

    It takes what those models take and can stand in their place. The model of the paper, with its head and readout, is
    :class:`NodeDEMONet` or :class:`GraphDEMONet`.

    Args:
        in_channels: Number of features; -1 reads it from the first input.
        hidden_channels: Width of the hidden layers.
        num_layers: Number of convolutions.
        out_channels: Width of the output; ``hidden_channels`` if None.
        dropout: Probability with which entries are dropped after every activation.
        act: Activation, by name or as a function.
        norm: Normalisation, by name or as a module.
        jk: Jumping knowledge: None, ``"last"``, ``"cat"``, ``"max"`` or ``"lstm"``.
        stem: Whether a linear map of the input comes before the first convolution.
        recompute: Whether layers keep nothing but their input for the derivatives, and are computed again in the
            backward pass: slower, less memory, the same result.
        **kwargs: Other arguments of :class:`torch_geometric.nn.models.GCN`, and of :class:`DEMOConv`, such as
            ``tasks``, ``scheme`` and ``residual``.

    A deep network has ``norm="batch"`` and ``residual=True``: a linear map of the node beside each convolution.

    >>> import torch
    >>> model = DEMONet(8, hidden_channels=16, num_layers=2, out_channels=4)
    >>> model(torch.randn(3, 8), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    torch.Size([3, 4])
    """

    supports_edge_weight = True
    supports_edge_attr = False

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        *args: Any,
        stem: bool = False,
        recompute: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(hidden_channels if stem else in_channels, hidden_channels, *args, **kwargs)
        self.in_channels, self.recompute = in_channels, recompute
        self.stem = Linear(in_channels, hidden_channels) if stem else None

    def init_conv(self, in_channels: int | tuple[int, int], out_channels: int, **kwargs: Any) -> DEMOConv:
        """The convolution of the next layer; each has hash functions of its own."""
        kwargs["hash_seed"] = kwargs.get("hash_seed", 0) + len(self.convs)
        return DEMOConv(in_channels, out_channels, **kwargs)

    def reset_parameters(self) -> None:
        """Draw all parameters again."""
        super().reset_parameters()
        if self.stem is not None:
            self.stem.reset_parameters()

    def forward(
        self,
        x: Tensor | NodeBatch,
        edge_index: Any = None,
        edge_weight: Tensor | None = None,
        edge_attr: None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        num_sampled_nodes_per_hop: list[int] | None = None,
        num_sampled_edges_per_hop: list[int] | None = None,
        *,
        degree: Tensor | None = None,
    ) -> Tensor:
        """The output of the last layer.

        Args:
            x: ``[n, in_channels]`` features; or without edges a :class:`~demonet.nn.blocks.NodeBatch`.
            edge_index: Edges, or a layout.
            edge_weight: ``[m]`` weights in the sums.
            edge_attr: Not read, as in PyG's ``GCN``.
            batch, batch_size, num_sampled_nodes_per_hop, num_sampled_edges_per_hop: As in PyG's basic models.
            degree: ``[n]`` degrees that choose the tasks, for sampled neighbourhoods: those in the whole graph.
        """
        h: Any = x
        blocks: Sequence[Any] = [None] * len(self.convs)
        if isinstance(x, NodeBatch):
            if self.jk_mode not in (None, "last"):
                raise DemonetError(f"jk={self.jk_mode!r} with a NodeBatch", hint="its layers have different rows")
            h, blocks = x.x, x.blocks
        if self.stem is not None:
            h = self.dropout(self.act(self.stem(h)) if self.act is not None else self.stem(h))
        levels, hops = [], (num_sampled_nodes_per_hop, num_sampled_edges_per_hop)
        for k, (block, norm) in enumerate(zip(blocks, self.norms, strict=True)):
            if num_sampled_nodes_per_hop is not None:  # PyG leaves out nodes that no later layer reads: the last ones
                h, edge_index, edge_weight = self._trim(k, *hops, h, edge_index, edge_weight)
            known = _first_rows(degree, h)
            edges = (edge_index, edge_weight, known) if block is None else (block,)
            step = partial(self._step, number=k, edges=edges, batch=(batch, batch_size))
            h = recomputed(step, h, norm, generators=True) if self.recompute else step(h)
            if hasattr(self, "jk"):
                levels.append(h)
        h = self.jk(levels) if hasattr(self, "jk") else h
        return cast(Tensor, self.lin(h) if hasattr(self, "lin") else h)

    def _step(self, h: Tensor, *, number: int, edges: tuple[Any, ...], batch: tuple[Any, Any]) -> Tensor:
        """One convolution and what follows it."""
        h, norm = self.convs[number](h, *edges), self.norms[number]
        if number == self.num_layers - 1 and self.jk_mode is None:
            return h
        h = self.act(h) if self.act is not None and self.act_first else h
        h = norm(h, *batch) if self.supports_norm_batch else norm(h)
        return cast(Tensor, self.dropout(self.act(h) if self.act is not None and not self.act_first else h))
