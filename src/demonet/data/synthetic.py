"""Generated graphs: roles, mirrored nodes, a rule that flips with the degree, families of small graphs, timing.

Each is simple and undirected, with edges listed in both directions, and depends only on its seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

from demonet.checks import check_edge_index, check_labels
from demonet.data.edges import simple_edges
from demonet.degree.count import count_degree
from demonet.errors import DemonetError

_Pairs = list[tuple[int, int]]
# A motif: its edges and the role of each of its nodes; node 0 is attached to the backbone.
_MOTIFS: dict[str, tuple[_Pairs, list[str]]] = {
    "house": (
        [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (3, 4)],
        ["house floor", "house floor", "house wall", "house wall", "house roof"],
    ),
    "fan": (
        [(0, i) for i in range(1, 5)] + [(i, i + 1) for i in range(1, 4)],
        ["fan hub", "fan end", "fan blade", "fan blade", "fan end"],
    ),
    "star": ([(0, i) for i in range(1, 5)], ["star hub"] + ["star leaf"] * 4),
    "clique": ([(i, j) for i in range(5) for j in range(i)], ["clique gate"] + ["clique member"] * 4),
}


def role_graph(seed: int = 0, *, motifs: int = 48, spacing: int = 2, noise: float = 0.03) -> Data:
    """Motifs attached to a backbone cycle, as in the evaluations of GraphWave and struc2vec; the class is the role.

    Houses, fans, stars and cliques come in equal numbers and random order. Many roles share a degree (backbone, roof
    and the ends of a fan have 2; walls, blades and backbone nodes with a motif 3), so the degree alone is not enough.

    Args:
        seed: Seed of the order of motifs and of the noise.
        motifs: Number of motifs.
        spacing: Backbone nodes for each motif; it is attached to the first of them.
        noise: Extra edges between random nodes, as a share of the edges.
    """
    if motifs < 2 or spacing < 1 or noise < 0:
        raise DemonetError(f"motifs={motifs}, spacing={spacing}, noise={noise}: at least 2, 1 and 0")
    generator = np.random.default_rng(seed)
    backbone = motifs * spacing
    edges: _Pairs = [(i, (i + 1) % backbone) for i in range(backbone)]
    roles = ["backbone tie" if i % spacing == 0 else "backbone" for i in range(backbone)]
    names = list(_MOTIFS)
    for place, kind in enumerate(generator.permutation([names[i % len(names)] for i in range(motifs)])):
        start = len(roles)
        motif, motif_roles = _MOTIFS[kind]
        edges += [(place * spacing, start)] + [(start + u, start + v) for u, v in motif]
        roles += motif_roles
    extra = generator.integers(len(roles), size=(round(noise * len(edges)), 2))
    edges = list({(min(u, v), max(u, v)) for u, v in [*edges, *extra.tolist()] if u != v})
    class_names, y = np.unique(roles, return_inverse=True)
    return _data(edges, len(roles), y=y, class_names=class_names.tolist())


def flip_graph(seed: int = 0, *, num_nodes: int = 1500, num_attributes: int = 4, noise: float = 0.05) -> Data:
    r"""A graph with attributes whose rule is reversed above the median degree: neither half of it is of use alone.

    Attributes are independent standard normal, edges follow a power law. With :math:`N(v)` the neighbours of v and
    :math:`\tilde d` the median degree, the class is

    .. math::
        y_v = \Big[ s(d_v) \sum_{u \in N(v)} x_{u,1} > 0 \Big] \oplus \varepsilon_v, \qquad
        s(d) = \begin{cases} +1 & d \le \tilde d \\ -1 & d > \tilde d \end{cases}, \qquad
        P(\varepsilon_v = 1) = \text{noise}

    The sign of the sum is that of the neighbours' mean. Given the degree alone, or given the attributes of a node and
    of its neighbours alone, both classes are about equally likely. Given both, the most accurate prediction is the
    class without noise. It is right with probability :math:`1 - \text{noise}` at every node: this is ``data.ceiling``.

    Args:
        seed: Seed of everything random.
        num_nodes: Number of nodes; there are four times as many edges.
        num_attributes: Number of attributes; the rule reads the first.
        noise: Share of nodes whose class is exchanged, up to 0.5.

    >>> flip_graph(noise=0.1).ceiling
    0.9
    """
    if num_nodes < 100 or num_attributes < 1 or not 0 <= noise <= 0.5:
        raise DemonetError(
            f"num_nodes={num_nodes}, num_attributes={num_attributes}, noise={noise}",
            hint="at least 100 nodes and 1 attribute, noise from 0 to 0.5",
        )
    generator = np.random.default_rng(seed)
    graph = power_law(num_nodes, 4 * num_nodes, hub=30, seed=seed, exponent=3.0)
    x = generator.normal(size=(num_nodes, num_attributes))
    source, target = graph.edge_index.numpy()
    degree = count_degree(graph.edge_index, num_nodes).numpy()
    total = np.bincount(target, x[source, 0], minlength=num_nodes)
    rule = np.where(degree > np.median(degree), -total, total) > 0
    exchanged = generator.random(num_nodes) < noise
    graph.x = torch.from_numpy(x).float()
    graph.y = torch.from_numpy((rule ^ exchanged).astype(np.int64))
    graph.ceiling = 1 - noise
    return graph


def mirrored_karate() -> Data:
    """Two copies of Zachary's karate club, joined by one edge between a node and its mirror, as in the struc2vec paper.

    ``mirror[v]`` is the same node in the other copy; ``y`` has one class for each mirrored pair.
    """
    club = nx.karate_club_graph()
    n = club.number_of_nodes()
    edges = [(u, v) for u, v in club.edges] + [(u + n, v + n) for u, v in club.edges] + [(0, n)]
    data = _data(edges, 2 * n, y=np.arange(2 * n) % n, class_names=list(range(n)))
    data.mirror = (torch.arange(2 * n) + n) % (2 * n)
    return data


def barbell(clique: int = 10, path: int = 10) -> Data:
    """Two cliques joined by a path; the class is the role: clique member, gate of a clique, position on the path."""
    if clique < 3 or path < 1:
        raise DemonetError(f"clique={clique}, path={path}: at least 3 and 1")
    n = 2 * clique + path
    y = np.zeros(n, dtype=np.int64)
    along = np.arange(clique - 1, clique + path + 1)  # gate, path, gate
    y[along] = 1 + np.minimum(np.arange(along.size), np.arange(along.size)[::-1])
    names = ["clique", "gate", *(f"path {i}" for i in range(1, int(y.max())))]
    return _data(nx.barbell_graph(clique, path).edges, n, y=y, class_names=names)


def cycle(n: int = 12) -> Data:
    """A cycle: every node has the same role."""
    if n < 3:
        raise DemonetError(f"a cycle of {n} nodes", hint="at least 3")
    return _data(nx.cycle_graph(n).edges, n, y=np.zeros(n), class_names=["cycle"])


def small_graphs(
    num: int = 100, seed: int = 0, *, smallest: int = 12, largest: int = 36, noise: float = 0.0
) -> list[Data]:
    """Graphs of five families, in turn; the class ``y`` is the family.

    Sizes are drawn from the same range for each family, so the number of nodes does not give the class away.

    Args:
        num: Number of graphs.
        seed: Seed of the graphs.
        smallest, largest: Number of nodes.
        noise: Share of the edges that are rewired at random; without it, the degree distribution gives the class away.
    """
    if num < 1 or not 8 <= smallest <= largest:
        raise DemonetError(f"num={num}, smallest={smallest}, largest={largest}: at least 1 and 8, in order")
    if not 0 <= noise <= 1:
        raise DemonetError(f"noise={noise} is not a share of the edges")
    generator = np.random.default_rng(seed)
    graphs = []
    for i in range(num):
        family = i % len(FAMILIES)
        n = int(generator.integers(smallest, largest + 1))
        graph = _moved(_family(FAMILIES[family], n, generator), noise, generator)
        graphs.append(_data(graph.edges, graph.number_of_nodes(), y=np.array([family])))
    return graphs


FAMILIES = ("chorded cycle", "tree", "ladder", "small world", "preferential attachment")


def _family(name: str, n: int, generator: np.random.Generator) -> nx.Graph:
    seed = int(generator.integers(2**31))
    if name == "tree":
        return nx.random_labeled_tree(n, seed=seed)
    if name == "ladder":
        return nx.ladder_graph(n // 2)
    if name == "small world":
        return nx.connected_watts_strogatz_graph(n, 4, 0.2, seed=seed)
    if name == "preferential attachment":
        return nx.barabasi_albert_graph(n, 2, seed=seed)
    graph = nx.cycle_graph(n)
    graph.add_edges_from((u, v) for u, v in generator.integers(n, size=(n // 2, 2)).tolist() if u != v)
    return graph


def _moved(graph: nx.Graph, noise: float, generator: np.random.Generator) -> nx.Graph:
    edges = list(graph.edges)
    leave = generator.permutation(len(edges))[: round(noise * len(edges))]
    graph.remove_edges_from([edges[i] for i in leave])
    pairs = [pair for pair in nx.non_edges(graph) if pair not in edges]
    graph.add_edges_from([pairs[i] for i in generator.permutation(len(pairs))[: len(leave)]])
    return graph


def uniform_random(n: int, m: int | None = None, seed: int = 0) -> Data:
    """``m`` distinct edges (default 2n) drawn uniformly from all pairs of ``n`` nodes; for timing."""
    m = 2 * n if m is None else m
    if n < 1 or not 0 <= m <= n * (n - 1) // 2:
        raise DemonetError(f"{m} distinct edges of {n} nodes")
    generator = np.random.default_rng(seed)
    return _from_arrays(*_distinct(m, n, lambda k: generator.integers(n, size=(2, k))), n)


def power_law(n: int, m: int | None = None, hub: int | None = None, seed: int = 0, exponent: float = 2.5) -> Data:
    """``m`` distinct edges with a power-law degree distribution and a node 0 of degree ``hub``; for timing.

    Node 0 has edges to ``hub`` random nodes (default n / 10); the other edges join v and w with a probability
    proportional to ``(v w) ** (-1 / (exponent - 1))``, as in the Chung-Lu model.
    """
    m, hub = 2 * n if m is None else m, n // 10 if hub is None else hub
    spare = (n - 1) * (n - 2) // 4  # Chung-Lu sampling slows down as the graph fills up
    if n < 3 or not 0 <= hub < n or not hub <= m <= hub + spare or exponent <= 1:
        raise DemonetError(f"power_law(n={n}, m={m}, hub={hub}, exponent={exponent}): no such graph")
    generator = np.random.default_rng(seed)
    spokes = generator.choice(n - 1, size=hub, replace=False) + 1
    share = np.cumsum(np.arange(1, n, dtype=np.float64) ** (-1 / (exponent - 1)))
    low, high = _distinct(
        m - hub, n, lambda k: 1 + np.minimum(np.searchsorted(share, generator.random((2, k)) * share[-1]), n - 2)
    )
    return _from_arrays(np.concatenate([low, np.zeros(hub, np.int64)]), np.concatenate([high, spokes]), n)


def _distinct(m: int, n: int, draw: Callable[[int], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The first ``m`` distinct edges of a stream of random pairs, without self-loops."""
    keys = np.empty(0, dtype=np.int64)
    while keys.size < m:
        pairs = draw(m - keys.size + m // 50 + 16)
        pairs = pairs[:, pairs[0] != pairs[1]]
        fresh = pairs.min(axis=0) * n + pairs.max(axis=0)
        keys = np.concatenate([keys, fresh])
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]
    return np.divmod(keys[:m], n)


def _data(
    edges: Iterable[tuple[int, int]], n: int, y: np.ndarray | None = None, class_names: list[Any] | None = None
) -> Data:
    pairs = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    return _from_arrays(pairs[:, 0], pairs[:, 1], n, y, class_names)


def _from_arrays(
    source: np.ndarray,
    target: np.ndarray,
    n: int,
    y: np.ndarray | None = None,
    class_names: list[Any] | None = None,
) -> Data:
    edge_index, _ = simple_edges(source, target, n)
    check_edge_index(edge_index, n)
    data = Data(edge_index=edge_index, num_nodes=n, node_ids=torch.arange(n))
    if y is not None:
        data.y = torch.from_numpy(y.astype(np.int64))
    if class_names is not None:
        check_labels(data.y, n, len(class_names))
        data.class_names = class_names
    return data
