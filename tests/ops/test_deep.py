"""Deep layers and their readout as functions, against their definitions in float64."""

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

from demonet.degree import DegreeLayout
from demonet.ops import Noise, Options, ReadOut, Weights, deep, read_out, reference
from demonet.ops.graph import Graph
from demonet.ops.refine import Refine

ROWS, INPUT, WIDTH = 20, 3, 4
GRAPHS = {"undirected": drawn_by_seed(ROWS, 30, 0), "directed": drawn_by_seed(ROWS, 25, 1, undirected=False)}


def drawn(size, seed):
    """Factors of dropout: half of the entries are zero."""
    return Noise((features(1, size, seed)[0] > 0) * 2.0, 0.5, 2.0)


def running(width):
    return torch.zeros(width, dtype=torch.float64), torch.ones(width, dtype=torch.float64), 0.1


def deep_arguments(layout, *, mapped, dropout, aggr="sum", bias=True):
    """What has no derivative, and all that has: x, the first sums, and the parameters of two layers."""
    groups, layers = layout.degrees.numel(), []
    for k, width in enumerate((INPUT, WIDTH)):
        seed = 10 * (k + 1)
        matrices = features(groups * width, WIDTH, seed + 1).view(groups, width, WIDTH)
        weights = Weights(features(width, WIDTH, seed), matrices, features(WIDTH, 1, seed + 2)[:, 0] if bias else None)
        gamma, beta, map_bias = features(WIDTH, 3, seed + 3).t()
        weight, map_bias = (features(WIDTH, WIDTH, seed + 4), map_bias) if mapped else (None, None)
        noise = drawn(ROWS * WIDTH, seed + 5) if dropout else None
        layers.append(deep.DeepLayer(weights, Refine(gamma, beta, weight, map_bias, 1e-5), running(WIDTH), noise))
    given = deep.Deep(layers, Graph.of(layout), Options(aggr, "add"))
    tensors = [features(ROWS, INPUT, 1), features(ROWS, INPUT, 2), *(p for layer in layers for p in layer.parameters)]
    return given, [None if tensor is None else tensor.clone().requires_grad_() for tensor in tensors]


def call(way, given, tensors, *, first=True):
    layers = [layer.replaced(tensors[2 + 7 * k : 9 + 7 * k]) for k, layer in enumerate(given.layers)]
    return way(given._replace(layers=layers), tensors[0], tensors[1] if first else None)


def same_derivatives(found, expected, tensors):
    wanted = [tensor for tensor in tensors if tensor is not None]
    torch.testing.assert_close(found, expected)
    ways = []
    for outputs in (found, expected):
        grads = [features(*out.shape, 50 + k) for k, out in enumerate(outputs)]
        ways.append(torch.autograd.grad(outputs, wanted, grads, allow_unused=True))
    for one, other in zip(*ways, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("dropout", [True, False])
@pytest.mark.parametrize(("aggr", "bias", "first"), [("sum", True, True), ("mean", False, False)])
def test_layers_are_the_definition(graph, mapped, dropout, aggr, bias, first):
    layout = DegreeLayout.from_edge_index(*GRAPHS[graph]).sorted()
    given, tensors = deep_arguments(layout, mapped=mapped, dropout=dropout, aggr=aggr, bias=bias)
    found, expected = (call(way, given, tensors, first=first) for way in (deep.levels, deep.definition))
    same_derivatives(found, expected, tensors)


def test_a_layer_that_nothing_reads():
    layout = DegreeLayout.from_edge_index(*GRAPHS["undirected"]).sorted()
    given, tensors = deep_arguments(layout, mapped=True, dropout=True)
    found, expected = (call(way, given, tensors)[:1] for way in (deep.levels, deep.definition))
    same_derivatives(found, expected, tensors)


def test_first_and_second_derivatives_of_layers():
    layout = DegreeLayout.from_edge_index(*GRAPHS["directed"]).sorted()
    given, tensors = deep_arguments(layout, mapped=True, dropout=True)

    def last(*parameters):
        return call(deep.levels, given, parameters)[-1][:6, :2]

    assert torch.autograd.gradcheck(last, tensors)
    x = tensors[0]
    assert torch.autograd.gradgradcheck(lambda x: last(x, *tensors[1:]), x)


def test_running_statistics_move_as_a_norm_moves_them():
    layout = DegreeLayout.from_edge_index(*GRAPHS["undirected"]).sorted()
    given, tensors = deep_arguments(layout, mapped=False, dropout=False)
    call(deep.levels, given, tensors)
    norm = torch.nn.BatchNorm1d(WIDTH).double()
    weights = Weights(*tensors[2:5])
    norm(reference.conv(tensors[0], tensors[1], weights, given.graph, given.options)[0])
    torch.testing.assert_close(given.layers[0].running[0], norm.running_mean)
    torch.testing.assert_close(given.layers[0].running[1], norm.running_var)


BATCH, TASK = torch.tensor([0, 2, 2, 0, 2, 2]), torch.tensor([1, 0, 1, 1, 1, 0])


@pytest.mark.parametrize(("mode", "total"), [("sum", False), ("mean", False), ("sum", True)])
def test_readouts_by_the_operator_are_the_same(override, mode, total):
    """Three graphs, one of them without nodes."""
    levels = [features(6, width, width).requires_grad_() for width in (2, 3)]
    given = ReadOut(BATCH, TASK, 3, 2, mode, total)
    found = read_out(given, levels)
    override(path="reference")
    same_derivatives([found], [read_out(given, levels)], levels)
