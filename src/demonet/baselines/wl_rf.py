"""A random forest on the Weisfeiler-Lehman histogram."""

from __future__ import annotations

from sklearn.ensemble import RandomForestClassifier
from torch import Tensor

from demonet.baselines import settings_kernels as settings
from demonet.baselines.choice import Choice, Rows, choose
from demonet.baselines.histogram import WLHistogram
from demonet.data.splits import Split


class WLRF(WLHistogram):
    """A forest of 500 fully grown trees on counts of colours."""

    name = "wl-rf"
    defaults = settings.WL_FOREST
    chosen: settings.ForestSettings

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int) -> Choice:
        forest = RandomForestClassifier(self.chosen.trees, random_state=seed)
        return choose([forest], rows, y, split, untuned=forest)
