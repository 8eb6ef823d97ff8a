"""The parts of the paper, one a file: which runs each is made of, and its table."""

from __future__ import annotations

from demonet.experiments.parts.ablation import ABLATION
from demonet.experiments.parts.comparison import COMPARISON
from demonet.experiments.parts.graphs import GRAPHS
from demonet.experiments.parts.identity import ROLES
from demonet.experiments.parts.layers import DEPTH
from demonet.experiments.parts.nodes import NODES
from demonet.experiments.parts.part import Entry, Part, Wanted
from demonet.experiments.parts.properties import PROPERTIES
from demonet.experiments.parts.reasons import MEASURED
from demonet.experiments.parts.row import Row
from demonet.experiments.parts.speed import SPEED
from demonet.experiments.parts.splits import SPLITS

__all__ = ["PARTS", "Entry", "Part", "Row", "Wanted"]

# In the order of the paper; what it does not have stands last.
_ALL = (PROPERTIES, NODES, SPLITS, GRAPHS, SPEED, DEPTH, ROLES, ABLATION, COMPARISON, MEASURED)
PARTS: dict[str, Part] = {part.name: part for part in _ALL}
