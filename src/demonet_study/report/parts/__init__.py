"""The parts of the paper: the runs that a part consists of, its tables, its figures and its text."""

from __future__ import annotations

from demonet_study.report.parts.changes import ABLATION, LAYERS, REASONS
from demonet_study.report.parts.default import DEFAULT
from demonet_study.report.parts.identity import IDENTITY
from demonet_study.report.parts.part import Entry, Part
from demonet_study.report.parts.properties import PROPERTIES
from demonet_study.report.parts.speed import SPEED
from demonet_study.report.parts.tables import COMPARISON, GRAPHS, NODES, SPLITS

__all__ = ["PARTS", "Entry", "Part"]

# What `demonet fit` does, then the parts in the order of the paper, then what the paper does not have.
_ALL = (DEFAULT, PROPERTIES, NODES, SPLITS, GRAPHS, SPEED, LAYERS, IDENTITY, ABLATION, COMPARISON, REASONS)
PARTS: dict[str, Part] = {part.name: part for part in _ALL}
