"""Structural twins: nodes that an automorphism of the graph exchanges, and how close a method embeds them.

One run of kind ``identity``. The paper defines no training without labels, so networks are examined twice. With their
initial weights: what architecture and features do by themselves, over several draws. And trained: one half of the
graph, in which every role (orbit) occurs, is labelled with the roles; of the other half, one part selects the epoch
and the rest is tested. On that half a network can only be right by treating twins alike. Structural embeddings use no
labels and run once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from demonet.data.splits import half
from demonet.data.synthetic import barbell, cycle, mirrored_karate
from demonet.errors import DemonetError
from demonet.kernels import wl_colours
from demonet.runs.measure import Meter
from demonet_study.experiments.accuracy import method
from demonet_study.ledger.job import Cell, Job, Outcome
from demonet_study.methods.embedding import Embedding

Float = NDArray[np.float64]
Int = NDArray[np.int64]

TOLERANCE = 1e-5  # relative to the mean norm: networks compute in float32
GRAPHS: dict[str, Callable[[], Data]] = {"mirrored-karate": mirrored_karate, "barbell": barbell, "cycle": cycle}
ONE_HOT_NODES = "identity"  # features: the identity matrix, as in GCN's paper where there are no attributes


def measure_twins(job: Job, device: str = "cpu") -> Outcome:
    """Run ``seed`` of a cell, on the CPU.

    Options are ``features``, a name of :class:`~demonet.features.FeatureMap` or ``"identity"``, and ``trained``. The
    value is the mean distance of twins divided by that of all pairs. The extra values are the other distances, the role
    of every node, its first two principal components and, for a trained network, the accuracy.
    """
    meter = Meter()
    data = graph_of(job.cell.dataset)
    z, accuracy = embed(job.cell, data, job.seed)
    near = nearness(z, data.y.numpy())
    extra: dict[str, Any] = {name: value for name, value in asdict(near).items() if not np.isnan(value)}
    extra |= {"roles": data.y.tolist(), "points": plane(z).round(5).tolist()}
    if accuracy is not None:
        extra["accuracy"] = accuracy
    return Outcome(near.twins, meter.seconds, meter.peak_memory_mb, extra)


def graph_of(dataset: str) -> Data:
    """A generated graph by name; the class of a node is its orbit."""
    if dataset not in GRAPHS:
        raise DemonetError(f"unknown graph {dataset!r}", hint=f"expected one of {', '.join(GRAPHS)}")
    data = GRAPHS[dataset]()
    data.y = torch.from_numpy(orbits(data))
    return data


def embed(cell: Cell, data: Data, seed: int) -> tuple[np.ndarray, float | None]:
    """One float64 row per node, and the accuracy on the tested nodes if a network was trained."""
    options = json.loads(cell.options)
    trained, features = options.get("trained", False), options.get("features")
    if features == ONE_HOT_NODES:
        data, features = data.clone(), "attributes"
        data.x = torch.eye(int(data.num_nodes or 0))
    split = half(data, seed)
    made = method(cell.method, cell.preset, {"features": features} if features else {})
    if not trained or isinstance(made, Embedding):
        return made.first_embeddings(data, seed).double().numpy(), None
    fitted = made.fit(data, split, seed)
    return fitted.embeddings().double().numpy(), fitted.score(split.test, data.y)


def orbits(data: Data) -> Int:
    """The orbit of every node under the automorphisms of the graph, numbered by first occurrence.

    Two nodes are twins if the graph with one of them marked is isomorphic to the graph with the other marked. Only
    nodes of the same Weisfeiler-Lehman colour are compared.

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
    """How close twins are, and whether other nodes are told apart (a constant would place all twins together)."""

    # Mean distance of twins divided by the mean distance of all pairs; 0 if twins coincide. If all nodes are twins,
    # divided by the mean norm instead.
    twins: float
    others: float  # mean distance of pairs that are not twins, with the same divisor
    nearest_other: float  # the smallest such distance; like others and told_apart, NaN if all nodes are twins
    told_apart: float  # the share of pairs that are not twins and do not coincide
    found: float  # the share of nodes with a twin whose nearest node is a twin; ties count in proportion


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
    """``[nodes, 2]``: the first two principal components, signed so that the largest entry of each is positive."""
    centred = z - z.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(z), 2))
    kept = min(2, s.size)
    points[:, :kept] = u[:, :kept] * s[:kept]
    signs = np.where(points[abs(points).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    return points * signs
