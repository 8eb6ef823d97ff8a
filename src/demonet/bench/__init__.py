"""Benchmarks: time and memory of a training epoch, for the schemes and for other layers, side by side.

``graphs`` builds the graphs, ``methods`` and ``peers`` the networks, ``sets`` the runs on data sets, ``step`` the
epoch; ``runner`` and ``child`` measure it in processes of their own, ``floor`` is a lower bound; ``measure`` collects
everything into ``rows``, and ``tables`` shows them. Public: :func:`bench`, :func:`bench_sets`, :class:`GraphSpec` and
:data:`METHODS`.
"""

from __future__ import annotations

from demonet.bench.graphs import GraphSpec
from demonet.bench.measure import bench, bench_sets
from demonet.bench.methods import METHODS

__all__ = ["METHODS", "GraphSpec", "bench", "bench_sets"]
