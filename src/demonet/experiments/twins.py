"""Structural twins: nodes that some automorphism of the graph exchanges, and how near to each other vectors lie."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from demonet.kernels import wl_colours

Float = NDArray[np.float64]
Int = NDArray[np.int64]

TOLERANCE = 1e-5  # of the mean length of a vector: networks compute in float32, and no sum has many terms


def orbits(data: Data) -> Int:
    """The orbit of every node under the automorphisms of the graph, numbered in order of their first nodes.

    Two nodes are twins if the graph with one of them marked is isomorphic to the graph with the other marked. Only
    nodes that Weisfeiler and Lehman's colours do not tell apart are tried.

    >>> from demonet.data.synthetic import barbell
    >>> orbits(barbell(3, 2)).tolist()
    [0, 0, 1, 2, 2, 1, 0, 0]
    """
    graph = to_networkx(data, to_undirected=True)
    colours = wl_colours([data], len(graph))[-1].tolist()
    firsts: list[tuple[int, int]] = []
    orbit = []
    for node, colour in zip(graph, colours, strict=True):
        same = [i for i, (first, known) in enumerate(firsts) if known == colour and _twins(graph, first, node)]
        if not same:
            firsts.append((node, colour))
        orbit.append(same[0] if same else len(firsts) - 1)
    return np.array(orbit, dtype=np.int64)


def _twins(graph: nx.Graph, one: int, other: int) -> bool:
    def marked(chosen: int) -> nx.Graph:
        copy = graph.copy()
        nx.set_node_attributes(copy, {node: node == chosen for node in copy}, "marked")
        return copy

    return bool(nx.vf2pp_is_isomorphic(marked(one), marked(other), node_label="marked"))


@dataclass(frozen=True)
class Nearness:
    """How near twins lie, and whether others are told apart, without which a constant would be perfect.

    Attributes:
        twins: Mean distance of twins over the mean distance of all pairs, 0 where twins coincide. Where all nodes are
            twins there is no other pair, and it is over the mean length of the vectors.
        others: Mean distance of nodes that are not twins, over the same.
        nearest_other: The least distance of two that are not twins, over the same; NaN where all are twins, as are
            ``others`` and ``told_apart``.
        told_apart: The share of pairs that are not twins and do not coincide.
        found: The share of nodes with a twin whose nearest node is one; of equally near nodes each counts its part.
    """

    twins: float
    others: float
    nearest_other: float
    told_apart: float
    found: float


def nearness(z: Float, orbit: Int) -> Nearness:
    """Distances between the rows of ``z``, by the orbit of each."""
    distance = squareform(pdist(z))
    length = float(np.linalg.norm(z, axis=1).mean())
    distance[distance <= TOLERANCE * length] = 0.0
    pair = np.triu(np.ones_like(distance, dtype=bool), 1)
    twin = pair & (orbit[:, None] == orbit[None, :])
    other = pair & ~twin
    scale = (float(distance[pair].mean()) if other.any() else length) or 1.0  # all at one point: every distance is 0
    nan = float("nan")
    return Nearness(
        twins=float(distance[twin].mean()) / scale,
        others=float(distance[other].mean()) / scale if other.any() else nan,
        nearest_other=float(distance[other].min()) / scale if other.any() else nan,
        told_apart=float((distance[other] > 0).mean()) if other.any() else nan,
        found=_found(distance, orbit),
    )


def _found(distance: Float, orbit: Int) -> float:
    away = distance + np.diag(np.full(len(orbit), np.inf))
    nearest = away == away.min(axis=1, keepdims=True)
    twin = orbit[:, None] == orbit[None, :]
    np.fill_diagonal(twin, False)
    share = (nearest & twin).sum(axis=1) / nearest.sum(axis=1)
    return float(share[twin.any(axis=1)].mean())


def plane(z: Float) -> Float:
    """``[nodes, 2]`` the first two principal components; of either, the largest entry is above zero."""
    centred = z - z.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(z), 2))
    kept = min(2, s.size)
    points[:, :kept] = u[:, :kept] * s[:kept]
    signs = np.where(points[abs(points).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    return points * signs
