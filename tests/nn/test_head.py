"""LinearCrossEntropy is F.cross_entropy of a linear map: value and derivatives."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.reference.graphs import features

from demonet import DemonetError, backend
from demonet.nn import LinearCrossEntropy


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("rows", [7, 5000])  # many rows go class by class
def test_value_and_derivatives(bias, weighted, rows):
    torch.manual_seed(0)
    weight = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64) if weighted else None
    head = LinearCrossEntropy(4, 3, bias, class_weight=weight).double()
    h, y, mask = features(rows, 4, 0).requires_grad_(), torch.arange(rows) % 4 - 1, torch.arange(rows) % 3 > 0
    known = mask & (y >= 0)
    given = [h, *head.parameters()]
    for found, expected in (
        (head.loss(h, y, mask), F.cross_entropy(head(h)[known], y[known], weight)),
        (head.loss(h, y), F.cross_entropy(head(h), y, weight, ignore_index=-1)),
    ):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
        both = (torch.autograd.grad(one, given, retain_graph=True) for one in (found, expected))
        torch.testing.assert_close(*both, rtol=1e-10, atol=1e-12)


def test_it_is_a_linear_map():
    head, linear = LinearCrossEntropy(4, 3), torch.nn.Linear(4, 3)
    head.load_state_dict(linear.state_dict())
    h = features(5, 4, 0, torch.float32)
    torch.testing.assert_close(head(h), linear(h))
    with backend.override(path="reference"):
        torch.testing.assert_close(head.loss(h, torch.arange(5) % 3), F.cross_entropy(linear(h), torch.arange(5) % 3))


def test_shapes_are_checked():
    with pytest.raises(DemonetError, match="class_weight"):
        LinearCrossEntropy(4, 3, class_weight=torch.ones(2))
    with pytest.raises(DemonetError, match="5 rows"):
        LinearCrossEntropy(4, 3).loss(torch.zeros(5, 4), torch.zeros(4).long())
