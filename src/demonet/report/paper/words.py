"""What methods and sets are called on the page and in tables, and which of them belong together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from demonet.experiments.parts import graphs, nodes

if TYPE_CHECKING:
    from demonet.experiments.parts.row import Row

OURS, COMPARED, FLOORS = "DEMO-Net", "Compared with", "Floors"
"""The three groups of lines, in the order of tables."""

_FLOORS = frozenset((*nodes.FLOORS, *graphs.FLOORS))
_METHODS = {
    "demonet-hash": "DEMO-Net (hash)",
    "demonet-weight": "DEMO-Net (weight)",
    "demonet-smooth": "DEMO-Net (smooth)",
    "demonet-m-hash": "DEMO-Net_m (hash)",
    "demonet-m-weight": "DEMO-Net_m (weight)",
    "demonet-default": "DEMO-Net",
    "sage": "GraphSAGE",
    "gcn": "GCN",
    "gcn-cheby": "GCN_cheby",
    "union": "Union",
    "intersection": "Intersection",
    "gat": "GAT",
    "gin": "GIN",
    "pna": "PNA",
    "rolx": "RolX",
    "struc2vec": "struc2vec",
    "graphwave": "GraphWave",
    "dcnn": "DCNN",
    "patchy-san": "PATCHY-SAN",
    "diffpool": "DIFFPOOL",
    "deepwl": "DeepWL",
    "wl": "WL",
    "degree-wl": "degree-specific WL",
    "majority": "majority",
    "degree-knn": "neighbours by degree",
    "degree-svm": "SVM by degree",
    "structural-lr": "regression, structure",
    "structural-rf": "forest, structure",
    "attribute-lr": "regression, attributes",
    "attribute-neighbour-lr": "regression, with neighbours'",
    "attribute-adjacency-lr": "regression, with adjacency",
    "wl-lr": "regression, WL colours",
    "wl-rf": "forest, WL colours",
    "wl-1nn": "nearest, WL colours",
}
_SETS = {
    "facebook": "Facebook",
    "wiki-vote": "Wiki-Vote",
    "blogcatalog": "BlogCatalog",
    "flickr": "Flickr",
    "brazil": "Brazil",
    "europe": "Europe",
    "usa": "USA",
    "mirrored-karate": "mirrored karate",
}
# The colour of a method is the same in every figure; what is not here is drawn in grey.
_COLOURS = {
    "demonet-default": 0,
    "demonet-weight": 1,
    "demonet-hash": 2,
    "demonet-smooth": 3,
    "struc2vec": 4,
    "rolx": 5,
    "graphwave": 6,
    "gin": 7,
    "gcn": 4,
    "gat": 5,
}


def method_name(method: str, preset: str = "", variant: str = "") -> str:
    """A line of a table.

    >>> method_name("demonet-hash", "paper"), method_name("gcn")
    ('DEMO-Net (hash), paper', 'GCN')
    """
    return ", ".join(filter(None, (_METHODS.get(method, method), preset, variant)))


def set_name(dataset: str) -> str:
    """A set as the paper writes it."""
    return _SETS.get(dataset, dataset)


def slug(words: str) -> str:
    """A name for files and links.

    >>> slug("Nested 10-fold")
    'nested-10-fold'
    """
    return re.sub("[^a-z0-9]+", "-", words.lower()).strip("-")


def group_of(method: str) -> str:
    """Ours, what we are compared with, or a floor."""
    return OURS if method.startswith("demonet") else FLOORS if method in _FLOORS else COMPARED


def row_name(row: Row) -> str:
    """A row by its method and preset."""
    return method_name(row.method, row.preset)


def colour_of(row: Row) -> int | None:
    """The colour of a method's series."""
    return _COLOURS.get(row.method)
