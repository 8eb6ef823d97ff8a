"""Which members an ensemble chooses from, by the kind of data and the effort."""

from __future__ import annotations

from typing import Any, get_args

from demonet.ensemble.forest import ForestMember
from demonet.ensemble.graphs import WLForest, WLKernel, WLNeighbour
from demonet.ensemble.machines import MachineMember
from demonet.ensemble.member import Labelled, Member
from demonet.ensemble.networks import NetworkMember
from demonet.ensemble.nodes import (
    FOREST_COLUMNS,
    DiffusedLinear,
    LinearMember,
    NodeForest,
    NodeKernel,
    OrderedLogit,
    OwnLinear,
    classes_by_degree,
)
from demonet.ensemble.transductive import AdjacencyLinear, Propagation
from demonet.features.views import LARGE, GraphView, NodeView, View
from demonet.options import Effort
from demonet.train import preset

EFFORTS: tuple[Effort, ...] = get_args(Effort)
TREES = {"quick": 50, "standard": 100, "best": 400}
SETTINGS = {"quick": 3, "standard": 8, "best": 8}  # of a kernel machine that are averaged
SEEDS = {"quick": 0, "standard": 3, "best": 8}  # networks that are averaged
FOLDS = {"quick": 3, "standard": 5, "best": 5}  # of cross-validation, where there are few validation items
MOST_SECONDS = {"quick": 10.0, "standard": 60.0, "best": float("inf")}  # of one fit, by its own estimate
EPOCHS, EPOCHS_SUMS, EPOCHS_GRAPHS = 300, 80, 150  # of a network, at most
SMOOTHING = {"without": "seed"}  # with loops: the seed is one of its neighbours, as in a GCN
ORDERED = 0.2  # share of the variance of log-degree between classes from which on they are taken as ordered


def portfolio(view: View, labelled: Labelled, effort: Effort = "standard") -> list[Member]:
    """The members for a problem, those that are quick and often good first."""
    return _nodes(view, labelled, effort) if isinstance(view, NodeView) else _graphs(view, effort)


def _nodes(view: NodeView, labelled: Labelled, effort: Effort) -> list[Member]:
    trees, seeds, attributes = _trees(view, labelled, effort), SEEDS[effort], view.facts["attributes"]
    ordered = labelled.classes > 2 and classes_by_degree(view, labelled)[1] >= ORDERED
    coarse, settings = _coarse(effort), SETTINGS[effort]
    found: list[Member] = []
    if attributes:
        found += [LinearMember("linear", **coarse), OwnLinear("linear-own", **coarse)]
        found.append(DiffusedLinear("linear-diffused", **coarse))
        if view.facts["columns"] <= FOREST_COLUMNS:
            found.append(NodeForest("forest-attributes", columns="attributes", trees=trees, leaf=2))
        if attributes == "numbers" and view.facts["columns"] <= FOREST_COLUMNS:
            found.append(NodeForest("forest-own", columns="own", trees=trees, leaf=2))
            found.append(NodeKernel("kernel-own", kernel="own", **coarse))
    found.append(MachineMember("machine", task="classes", settings=settings, **coarse))
    if ordered:
        found.append(MachineMember("machine-ordinal", task="ordinal", settings=settings, **coarse))
        found.append(OrderedLogit("degree-ordinal"))
    for kernel in ("degree", "structure", "demo"):
        found.append(NodeKernel(f"kernel-{kernel}", kernel=kernel, **coarse))
        if ordered:
            found.append(NodeKernel(f"kernel-{kernel}-ordinal", kernel=kernel, ordinal=True, **coarse))
    ranks = "kernel-ranks-ordinal" if ordered else "kernel-ranks"
    found.append(NodeKernel(ranks, kernel="ranks", ordinal=ordered, **coarse))
    found.append(NodeForest("forest-structure", columns="structure", trees=trees, leaf=2))
    found.append(NodeForest("forest-degree", columns="degree", trees=trees))
    found += [Propagation("propagation"), AdjacencyLinear("linear-adjacency", **coarse)]
    if seeds:
        found += _networks(view, effort)
    return found


def _graphs(view: GraphView, effort: Effort) -> list[Member]:
    trees, seeds, coarse = TREES[effort], SEEDS[effort], _coarse(effort)
    found: list[Member] = [MachineMember("machine", task="classes", settings=SETTINGS[effort], **coarse)]
    found += [WLKernel("kernel-wl", **coarse), WLNeighbour("neighbour-wl")]
    forests: list[ForestMember] = [
        WLForest("forest-wl", trees=trees),
        WLForest("extra-trees-wl", trees=trees, extra=True),
    ]
    found += forests
    if seeds:
        base = preset("strong", "graphs")
        features = (base if view.facts["columns"] else base.without_attributes()).features
        found.append(_affordable("network", view, effort, EPOCHS_GRAPHS, family="graphs", features=features))
    return found


def _coarse(effort: Effort) -> dict[str, bool]:
    """The option of members that compare settings: fewer of them, and on fewer items."""
    return {"coarse": True} if effort == "quick" else {}


def _trees(view: NodeView, labelled: Labelled, effort: Effort) -> int:
    """The number of trees; of a large graph as many as the effort has time for, but ten at least."""
    if view.num_items < LARGE:
        return TREES[effort]
    one = NodeForest("forest", columns="structure", trees=1).cost(view, len(labelled.train))
    return int(min(TREES[effort], max(10, MOST_SECONDS[effort] // one)))


def _networks(view: NodeView, effort: Effort) -> list[Member]:
    """On attributes: one that reads structure beside them, one that smooths; without: on structure, on degrees."""
    if not view.facts["attributes"]:
        sums = {"preset": "default", "features": "degree-rbf+degree-onehot", "model": {"hidden": 32}}
        return [
            _affordable("network", view, effort, EPOCHS, family="nodes", features="structure"),
            _affordable("network-degree", view, effort, EPOCHS_SUMS, family="nodes", **sums),
        ]
    smoothing = {"features": "encoded", "model": SMOOTHING, "loops": True}
    return [
        _affordable("network", view, effort, EPOCHS, family="attributes", features="encoded+structure"),
        _affordable("network-smooth", view, effort, EPOCHS, family="attributes", **smoothing),
    ]


def _affordable(name: str, view: View, effort: Effort, epochs: int, **options: Any) -> Member:
    """The network, with fewer seeds and epochs where it would take too long."""
    seeds = SEEDS[effort]
    for share in ((seeds, epochs), (seeds, epochs // 3), (1, epochs // 3), (1, epochs // 6)):
        found = NetworkMember(name, seeds=share[0], epochs=share[1], **options)
        if found.cost(view, view.num_items) <= MOST_SECONDS[effort]:
            break
    return found
