"""NodeDEMONet and GraphDEMONet: convolutions, and a head that reads nodes or whole graphs."""

from __future__ import annotations

from typing import Any, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demonet.degree.count import count_degree
from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.nn.config import ModelConfig
from demonet.nn.conv import DEMOConv
from demonet.nn.door import GraphInput, Inside, enter, prepare
from demonet.nn.dropout import Dropout
from demonet.nn.pool import DegreePooling
from demonet.nn.small import small_loss
from demonet.nn.without import leave_out
from demonet.ops import cpu_stack, degree_pool, linear_cross_entropy
from demonet.ops.reference import activate
from demonet.ops.sparse import is_sparse, sparse_linear
from demonet.ops.stack import Layers, Stack, stack_loss, stacks

Graph = Tensor | DegreeLayout | None


def convolve(conv: DEMOConv, h: Tensor, inside: Inside, activation: str = "none", *, first: bool) -> Tensor:
    """One convolution and an activation; the first of a model takes its constant part from the door."""
    if not isinstance(inside.graph, DegreeLayout):
        return activate(conv(h, inside.graph, inside.edge_weight), activation)
    if first and inside.folded is not None:
        return conv.update_rows(h, inside.folded, inside.graph, activation)
    return conv.rows(h, inside.graph, inside.edge_weight, activation)


class Layer(nn.Module):
    """One hidden layer: convolution and activation; refined, with a norm, a second map and dropout after it."""

    def __init__(self, in_channels: int, tasks: DegreeTasks, config: ModelConfig, number: int) -> None:
        super().__init__()
        self.conv = DEMOConv(in_channels, config.hidden, tasks, **config.conv_options(number))
        self.activation = config.activation
        self.after: nn.Sequential | None = None
        if config.refine:
            activation = nn.ELU() if config.activation == "elu" else nn.ReLU()
            second = nn.Linear(config.hidden, config.hidden)
            norm, dropout = nn.BatchNorm1d(config.hidden), Dropout(config.dropout)
            self.after = nn.Sequential(norm, activation, second, activation, dropout)

    def forward(self, h: Tensor, inside: Inside, *, first: bool) -> Tensor:
        """``h^k`` from ``h^{k-1}``."""
        if self.after is None:
            return convolve(self.conv, h, inside, self.activation, first=first)
        return self.after(convolve(self.conv, h, inside, first=first))


class DEMONet(nn.Module):
    """The body that both models share: ``h^0 = x``, ``h^1``, ..., ``h^K``."""

    def __init__(
        self, in_channels: int, tasks: DegreeTasks, config: ModelConfig | None, changes: dict[str, Any]
    ) -> None:
        super().__init__()
        self.config = (config or ModelConfig()).changed(**changes)
        self.tasks, self.in_channels = tasks, in_channels
        widths = [in_channels] + [self.config.hidden] * self.config.layers
        self.layers = nn.ModuleList(Layer(width, tasks, self.config, k) for k, width in enumerate(widths[:-1]))

    def prepare(self, x: Tensor, edge_index: Tensor | DegreeLayout, **options: Any) -> GraphInput:
        """Check and sort a graph, and do the constant work, once; the result goes in place of ``x``.

        Args:
            x: ``[n, in_channels]`` features.
            edge_index: Arcs, or a layout.
            **options: ``edge_weight [m]``; for graph models ``batch [n]`` and ``num_graphs``.

        Raises:
            DemonetError: For features or node ids that do not fit, with their place.
        """
        if x.dim() == 2 and x.size(1) != self.in_channels:
            raise DemonetError(f"{x.size(1)} feature columns for a model made for {self.in_channels}")
        dtype = next(self.parameters()).dtype
        if x.dtype != dtype:
            raise DemonetError(f"features are {x.dtype}, the model is {dtype}", hint=f"x.to({dtype})")
        return prepare(self._first_conv(), x, edge_index, **options)

    def save_memory(self) -> Self:
        """Take the sums over neighbours once more for the derivatives instead of keeping them: slower, but smaller."""
        for module in self.modules():
            if isinstance(module, DEMOConv):
                module.keep_sums = False
        return self

    def _first_conv(self) -> DEMOConv:
        return cast(Layer, self.layers[0]).conv

    def extra_repr(self) -> str:
        """What print shows."""
        return str(self.config)

    def representations(
        self, x: Tensor | GraphInput, edge_index: Graph = None, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """``[h^0, ..., h^K]``, each ``[n, width]``, rows in the caller's order."""
        inside = enter(x, edge_index, edge_weight)
        return [inside.leave(h) for h in self._levels(inside)]

    def _levels(self, inside: Inside) -> list[Tensor]:
        levels = [inside.x]
        for k, layer in enumerate(self.layers):
            levels.append(layer(levels[-1], inside, first=k == 0))
        return levels


class NodeDEMONet(DEMONet):
    """DEMO-Net for nodes: hidden layers, then a head that gives every node a score per class.

    Args:
        in_channels: Number of features.
        num_classes: Number of classes.
        tasks: Which degrees share a matrix.
        config: The shape of the model; the paper's by default.
        **changes: Single fields of the configuration, such as ``scheme="hash"``.

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
        width = config.hidden * (config.layers if config.jump else 1) if config.layers else in_channels
        self.skip = nn.Linear(in_channels, num_classes, bias=False) if config.jump else None
        self.head: nn.Module
        if config.head == "degree":
            options = config.conv_options(config.layers) | {"combine": "add"}
            self.head = DEMOConv(width, num_classes, tasks, **options)
        elif config.head == "mlp":
            self.head = nn.Sequential(nn.Linear(width, config.hidden), nn.ReLU(), nn.Linear(config.hidden, num_classes))
        else:
            self.head = nn.Linear(width, num_classes)
        leave_out(self, config.without)

    def forward(self, x: Tensor | GraphInput, edge_index: Graph = None, edge_weight: Tensor | None = None) -> Tensor:
        """``[n, num_classes]`` scores before the softmax, rows in the caller's order."""
        inside = enter(x, edge_index, edge_weight)
        read = self._read(self._levels(inside))
        if isinstance(self.head, DEMOConv):
            out = convolve(self.head, read, inside, first=not self.layers)
        else:
            out = self.head(read)
        if self.skip is not None:
            out = out + (sparse_linear(inside.x, self.skip.weight.t()) if is_sparse(inside.x) else self.skip(inside.x))
        return inside.leave(out)

    def loss(self, x: Tensor | GraphInput, target: Tensor, share: Tensor, edge_index: Graph = None) -> Tensor:
        r"""Cross-entropy of all nodes, :math:`\sum_v s_v \, \mathrm{CE}_v`: a linear head never writes its scores.

        Args:
            x, edge_index: As in :meth:`forward`.
            target: ``[n]`` the class of every node, in the caller's order; any class where the share is zero.
            share: ``[n]`` float32, how much every node counts.
        """
        if not isinstance(self.head, nn.Linear) or self.skip is not None:
            scores = self(x, edge_index)
            return F.cross_entropy(scores, target, reduction="none") @ share.to(scores.dtype)
        if isinstance(x, GraphInput) and (found := small_loss(self, x, target, share)) is not None:
            return found
        inside = enter(x, edge_index)
        if inside.outer is not None:
            target, share = inside.outer.enter(target), inside.outer.enter(share)
        if (stack := self._stack(inside, target, share)) is not None:
            whole = stack_loss if target.is_cuda else cpu_stack.stack_loss
            return whole(*stack, self.head.weight, self.head.bias)
        read = self._read(self._levels(inside))
        return linear_cross_entropy(read, self.head.weight, self.head.bias, target, share)

    def chain(self, edge_weight: Tensor | None) -> list[DEMOConv]:
        """The convolutions, where each takes what the one before it gives and sums are plain; otherwise none."""
        if self.config.jump or self.config.refine or edge_weight is not None:
            return []
        return [cast(Layer, layer).conv for layer in self.layers]

    def _stack(self, inside: Inside, target: Tensor, share: Tensor) -> tuple[Stack, Tensor, Layers] | None:
        """What one function takes for all layers, where there is nothing between them."""
        graph, convs = inside.graph, self.chain(inside.edge_weight)
        if not convs or not isinstance(graph, DegreeLayout) or is_sparse(inside.x):
            return None
        head = cast(nn.Linear, self.head).weight
        if graph.tiles is None and not (convs[0].keep_sums and cpu_stack.stacks(inside.x, head)):
            return None
        convs[0].takes(inside.x, graph)
        layers = [fused for conv in convs if (fused := conv.fused(graph)) is not None]
        if len(layers) < len(convs) or (graph.tiles is not None and not stacks(inside.x, layers, head)):
            return None
        options = (convs[0].scaling, self.config.combine, self.config.activation, convs[0].keep_sums)
        return Stack(graph, target, share, inside.folded, *options), inside.x, layers

    def embed(self, x: Tensor | GraphInput, edge_index: Graph = None, edge_weight: Tensor | None = None) -> Tensor:
        """The paper's ``e_v``: what the head reads of each node, ``[n, width]``, rows in the caller's order."""
        inside = enter(x, edge_index, edge_weight)
        return inside.leave(self._read(self._levels(inside)))

    def _first_conv(self) -> DEMOConv:
        return super()._first_conv() if self.layers else cast(DEMOConv, self.head)

    def _read(self, levels: list[Tensor]) -> Tensor:
        return torch.cat(levels[1:], 1) if self.config.jump else levels[-1]


class GraphDEMONet(DEMONet):
    r"""DEMO-Net for graphs: every layer read out, the input included (Eq. 12), then a head.

    .. math:: h_G = \mathrm{CONCAT}_{k=0..K} \; \mathrm{pool}(h^k)

    Args:
        in_channels: Number of features.
        num_classes: Number of classes.
        tasks: Which degrees share a matrix, and a block of the readout.
        config: The shape of the model; the paper's by default.
        **changes: Single fields of the configuration, such as ``pooling="mean"`` (the paper's DEMO-Net_m).
    """

    def __init__(
        self, in_channels: int, num_classes: int, tasks: DegreeTasks, config: ModelConfig | None = None, **changes: Any
    ) -> None:
        super().__init__(in_channels, tasks, config, changes)
        config = self.config
        if config.head == "degree":
            raise DemonetError("head='degree' reads nodes, not graphs", hint="use 'linear' or 'mlp'")
        self.degree_pooling = DegreePooling(tasks)
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
        leave_out(self, config.without)

    def forward(
        self,
        x: Tensor | GraphInput,
        edge_index: Graph = None,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Tensor:
        """``[graphs, num_classes]`` scores before the softmax."""
        return self.head(self.embed(x, edge_index, batch, edge_weight, num_graphs))

    def embed(
        self,
        x: Tensor | GraphInput,
        edge_index: Graph = None,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Tensor:
        """The paper's ``g_i``: the readout of each graph (Eq. 12), ``[graphs, width]``."""
        inside = enter(x, edge_index, edge_weight, batch, num_graphs)
        levels = self._levels(inside)  # first: the convolutions refuse arcs that do not fit
        if isinstance(inside.graph, DegreeLayout):
            degree = inside.graph.key
        else:
            degree = count_degree(inside.graph, inside.x.size(0), self.tasks.by)
        return self._read_out(levels, degree, inside)

    def _read_out(self, levels: list[Tensor], degree: Tensor, inside: Inside) -> Tensor:
        """All levels in one pass, side by side; then the blocks of each level together."""
        if any(is_sparse(h) for h in levels):
            raise DemonetError("a readout needs dense features", hint="x.to_dense()")
        pooling, (batch, num_graphs) = self.config.pooling, inside.graphs()
        h, widths = torch.cat(levels, 1), [level.size(1) for level in levels]
        if pooling in ("mean", "sum"):
            return degree_pool(h, torch.zeros_like(batch), batch, 1, num_graphs, pooling)
        blocks = self.degree_pooling(h, degree, batch, num_graphs).unflatten(1, (self.tasks.num_tasks, -1))
        by_degree = [block.flatten(1) for block in blocks.split(widths, 2)]
        if pooling == "degree":
            return torch.cat(by_degree, 1)
        totals = blocks.sum(1).split(widths, 1)  # every node stands in one block
        return torch.cat([part for total, each in zip(totals, by_degree, strict=True) for part in (total, each / 2)], 1)
