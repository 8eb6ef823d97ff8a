"""Logistic regression on the Weisfeiler-Lehman histogram."""

from __future__ import annotations

from torch import Tensor

from demonet.baselines.choice import Choice, Rows
from demonet.baselines.histogram import WLHistogram
from demonet.baselines.linear import logistic
from demonet.data.splits import Split


class WLLR(WLHistogram):
    """Multinomial logistic regression with L2 on counts of colours, C chosen on validation."""

    name = "wl-lr"

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int) -> Choice:
        return logistic(rows, y, split)
