"""Norm, ReLU, second map, ReLU and dropout as one function, against the definition in float64, also in Triton."""

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features
from tests.reference.layers import PAPER

from demonet import DegreeTasks, NodeDEMONet
from demonet.degree.count import count_degree
from demonet.ops import Noise, backend
from demonet.ops.refine import Refine, applies, definition, refine

ROWS, WIDTH, OUT = 50, 5, 6


def arguments(mapped, dtype=torch.float64):
    y = (features(ROWS, WIDTH, 0) * torch.tensor([1.0, 2.0, 0.1, 5.0, 1.0]) + 3).to(dtype).requires_grad_()
    gamma, beta = features(WIDTH, 2, 1).to(dtype).t().contiguous()
    weight, bias = features(OUT, WIDTH, 2).to(dtype), features(OUT, 1, 3)[:, 0].to(dtype)
    given = [y, gamma, beta, *([weight, bias] if mapped else [])]
    return [tensor.detach().requires_grad_() for tensor in given]


def drawn(mapped, dropout):
    if not dropout:
        return None
    kept = features(1, ROWS * (OUT if mapped else WIDTH), 5)[0] > 0
    return Noise(kept * 2.0, 0.5, 2.0)


def made(given):
    return Refine(*given[1:], *(() if len(given) > 3 else (None, None)), 1e-5)


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize(("rows", "dropout"), [(1, True), (7, False), (49, True), (100, False)])
def test_pieces_are_the_definition(override, mapped, dropout, rows):
    override(piece_rows=rows)
    given, noise = arguments(mapped), drawn(mapped, dropout)
    found, expected = refine(given[0], made(given), noise), definition(given[0], made(given), noise)
    torch.testing.assert_close(found, expected)
    grad = features(*found[0].shape, 7)
    ways = [torch.autograd.grad(out[0], given, grad) for out in (found, expected)]
    torch.testing.assert_close(*ways)


@pytest.mark.parametrize("mapped", [True, False])
def test_first_and_second_derivatives(override, mapped):
    override(piece_rows=20)
    given, noise = arguments(mapped), drawn(mapped, True)

    def call(*tensors):
        return refine(tensors[0], made(tensors), noise)[0]

    assert torch.autograd.gradcheck(call, given)
    assert torch.autograd.gradgradcheck(call, given)


def test_a_mean_far_from_zero_loses_nothing(override):
    """The variance of numbers around a thousand, in single precision."""
    override(piece_rows=8)
    y = features(ROWS, WIDTH, 0).float() + 1000
    one = torch.ones(WIDTH)
    _, mean, variance = refine(y, Refine(one, one, None, None, 1e-5), None)
    torch.testing.assert_close(mean.double(), y.double().mean(0))
    torch.testing.assert_close(variance.double(), y.double().var(0, correction=0), rtol=1e-4, atol=0)


@pytest.mark.parametrize(("rows", "mapped", "dropout"), [(2, True, False), (64, False, True), (300, True, True)])
def test_in_triton(mapped, dropout, rows):
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        pytest.skip("on a GPU the kernels are compiled: see test_cuda.py")
    given = [tensor.detach().float().requires_grad_() for tensor in arguments(mapped)]
    given[0] = (features(rows, WIDTH, 0).float() + 3).requires_grad_()
    noise = Noise(torch.tensor([7, 2**32 - 5]), 0.3) if dropout else None
    wide = [tensor.detach().double().requires_grad_() for tensor in given]
    expected = definition(wide[0], made(wide), noise)
    with backend.override(path="triton"):
        found = refine(given[0], made(given), noise)
        grad = features(*found[0].shape, 7).float() * (expected[0].detach().abs() > 1e-3)
        by = torch.autograd.grad(found[0], given, grad)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)
    for one, other in zip(by, torch.autograd.grad(expected[0], wide, grad.double()), strict=True):
        assert float((one.double() - other).norm()) < 1e-4 * float(other.norm()) + 1e-5


def test_where_it_applies(override):
    given = arguments(True)
    parameters = made(given)
    assert applies(given[0], parameters)
    assert not applies(given[0][:1], parameters)  # one row has no variance
    assert not applies(given[0].half(), parameters)
    with torch.autocast("cpu", torch.bfloat16):
        assert not applies(given[0], parameters)
    override(path="reference")
    assert not applies(given[0], parameters)


@pytest.mark.parametrize("refined", [True, False])
@pytest.mark.parametrize("path", ["cpu", "triton"])
def test_a_model_trains_the_same_way(monkeypatch, refined, path):
    """One function or five modules: the same numbers are drawn, statistics kept and derivatives found."""
    if path == "triton":
        pytest.importorskip("triton")
        if torch.cuda.is_available():
            pytest.skip("on a GPU the kernels are compiled: see test_cuda.py")
    edge_index, n = drawn_by_seed(30, 60, 0)
    tasks = DegreeTasks.log2(int(count_degree(edge_index, n).max()))
    shape = {"refine": True} if refined else {"norm": "batch", "stem": True}
    options = {"scheme": "smooth", "combine": "add", "bias": True, "dropout": 0.4, "activation": "relu", "hidden": 8}
    x, found = features(n, 6, 1).float(), []
    for fused in (True, False):
        torch.manual_seed(0)
        model = NodeDEMONet(6, 3, tasks, PAPER, **options, **shape)
        with backend.override(path=path), monkeypatch.context() as patch:
            if not fused:
                patch.setattr("demonet.nn.fused.applies", lambda *given: False)
            torch.manual_seed(1)
            out = model(x, edge_index)
            grads = torch.autograd.grad(out.square().sum(), list(model.parameters()))
        found.append([out, *grads, *(buffer.double() for buffer in model.buffers())])
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-4)
