"""The nearest neighbour by the Weisfeiler-Lehman histogram."""

from __future__ import annotations

from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from demonet.baselines.choice import Choice, Rows, choose
from demonet.baselines.histogram import WLHistogram
from demonet.data.splits import Split


class WL1NN(WLHistogram):
    """The class of the training graph that differs in the fewest colours.

    The distance is the sum over colours of the differences of their counts: how many nodes, over all rounds, are left
    when those of equal colour are paired. Colours that no training graph has add the same to every distance.
    """

    name = "wl-1nn"

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int) -> Choice:
        nearest = KNeighborsClassifier(1, metric="manhattan")
        return choose([nearest], rows, y, split, untuned=nearest)
