"""What the floors on Weisfeiler-Lehman histograms have in common: a graph is the counts of its nodes' colours."""

from __future__ import annotations

from collections.abc import Iterator

from demonet.baselines import settings_kernels as settings
from demonet.baselines.kernel import KernelMethod
from demonet.kernels import WLSubtreeKernel


class WLHistogram(KernelMethod):
    """A classifier on how many nodes have each colour after 0, 1, ... rounds; the rounds are chosen on validation."""

    defaults = settings.WL_HISTOGRAM

    def _kernels(self, seed: int) -> Iterator[WLSubtreeKernel]:
        for n_iter in self.chosen.rounds:
            yield WLSubtreeKernel(n_iter)

    def _untuned(self, seed: int) -> WLSubtreeKernel:
        return WLSubtreeKernel(self.chosen.untuned)
