"""Adam by the short way, against torch's own."""

from __future__ import annotations

import copy

import pytest
import torch

from demonet.ops.adam import adam

CPU = torch.device("cpu")


def parameters(dtype):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.nn.Parameter(torch.randn(shape, generator=generator).to(dtype)) for shape in ((3, 4), (2, 3, 4), (5,))
    ]


def groups(params):
    return [{"params": params[:2], "weight_decay": 0.1}, {"params": params[2:], "weight_decay": 0.0}]


def walk(optimizer, params, steps, start=0):
    """Steps whose gradients depend on the parameters; one parameter has none at first."""
    for number in range(start, start + steps):
        for k, parameter in enumerate(params):
            parameter.grad = None if k == 1 and number < 2 else (parameter.detach() - number) / 3
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_same_bits_and_state_as_torch(dtype):
    mine, others = parameters(dtype), parameters(dtype)
    short, long = adam(groups(mine), 0.01, CPU), torch.optim.Adam(groups(others), lr=0.01, fused=True)
    walk(short, mine, 6)
    walk(long, others, 6)
    assert all(torch.equal(*pair) for pair in zip(mine, others, strict=True))
    assert short.state_dict()["state"].keys() == long.state_dict()["state"].keys()
    for one, other in zip(short.state_dict()["state"].values(), long.state_dict()["state"].values(), strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) and one[name].dtype == other[name].dtype for name in one)


@pytest.mark.parametrize("mine_first", [True, False])
def test_either_goes_on_from_the_state_of_the_other(mine_first):
    def make(short, params):
        return adam(groups(params), 0.01, CPU) if short else torch.optim.Adam(groups(params), lr=0.01, fused=True)

    params, expected = parameters(torch.float32), parameters(torch.float32)
    first = make(mine_first, params)
    walk(first, params, 3)
    second = make(not mine_first, params)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    walk(second, params, 3, start=3)
    walk(make(False, expected), expected, 6)
    assert all(torch.equal(*pair) for pair in zip(params, expected, strict=True))
