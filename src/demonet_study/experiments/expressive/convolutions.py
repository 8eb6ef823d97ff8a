"""One layer of each model in the paper's Table 1, all called as ``layer(x, edge_index)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform
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
    """A layer, and its marks in the paper's Table 1."""

    name: str
    # Its marks for seed-oriented, degree-aware and order-free; "depends" is the paper's dash, and
    # what the paper does not have has no marks.
    paper: tuple[str, str, str]
    # Makes the layer for a number of features and of a draw. Parameters come from torch's generator, which the caller
    # seeds; the number of the draw seeds what is not a parameter: the hash functions.
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

    paper = ("yes", "yes", "yes") if scheme in ("weight", "hash") else ("", "", "")
    return Convolution(f"DEMO-Net ({scheme})", paper, build)


def table_one(max_degree: int) -> list[Convolution]:
    """The models of Table 1, in its order, all layers that a line of the paper covers; and our two schemes."""
    return [
        Convolution("GCN", ("no", "no", "yes"), lambda width, _: GCNConv(width, WIDTH)),
        Convolution("GAT", ("yes", "no", "yes"), lambda width, _: GATConv(width, WIDTH)),
        Convolution("GraphSAGE (mean)", ("yes", "no", "depends"), lambda width, _: SAGEConv(width, WIDTH, aggr="mean")),
        Convolution("GraphSAGE (LSTM)", ("yes", "no", "depends"), lambda width, _: SAGEConv(width, WIDTH, aggr="lstm")),
        Convolution("DCNN (hops 1 to 2)", ("no", "no", "yes"), lambda width, _: DCNNConv(width, 1, 2)),
        Convolution("DCNN (hops 0 to 2)", ("no", "no", "yes"), lambda width, _: DCNNConv(width, 0, 2)),
        *(demo(scheme, max_degree) for scheme in ("weight", "hash", "smooth", "scale")),
    ]


TOLERANCE = 1e-9  # relative to the largest entry; float64 rounding is a million times smaller

Int = NDArray[np.int64]
Float = NDArray[np.float64]


def alike(vectors: Float, left: Int, right: Int) -> NDArray[np.bool_]:
    """Whether rows ``left`` and ``right`` are equal up to a billionth of the largest entry."""
    result: NDArray[np.bool_] = np.abs(vectors[left] - vectors[right]).max(axis=1) < TOLERANCE * np.abs(vectors).max()
    return result


def classes(vectors: Float) -> tuple[Int, float, float]:
    """Which rows are equal: the class of each, the largest distance inside a class, the least between two.

    Distances are those of the coordinate that differs most, relative to the largest entry. Rows closer than 1e-9 are
    connected, and classes are connected components; the two distances show how clear the answer is.
    """
    distance = squareform(pdist(vectors, "chebyshev")) / np.abs(vectors).max()
    _, label = connected_components(distance < TOLERANCE, directed=False)
    together = label[:, None] == label[None, :]
    return label.astype(np.int64), float(distance[together].max()), float(distance[~together].min(initial=np.inf))


def same_partition(one: Int, other: Int) -> bool:
    """Whether two labellings group the same elements together, whatever their labels are."""
    both = len(set(zip(one.tolist(), other.tolist(), strict=True)))
    return both == len(set(one.tolist())) == len(set(other.tolist()))


def collision_shares(
    build: Callable[[int], nn.Module],
    graph: tuple[Tensor, Tensor, Tensor],
    pairs: Sequence[tuple[Int, Int]],
    draws: range,
) -> list[Float]:
    """The share of draws of the weights in which a layer maps each pair of rows to one vector, for each list of pairs.

    Args:
        build: Makes the layer of a draw, whose number also seeds torch's generator.
        graph: Features, edges, and the nodes whose vectors are compared: the rows that the pairs number.
        pairs: Lists of pairs, as the indices of the first and of the second rows.
        draws: The numbers of the draws.
    """
    x, edge_index, nodes = graph
    counts = [np.zeros(len(left), dtype=np.int64) for left, _ in pairs]
    for draw in draws:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(draw)
            out = build(draw).double()(x, edge_index)[nodes].numpy()
        for count, (left, right) in zip(counts, pairs, strict=True):
            count += alike(out, left, right)
    return [count / len(draws) for count in counts]


def tally(share: Float) -> tuple[int, int]:
    """How many pairs collide in every draw, and how many in some draws and not in others."""
    always, never = int((share == 1).sum()), int((share == 0).sum())
    return always, len(share) - always - never
