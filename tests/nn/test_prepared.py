"""Prepared input of a model: what is refused, sorted, and computed once."""

import pytest
import torch
from tests.reference.graphs import features, from_arcs
from tests.reference.layers import PAPER

from demonet import DegreeLayout, DegreeTasks, DEMOConv, DemonetError, GraphDEMONet, NodeDEMONet
from demonet.data.splits import Split
from demonet.nn import weights as schemes
from demonet.train import NodeProblem, TrainConfig, fit

PATH = from_arcs(4, [(0, 1), (1, 2), (2, 3)], undirected=True)
LAYOUT = DegreeLayout.from_edge_index(*PATH)
TASKS = DegreeTasks.exact(torch.tensor([1, 2]))
NAN_WEIGHT = torch.tensor([1.0, 1.0, float("nan"), 1.0, 1.0, 1.0])


def nodes(**options):
    return NodeDEMONet(3, 2, TASKS, PAPER, hidden=4, **options)


def x(rows=4, columns=3):
    return features(rows, columns, 0, torch.float32)


def spoiled():
    values = x()
    values[2, 1] = float("nan")
    return values


REFUSED = {
    "nan": (lambda m: m.prepare(spoiled(), PATH.edge_index), r"\bnan\b.*row 2\b.*column 1\b"),
    "nan, sparse": (lambda m: m.prepare(spoiled().to_sparse_csr(), LAYOUT), r"\bnan\b.*row 2\b.*column 1\b"),
    "nan, arcs": (lambda m: m(spoiled(), PATH.edge_index), r"\bnan\b.*row 2\b.*column 1\b"),
    "nan weight": (lambda m: m.prepare(x(), LAYOUT, edge_weight=NAN_WEIGHT), r"weight\b.*\bnan\b.*edge 2\b"),
    "columns": (lambda m: m.prepare(x(4, 5), PATH.edge_index), r"\b5\b.*columns\b.*\b3\b"),
    "shape": (lambda m: m.prepare(x()[0], PATH.edge_index), r"features\b.*\[3\]"),
    "type": (lambda m: m.prepare(x().double(), PATH.edge_index), r"torch\.float64.*torch\.float32"),
    "few rows": (lambda m: m.prepare(x(3), PATH.edge_index), r"\b3\b.*edge_index\[0, "),
    "many rows, prepared": (lambda m: m.prepare(x(5), LAYOUT), r"features\b.*\b5\b.*\b4\b"),
    "weights": (lambda m: m.prepare(x(), LAYOUT, edge_weight=torch.ones(2)), r"\b2\b.*weights\b.*\b6\b"),
    "no graph": (lambda m: m(x()), r"edge_index\b.*prepare\(\)"),
    "twice": (lambda m: m(m.prepare(x(), LAYOUT), PATH.edge_index), r"batch\b.*prepare\(\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    wrong, message = REFUSED[name]
    for model in (nodes(), GraphDEMONet(3, 2, TASKS, PAPER, hidden=4)):
        with pytest.raises(DemonetError, match=message):
            wrong(model)


@pytest.mark.parametrize("graph", [PATH.edge_index, LAYOUT], ids=["arcs", "layout"])
def test_degrees_below_zero_are_refused(graph):
    with pytest.raises(DemonetError, match="degree of -1"):
        nodes()(x(), graph, degree=torch.tensor([1, 2, -1, 1]))


BATCHES = {
    "short": ([0, 0, 1], 2, r"\b3\b.*batch\b.*\b4\b"),
    "long": ([0, 0, 1, 1, 1], 2, r"\b5\b.*batch\b.*\b4\b"),
    "too large": ([0, 0, 1, 2], 2, r"node 3\b.*graph 2\b.*num_graphs=2"),
    "negative": ([0, -1, 1, 1], None, r"node 1\b.*graph -1\b"),
    "fraction": ([0.0, 0.0, 1.0, 1.0], 2, r"torch\.float32"),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches_that_do_not_fit(name):
    batch, num_graphs, message = BATCHES[name]
    model = GraphDEMONet(3, 2, TASKS, PAPER, hidden=4)
    for graph in (PATH.edge_index, LAYOUT):
        with pytest.raises(DemonetError, match=message):
            model.prepare(x(), graph, batch=torch.tensor(batch), num_graphs=num_graphs)
    if name in ("short", "long"):
        for graph in (PATH.edge_index, LAYOUT):
            with pytest.raises(DemonetError, match=message):
                model(x(), graph, torch.tensor(batch))


def test_a_prepared_graph_is_in_degree_order():
    """A path has its ends (degree 1) before its middle."""
    prepared = nodes().prepare(x(), PATH.edge_index)
    assert prepared.layout.order.tolist() == [0, 3, 1, 2]
    assert torch.equal(prepared.x, x()[[0, 3, 1, 2]])
    torch.testing.assert_close(prepared.neighbourhood, torch.stack([x()[1], x()[2], x()[0] + x()[2], x()[1] + x()[3]]))


def test_the_graph_of_each_row_moves_with_it():
    model = GraphDEMONet(3, 2, TASKS, PAPER, hidden=4)
    prepared = model.prepare(x(), torch.tensor([[0, 1], [1, 0]]), batch=torch.tensor([0, 0, 1, 1]))
    assert prepared.layout.order.tolist() == [2, 3, 0, 1]
    assert prepared.batch.tolist() == [1, 1, 0, 0]
    assert prepared.num_graphs == 2


def test_empty_graphs_at_the_end_of_a_batch_are_counted():
    model = GraphDEMONet(3, 2, TASKS, PAPER, hidden=4).eval()
    scores = model(model.prepare(x(), LAYOUT, batch=torch.zeros(4, dtype=torch.long), num_graphs=3))
    assert scores.shape == (3, 2)
    assert torch.equal(scores[1], model.head.bias)


@pytest.mark.parametrize("scheme", sorted(schemes.SCHEMES))
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_first_aggregate_is_computed_once_not_every_epoch(scheme, sparse, monkeypatch):
    seen = {"neighbourhood": [], "convolve": []}

    def counting(name, original):
        def call(self, *args, **options):
            seen[name].append(self)
            return original(self, *args, **options)

        return call

    for name in seen:
        monkeypatch.setattr(DEMOConv, name, counting(name, getattr(DEMOConv, name)))
    model = nodes(scheme=scheme, hash_size=2)
    prepared = model.prepare(x().to_sparse_csr() if sparse else x(), PATH.edge_index)
    problem = NodeProblem((prepared,), torch.tensor([0, 1, 0, 1]), Split("s", 0, [0, 1], [2, 3], []))
    fit(model, problem, TrainConfig(epochs=5))
    first, second = (layer.conv for layer in model.layers)
    assert [conv is first for conv in seen["neighbourhood"]].count(True) == 1
    assert seen["convolve"] == [first, second] * 10  # five epochs, each trained and validated
