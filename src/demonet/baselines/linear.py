r"""Logistic regression with L2, its strength chosen on the validation part: the last step of many baselines.

.. math::
    \min_W \; \tfrac12 \lVert W \rVert^2 - C \sum\nolimits_{v \in train} \log p_W(y_v \mid x_v)
"""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from torch import Tensor

from demonet.baselines.choice import Choice, Rows, choose
from demonet.data.splits import Split

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # of C
UNTUNED = 1.0  # where a split has no validation part
ITERATIONS = 300


def logistic(x: Rows, y: Tensor, split: Split, *, one_vs_rest: bool = False) -> Choice:
    """The logistic regression whose C does best on the validation part, the smallest C among equals.

    Args:
        x: A row an item, dense or sparse.
        y: ``[items]`` classes; those outside the training and validation parts are not looked at.
        split: Who is trained on and who chooses.
        one_vs_rest: One binary regression a class, where the default is one multinomial regression.
    """

    def regression(strength: float) -> Any:
        model = LogisticRegression(C=strength, max_iter=ITERATIONS)
        return OneVsRestClassifier(model) if one_vs_rest else model

    return choose([regression(c) for c in STRENGTHS], x, y, split, untuned=regression(UNTUNED))
