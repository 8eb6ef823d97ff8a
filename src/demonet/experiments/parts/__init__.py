"""The parts of the paper, one a file: which runs each is made of, and its table."""

from __future__ import annotations

from demonet.experiments.parts.graphs import GRAPHS
from demonet.experiments.parts.nodes import NODES
from demonet.experiments.parts.part import Entry, Part, Wanted
from demonet.experiments.parts.row import Row, spread

__all__ = ["PARTS", "Entry", "Part", "Row", "Wanted", "spread"]

# In the order of the paper.
PARTS: dict[str, Part] = {part.name: part for part in (NODES, GRAPHS)}
