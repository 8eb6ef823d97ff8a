"""``wl-lr``, ``wl-rf``, ``wl-1nn``: simple baselines on histograms of Weisfeiler-Lehman colours.

A graph is described by how many of its nodes have each colour after 0, 1, ... rounds of colour refinement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from demonet.data.rows import Rows
from demonet.data.splits import Split
from demonet.kernels import WLSubtreeKernel
from demonet.methods.base import at_least, register
from demonet.methods.cost import Cost
from demonet.methods.kernel import KernelMethod, SubtreeSettings
from demonet.methods.selection import Selected, logistic, select


class _WLHistogram(KernelMethod):
    """A classifier on counts of colours; the number of rounds is selected on validation."""

    defaults = SubtreeSettings("simple baseline of this project", rounds=(0, 1, 2, 3))

    def _kernels(self, seed: int) -> Iterator[WLSubtreeKernel]:
        for n_iter in self.settings.rounds:
            yield WLSubtreeKernel(n_iter)

    def _default_kernel(self, seed: int) -> WLSubtreeKernel:
        return WLSubtreeKernel(self.settings.untuned)


@register
class WLLR(_WLHistogram):
    """Multinomial logistic regression on counts of colours; C is selected on validation."""

    name = "wl-lr"
    cost = Cost(0.1, 0.03)

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int, kept: Any) -> Selected:
        return logistic(rows, y, split, kept=kept)


@dataclass(frozen=True)
class ForestSettings(SubtreeSettings):
    """``trees`` is the number of trees."""

    trees: int = at_least(1, 500)


@register
class WLRF(_WLHistogram):
    """Random forest of 500 fully grown trees on counts of colours."""

    name = "wl-rf"
    cost = Cost(1.0, 0.2)
    defaults = ForestSettings("Breiman, 2001, as in scikit-learn: fully grown trees", rounds=(0, 1, 2, 3))
    settings: ForestSettings

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int, kept: Any) -> Selected:
        forest = RandomForestClassifier(self.settings.trees, random_state=seed)
        return select([forest], rows, y, split, default=forest, kept=kept)


@register
class WL1NN(_WLHistogram):
    r"""The class of the nearest training graph, by the Manhattan distance of counts of colours.

    .. math::
        d(G, G') = \sum\nolimits_c | \varphi_c(G) - \varphi_c(G') |

    This is the number of nodes, over all rounds, that remain unpaired when nodes of equal colour are paired. Colours
    that no training graph has add the same to every distance.
    """

    name = "wl-1nn"
    cost = Cost(0.1, 0.01, graphs=1.0)

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int, kept: Any) -> Selected:
        nearest = KNeighborsClassifier(1, metric="manhattan")
        return select([nearest], rows, y, split, default=nearest, kept=kept)
