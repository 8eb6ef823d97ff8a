"""The bench room: how long an epoch takes and how much memory, for our schemes and for their peers, side by side.

``graphs.py`` makes the graphs, ``peers.py`` and ``methods.py`` the networks, ``step.py`` the epoch, ``runner.py`` the
clock, ``memory.py`` the peak, ``floor.py`` what no implementation can beat, ``rows.py`` and ``tables.py`` the results.
"""

from __future__ import annotations

from demonet.bench.graphs import GraphSpec
from demonet.bench.methods import METHODS
from demonet.bench.runner import bench

__all__ = ["METHODS", "GraphSpec", "bench"]
