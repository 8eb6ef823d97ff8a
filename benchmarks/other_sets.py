"""Problems of other kinds than the paper's eleven sets: generated, or shipped with scikit-learn and NetworkX.

``NODES`` and ``GRAPHS`` have a function for each set, from a seed to a ``Data`` or to a list of them, with classes in
``y``. ``split_of(name, data, seed)`` gives the split that suits a set. Use seeds from 7,000 on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import torch
from scipy import sparse
from sklearn import datasets
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data

from demonet.data.edges import simple_edges
from demonet.data.rows import to_torch
from demonet.data.splits import Split, fractions, thirds
from demonet.data.synthetic import power_law, role_graph
from demonet.errors import DemonetWarning

FIRST_SEED = 7_000


def blocks(
    rng: np.random.Generator,
    y: np.ndarray,
    degree: float,
    homophily: float,
    exponent: float = 2.5,
    cyclic: bool = False,
) -> np.ndarray:
    """``[2, edges]`` of a degree-corrected block model.

    Args:
        rng: The generator.
        y: Classes.
        degree: Mean degree.
        homophily: Share of the edges within a class.
        exponent: Of the power law of degrees.
        cyclic: Whether the other edges lead from class c to c + 1 and c - 1 only, not to any class.
    """
    push = np.minimum(rng.pareto(exponent - 1, len(y)) + 1, len(y) ** 0.5)
    members = [np.flatnonzero(y == c) for c in range(y.max() + 1)]
    chance = [push[m] / push[m].sum() for m in members]
    source = rng.choice(len(y), size=round(degree * len(y) / 2), p=push / push.sum())
    classes = len(members)
    step = rng.choice([-1, 1], size=len(source)) if cyclic else rng.integers(1, classes, size=len(source))
    other = (y[source] + np.where(rng.random(len(source)) < homophily, 0, step)) % classes
    target = np.array([rng.choice(members[c], p=chance[c]) for c in other])
    return np.stack([source, target])


def citations(
    seed: int, *, n: int = 2000, classes: int = 7, degree: float = 4.0, homophily: float = 0.8, signal: float = 0.25
) -> Data:
    """Papers with a sparse bag of words, of which a share ``signal`` belongs to the topic of the class."""
    rng = np.random.default_rng(seed)
    words, y = 1000, rng.choice(classes, size=n, p=rng.dirichlet(np.full(classes, 8.0)))
    common = rng.dirichlet(np.full(words, 0.5))
    topic = signal * rng.dirichlet(np.full(words, 0.05), size=classes) + (1 - signal) * common
    x = np.stack([np.minimum(rng.multinomial(18, topic[c]), 1) for c in y])
    return graph_data(blocks(rng, y, degree, homophily), y, to_torch(sparse.csr_array(x)))


def numbers(
    seed: int,
    *,
    n: int = 1500,
    classes: int = 5,
    degree: float = 8.0,
    homophily: float = 0.6,
    signal: float = 0.4,
    cyclic: bool = False,
) -> Data:
    """Contextual block model: 16 Gaussian attributes around a mean for each class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    x = signal * rng.normal(size=(classes, 16))[y] + rng.normal(size=(n, 16))
    x = x * rng.lognormal(size=16) + rng.normal(size=16)  # columns of other scales and means
    return graph_data(blocks(rng, y, degree, homophily, cyclic=cyclic), y, x)


def two_hops(seed: int, n: int = 1500) -> Data:
    """The class is which of four signs of attributes is most frequent two hops away; neighbours say nothing."""
    rng = np.random.default_rng(seed)
    graph = power_law(n, 3 * n, hub=20, seed=seed, exponent=3.5)
    kind = rng.integers(4, size=n)
    source, target = graph.edge_index.numpy()
    walk = np.zeros((n, n), np.float32)
    walk[target, source] = 1
    twice = (walk @ walk > 0) & (walk == 0) & ~np.eye(n, dtype=bool)
    share = twice @ np.eye(4)[kind] / np.maximum(twice.sum(1, keepdims=True), 1)
    y = (share - share.mean(0)).argmax(1)
    x = np.eye(4)[kind] + 0.3 * rng.normal(size=(n, 4))
    return Data(x=torch.from_numpy(x).float(), edge_index=graph.edge_index, y=torch.from_numpy(y), num_nodes=n)


def nearest(seed: int, table: str, neighbours: int) -> Data:
    """A table of scikit-learn with an edge to the nearest rows; the seed shuffles the rows."""
    x, y = getattr(datasets, f"load_{table}")(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    x, y = x[order], y[order]
    scaled = (x - x.mean(0)) / np.maximum(x.std(0), 1e-9)
    return graph_data(np.stack(kneighbors_graph(scaled, neighbours).nonzero()), y, x)


def minesweeper(seed: int, side: int = 40) -> Data:
    """A grid with mines; half of the cells show how many mines touch them, as a one-hot row. Is a cell a mine?"""
    rng = np.random.default_rng(seed)
    graph = nx.convert_node_labels_to_integers(nx.strong_product(nx.path_graph(side), nx.path_graph(side)))
    adjacency = nx.to_scipy_sparse_array(graph)
    mine = (rng.random(side**2) < 0.2).astype(int)
    shown = np.where(rng.random(side**2) < 0.5, adjacency @ mine, 9)
    return graph_data(np.stack(adjacency.nonzero()), mine, np.eye(10)[shown])


def communities(seed: int, homophily: float = 0.7, n: int = 1200) -> Data:
    """Degree-corrected blocks without attributes: nothing but the neighbours' classes gives the class away."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    return graph_data(blocks(rng, y, 10.0, homophily), y)


def clustering(seed: int, n: int = 1500) -> Data:
    """Preferential attachment with triangles; classes are quartiles of the clustering coefficient."""
    graph = nx.powerlaw_cluster_graph(n, 4, 0.5, seed=seed)
    value = np.array([c for _, c in sorted(nx.clustering(graph).items())])
    y = np.searchsorted(np.quantile(value, [0.25, 0.5, 0.75]), value)
    return graph_data(np.array(graph.edges).T, y)


def neighbour_roles(seed: int, n: int = 1500, hub: int = 80, noise: float = 0.1) -> Data:
    """Five classes of unequal size by the mean log-degree of the neighbours; some at random."""
    graph = power_law(n, 3 * n, hub=hub, seed=seed)
    graph.y = torch.from_numpy(by_neighbours(graph, (0.5, 0.75, 0.88, 0.95), noise, seed))
    return graph


def by_neighbours(graph: Data, quantiles: Sequence[float], noise: float, seed: int) -> np.ndarray:
    """Classes by the mean log-degree of the neighbours, cut at these quantiles; a share ``noise`` at random."""
    rng, n, (source, target) = np.random.default_rng(seed), graph.num_nodes, graph.edge_index.numpy()
    degree = np.maximum(np.bincount(target, minlength=n), 1)
    mean = np.bincount(target, np.log1p(degree[source]), minlength=n) / degree
    y = np.searchsorted(np.quantile(mean, quantiles), mean)
    return np.where(rng.random(n) < noise, rng.integers(len(quantiles) + 1, size=n), y)


def noisy_roles(seed: int) -> Data:
    """Roles in a graph, with two attributes that are nothing but noise."""
    data = role_graph(seed, noise=0.02)
    data.x = torch.from_numpy(np.random.default_rng(seed).normal(size=(data.num_nodes, 2))).float()
    return data


def karate(seed: int) -> Data:
    """Zachary's karate club and its two factions: 34 nodes."""
    graph = nx.karate_club_graph()
    return graph_data(np.array(graph.edges).T, np.array([int(graph.nodes[v]["club"] == "Officer") for v in graph]))


def miserables(seed: int) -> Data:
    """Characters of Les Misérables; classes are communities of at least seven (greedy modularity), else one more."""
    graph = nx.convert_node_labels_to_integers(nx.les_miserables_graph())
    y = np.zeros(len(graph), np.int64)
    found = nx.community.greedy_modularity_communities(graph)
    for number, members in enumerate([m for m in found if len(m) >= 7], 1):
        y[list(members)] = number
    return graph_data(np.array(graph.edges).T, np.unique(y, return_inverse=True)[1])


def molecules(seed: int, num: int = 400) -> list[Data]:
    """Trees with rings and atoms C, N, O, F; class 1 has an O beside an N, or a ring with an N; a tenth is noise."""
    rng, graphs = np.random.default_rng(seed), []
    for _ in range(num):
        n = int(rng.integers(10, 25))
        tree = nx.random_labeled_tree(n, seed=int(rng.integers(2**31)))
        ring: set[int] = set()
        for _ in range(int(rng.integers(0, 3))):
            u, v = rng.choice(n, 2, replace=False).tolist()
            path = nx.shortest_path(tree, u, v)
            if 4 < len(path) < 8:
                ring |= set(path)
                tree.add_edge(u, v)
        atom = rng.choice(4, size=n, p=[0.74, 0.1, 0.1, 0.06])
        beside = any({atom[u], atom[v]} == {1, 2} for u, v in tree.edges)
        y = int(beside or any(atom[v] == 1 for v in ring))
        y = int(rng.integers(2)) if rng.random() < 0.1 else y
        graphs.append(graph_data(np.array(tree.edges).T, np.array([y]), np.eye(4)[atom], n))
    return graphs


def motifs(seed: int, num: int = 300) -> list[Data]:
    """Preferential attachment with a house, a cycle of five or a wheel hung on it, up to three times; no labels."""
    rng, graphs = np.random.default_rng(seed), []
    shapes = [nx.house_graph(), nx.cycle_graph(5), nx.wheel_graph(5)]
    for i in range(num):
        n = int(rng.integers(15, 40))
        whole = nx.barabasi_albert_graph(n, 1, seed=int(rng.integers(2**31)))
        for _ in range(int(rng.integers(1, 4))):
            first, at = len(whole), int(rng.integers(n))
            whole = nx.disjoint_union(whole, shapes[i % 3])
            whole.add_edge(at, first)
        whole.add_edges_from((u, v) for u, v in rng.integers(len(whole), size=(3, 2)).tolist() if u != v)
        graphs.append(graph_data(np.array(whole.edges).T, np.array([i % 3]), None, len(whole)))
    return graphs


def families(seed: int, num: int = 300) -> list[Data]:
    """Uniform, small-world and preferential graphs of 20 to 80 nodes and about the same density; no labels."""
    rng, graphs = np.random.default_rng(seed), []
    for i in range(num):
        n, key = int(rng.integers(20, 80)), int(rng.integers(2**31))
        if i % 3 == 0:
            graph = nx.gnm_random_graph(n, 2 * n, seed=key)
        elif i % 3 == 1:
            graph = nx.watts_strogatz_graph(n, 4, 0.6, seed=key)
        else:
            graph = nx.barabasi_albert_graph(n, 2, seed=key)
            graph = nx.double_edge_swap(graph, nswap=n // 4, max_tries=100 * n, seed=key)
        graphs.append(graph_data(np.array(graph.edges).T, np.array([i % 3]), None, n))
    return graphs


def threads(seed: int, num: int = 300) -> list[Data]:
    """Threads of a forum without labels: one or two hubs that many answer, or a discussion; extra replies."""
    rng, graphs = np.random.default_rng(seed), []
    for i in range(num):
        n, hubs = int(rng.integers(30, 150)), 1 + i % 3
        pull = np.where(np.arange(n) < hubs, rng.uniform(5, 15), 1.0)
        parent = [int(rng.choice(v, p=pull[:v] ** 1.3 / (pull[:v] ** 1.3).sum())) for v in range(1, n)]
        edges = np.stack([np.arange(1, n), parent])
        extra = rng.integers(n, size=(2, n // 10))
        graphs.append(graph_data(np.concatenate([edges, extra], 1), np.array([i % 3]), None, n))
    return graphs


def sensors(seed: int, num: int = 300) -> list[Data]:
    """Small-world graphs with three numbers at a node; the class is whether a number agrees with the neighbours'."""
    rng, graphs = np.random.default_rng(seed), []
    for i in range(num):
        n = int(rng.integers(15, 40))
        graph = nx.connected_watts_strogatz_graph(n, 4, 0.3, seed=int(rng.integers(2**31)))
        x = rng.normal(size=(n, 3))
        mean = nx.to_numpy_array(graph) @ x[:, 0] / 4
        x[:, 1] += 0.8 * mean if i % 2 else 0.8 * rng.permutation(mean)
        graphs.append(graph_data(np.array(graph.edges).T, np.array([i % 2]), 5 * x + 2, n))
    return graphs


NODES: dict[str, Callable[[int], Data]] = {
    "citations": citations,
    "citations, loose": partial(citations, homophily=0.6, signal=0.35),
    "citations, few words": partial(citations, n=1500, degree=8.0, homophily=0.8, signal=0.1),
    "citations, heterophilous": partial(citations, n=1500, degree=8.0, homophily=0.05, signal=0.3),
    "numbers, homophilous": numbers,
    "numbers, heterophilous": partial(numbers, homophily=0.1, cyclic=True),
    "numbers, no graph": partial(numbers, homophily=0.2, signal=0.6),
    "two hops": two_hops,
    "digits": partial(nearest, table="digits", neighbours=6),
    "wine": partial(nearest, table="wine", neighbours=5),
    "tumours": partial(nearest, table="breast_cancer", neighbours=5),
    "minesweeper": minesweeper,
    "roles": partial(role_graph, noise=0.02),
    "roles, noise": noisy_roles,
    "neighbour roles": neighbour_roles,
    "clustering": clustering,
    "communities": communities,
    "karate": karate,
    "miserables": miserables,
}
GRAPHS: dict[str, Callable[[int], list[Data]]] = {
    "molecules": molecules,
    "motifs": motifs,
    "families": families,
    "threads": threads,
    "sensors": sensors,
}


def split_of(name: str, data: Any, seed: int) -> Split:
    """Twenty labels a class for citations, 10/20/70 for the other attributed sets, thirds for the rest."""
    y = data.y if isinstance(data, Data) else torch.cat([graph.y for graph in data])
    if name.startswith("citations"):
        return few_labels(y, seed)
    if name.startswith("numbers") or name in ("digits", "tumours", "minesweeper"):
        return fractions(y, (0.1, 0.2, 0.7), seed, stratified=True)
    return thirds(y, seed, stratified=True)


def few_labels(y: torch.Tensor, seed: int, a_class: int = 20, validation: int = 500) -> Split:
    """Some training nodes a class, and so many for validation, as Planetoid's splits have them."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))
    train = torch.cat([order[y[order] == c][:a_class] for c in range(int(y.max()) + 1)])
    rest = order[~torch.isin(order, train)]
    return Split(f"{a_class} a class", seed, train, rest[:validation], rest[validation:])


def graph_data(
    edges: np.ndarray, y: np.ndarray, x: np.ndarray | torch.Tensor | None = None, n: int | None = None
) -> Data:
    n = len(y) if n is None else n
    with warnings.catch_warnings():  # random edges repeat
        warnings.simplefilter("ignore", DemonetWarning)
        edge_index, _ = simple_edges(*np.asarray(edges, np.int64), n)
    data = Data(edge_index=edge_index, y=torch.from_numpy(np.asarray(y, np.int64)), num_nodes=n)
    if x is not None:
        data.x = torch.from_numpy(x).float() if isinstance(x, np.ndarray) else x
    return data
