"""Rows scaled and moved by splines of their degree: every version against the naive definition, with derivatives."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from demonet.ops import backend
from demonet.ops.scale import Splines, scale_rows


def draw(rows: int, columns: int, splines: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(rows + columns)
    shapes = [(rows, columns), (rows, splines), (splines, columns), (splines, columns), (columns,), (rows, columns)]
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]
    return [tensor if place == 1 else tensor.requires_grad_() for place, tensor in enumerate(drawn)]


def naive(y, basis, gamma, beta, bias, own, activation):
    rows = []
    for v in range(y.size(0)):
        scale = 1 + sum(basis[v, k] * gamma[k] for k in range(gamma.size(0)))
        shift = sum(basis[v, k] * beta[k] for k in range(gamma.size(0)))
        rows.append(scale * y[v] + shift + bias + own[v])
    h = torch.stack(rows)
    return {"none": lambda: h, "relu": h.relu, "elu": lambda: torch.nn.functional.elu(h)}[activation]()


def scaled(y, basis, gamma, beta, bias, own, activation="none"):
    return scale_rows(y, Splines(basis, gamma, beta), bias, own, activation)


@pytest.mark.parametrize("activation", ["none", "relu", "elu"])
@pytest.mark.parametrize("path", ["auto", "reference"])
def test_is_the_equation_with_its_derivatives(activation, path):
    given = draw(6, 3, 5)
    wanted = naive(*given, activation)
    with backend.override(path=path):
        found = scaled(*given, activation)
        torch.testing.assert_close(found, wanted)
        leaves = [tensor for tensor in given if tensor.requires_grad]
        grad = torch.randn(6, 3, dtype=torch.float64)
        by = torch.autograd.grad(found, leaves, grad)
    for mine, theirs in zip(by, torch.autograd.grad(wanted, leaves, grad), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("activation", ["none", "elu"])
def test_first_and_second_derivatives(activation):
    given = draw(4, 2, 3)
    assert gradcheck(lambda *tensors: scaled(*tensors, activation), given)
    assert gradgradcheck(lambda *tensors: scaled(*tensors, activation), given)


def test_what_is_not_given_is_not_added():
    y, basis, gamma, beta, *_ = draw(5, 4, 5)
    found = scale_rows(y, Splines(basis, gamma, beta))
    zeros = torch.zeros(4, dtype=y.dtype), torch.zeros_like(y)
    torch.testing.assert_close(found, naive(y, basis, gamma, beta, *zeros, "none"))
    (by,) = torch.autograd.grad(found.sum(), [gamma])
    torch.testing.assert_close(by, basis.t() @ y.detach())


def test_coefficients_follow_the_dtype_of_the_rows():
    y, *rest = draw(5, 4, 5)
    found = scaled(y.detach().float(), *rest)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), naive(y.detach(), *rest, "none"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("activation", ["none", "relu", "elu"])
@pytest.mark.parametrize(("rows", "columns", "splines"), [(1, 1, 2), (70, 20, 5), (130, 70, 10)])
def test_kernels(activation, rows, columns, splines):
    """Triton's kernels, on tiles that do not divide rows or columns, with all and with few inputs."""
    pytest.importorskip("triton")
    given = draw(rows, columns, splines, torch.float32)
    exact = [tensor.detach().double().requires_grad_(tensor.requires_grad) for tensor in given]
    grad = torch.randn(rows, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    for keep in (range(6), range(4)):
        some, wide = ([one if place in keep else None for place, one in enumerate(all_)] for all_ in (given, exact))
        with backend.override(path="triton"):
            found = scaled(*some, activation)
            by = torch.autograd.grad(
                found, [one for one in some if one is not None and one.requires_grad], grad.float()
            )
        with backend.override(path="reference"):
            wanted = scaled(*wide, activation)
        right = torch.autograd.grad(wanted, [one for one in wide if one is not None and one.requires_grad], grad)
        for one, other in zip((found, *by), (wanted, *right), strict=True):
            torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)
