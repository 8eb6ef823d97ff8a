"""A graph as large as Flickr does not fill the memory: nothing is as large as nodes times nodes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from scipy import sparse

from demonet_study.methods.graphwave import GraphWave, heat_blocks, laplacian
from demonet_study.methods.rolx import refex

NODES, EDGES = 7_575, 239_738
DENSE = NODES * NODES * 8  # bytes of one dense matrix of nodes by nodes: 459 MB


@pytest.fixture(scope="module")
def adjacency() -> sparse.csr_array:
    """As many nodes and edges as Flickr has, with degrees as uneven."""
    generator = np.random.default_rng(0)
    share = generator.pareto(1.5, NODES) + 1
    ends = generator.choice(NODES, (2, EDGES), p=share / share.sum())
    arcs = np.unique(np.hstack([ends, ends[::-1]])[:, np.tile(ends[0] != ends[1], 2)], axis=1)
    return sparse.csr_array((np.ones(arcs.shape[1]), (arcs[0], arcs[1])), shape=(NODES, NODES))


@contextmanager
def at_most(size: float) -> Iterator[None]:
    """Memory that is taken inside, at its peak, is at most so many bytes."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size


def test_recursive_features(adjacency):
    with at_most(DENSE):
        x, _ = refex(adjacency, rounds=2)
    assert x.shape[1] > 3


def test_wavelets(adjacency):
    """Blocks of columns, one after the other: the first is as large as any."""
    method = GraphWave(points=3)
    matrix = laplacian(adjacency)
    with at_most(DENSE):
        columns, kernels = next(heat_blocks(matrix, [1.0, 2.0], order=10))
        z = np.hstack([method.characteristic(kernel) for kernel in kernels])
    assert z.shape == (columns.stop, 2 * 3 * 2)
