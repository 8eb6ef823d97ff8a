"""As many threads as a graph is worth: on a small one they would wait for each other more than they work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from demonet.runs.inputs import Inputs

SMALL = 100_000  # arcs, below which one thread is faster than two


@contextmanager
def fitting_threads(inputs: Inputs) -> Iterator[None]:
    """One thread for small graphs, so that there the bits do not depend on the machine either."""
    if sum(graph.edge_index.size(1) for graph in inputs.graphs) >= SMALL:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):  # NumPy's and scikit-learn's
            yield
    finally:
        torch.set_num_threads(before)
