"""The loss of a model, against the same made of its scores."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed, features, graphs
from tests.reference.layers import PAPER

from demonet import DegreeLayout, DegreeTasks, NodeDEMONet
from demonet.nn import weights as schemes
from demonet.ops import cpu
from demonet.ops.graph import Graph

GRAPHS = {"undirected": drawn_by_seed(40, 90, 0), "directed": drawn_by_seed(40, 70, 1, undirected=False)}


def made(graph, dtype=torch.float64, **config):
    """A model and its prepared graph."""
    layout = DegreeLayout.from_edge_index(*graph)
    torch.manual_seed(0)
    model = NodeDEMONet(5, 3, DegreeTasks.exact(layout.degree), PAPER, **({"hidden": 6} | config)).to(dtype)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter)  # biases that are not zero
    return model, model.prepare(features(graph.num_nodes, 5, 3, dtype), graph.edge_index)


def classes(rows, num_nodes=40):
    """A class for every node, and shares: the nodes that were given count as often as they were given."""
    share = torch.zeros(num_nodes).index_add_(0, rows, torch.linspace(0.5, 1.5, len(rows)))
    return torch.arange(num_nodes) * 7 % 3, share


def by_scores(model, inputs, target, share):
    """The loss by way of forward."""
    return F.cross_entropy(model(inputs), target, reduction="none") @ share.to(inputs.x.dtype)


def compare(model, inputs, rows):
    """The same loss, derivatives and random numbers as by way of forward."""
    wanted, found = list(model.parameters()), []
    for way in (NodeDEMONet.loss, by_scores):
        torch.manual_seed(7)
        loss = way(model, inputs, *classes(rows, inputs.layout.num_nodes))
        found.append((loss, torch.rand(1), *torch.autograd.grad(3 * loss, wanted)))
    torch.testing.assert_close(*found)


SHAPES = st.fixed_dictionaries(
    {
        "combine": st.sampled_from(["concat", "add", "share"]),
        "bias": st.booleans(),
        "hidden": st.integers(5, 7),
        "aggr": st.sampled_from(["sum", "mean", "sqrt", "sym"]),
        "activation": st.sampled_from(["elu", "relu"]),
        "layers": st.integers(1, 3),
        "dropout": st.sampled_from([0.0, 0.6]),
    }
)


@pytest.mark.parametrize("scheme", sorted(schemes.SCHEMES))
@settings(deadline=None, max_examples=20)
@given(shape=SHAPES, graph=st.sampled_from(list(GRAPHS)) | graphs(max_nodes=12))
def test_the_loss_and_its_derivatives(scheme, shape, graph):
    model, inputs = made(GRAPHS.get(graph, graph) if isinstance(graph, str) else graph, scheme=scheme, **shape)
    compare(model, inputs, torch.tensor([3, 0, 39, 3, 17]) % inputs.layout.num_nodes)


@pytest.mark.parametrize("term", ["seed", "shared", "degree"])
def test_without_a_term(term):
    model, inputs = made(GRAPHS["directed"], without=term)
    compare(model, inputs, torch.arange(40))


def test_twice_the_same_bits():
    model, inputs = made(GRAPHS["undirected"], torch.float32)
    wanted, rows = list(model.parameters()), torch.arange(0, 40, 3)
    x, folded = inputs.x.clone(), inputs.neighbourhood.clone()
    torch.manual_seed(1)
    loss = model.loss(inputs, *classes(rows))
    model.loss(inputs, *classes(rows))  # alive together: they share no memory
    runs = [torch.autograd.grad(loss, wanted, retain_graph=True) for _ in range(2)]
    torch.manual_seed(1)
    runs.append(torch.autograd.grad(model.loss(inputs, *classes(rows)), wanted))
    assert all(torch.equal(one, two) for run in runs[1:] for one, two in zip(runs[0], run, strict=True))
    assert torch.equal(inputs.x, x)
    assert torch.equal(inputs.neighbourhood, folded)


def test_large_arrays_in_kept_memory(override):
    override(buffer_bytes=1)
    model, inputs = made(GRAPHS["undirected"], torch.float32)
    rows, wanted = torch.arange(40), list(model.parameters())
    losses, alone = [], []
    for alive in (True, False):
        torch.manual_seed(2)
        for _ in range(3):
            loss = model.loss(inputs, *classes(rows))
            if alive:
                losses.append(loss)
            else:
                alone.append(torch.autograd.grad(loss, wanted))
    together = [torch.autograd.grad(loss, wanted) for loss in losses]
    assert all(torch.equal(*pair) for one in zip(together, alone, strict=True) for pair in zip(*one, strict=True))


def test_the_first_sums_are_not_taken_again(monkeypatch):
    model, inputs = made(GRAPHS["undirected"], layers=3)
    taken = []
    monkeypatch.setattr(cpu, "aggregate", lambda *args, whole=cpu.aggregate: taken.append(args) or whole(*args))
    loss = model.loss(inputs, *classes(torch.arange(40)))
    assert len(taken) == 2
    loss.backward()
    assert len(taken) == 4


def test_a_loss_that_nobody_differentiates_is_forgotten(override):
    override(buffer_bytes=1)
    model, inputs = made(GRAPHS["undirected"], torch.float32)
    for _ in range(5):
        model.loss(inputs, *classes(torch.arange(40)))
    kept = len(Graph.of(inputs.sorted_layout).buffers._kept)
    model.loss(inputs, *classes(torch.arange(40)))
    assert len(Graph.of(inputs.sorted_layout).buffers._kept) == kept
    assert kept < 20  # of one loss alone
