"""Batches of nodes with true degrees: exact without sampling, right on average with it; whole graphs in blocks."""

import math
from dataclasses import replace

import pytest
import torch
from tests.reference.layers import PAPER
from torch_geometric.data import Data

from demonet import DegreeTasks, DEMOConv, DEMONet, DemonetError, NodeDEMONet
from demonet.data.synthetic import power_law
from demonet.degree.count import count_degree
from demonet.nn import blocks
from demonet.nn.blocks import NeighbourSampler, NodeBatch, WholeGraph

GRAPH = power_law(300, 1500, hub=120, seed=2)
N, EDGES = 300, GRAPH.edge_index
DEGREE = count_degree(EDGES, N)
X = torch.randn(N, 12, generator=torch.Generator().manual_seed(0))
MODELS = {
    "paper": {},
    "one layer and a degree head": {"layers": 1, "head": "degree"},
    "no layer": {"layers": 0, "head": "degree"},
    "stem": {"stem": True, "norm": "batch"},
    "refine": {"refine": True},
}


def network(scheme="smooth", **changes):
    torch.manual_seed(0)
    options = {"scheme": scheme, "hidden": 16, "hash_size": 8, "dropout": 0.0} | changes
    return NodeDEMONet(12, 4, DegreeTasks.log2(int(DEGREE.max())), PAPER, **options).eval()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_without_sampling_is_exact(scheme, kind, weighted):
    model = network(scheme, **MODELS[kind])
    weight = torch.rand(EDGES.size(1), generator=torch.Generator().manual_seed(1)) if weighted else None
    graph = model.prepare(X, EDGES, edge_weight=weight)
    nodes = torch.tensor([5, 0, 299, 17])
    with torch.no_grad():
        expected = model(X, EDGES, weight)
        batch = NeighbourSampler(model, graph).batch(nodes)
        assert torch.allclose(model(batch), expected[nodes], atol=1e-4, rtol=1e-4)
        assert torch.allclose(model(WholeGraph(graph, rows=70)), expected, atol=1e-4, rtol=1e-4)
        embedded = model.embed(X, EDGES, weight)
        assert torch.allclose(model.embed(WholeGraph(graph, rows=70)), embedded, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_some_nodes_are_evaluated_exactly_from_what_their_layers_read(kind, weighted, monkeypatch):
    """However few neighbours are drawn in training, and in blocks of rows of any size."""
    monkeypatch.setattr(blocks, "WHOLE_SHARE", 1.0)
    model = network("weight", **MODELS[kind])
    weight = torch.rand(EDGES.size(1), generator=torch.Generator().manual_seed(1)) if weighted else None
    graph = model.prepare(X, EDGES, edge_weight=weight)
    nodes = torch.tensor([5, 0, 299, 17])
    found = NeighbourSampler(model, graph, neighbours=2).evaluation(nodes)
    assert isinstance(found, NodeBatch)
    with torch.no_grad():
        expected = model(X, EDGES, weight)[nodes]
        for rows in (3, 50, 1000):
            assert torch.allclose(model(replace(found, rows=rows)), expected, atol=1e-4, rtol=1e-4)


def test_nodes_that_read_much_of_a_graph_are_evaluated_with_all_of_it():
    model = network()
    sampler = NeighbourSampler(model, model.prepare(X, EDGES), neighbours=2)
    assert isinstance(sampler.evaluation(torch.tensor([0])), WholeGraph)  # the hub
    last = int(DEGREE.argmin())
    few = sampler.evaluation(torch.tensor([last]))
    assert isinstance(few, NodeBatch)
    assert few.x.size(0) == 1 + int(DEGREE[last])


@pytest.mark.parametrize("kind", MODELS)
def test_scores_and_embeddings_in_one_pass(kind):
    model = network(**MODELS[kind])
    graph = model.prepare(X, EDGES)
    with torch.no_grad():
        expected = model(X, EDGES), model.embed(X, EDGES)
        late = model.prepare(X, EDGES, sums=False)  # blocks of rows compute the sums of the first layer
        for given in (graph, WholeGraph(graph, rows=70), WholeGraph(late, rows=70, once=True)):
            for found, wanted in zip(model.scores_and_embedding(given), expected, strict=True):
                assert torch.allclose(found, wanted, atol=1e-4, rtol=1e-4)
        forgotten = WholeGraph(late, rows=70, once=True)
        model(forgotten)
        assert forgotten.x.numel() == 0
        with pytest.raises(DemonetError, match="once"):
            model(forgotten)
        assert late.x.shape == X.shape


@pytest.mark.parametrize("aggr", ["sum", "mean", "sqrt"])
def test_two_layers_need_one_hop_and_gradients_are_exact(aggr):
    model = network("weight", aggr=aggr).train()
    graph = model.prepare(X, EDGES)
    nodes = torch.tensor([3, 250])
    batch = NeighbourSampler(model, graph).batch(nodes)
    near = {3, 250} | set(EDGES[0][torch.isin(EDGES[1], nodes)].tolist())
    assert batch.x.size(0) == len(near)
    found = []
    for scores in (lambda: model(batch), lambda: model(graph)[nodes]):
        model.zero_grad()
        scores().square().sum().backward()
        found.append([parameter.grad.clone() for parameter in model.parameters()])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-3, rtol=1e-3)


def test_every_neighbour_is_drawn_as_often_as_every_other():
    model = network()
    sampler = NeighbourSampler(model, model.prepare(X, EDGES), neighbours=7)
    layout, generator = sampler.graph.layout, torch.Generator().manual_seed(0)
    row = torch.tensor([N - 1])  # the hub
    size = int(layout.pointer[-1] - layout.pointer[-2])
    draws, counts = 4000, torch.zeros(layout.num_edges)
    for _ in range(draws):
        degree, entry, drawn = sampler.sample(row, generator)
        assert (int(degree), int(drawn), entry.numel()) == (size, 7, 7)
        places = entry - int(layout.pointer[-2])
        strata = torch.arange(7)
        assert bool((places >= (strata * size / 7).floor()).all())
        assert bool((places <= ((strata + 1) * size / 7).floor()).all())  # one in each stratum
        counts.index_add_(0, entry, torch.ones(7))
    drawn = counts[int(layout.pointer[-2]) :]
    expected = draws * 7 / size
    assert float((drawn - expected).abs().max()) < 6 * math.sqrt(expected)


@pytest.mark.parametrize("aggr", ["sum", "mean", "sqrt"])
def test_sums_of_samples_are_right_on_average(aggr):
    model = network("weight", aggr=aggr, layers=1, head="degree")  # the head is linear in what it reads of neighbours
    graph = model.prepare(X, EDGES)
    sampler, generator = NeighbourSampler(model, graph, neighbours=5), torch.Generator().manual_seed(0)
    nodes = torch.arange(40)
    with torch.no_grad():
        exact = model(graph)[nodes]
        draws = torch.stack([model(sampler.batch(nodes, generator)) for _ in range(600)])
    error = draws.std(0) / math.sqrt(600)
    assert bool(((draws.mean(0) - exact).abs() <= 6 * error + 1e-4 * exact.abs().max()).all())
    few = DEGREE[nodes] <= 5
    assert torch.allclose(draws[:, few], exact[few].expand(600, -1, -1), atol=1e-4), "all neighbours are drawn"
    assert float(draws.std(0)[~few].max()) > 0


def test_draws_depend_on_the_generator_alone():
    model = network()
    sampler = NeighbourSampler(model, model.prepare(X, EDGES), neighbours=3)
    one, same, other = (sampler.batch(torch.arange(50), torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one.blocks[-1].neighbours, same.blocks[-1].neighbours)
    assert not torch.equal(one.blocks[-1].neighbours, other.blocks[-1].neighbours)


def test_nodes_without_neighbours():
    model = network()
    graph = model.prepare(X[:3], torch.tensor([[0, 1], [1, 0]]))
    with torch.no_grad():
        batch = NeighbourSampler(model, graph, neighbours=2).batch(torch.tensor([2]))
        assert torch.allclose(model(batch), model(graph)[2:], atol=1e-5)


def test_what_is_refused():
    model = network()
    graph = model.prepare(X, EDGES)
    with pytest.raises(DemonetError, match="neighbours=0"):
        NeighbourSampler(model, graph, neighbours=0)
    with pytest.raises(DemonetError, match="edges"):
        model(WholeGraph(graph), EDGES)
    with pytest.raises(DemonetError, match="degrees"):
        model(graph, degree=DEGREE)
    with pytest.raises(DemonetError, match="eval"):
        model.train()(WholeGraph(graph))


class Own(torch.nn.Module):
    """A module of a user's own: convolutions with a linear map between them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = DEMOConv(12, 8), DEMOConv(8, 3, scheme="smooth", aggr="mean", combine="add")
        self.between = torch.nn.Linear(8, 8)

    def forward(self, x, graphs):
        h = self.between(self.first(x, graphs[0]).relu())
        return self.second(h, graphs[1])


def test_batches_for_demonet_and_for_a_module_of_ones_own():
    data, nodes = Data(x=X, edge_index=EDGES), torch.tensor([5, 0, 299, 17])
    for stem in (False, True):
        model = DEMONet(12, 8, 2, 3, stem=stem, norm="batch").eval()
        batch = NeighbourSampler(model, data).batch(nodes)
        torch.testing.assert_close(model(batch), model(X, EDGES)[nodes], atol=1e-4, rtol=1e-4)
    own = Own()
    batch = NeighbourSampler(own, data).batch(nodes)
    assert own.first.tasks.max_degree == int(DEGREE.max())
    torch.testing.assert_close(own(batch.x, batch.blocks), own(X, [EDGES, EDGES])[nodes], atol=1e-4, rtol=1e-4)
    drawn = NeighbourSampler(own, data, neighbours=3).batch(nodes, torch.Generator().manual_seed(0))
    own(drawn.x, drawn.blocks).sum().backward()
    assert all(bool(parameter.grad.isfinite().all()) for parameter in own.parameters())
    with pytest.raises(DemonetError, match="jk"):
        DEMONet(12, 8, 2, 3, jk="cat")(batch)
    with pytest.raises(DemonetError, match="DEMOConv"):
        NeighbourSampler(torch.nn.Linear(2, 2), data)
