"""Presets: ``paper`` and ``authors`` are what the paper's text and its authors' code say; each one trains."""

from dataclasses import replace

import pytest
import torch
from tests.train import problems

from demonet import DemonetError
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
