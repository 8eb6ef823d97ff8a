"""The bench room: how long an epoch takes and how much memory, for our schemes and for their peers, side by side.

``graphs.py`` makes the graphs; ``peers.py``, ``methods.py`` and ``sets.py`` the networks; ``step.py`` is the epoch,
``runner.py`` the clock, ``memory.py`` the peak, ``floor.py`` what no implementation can beat; ``measure.py`` puts them
together into rows (``rows.py``), and ``tables.py`` shows these.
"""

from __future__ import annotations

from demonet.bench.graphs import GraphSpec
from demonet.bench.measure import bench, bench_sets
from demonet.bench.methods import METHODS

__all__ = ["METHODS", "GraphSpec", "bench", "bench_sets"]
