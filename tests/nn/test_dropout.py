"""Dropout drops each entry by itself and as often as it says, and two halves of a layer as if they were one."""

import math

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

from demonet import DegreeLayout, DegreeTasks, DEMOConv
from demonet.nn.dropout import Dropout, draw_noise
from demonet.ops import backend
from demonet.ops.noise import keyed_factors


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [1e-9, 0.1, 0.5, 0.6, 0.999])
def test_factors_are_nothing_or_what_keeps_the_mean(dtype, p):
    size = 200_001
    noise = draw_noise(size, p, dtype, torch.Generator().manual_seed(3))
    kept = torch.tensor(2**16 / round((1 - p) * 2**16), dtype=dtype)
    assert noise.dtype == dtype
    assert bool(((noise == 0) | (noise == kept)).all())
    dropped = int((noise == 0).sum())
    assert abs(dropped - p * size) <= 5 * math.sqrt(p * (1 - p) * size) + 1  # five deviations


def test_the_four_of_a_number_are_drawn_apart():
    """Neighbours, and those four apart, are both dropped as often as two that know nothing of each other."""
    dropped = (draw_noise(400_000, 0.5, torch.float64, torch.Generator().manual_seed(4)) == 0).double()
    for lag in (1, 2, 3, 4):
        both = float((dropped[:-lag] * dropped[lag:]).mean())
        assert abs(both - 0.25) < 0.005
    by_place = dropped.view(-1, 4).mean(0)
    assert bool((by_place - 0.5).abs().max() < 0.01)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_factors_of_a_key_are_as_good_as_drawn(p):
    """The share of zeros in every row and column; neighbours, rows and keys that know nothing of each other."""
    generator = torch.Generator().manual_seed(5)
    keys = [torch.randint(0, 2**32, (2,), generator=generator) for _ in range(2)]
    rows, columns = 4000, 128
    first, second = (keyed_factors(key, rows, columns, p) for key in keys)
    assert first.unique().tolist() == pytest.approx([0, 1 / (1 - p)])
    zeros, others = (first == 0).double(), (second == 0).double()
    deviation = math.sqrt(p * (1 - p))
    assert abs(float(zeros.mean()) - p) < 5 * deviation / math.sqrt(rows * columns)
    assert float((zeros.mean(0) - p).abs().max()) < 5 * deviation / math.sqrt(rows)
    assert float((zeros.mean(1) - p).abs().max()) < 6 * deviation / math.sqrt(columns)
    pairs = [(zeros, others), *((zeros[:-lag], zeros[lag:]) for lag in (1, 2, 64))]
    pairs += [(zeros[:, :-lag], zeros[:, lag:]) for lag in (1, 2, 4, 64)]
    for one, other in pairs:
        together = float(((one - p) * (other - p)).mean()) / deviation**2
        assert abs(together) < 5 / math.sqrt(one.numel())


@pytest.mark.parametrize("rows", [0, 1, 7, 300])
def test_a_matrix_is_multiplied_by_what_is_drawn_for_it(rows):
    x = features(rows, 5, 0)
    torch.manual_seed(1)
    found, after = Dropout(0.4)(x), torch.rand(1)
    torch.manual_seed(1)
    expected = x * draw_noise(x.numel(), 0.4, x.dtype).view(x.shape)
    assert torch.equal(found, expected)
    assert torch.equal(after, torch.rand(1))


def test_halves_apart_and_side_by_side():
    left, right = features(6, 3, 0), features(6, 2, 1)
    drop = Dropout(0.4)
    torch.manual_seed(1)
    noise = draw_noise(30, 0.4, left.dtype)
    expected = left * noise[:18].view(6, 3), right * noise[18:].view(6, 2)
    torch.manual_seed(1)
    assert all(torch.equal(one, other) for one, other in zip(drop.halves(left, right), expected, strict=True))
    torch.manual_seed(1)
    factors = drop.noise(6, (3, 2), left).halves(6, 3, 2, left.dtype)
    assert all(torch.equal(one * by, other) for one, by, other in zip((left, right), factors, expected, strict=True))


def test_added_halves_are_dropped_alike_in_small_and_large_graphs(override):
    """A large graph has both halves in one operator: the same numbers are drawn, and derivatives are the same."""
    torch.manual_seed(0)
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(40, 90, 0))
    conv = DEMOConv(3, 5, DegreeTasks.log2(8), bias=True, act="elu", dropout=0.4).double()
    x, found = features(40, 3, 0).requires_grad_(), []
    for rows in (10**9, 1):
        override(piece_graph_rows=rows)
        torch.manual_seed(3)
        out = conv(x, layout)
        found.append((out, *torch.autograd.grad(out.square().sum(), (x, *conv.parameters()))))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(("combine", "aggr"), [("share", "sym"), ("add", "mean")])
@pytest.mark.parametrize("cached", [False, True])
def test_a_key_drops_the_same_entries_in_any_order_of_rows(combine, aggr, cached):
    """Rows in the caller's order in one kernel, and in degree order, to which weights of edges lead."""
    pytest.importorskip("triton")
    graph, x = drawn_by_seed(40, 90, 0), features(40, 9, 0, torch.float32)
    torch.manual_seed(0)
    conv = DEMOConv(9, 5, combine=combine, aggr=aggr, act="elu", dropout=0.4, cached=cached)
    for parameter in (conv.weights.gamma, conv.weights.shift, conv.bias):
        torch.nn.init.normal_(parameter)
    found = []
    with backend.override(path="triton"):
        for weight in (None, None, torch.ones(graph.edge_index.size(1))):  # what is cached comes twice
            torch.manual_seed(3)
            out = conv(x, graph.edge_index, weight)
            found.append((out, *torch.autograd.grad(out.square().sum(), list(conv.parameters()))))
    for once, twice, ordered in zip(*found, strict=True):
        torch.testing.assert_close(once, ordered)
        torch.testing.assert_close(twice, ordered)
