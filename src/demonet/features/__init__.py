"""The one place where a graph becomes numbers: named blocks of node features, structure, neighbours, words.

Public: :class:`FeatureMap`.
"""

from __future__ import annotations

from demonet.features.blocks import FeatureMap

__all__ = ["FeatureMap"]
