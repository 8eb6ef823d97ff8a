"""Reading graphs from files, Python objects or by name, as checked ``torch_geometric`` Data; splits.

Public: the names below, and ``demonet.data.synthetic``.
"""

from __future__ import annotations

from demonet.checks import check_edge_index, check_features, check_labels
from demonet.data.catalog import CATALOG
from demonet.data.columns import Columns
from demonet.data.edges import simple_edges
from demonet.data.graph_set import GraphSet
from demonet.data.ids import ids_of
from demonet.data.load import load
from demonet.data.read import read_graph, read_graphs
from demonet.data.splits import Split, check_split, fractions, k_fold, nested_k_fold, thirds, train_fraction

__all__ = [
    "CATALOG",
    "Columns",
    "GraphSet",
    "Split",
    "check_edge_index",
    "check_features",
    "check_labels",
    "check_split",
    "fractions",
    "ids_of",
    "k_fold",
    "load",
    "nested_k_fold",
    "read_graph",
    "read_graphs",
    "simple_edges",
    "thirds",
    "train_fraction",
]
