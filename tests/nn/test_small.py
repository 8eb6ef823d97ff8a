"""All layers and the head of a small graph as one function, against the same made of parts."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from tests.reference.graphs import drawn_by_seed, features, graphs, seeds

from demonet.degree import DegreeLayout, DegreeTasks
from demonet.errors import DemonetError
from demonet.nn import NodeDEMONet
from demonet.nn.small import small_scores
from demonet.ops import cpu
from demonet.train.problem import Part
from demonet.train.steps import _loss

GRAPHS = {"undirected": drawn_by_seed(40, 90, 0), "directed": drawn_by_seed(40, 70, 1, undirected=False)}


def made(graph, dtype=torch.float64, **config):
    """A model and its prepared graph."""
    layout = DegreeLayout.from_edge_index(*graph)
    torch.manual_seed(0)
    model = NodeDEMONet(5, 3, DegreeTasks.exact(layout.degree), **({"hidden": 6} | config)).to(dtype)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter)  # biases that are not zero
    return model, model.prepare(features(graph.num_nodes, 5, 3, dtype), graph.edge_index)


def compare(model, inputs, rows):
    """The same scores, derivatives and random numbers as forward has."""
    wanted, found = list(model.parameters()), []
    for way in (small_scores, lambda model, inputs, rows: model(inputs)[rows]):
        torch.manual_seed(7)
        scores = way(model, inputs, rows)
        assert scores is not None
        loss = (scores * features(*scores.shape, 5)).sum()
        found.append((scores, torch.rand(1), *torch.autograd.grad(loss, wanted)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
@pytest.mark.parametrize(("combine", "bias", "hidden"), [("concat", False, 6), ("concat", True, 7), ("add", True, 5)])
@pytest.mark.parametrize(("aggr", "activation", "layers"), [("sum", "elu", 2), ("mean", "relu", 1), ("sqrt", "elu", 3)])
@pytest.mark.parametrize("dropout", [0.0, 0.6])
def test_scores_and_derivatives(graph, scheme, combine, bias, hidden, aggr, activation, layers, dropout):
    config = {"combine": combine, "bias": bias, "hidden": hidden, "aggr": aggr, "activation": activation}
    model, inputs = made(GRAPHS[graph], scheme=scheme, layers=layers, dropout=dropout, **config)
    compare(model, inputs, torch.tensor([3, 0, 39, 3, 17]))


@settings(deadline=None)
@given(graphs(max_nodes=12), seeds)
def test_graphs_of_every_shape(graph, seed):
    model, inputs = made(graph, dropout=0.5)
    compare(model, inputs, torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))[:4])


@pytest.mark.parametrize("term", ["seed", "shared", "degree"])
def test_without_a_term(term):
    model, inputs = made(GRAPHS["directed"], without=term)
    compare(model, inputs, torch.arange(40))


def test_degrees_that_were_not_seen():
    graph = GRAPHS["undirected"]
    model = NodeDEMONet(5, 3, DegreeTasks.exact(torch.tensor([1, 2, 50])), hidden=6).double()
    compare(model, model.prepare(features(40, 5, 3), graph.edge_index), torch.arange(40))


def test_twice_the_same_bits_backward_twice_and_no_second_derivative():
    model, inputs = made(GRAPHS["undirected"], torch.float32)
    wanted, rows = list(model.parameters()), torch.arange(0, 40, 3)
    x, folded = inputs.x.clone(), inputs.folded.clone()
    torch.manual_seed(1)
    loss = small_scores(model, inputs, rows).square().sum()
    other = small_scores(model, inputs, rows).square().sum()  # alive together: they share no memory
    runs = [torch.autograd.grad(loss, wanted, retain_graph=True) for _ in range(2)]
    torch.manual_seed(1)
    runs.append(torch.autograd.grad(small_scores(model, inputs, rows).square().sum(), wanted))
    assert all(torch.equal(one, two) for run in runs[1:] for one, two in zip(runs[0], run, strict=True))
    assert torch.equal(inputs.x, x)
    assert torch.equal(inputs.folded, folded)
    with pytest.raises(DemonetError, match="second derivative"):
        torch.autograd.grad(other, wanted, create_graph=True)


def test_large_arrays_in_kept_memory(monkeypatch):
    monkeypatch.setattr("demonet.degree.buffers.LEAST", 1)
    model, inputs = made(GRAPHS["undirected"], torch.float32)
    rows, wanted = torch.arange(40), list(model.parameters())
    losses, alone = [], []
    for alive in (True, False):
        torch.manual_seed(2)
        for _ in range(3):
            loss = small_scores(model, inputs, rows).square().sum()
            if alive:
                losses.append(loss)
            else:
                alone.append(torch.autograd.grad(loss, wanted))
    together = [torch.autograd.grad(loss, wanted) for loss in losses]
    assert all(torch.equal(*pair) for one in zip(together, alone, strict=True) for pair in zip(*one, strict=True))


def test_who_gets_it(monkeypatch):
    rows = torch.arange(3)
    model, inputs = made(GRAPHS["undirected"], torch.float32)
    assert small_scores(model, inputs, rows) is not None
    with torch.autocast("cpu"):
        assert small_scores(model, inputs, rows) is None
    for config in ({"jump": True}, {"refine": True}, {"head": "mlp"}, {"layers": 0, "head": "degree"}):
        assert small_scores(*made(GRAPHS["undirected"], **config), rows) is None
    assert small_scores(*made(GRAPHS["undirected"], torch.bfloat16), rows) is None
    weighted = model.prepare(
        inputs.layout.leave(inputs.x),
        GRAPHS["undirected"].edge_index,
        edge_weight=torch.ones(GRAPHS["undirected"].edge_index.size(1)),
    )
    assert small_scores(model, weighted, rows) is None
    monkeypatch.setattr("demonet.nn.small.LEAST", 40)
    assert small_scores(model, inputs, rows) is None
    assert model.scores(inputs, rows).shape == (3, 3)


def test_the_first_sums_are_not_taken_again(monkeypatch):
    model, inputs = made(GRAPHS["undirected"], layers=3)
    taken = []
    monkeypatch.setattr(cpu, "aggregate", lambda *args, whole=cpu.aggregate: taken.append(args) or whole(*args))
    loss = small_scores(model, inputs, torch.arange(40)).sum()
    assert len(taken) == 2
    loss.backward()
    assert len(taken) == 4


def test_training_takes_it():
    model, inputs = made(GRAPHS["undirected"], torch.float32)
    rows = torch.arange(0, 40, 3)
    loss = _loss(model, Part((inputs,), rows, rows % 3))
    assert type(loss.grad_fn.next_functions[0][0].next_functions[0][0]).__name__ == "_ScoresBackward"
