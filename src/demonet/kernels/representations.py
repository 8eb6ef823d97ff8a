"""Node representations h^0 .. h^K for the kernels that compare vectors: by averaging, or from a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.kernels.union import Float, GraphUnion, numeric

Representations = Callable[[Data], Sequence[torch.Tensor]]


def averaged(union: GraphUnion, n_iter: int) -> list[Float]:
    r"""Levels ``0 .. n_iter`` of the rule that stands in for a network.

    .. math::
        h_v^0 = x_v, \qquad
        h_v^k = \tfrac12 \Big( h_v^{k-1} + \tfrac{1}{deg(v)} \sum\nolimits_{u \in N(v)} h_u^{k-1} \Big)

    The neighbours' mean of an isolated node is zero, as an empty neighbourhood aggregates to zero in every layer here:
    its representation halves with each level, and so differs from that of a node whose neighbours are like itself.
    """
    share = 1.0 / np.maximum(union.degree, 1)[union.target]
    neighbours_mean = sparse.csr_array((share, (union.target, union.source)), shape=(union.num_nodes,) * 2)
    levels = [union.attributes()]
    for _ in range(n_iter):
        levels.append((levels[-1] + neighbours_mean @ levels[-1]) / 2)
    return levels


def given(union: GraphUnion, n_iter: int, representations: Representations) -> list[Float]:
    """Levels ``0 .. n_iter`` as a callable gives them, graph by graph, joined over all nodes."""
    with torch.no_grad():
        by_graph = [_levels(union, position, n_iter, representations) for position in range(len(union.graphs))]
    for k, level in enumerate(zip(*by_graph, strict=True)):
        if len(widths := {h.shape[1] for h in level}) > 1:
            raise DemonetError(
                f"representations: level {k} has different widths for different graphs: {sorted(widths)}"
            )
    return [np.concatenate(level) for level in zip(*by_graph, strict=True)]


def _levels(union: GraphUnion, position: int, n_iter: int, representations: Representations) -> list[Float]:
    levels = representations(union.graphs[position])
    if not isinstance(levels, list | tuple):
        raise DemonetError(f"representations gave {type(levels).__name__} for graph {position}, not a list of tensors")
    if len(levels) != n_iter + 1:
        raise DemonetError(
            f"representations gave {len(levels)} levels for graph {position}, n_iter={n_iter} asks for {n_iter + 1}",
            hint=f"set n_iter={len(levels) - 1}; level 0 is the input",
        )
    name = f"representations: level {{}} of graph {position}"
    return [numeric(h, name.format(k), union.sizes[position]) for k, h in enumerate(levels)]
