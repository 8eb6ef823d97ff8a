"""The degree-specific Weisfeiler-Lehman kernel of the paper with a support vector machine."""

from __future__ import annotations

from collections.abc import Iterator

from demonet.baselines import settings_kernels as settings
from demonet.baselines.kernel import KernelSVM
from demonet.kernels import DegreeWLKernel


class DegreeWL(KernelSVM):
    """Graphs are alike by their nodes of equal degree, by inner products of averaged attributes.

    The kernel is :class:`~demonet.kernels.DegreeWLKernel`, Eq. 13 to 15 of the paper; the levels are chosen on
    validation.
    """

    name = "degree-wl"
    defaults = settings.DEGREE_WL

    def _kernels(self, seed: int) -> Iterator[DegreeWLKernel]:
        for n_iter in self.chosen.rounds:
            for normalize in self.chosen.normalize:
                yield DegreeWLKernel(n_iter, normalize)

    def _untuned(self, seed: int) -> DegreeWLKernel:
        return DegreeWLKernel(self.chosen.untuned)
