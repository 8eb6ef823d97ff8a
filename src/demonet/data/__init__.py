"""A graph comes in as files or a known name, and leaves as a checked ``torch_geometric`` Data."""

from __future__ import annotations

from demonet.data.check import check_edge_index, check_features, check_labels, check_split
from demonet.data.edges import simple_edges
from demonet.data.features import FeatureMap
from demonet.data.splits import Split, fractions, k_fold, nested_k_fold, thirds, train_fraction

__all__ = [
    "FeatureMap",
    "Split",
    "check_edge_index",
    "check_features",
    "check_labels",
    "check_split",
    "fractions",
    "k_fold",
    "nested_k_fold",
    "simple_edges",
    "thirds",
    "train_fraction",
]
