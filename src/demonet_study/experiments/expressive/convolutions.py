"""One layer of each model in the paper's Table 1, all called as ``layer(x, edge_index)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import degree

from demonet.degree import DegreeTasks
from demonet.nn import DEMOConv
from demonet.nn.conv import Scheme
from demonet.nn.weights import ScaledWeights

WIDTH = 8  # of one half of the output; larger than the number of colours, so that no map must merge colours


class DCNNConv(nn.Module):
    r"""The diffusion convolution of `"Diffusion-Convolutional Neural Networks" <https://arxiv.org/abs/1511.02136>`_,
    before its activation.

    .. math:: z_{vjf} = w_{jf} \, (P^j X)_{vf}, \qquad P = D^{-1} A

    One weight for each hop j and feature f, and no sum over either. An isolated node has an empty row in P.

    Args:
        in_channels: Number of features.
        first_hop: 0 to include the node itself, as the tensor of powers of P in that paper allows; 1 to leave it out.
        last_hop: The largest power of P.
    """

    def __init__(self, in_channels: int, first_hop: int, last_hop: int) -> None:
        super().__init__()
        self.first_hop = first_hop
        self.weight = nn.Parameter(torch.randn(last_hop - first_hop + 1, in_channels))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """``[n, hops * in_channels]``."""
        source, target = edge_index
        share = 1 / degree(target, x.size(0), x.dtype)[target, None]
        hops = [x]
        for _ in range(self.first_hop + len(self.weight) - 1):
            hops.append(torch.zeros_like(x).index_add(0, target, share * hops[-1][source]))
        return (torch.stack(hops[self.first_hop :], 1) * self.weight).flatten(1)


@dataclass(frozen=True)
class Convolution:
    """A layer, and its marks in the paper's Table 1.

    Attributes:
        name: The model.
        paper: Its marks for seed-oriented, degree-aware and order-free; ``"depends"`` is the paper's dash.
        build: Makes the layer for a number of features and of a draw. Parameters come from torch's generator, which the
            caller seeds; the number of the draw seeds what is not a parameter: the hash functions.
    """

    name: str
    paper: tuple[str, str, str]
    build: Callable[[int, int], nn.Module]


def with_splines(conv: DEMOConv) -> DEMOConv:
    """The layer with drawn splines where they start at zero (``scheme="scale"``)."""
    if isinstance(conv.weights, ScaledWeights):
        for coefficients in conv.weights.degree_parameters():
            nn.init.normal_(coefficients, std=1 / conv.weights.rate)
    return conv


def demo(scheme: Scheme, max_degree: int) -> Convolution:
    """DEMO-Net's layer with a task for each degree up to ``max_degree``."""

    def build(in_channels: int, draw: int) -> nn.Module:
        tasks = DegreeTasks.exact(torch.arange(max_degree + 1))
        options: dict[str, Any] = {"scheme": scheme, "aggr": "sum", "combine": "concat", "hash_seed": draw}
        return with_splines(DEMOConv(in_channels, 2 * WIDTH, tasks, bias=False, **options))

    return Convolution(f"DEMO-Net ({scheme})", ("yes", "yes", "yes"), build)


def table_one(max_degree: int) -> list[Convolution]:
    """The models of Table 1, in its order; if a line of the paper covers several layers, all of them."""
    return [
        Convolution("GCN", ("no", "no", "yes"), lambda width, _: GCNConv(width, WIDTH)),
        Convolution("GAT", ("yes", "no", "yes"), lambda width, _: GATConv(width, WIDTH)),
        Convolution("GraphSAGE (mean)", ("yes", "no", "depends"), lambda width, _: SAGEConv(width, WIDTH, aggr="mean")),
        Convolution("GraphSAGE (LSTM)", ("yes", "no", "depends"), lambda width, _: SAGEConv(width, WIDTH, aggr="lstm")),
        Convolution("DCNN (hops 1 to 2)", ("no", "no", "yes"), lambda width, _: DCNNConv(width, 1, 2)),
        Convolution("DCNN (hops 0 to 2)", ("no", "no", "yes"), lambda width, _: DCNNConv(width, 0, 2)),
        *(demo(scheme, max_degree) for scheme in ("weight", "hash", "smooth")),
    ]
