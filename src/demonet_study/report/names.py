"""Display names, groups and colours of methods and data sets, for tables and figures."""

from __future__ import annotations

import re

from demonet.data.catalog import find
from demonet_study.experiments.accuracy import family_in_catalog

OURS, COMPARED, FLOORS = "DEMO-Net", "Compared with", "Floors"
"""The three groups of methods, in the order of tables. Floors are simple baselines without a network."""

NODE_FLOORS = (
    *("majority", "degree-knn", "degree-svm", "structural-lr", "structural-rf"),
    *("attribute-lr", "attribute-neighbour-lr", "attribute-adjacency-lr"),
)
GRAPH_FLOORS = ("majority", "degree-knn", "attribute-lr", "wl-lr", "wl-rf", "wl-1nn", "degree-wl")
BY_DEGREE, AIRPORTS, ATTRIBUTES, GRAPHS = "classes by degree", "airports", "with attributes", "graphs"
"""The kinds of data sets."""

_METHODS = {
    "demonet-hash": "DEMO-Net (hash)",
    "demonet-weight": "DEMO-Net (weight)",
    "demonet-smooth": "DEMO-Net (smooth)",
    "demonet-scale": "DEMO-Net (scale)",
    "demonet-m-hash": "DEMO-Net_m (hash)",
    "demonet-m-weight": "DEMO-Net_m (weight)",
    "demonet-default": "DEMO-Net",
    "demonet-auto": "DEMO-Net, ensemble",
    "demonet-kernel": "DEMO-Net, closed form",
    "demonet-kernel-none": "closed form, s_d = 0",
    "demonet-kernel-shuffled": "closed form, shuffled degrees",
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
    "flip": "generated",
}
# A method has the same colour in every figure; others are grey.
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
    """Method, preset and variant, as a table shows them.

    >>> method_name("demonet-hash", "paper"), method_name("gcn")
    ('DEMO-Net (hash), paper', 'GCN')
    """
    return ", ".join(filter(None, (_METHODS.get(method, method), preset, variant)))


def set_name(dataset: str) -> str:
    """A data set as the paper writes it."""
    return _SETS.get(dataset, dataset)


def slug(words: str) -> str:
    """A name for files and anchors.

    >>> slug("Nested 10-fold")
    'nested-10-fold'
    """
    return re.sub("[^a-z0-9]+", "-", words.lower()).strip("-")


def group_of(method: str) -> str:
    """The group of a method: ours, compared with, or floors."""
    if method.startswith("demonet"):
        return OURS
    return FLOORS if method in (*NODE_FLOORS, *GRAPH_FLOORS) else COMPARED


def kind_of(dataset: str) -> str:
    """The kind of a data set; a change to a model may mean the same on all sets of a kind.

    >>> kind_of("brazil"), kind_of("facebook"), kind_of("flickr"), kind_of("MUTAG")
    ('airports', 'classes by degree', 'with attributes', 'graphs')
    """
    family = family_in_catalog(dataset)
    if family == "nodes":
        return AIRPORTS if find(dataset).statistics.class_counts else BY_DEGREE
    return ATTRIBUTES if family == "attributes" else GRAPHS


def colour_of(method: str) -> int | None:
    """The index of a method's colour; ``None`` for grey."""
    return _COLOURS.get(method)
