"""What the mean and the degree-specific kernel share: node representations, pooled over the nodes of a graph."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from demonet.errors import DemonetError
from demonet.kernels.base import Expansion, GraphKernel
from demonet.kernels.representations import Representations, averaged, given
from demonet.kernels.union import Float, GraphUnion


class VectorKernel(GraphKernel):
    """A kernel on node representations ``h^0 .. h^K``: averaged attributes, or what a callable gives."""

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
                f"the levels h^0 .. h^K are {widths} wide, those of the fitted graphs were {self.widths_}",
                hint="a kernel compares graphs whose nodes have the same attributes",
            )
        return self._pool(union, levels)

    def _levels(self, union: GraphUnion) -> list[Float]:
        if self.representations is None:
            return averaged(union, self.n_iter)
        return given(union, self.n_iter, self.representations)

    @abstractmethod
    def _pool(self, union: GraphUnion, levels: list[Float]) -> Expansion:
        """Sum the rows of each level over the nodes that the kernel puts together."""
