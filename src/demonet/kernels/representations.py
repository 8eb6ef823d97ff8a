"""Base class of kernels on node representations h^0 .. h^K, from averaged attributes or from a trained model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.features.union import Float, GraphUnion, numeric
from demonet.kernels.base import Expansion, GraphKernel

Representations = Callable[[Data], Sequence[torch.Tensor]]


class RepresentationKernel(GraphKernel):
    """A kernel on node representations ``h^0 .. h^K``: averaged attributes, or the result of a callable."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphKernel._parameter_constraints,
        "representations": [callable, None],
    }

    def __init__(
        self, n_iter: int = 2, normalize: bool = False, representations: Representations | None = None
    ) -> None:
        self.n_iter = n_iter
        self.normalize = normalize
        self.representations = representations

    def _learn(self, union: GraphUnion) -> Expansion:
        levels = self._levels(union)
        self.widths_ = [h.shape[1] for h in levels]
        return self._pool(union, levels)

    def _expand(self, union: GraphUnion) -> Expansion:
        levels = self._levels(union)
        if (widths := [h.shape[1] for h in levels]) != self.widths_:
            raise DemonetError(
                f"the levels h^0 .. h^K have widths {widths}, those of the fitted graphs {self.widths_}",
                hint="all graphs need the same node attributes",
            )
        return self._pool(union, levels)

    def _levels(self, union: GraphUnion) -> list[Float]:
        if self.representations is None:
            return _averaged(union, self.n_iter)
        return _from_callable(union, self.n_iter, self.representations)

    @abstractmethod
    def _pool(self, union: GraphUnion, levels: list[Float]) -> Expansion:
        """Sum the rows of each level over the groups of nodes that the kernel compares."""


def _averaged(union: GraphUnion, n_iter: int) -> list[Float]:
    r"""Levels ``0 .. n_iter`` by repeated averaging, without a trained model.

    .. math::
        h_v^0 = x_v, \qquad
        h_v^k = \tfrac12 \Big( h_v^{k-1} + \tfrac{1}{deg(v)} \sum\nolimits_{u \in N(v)} h_u^{k-1} \Big)

    The mean over an empty neighbourhood is zero, as in the layers of this package. The representation of an isolated
    node halves with each level, so it differs from that of a node whose neighbours equal itself.
    """
    share = 1.0 / np.maximum(union.degree, 1)[union.target]
    neighbours_mean = sparse.csr_array((share, (union.target, union.source)), shape=(union.num_nodes,) * 2)
    levels = [union.attributes()]
    for _ in range(n_iter):
        levels.append((levels[-1] + neighbours_mean @ levels[-1]) / 2)
    return levels


def _from_callable(union: GraphUnion, n_iter: int, representations: Representations) -> list[Float]:
    """Levels ``0 .. n_iter`` from a callable, graph by graph, concatenated over all nodes."""
    with torch.no_grad():
        by_graph = [_checked_levels(union, position, n_iter, representations) for position in range(len(union.graphs))]
    for k, level in enumerate(zip(*by_graph, strict=True)):
        if len(widths := {h.shape[1] for h in level}) > 1:
            raise DemonetError(f"representations: level {k} must have one width for all graphs, got {sorted(widths)}")
    return [np.concatenate(level) for level in zip(*by_graph, strict=True)]


def _checked_levels(union: GraphUnion, position: int, n_iter: int, representations: Representations) -> list[Float]:
    levels = representations(union.graphs[position])
    if not isinstance(levels, list | tuple):
        raise DemonetError(
            f"representations must return a list of tensors, got {type(levels).__name__} for graph {position}"
        )
    if len(levels) != n_iter + 1:
        raise DemonetError(
            f"representations returned {len(levels)} levels for graph {position}, n_iter={n_iter} needs {n_iter + 1}",
            hint=f"set n_iter={len(levels) - 1}; level 0 is the input",
        )
    name = f"representations: level {{}} of graph {position}"
    return [numeric(h, name.format(k), union.sizes[position]) for k, h in enumerate(levels)]
