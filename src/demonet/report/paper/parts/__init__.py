"""The parts of the paper, one per file: the runs that a part consists of, its tables, its figures and its text."""

from __future__ import annotations

from demonet.report.paper.parts.ablation import ABLATION
from demonet.report.paper.parts.comparison import COMPARISON
from demonet.report.paper.parts.default import DEFAULT
from demonet.report.paper.parts.graphs import GRAPHS
from demonet.report.paper.parts.identity import IDENTITY
from demonet.report.paper.parts.layers import LAYERS
from demonet.report.paper.parts.nodes import NODES
from demonet.report.paper.parts.part import Entry, Part
from demonet.report.paper.parts.properties import PROPERTIES
from demonet.report.paper.parts.reasons import REASONS
from demonet.report.paper.parts.speed import SPEED
from demonet.report.paper.parts.splits import SPLITS

__all__ = ["PARTS", "Entry", "Part"]

# What `demonet fit` does, then the parts in the order of the paper, then what the paper does not have.
_ALL = (DEFAULT, PROPERTIES, NODES, SPLITS, GRAPHS, SPEED, LAYERS, IDENTITY, ABLATION, COMPARISON, REASONS)
PARTS: dict[str, Part] = {part.name: part for part in _ALL}
