"""Dropout drops what torch's would, for one matrix and for two halves of a layer."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.reference.graphs import features

from demonet.nn.dropout import Dropout, draw_noise


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.6])
@pytest.mark.parametrize("rows", [0, 1, 7, 300])
def test_the_same_bits_as_torch(dtype, p, rows):
    x = features(rows, 5, 0).to(dtype)
    torch.manual_seed(1)
    expected = F.dropout(x, p), F.dropout(x[:, :2], p)
    torch.manual_seed(1)
    drop = Dropout(p)
    found = drop(x), drop(x[:, :2])
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_halves_apart_and_side_by_side():
    left, right = features(6, 3, 0), features(6, 2, 1)
    torch.manual_seed(1)
    expected = F.dropout(left, 0.4), F.dropout(right, 0.4)
    drop = Dropout(0.4)
    torch.manual_seed(1)
    assert all(torch.equal(one, other) for one, other in zip(drop.halves(left, right), expected, strict=True))
    torch.manual_seed(1)
    assert torch.equal(drop.beside(torch.cat([left, right], 1), 3), torch.cat(expected, 1))


def test_noise_that_is_brought_along():
    x = features(6, 3, 0)
    drop = Dropout(0.4)
    drop.noise = draw_noise(18, 0.4, x.dtype, torch.Generator().manual_seed(5))
    assert torch.equal(drop(x), drop(x))
    torch.manual_seed(5)
    assert torch.equal(drop(x), F.dropout(x, 0.4))


def test_nothing_is_dropped_without_training_or_probability():
    x = features(6, 3, 0)
    assert Dropout(0.4).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert Dropout(0.4).state_dict() == {}
