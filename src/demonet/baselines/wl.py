"""The Weisfeiler-Lehman subtree kernel of Shervashidze et al. (JMLR 2011) with a support vector machine."""

from __future__ import annotations

from collections.abc import Iterator

from demonet.baselines import settings_kernels as settings
from demonet.baselines.kernel import KernelSVM
from demonet.kernels import WLSubtreeKernel


class WL(KernelSVM):
    """Graphs are alike by the pairs of nodes that colour refinement does not tell apart; rounds chosen on validation.

    The kernel is :class:`~demonet.kernels.WLSubtreeKernel`, Eq. 17 of the paper.
    """

    name = "wl"
    defaults = settings.WL

    def _kernels(self, seed: int) -> Iterator[WLSubtreeKernel]:
        for n_iter in self.chosen.rounds:
            for normalize in self.chosen.normalize:
                yield WLSubtreeKernel(n_iter, normalize)

    def _untuned(self, seed: int) -> WLSubtreeKernel:
        return WLSubtreeKernel(self.chosen.untuned)
