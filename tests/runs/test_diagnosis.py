"""What an ensemble gained over its best candidate, by metrics that are means over items and by others."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from demonet.data.splits import Split
from demonet.runs import diagnosis
from demonet.train import METRICS
from demonet.train.objective import value_of

GENERATOR = np.random.default_rng(0)
Y = GENERATOR.integers(0, 3, 200)
OUTPUTS = [GENERATOR.dirichlet(np.ones(3) + 2 * np.eye(3)[c] * scale) for scale in (1, 2) for c in Y]
WORSE, BETTER = np.array(OUTPUTS).reshape(2, 200, 3)


@pytest.mark.parametrize("metric", ["accuracy", "log-loss"])
def test_what_a_metric_is_the_mean_of(metric):
    each = diagnosis._of_items(metric, BETTER, Y)
    assert each.mean() == pytest.approx(value_of(METRICS[metric], "classify", Y, BETTER), rel=1e-12)


def test_macro_f1_is_no_mean_over_items():
    assert diagnosis._of_items("macro-f1", BETTER, Y) is None


@pytest.mark.parametrize("metric", ["accuracy", "log-loss"])
def test_intervals_are_those_of_the_metric_itself(metric, monkeypatch):
    found = diagnosis._gain({"worse": WORSE}, BETTER, Y, METRICS[metric], "classify")
    monkeypatch.setattr(diagnosis, "_of_items", lambda *given: None)
    slow = diagnosis._gain({"worse": WORSE}, BETTER, Y, METRICS[metric], "classify")
    assert found["interval"] == pytest.approx(slow["interval"], rel=1e-9)
    assert found["interval"][0] <= found["difference"] <= found["interval"][1]


def test_residuals_are_told_once_for_two_categories_and_not_for_sparse_attributes():
    rng = np.random.default_rng(0)
    flag = rng.integers(0, 2, 40)
    x = torch.tensor(np.stack([flag, 1 - flag, rng.normal(size=40)], 1))
    y = torch.from_numpy(rng.normal(size=(40, 1)))
    split, names = Split("all", 0, *torch.arange(40).split([1, 1, 38])), ["yes", "no", "size"]
    for given, columns in ((x, {"yes", "size"}), (x.to_sparse_csr(), set())):
        graph = Data(x=given, y=y)
        inputs = SimpleNamespace(graphs=[graph], data=graph, names=["price"], columns=names)
        assert {row["column"] for row in diagnosis.residual_facts(inputs, np.zeros((40, 1)), split)} == columns
