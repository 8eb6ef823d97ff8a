"""Benchmarks: time and memory of a training epoch, for our schemes and for other layers.

``graphs`` builds the graphs, ``methods`` the networks, ``step`` the epoch; ``runner`` measures it; ``floor``
is a lower bound; ``measure`` collects everything into rows. Public:
:func:`bench`, :func:`bench_set`, :class:`GraphSpec` and :data:`METHODS`.
"""

from __future__ import annotations

from demonet_study.bench.graphs import GraphSpec
from demonet_study.bench.measure import bench, bench_set
from demonet_study.bench.methods import METHODS

__all__ = ["METHODS", "GraphSpec", "bench", "bench_set"]
