"""Networks: what the base class does for all of them."""

from dataclasses import replace

import pytest
import torch

from demonet import DemonetError, methods
from demonet.data.splits import thirds
from demonet.data.synthetic import role_graph, small_graphs
from demonet.methods.network import LayerSettings, Network

NETWORKS = [name for name in methods.names() if issubclass(methods.get(name), Network)]


def quick(name, **changes):
    """Few epochs, and batches that do not divide the training set."""
    method = methods.get(name)
    return method(train=replace(method.defaults.train, epochs=4, batch_size=None), **changes)


def problem(kind):
    data = role_graph(0, motifs=8) if kind == "nodes" else small_graphs(15)
    y = data.y if kind == "nodes" else torch.cat([graph.y for graph in data])
    return data, y, thirds(y, 0, stratified=True)


CASES = [(name, kind) for name in NETWORKS for kind in methods.get(name).kinds]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_seed_decides_and_test_labels_do_not(name, kind):
    data, y, split = problem(kind)
    torch.manual_seed(5)
    one, other = quick(name).fit(data, split, seed=3), quick(name).fit(data, split, seed=4)
    for item in split.test.tolist():
        if kind == "nodes":
            data.y[item] = (y[item] + 1) % (int(y.max()) + 1)
        else:
            data[item].y = (data[item].y + 1) % 5
    torch.manual_seed(6)
    two = quick(name).fit(data, split, seed=3)
    assert one.history.train_loss == two.history.train_loss != other.history.train_loss
    assert torch.equal(one.embeddings(), two.embeddings())
    assert one.predict().shape == y.shape
    assert one.embeddings().shape[0] == y.numel()
    assert one.embeddings().isfinite().all()


@pytest.mark.parametrize("name", NETWORKS)
def test_settings(name):
    method = methods.get(name)
    assert method.defaults.source
    with pytest.raises(DemonetError, match=f"^{name} .*'witdh'.*train"):
        method(witdh=3)
    if isinstance(method.defaults, LayerSettings):
        with pytest.raises(DemonetError, match=r"hidden .*0"):
            method(hidden=0)
        with pytest.raises(DemonetError, match=r"dropout .*1"):
            method(dropout=1.0)
        assert method(hidden=25).settings.hidden == 25


def test_initial_weights_leave_the_generators_of_gpus_as_they_are(monkeypatch):
    monkeypatch.setattr("torch.cuda.manual_seed_all", lambda seed: pytest.fail("it was seeded"))
    data, _, _ = problem("nodes")
    for name in [name for name, kind in CASES if kind == "nodes"]:
        quick(name).first_embeddings(data)


def test_bad_settings():
    with pytest.raises(DemonetError, match=r"order .*0"):
        methods.get("gcn-cheby")(order=0)
    with pytest.raises(DemonetError, match=r"heads .*0"):
        methods.get("gat")(heads=0)
    with pytest.raises(DemonetError, match=r"hidden=64.*towers=5"):
        methods.get("pna")(hidden=64)


def test_wide_and_sparse_attributes():
    """Adjacency rows are sparse: every network for nodes takes them."""
    data, _, split = problem("nodes")
    for name in [name for name, kind in CASES if kind == "nodes"]:
        assert quick(name, features="adjacency").fit(data, split).predict().shape == data.y.shape
