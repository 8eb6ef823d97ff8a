"""The loss is cross-entropy, however many classes and items there are."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from demonet.train.loss import FEW, MANY, cross_entropy


@pytest.mark.parametrize("items", [5, MANY])
@pytest.mark.parametrize("classes", [2, FEW - 1, FEW])
def test_cross_entropy_and_its_gradient(items, classes):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(items, classes, generator=generator, dtype=torch.float64).requires_grad_()
    y = torch.randint(classes, (items,), generator=generator)
    found, expected = cross_entropy(scores, y), F.cross_entropy(scores, y)
    torch.testing.assert_close(found, expected)
    for one, other in zip(torch.autograd.grad(found, scores), torch.autograd.grad(expected, scores), strict=True):
        torch.testing.assert_close(one, other)
