"""What a source says of a graph, in the user's own ids, before it becomes a Data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from demonet.data.ids import Ids


@dataclass
class Listing:
    """Edges as pairs of ids, and whatever else the source has.

    Args:
        source: The id of one end of each edge.
        target: The id of the other.
        weight: One number an edge.
        nodes: All nodes, in the source's order, where it lists them; else they are the ends of edges, in order.
        directed: What the source says, if it says anything.
        inside: Columns and matrices with one row for each of ``nodes``, by name: labels and features can be among them.
        labels: The name inside of the labels to take if the user says nothing.
        features: That of the features.
        file: Where it comes from.
    """

    source: Ids
    target: Ids
    weight: np.ndarray | None = None
    nodes: Ids | None = None
    directed: bool | None = None
    inside: Mapping[str, Any] = field(default_factory=dict)
    labels: str | None = None
    features: str | None = None
    file: Path | None = None
