"""DEMO-Net and the Weisfeiler-Lehman test on every graph with at most seven nodes.

NetworkX's graph atlas holds all 1,253 graphs with up to seven nodes, the empty one included. Two layers with random
weights and a readout give each a vector; graphs with equal vectors are a class; the classes are compared with those
of one, two and three rounds of WL refinement (Lemma 4.1, Theorem 4.3).

``python -m demonet_study.experiments.expressive.atlas [--out results]`` writes ``atlas.csv``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import networkx as nx
import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, global_add_pool, global_mean_pool
from torch_geometric.utils import degree, to_undirected

from demonet.degree import DegreeTasks
from demonet.errors import DemonetError
from demonet.kernels import wl_classes
from demonet.nn import DegreePooling, DEMOConv
from demonet.nn.weights import IndependentWeights
from demonet_study.experiments.expressive.convolutions import classes, same_partition, with_splines
from demonet_study.experiments.rows import write_rows

WIDTH = 64
Pooling = Literal["degree", "sum", "mean"]


@dataclass(frozen=True)
class Network:
    """Two layers and a readout."""

    model: str  # a scheme of DEMO-Net, or "gcn"
    aggregation: str  # "sum" or "mean" over neighbours; "normalised" for a GCN
    degree_term: bool  # whether the matrices depend on the degree
    pooling: Pooling  # Eq. 11 ("degree"), or the sum or the mean over all nodes


@dataclass(frozen=True)
class Separation:
    """The number of classes that a network distinguishes in the atlas."""

    model: str
    aggregation: str
    degree_term: bool
    pooling: str
    draws: int  # number of draws of its weights
    fewest: int  # classes, in the draw that has the fewest
    most: int  # classes, in the draw that has the most
    as_wl1: int  # in how many draws the classes are exactly those of one round of WL
    as_wl2: int  # in how many draws they are exactly those of two rounds
    as_wl3: int  # in how many draws they are exactly those of three rounds
    widest: float  # the largest distance inside a class, over all draws, relative to the largest entry
    nearest: float  # the least distance between two classes, likewise; equality is decided at 1e-9


NETWORKS = [
    *(
        Network(scheme, aggregation, term, pooling)
        for scheme, aggregation, term in product(("weight", "hash", "smooth"), ("sum", "mean"), (True, False))
        for pooling in ("degree", "sum", "mean")
    ),
    *(Network("gcn", "normalised", False, pooling) for pooling in ("degree", "sum", "mean")),
]


def atlas() -> list[Data]:
    """All graphs of the atlas, each node with the feature 1."""
    graphs = []
    for graph in nx.graph_atlas_g():
        edges = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).t()
        n = graph.number_of_nodes()
        x = torch.ones(n, 1, dtype=torch.float64)
        graphs.append(Data(x=x, edge_index=to_undirected(edges, num_nodes=n), num_nodes=n))
    return graphs


def readout(network: Network, graphs: Sequence[Data], *, seed: int) -> NDArray[np.float64]:
    r"""Eq. 12 with random weights: :math:`h^0, h^1, h^2` of each graph pooled and concatenated."""
    batch = Batch.from_data_list(list(graphs))
    d = degree(batch.edge_index[1], batch.num_nodes, torch.long)
    tasks = DegreeTasks.exact(d)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        levels: list[Tensor] = [batch.x]
        for layer in range(2):
            conv = _layer(network, levels[-1].size(1), tasks, seed=2 * seed + layer)
            levels.append(F.elu(conv(levels[-1], batch.edge_index)))
    if network.pooling == "degree":
        pool = DegreePooling(tasks)
        pooled = [pool(h, d, batch.batch, batch.num_graphs) for h in levels]
    else:
        over_all = global_add_pool if network.pooling == "sum" else global_mean_pool
        pooled = [over_all(h, batch.batch, batch.num_graphs) for h in levels]
    vectors: NDArray[np.float64] = torch.cat(pooled, 1).numpy()
    return vectors


def _layer(network: Network, in_channels: int, tasks: DegreeTasks, *, seed: int) -> nn.Module:
    if network.model == "gcn":
        return GCNConv(in_channels, WIDTH).double()
    scheme, aggr = network.model, network.aggregation
    options: dict[str, Any] = {"scheme": scheme, "aggr": aggr, "combine": "concat", "bias": False, "hash_seed": seed}
    conv = with_splines(DEMOConv(in_channels, WIDTH, tasks, **options)).double()
    if not network.degree_term:
        shared = IndependentWeights(in_channels, conv.weights.width, tasks, degree_scale=0.0).double()
        shared.shared.copy_(conv.weights.shared)  # only the shared part of the scheme's matrices
        conv.weights = shared
    return conv


def separate(networks: Sequence[Network] = NETWORKS, *, draws: int = 3, seed: int = 0) -> list[Separation]:
    """The classes of each network, over several draws of its weights, the first with this seed, each with the next."""
    if draws < 1:
        raise DemonetError(f"draws={draws}: at least 1 is needed")
    graphs = atlas()
    wl = [wl_classes(graphs, rounds) for rounds in (1, 2, 3)]
    rows = []
    for network in networks:
        found = [classes(readout(network, graphs, seed=draw)) for draw in range(seed, seed + draws)]
        counts = [len(set(label.tolist())) for label, _, _ in found]
        as_wl1, as_wl2, as_wl3 = (sum(same_partition(label, known) for label, _, _ in found) for known in wl)
        rows.append(
            Separation(
                **asdict(network),
                draws=draws,
                fewest=min(counts),
                most=max(counts),
                as_wl1=as_wl1,
                as_wl2=as_wl2,
                as_wl3=as_wl3,
                widest=max(widest for _, widest, _ in found),
                nearest=min(nearest for _, _, nearest in found),
            )
        )
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    """Write ``atlas.csv``."""
    parser = argparse.ArgumentParser(
        prog="python -m demonet_study.experiments.expressive.atlas", description=main.__doc__
    )
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the file")
    parser.add_argument("--draws", type=int, default=3, help="draws of the weights")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first draw")
    options = parser.parse_args(argv)
    write_rows(separate(draws=options.draws, seed=options.seed), options.out / "atlas.csv")


if __name__ == "__main__":
    main()
