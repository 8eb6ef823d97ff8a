"""Training on batches of nodes: what they see, that evaluation is exact, and when they are chosen."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from demonet import DEMONetClassifier, DemonetError, DEMONetRegressor, DemonetWarning
from demonet.data.splits import Split, fractions
from demonet.data.synthetic import role_graph
from demonet.features import FeatureMap
from demonet.nn.blocks import NeighbourSampler, NodeBatch, WholeGraph
from demonet.train import batches, preset
from demonet.train.batches import NodeBatchProblem, decide_batches
from demonet.train.problem import NodeProblem
from demonet.train.recipes import node_model, train_nodes
from demonet.train.steps import Steps, evaluate

GRAPH = role_graph(0)
SPLIT = fractions(GRAPH.y, (0.6, 0.2, 0.2), 0, stratified=True)
MADE = preset("default", "nodes")
MADE = replace(MADE, model=MADE.model.changed(hidden=16, dropout=0.0), train=replace(MADE.train, epochs=6))


def network():
    x = FeatureMap(MADE.features).fit_transform(GRAPH)
    model = node_model(GRAPH, x, MADE, seed=0)
    return model, model.prepare(x, GRAPH.edge_index)


def test_an_epoch_has_every_training_node_once():
    model, graph = network()
    problem = NodeBatchProblem(NeighbourSampler(model, graph, 3), GRAPH.y, SPLIT, 10)
    sizes, seen = [], []
    for batch in problem.training(0, 0):
        sizes.append(batch.y.numel())
        seen += batch.y.tolist()
    assert max(sizes) <= 10
    assert max(sizes) - min(sizes) <= 1
    assert sorted(seen) == sorted(GRAPH.y[SPLIT.train].tolist())
    again, other = ([b.y.tolist() for b in problem.training(0, epoch)] for epoch in (0, 1))
    assert again == [b.y.tolist() for b in problem.training(0, 0)]
    assert again != other


def test_one_batch_without_sampling_is_a_step_on_the_whole_graph():
    """The derivatives by the weights are the same, so the step is."""
    losses = []
    for kind in ("whole", "batch"):
        model, graph = network()
        whole = NodeProblem((graph,), GRAPH.y, SPLIT)
        parts = NodeBatchProblem(NeighbourSampler(model, graph), GRAPH.y, SPLIT, GRAPH.num_nodes)
        problem = whole if kind == "whole" else parts
        steps = Steps(model, MADE.train, torch.device("cpu"), problem.objective)
        losses.append([steps.train(batch) for _ in range(2) for batch in problem.training(0, 0)])
        assert evaluate(model, whole.validation) == pytest.approx(evaluate(model, parts.validation), abs=1e-5)
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize("neighbours", [None, 2])
def test_training_in_batches_is_evaluated_on_all_neighbours(neighbours):
    trained = train_nodes(GRAPH, SPLIT, MADE, batch_size=16, neighbours=neighbours)
    assert trained.history.epochs == 6
    assert isinstance(trained.inputs[0], WholeGraph)
    scores = trained.model(trained.features.transform(GRAPH), GRAPH.edge_index)
    found = float((scores.argmax(1)[SPLIT.val] == GRAPH.y[SPLIT.val]).float().mean())
    assert trained.val_metric == pytest.approx(found)
    again = train_nodes(GRAPH, SPLIT, MADE, batch_size=16, neighbours=neighbours)
    assert again.history.train_loss == trained.history.train_loss
    other = train_nodes(GRAPH, SPLIT, MADE, batch_size=16, neighbours=neighbours, seed=1)
    assert other.history.train_loss != trained.history.train_loss


def test_a_few_validation_nodes_are_evaluated_without_the_rest_of_the_graph():
    """A ring: the two neighbours of a node are all that a second layer reads."""
    ring = torch.arange(400)
    edges = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    data = Data(edge_index=edges, num_nodes=400, y=ring % 3, x=torch.eye(3)[(ring + ring // 7) % 3])
    made = replace(MADE, features="attributes", family="attributes")
    split = Split("ring", 0, ring[:200], ring[200:220], ring[300:310])
    x = FeatureMap(made.features).fit_transform(data)
    model = node_model(data, x, made, seed=0).eval()
    graph = model.prepare(x, data.edge_index)
    parts = NodeBatchProblem(NeighbourSampler(model, graph, 1), data.y, split, 50)
    whole = NodeProblem((graph,), data.y, split)
    for part in ("validation", "test"):
        (found,) = getattr(parts, part).inputs
        assert isinstance(found, NodeBatch)
        assert found.x.size(0) < 40
        assert evaluate(model, getattr(parts, part)) == pytest.approx(evaluate(model, getattr(whole, part)), abs=1e-5)


def test_resumed_training_gives_the_same_bits(tmp_path):
    class Stop(Exception):  # noqa: N818
        pass

    def stop(epoch):
        if epoch.number == 30:
            raise Stop

    made = replace(MADE, train=replace(MADE.train, epochs=40, patience=40))
    options = {"batch_size": 20, "neighbours": 3}
    whole = train_nodes(GRAPH, SPLIT, made, **options)
    with pytest.raises(Stop):
        train_nodes(GRAPH, SPLIT, made, **options, on_epoch=stop, checkpoint=tmp_path / "c.safetensors")
    again = train_nodes(GRAPH, SPLIT, made, **options, checkpoint=tmp_path / "c.safetensors")
    assert again.history.train_loss == whole.history.train_loss
    for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(DemonetError, match="another data or split"):
        train_nodes(GRAPH, SPLIT, made, batch_size=21, neighbours=3, checkpoint=tmp_path / "c.safetensors")


def test_batches_are_chosen_where_all_nodes_do_not_fit(monkeypatch):
    model, graph = network()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decide_batches(model, graph, None, None) is None
        assert decide_batches(model, graph, 5, None) == (5, None)
        assert decide_batches(model, graph, None, 7) == (batches.BATCH_SIZE, 7)
    monkeypatch.setattr(batches, "available_bytes", lambda device: 1000.0)
    with pytest.warns(DemonetWarning, match=r"would take about .* GB.*batches of 8,192 nodes"):
        assert decide_batches(model, graph, None, None) == (batches.BATCH_SIZE, batches.NEIGHBOURS)
    with pytest.warns(DemonetWarning, match="would take about"):
        trained = train_nodes(GRAPH, SPLIT, MADE)
    assert isinstance(trained.inputs[0], WholeGraph)


def test_estimators_take_batches():
    options = {"model": "network", "epochs": 3, "batch_size": 16, "neighbours": 3}
    classifier = DEMONetClassifier(**options).fit(GRAPH)
    np.testing.assert_allclose(classifier.predict_proba().sum(1), 1, atol=1e-5)
    whole = DEMONetClassifier(model="network", epochs=3).fit(GRAPH)
    assert not np.allclose(whole.predict_proba(), classifier.predict_proba())
    data = GRAPH.clone()
    data.y = data.y.double()
    assert DEMONetRegressor(**options).fit(data).predict().shape == (GRAPH.num_nodes,)
    with pytest.raises(DemonetError, match="batch_size=16 with model='auto'"):
        DEMONetClassifier(batch_size=16).fit(GRAPH)
    with pytest.raises(ValueError, match="neighbours"):
        DEMONetClassifier(model="network", neighbours=0).fit(GRAPH)


def test_a_large_graph_is_predicted_in_blocks(monkeypatch):
    classifier = DEMONetClassifier(model="network", epochs=3).fit(GRAPH)
    expected = classifier.predict_proba(), classifier.transform()
    monkeypatch.setattr("demonet.estimators.models.ROWS", 4)
    np.testing.assert_allclose(classifier.predict_proba(), expected[0], atol=1e-5)
    np.testing.assert_allclose(classifier.transform(), expected[1], atol=1e-5)


@pytest.mark.parametrize("size", [1, 2])
def test_no_batch_has_a_single_node(size):
    """With batch normalisation, a batch of one was a traceback."""
    model, graph = network()
    split = replace(SPLIT, train=SPLIT.train[: len(SPLIT.train) - 1 + len(SPLIT.train) % 2])  # an odd number
    problem = NodeBatchProblem(NeighbourSampler(model, graph, 3), GRAPH.y, split, size)
    assert {batch.y.numel() for batch in problem.training(0, 0)} == {2, 3}
