"""One file for each method that a result is compared with, one interface: ``get(name)().fit(data, split, seed)``."""

from __future__ import annotations

from importlib import import_module

from demonet.baselines.base import Baseline
from demonet.errors import DemonetError

__all__ = ["Baseline", "get", "names"]

# Where each method lives, in the order of the tables. A method is imported when it is asked for: some need gensim.
_METHODS: dict[str, tuple[str, str]] = {
    "majority": ("majority", "Majority"),
    "degree-knn": ("degree_knn", "DegreeKNN"),
    "degree-svm": ("degree_svm", "DegreeSVM"),
    "structural-lr": ("structural_lr", "StructuralLR"),
    "structural-rf": ("structural_rf", "StructuralRF"),
    "attribute-lr": ("attribute_lr", "AttributeLR"),
    "attribute-neighbour-lr": ("attribute_neighbour_lr", "AttributeNeighbourLR"),
    "attribute-adjacency-lr": ("attribute_adjacency_lr", "AttributeAdjacencyLR"),
    "wl-lr": ("wl_lr", "WLLR"),
    "wl-rf": ("wl_rf", "WLRF"),
    "wl-1nn": ("wl_1nn", "WL1NN"),
    "gcn": ("gcn", "GCN"),
    "gcn-cheby": ("gcn_cheby", "GCNCheby"),
    "sage": ("sage", "GraphSAGE"),
    "gat": ("gat", "GAT"),
    "union": ("union", "Union"),
    "intersection": ("intersection", "Intersection"),
    "gin": ("gin", "GIN"),
    "pna": ("pna", "PNA"),
    "rolx": ("rolx", "RolX"),
    "struc2vec": ("struc2vec", "Struc2vec"),
    "graphwave": ("graphwave", "GraphWave"),
    "dcnn": ("dcnn", "DCNN"),
    "patchy-san": ("patchy_san", "PatchySan"),
    "diffpool": ("diffpool", "DiffPool"),
    "deepwl": ("deepwl", "DeepWL"),
    "wl": ("wl", "WL"),
    "degree-wl": ("degree_wl", "DegreeWL"),
}


def names() -> list[str]:
    """The names of all methods."""
    return list(_METHODS)


def get(name: str) -> type[Baseline]:
    """The method of that name."""
    if name not in _METHODS:
        raise DemonetError(f"no baseline {name!r}", hint=f"there are {', '.join(_METHODS)}")
    module, method = _METHODS[name]
    found: type[Baseline] = getattr(import_module(f"demonet.baselines.{module}"), method)
    return found
