"""Presets: ``paper`` and ``authors`` are what the paper's text and its authors' code say; each one trains."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.train import problems
from torch_geometric.data import Data

from demonet import DemonetError
from demonet.degree.count import count_degree
from demonet.train import preset, train_graphs, train_nodes

FAMILIES = ("nodes", "attributes", "graphs")

# The table of decisions, row by row: what both share, and what the paper's text and the released code each say.
BOTH_MODELS = {
    "hidden": 64,  # the whole width: 32 + 32 when concatenated
    "layers": 2,
    "dropout": 0.6,
    "hash_size": 256,
    "activation": "elu",
    "refine": False,
    "degree_scale": 1.0,
    "pooling": "degree",
}
BOTH_TRAININGS = {"lr": 0.005, "weight_decay": 5e-4, "patience": 100, "epochs": 1000, "degree_decay": 1.0}
MODELS = {
    "paper": {"aggr": "sum", "combine": "concat", "bias": False, "head": "linear"},
    "authors": {"aggr": "mean", "combine": "add", "bias": True, "head": "degree"},
}
TRAININGS = {"paper": {"decay_biases": False}, "authors": {"decay_biases": True}}
SELF_LOOPS = {"paper": "drop", "authors": "keep"}
FEATURES = {
    "paper": {"nodes": "degree-onehot", "attributes": "attributes", "graphs": "attributes"},
    "authors": {"nodes": "adjacency", "attributes": "attributes", "graphs": "attributes"},
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["paper", "authors"])
def test_the_presets_say_what_the_paper_and_its_code_say(name, family):
    found = preset(name, family)
    model = BOTH_MODELS | MODELS[name]
    if family == "graphs":
        model["head"] = "linear"  # a graph has no degree by which a head could be chosen
    assert {field: getattr(found.model, field) for field in model} == model
    training = BOTH_TRAININGS | TRAININGS[name]
    assert {field: getattr(found.train, field) for field in training} == training
    assert found.train.batch_size is None
    assert (found.name, found.family, found.tasks) == (name, family, "exact")
    assert found.self_loops == SELF_LOOPS[name]
    assert found.features == FEATURES[name][family]


@pytest.mark.parametrize(("name", "scheme"), [("paper", "weight"), ("authors", "hash"), ("default", "smooth")])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_preset_trains_in_its_families(name, family, scheme):
    chosen = problems.quick(name, family, model={"scheme": scheme}, epochs=3)
    data, split = getattr(problems, family)()
    trained = (train_graphs if family == "graphs" else train_nodes)(data, split, chosen)
    assert trained.history.epochs == 3
    assert all(torch.isfinite(torch.tensor(trained.history.train_loss + trained.history.val_loss)))
    assert 0 <= trained.test_metric <= 1
    assert trained.model.config.scheme == scheme
    items = split.train.numel() + split.val.numel() + split.test.numel()
    assert trained.model.eval().embed(*trained.inputs).shape[0] == items


def test_an_unknown_preset_is_an_error_with_the_names():
    with pytest.raises(DemonetError, match=r"'papers'.*'nodes'.*authors, .*default, paper"):
        preset("papers", "nodes")
    with pytest.raises(DemonetError, match=r"'paper'.*'edges'"):
        preset("paper", "edges")


def test_tasks_by_name():
    degree, base = torch.tensor([1, 1, 2, 3, 9]), preset("paper", "nodes")
    assert base.make_tasks(degree).names() == ["1", "2", "3", "9", "unseen"]
    assert replace(base, tasks="log2").make_tasks(degree).names() == ["0", "1", "2-3", "4-7", "8+"]
    assert replace(base, tasks="quantiles:2").make_tasks(degree).num_tasks == 2
    for wrong in ("quantile:2", "quantiles:", "quantiles:x", "all"):
        with pytest.raises(DemonetError, match=f"tasks='{wrong}'"):
            replace(base, tasks=wrong).make_tasks(degree)


@pytest.mark.parametrize(("name", "scheme"), [("paper", "weight"), ("paper", "hash"), ("default", "smooth")])
def test_a_degree_that_training_never_saw(name, scheme):
    """Trained on one graph, asked about another with a hub of three times the largest degree."""
    data, split = problems.nodes()
    trained = train_nodes(data, split, problems.quick(name, "nodes", model={"scheme": scheme}, epochs=3))
    hub = 3 * int(count_degree(data.edge_index, data.num_nodes).max())
    spokes = torch.stack([torch.zeros(hub, dtype=torch.long), torch.arange(1, hub + 1)])
    star = Data(edge_index=torch.cat([spokes, spokes.flip(0)], 1), num_nodes=hub + 2)  # the last node is isolated
    x = trained.features.transform(star)
    model = trained.model.eval()
    scores = model(x, star.edge_index)
    assert torch.isfinite(scores).all()
    assert scores.shape == (hub + 2, int(data.y.max()) + 1)
    torch.testing.assert_close(scores[1:-1], scores[1].expand(hub, -1))  # equal places, equal scores
    torch.testing.assert_close(model(model.prepare(x, star.edge_index)), scores)


def test_unseen_degrees_among_test_graphs():
    data, split = problems.graphs()
    trained = train_graphs(data, split, problems.quick("paper", "graphs", epochs=3))
    n = 40
    ring = torch.stack([torch.arange(n), torch.arange(n).roll(1)])
    full = torch.cartesian_prod(torch.arange(n), torch.arange(n)).t()
    full = full[:, full[0] != full[1]]
    for arcs in (torch.cat([ring, ring.flip(0)], 1), full):
        graph = Data(x=torch.ones(n, 2), edge_index=arcs, num_nodes=n)
        assert torch.isfinite(trained.model.eval()(trained.features.transform(graph), arcs)).all()


def test_weights_of_edges_reach_node_and_graph_models():
    data, split = problems.nodes()
    plain = train_nodes(data, split, problems.quick("paper", "nodes", epochs=1))
    data.edge_weight = torch.full((data.edge_index.size(1),), 0.1)
    weighted = train_nodes(data, split, problems.quick("paper", "nodes", epochs=1))
    assert plain.history.train_loss != weighted.history.train_loss

    many, split = problems.graphs(15)
    plain = train_graphs(many, split, problems.quick("paper", "graphs", epochs=1))
    for graph in many:
        graph.edge_weight = torch.full((graph.edge_index.size(1),), 0.1)
    weighted = train_graphs(many, split, problems.quick("paper", "graphs", epochs=1))
    assert plain.history.train_loss != weighted.history.train_loss
