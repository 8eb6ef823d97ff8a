"""The registry, the interface, and two simple baselines worked out by hand."""

import csv
from pathlib import Path

import pytest
import torch
from tests.reference.graphs import from_arcs
from torch_geometric.data import Data

from demonet import DemonetError, methods
from demonet.data.splits import Split, thirds
from demonet.data.synthetic import role_graph
from demonet.methods.base import REGISTRY, register
from demonet.methods.convolutional import GCN
from demonet.methods.simple import Majority
from demonet.train import TrainConfig


def made(name):
    return GCN(train=TrainConfig(lr=0.01, epochs=10)) if name == "gcn" else methods.get(name)()


with (Path(__file__).parents[2] / "results" / "comparison.csv").open(newline="") as file:
    RECORDED = list(dict.fromkeys(row["method"] for row in csv.DictReader(file)))


def test_recorded_methods_keep_their_names_and_their_order():
    """DEMO-Net first, as in the tables."""
    names = [name for name in methods.names() if name in RECORDED]
    assert set(names) == set(RECORDED)
    ours = [name.startswith("demonet") for name in names]
    assert ours == sorted(ours, reverse=True)
    with pytest.raises(DemonetError, match=r"'gnc'.*demonet-auto.*majority, degree-knn, "):
        methods.get("gnc")


@pytest.mark.parametrize("name", [*RECORDED, "demonet-auto", "demonet-kernel"])
def test_the_registry_has_class_settings_and_citation(name):
    found = methods.get(name)
    assert issubclass(found, methods.Method)
    assert found.name == name
    assert found.defaults.source
    assert found().settings == found.defaults
    with pytest.raises(DemonetError, match=f"^{name} .*'colour'"):
        found(colour=1)


def test_a_name_is_registered_once(monkeypatch):
    monkeypatch.setattr("demonet.methods.base.REGISTRY", dict(REGISTRY))

    class Other(Majority):
        name = "other"

    assert register(Other) is register(Other)
    with pytest.raises(DemonetError, match=r"'majority'.*demonet\.methods\.simple\.Majority"):
        register(type("Again", (Majority,), {}))


# A star of four leaves, a path of three, an isolated node: degrees 4 1 1 1 1 | 1 2 1 | 0.
GRAPH = from_arcs(9, [(0, 1), (0, 2), (0, 3), (0, 4), (5, 6), (6, 7)], undirected=True)


def data(y):
    return Data(edge_index=GRAPH.edge_index, num_nodes=9, y=torch.tensor(y))


def test_the_majority_is_that_of_training():
    """Class 1 leads in training, class 0 everywhere else."""
    found = methods.get("majority")().fit(data([1, 1, 0, 0, 0, 0, 0, 0, 0]), Split("s", 0, [0, 1, 2], [3], [4]))
    assert found.predict().tolist() == [1] * 9
    assert found.score(torch.tensor([0, 1, 2]), torch.tensor([1, 1, 0, 0, 0, 0, 0, 0, 0])) == pytest.approx(2 / 3)


def test_nearest_degree():
    """Training knows degrees 4, 1, 2 as classes 2, 0, 1; the nearest to degree 0 is 1."""
    y = [2, 0, 0, 0, 0, 0, 1, 0, 0]
    found = methods.get("degree-knn")().fit(data(y), Split("s", 0, [0, 1, 6], [2, 3], [4, 5, 7, 8]))
    assert found.predict().tolist() == y


def test_the_number_of_neighbours_is_chosen_on_validation():
    """A lone class 1 among the leaves: its own nearest neighbour, but outvoted by three."""
    y = torch.tensor([1, 1, 0, 0, 0, 0, 1, 0, 0])
    # Leaves 1 (class 1), 2 and 3 (class 0) train; one neighbour says 1 for every leaf, three say 0.
    split = Split("s", 0, [1, 2, 3], [4, 5], [7])
    found = methods.get("degree-knn")().fit(data(y.tolist()), split)
    assert found.predict()[[4, 5, 7]].tolist() == [0, 0, 0]


def test_nearest_shares_of_degrees():
    """Cycles of any length have all nodes of degree 2, stars one hub: the shares tell them apart."""
    ring = [from_arcs(n, [(i, (i + 1) % n) for i in range(n)], undirected=True) for n in (4, 5, 6)]
    star = [from_arcs(n, [(0, i) for i in range(1, n)], undirected=True) for n in (4, 5, 6)]
    graphs = [
        Data(edge_index=arcs, num_nodes=n, y=torch.tensor([label]))
        for label, group in enumerate((ring, star))
        for arcs, n in group
    ]
    found = methods.get("degree-knn")().fit(graphs, Split("s", 0, [0, 3], [1, 4], [2, 5]))
    assert found.predict().tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("name", ["majority", "degree-knn", "gcn"])
def test_bad_input(name):
    graph = role_graph(0, motifs=8)
    split = thirds(graph.y, 0, stratified=True)
    with pytest.raises(DemonetError, match=r"train.*\bs\b.*empty"):
        made(name).fit(graph, Split("s", 0, [], [0], [1]))
    with pytest.raises(DemonetError, match="graphs"):
        made(name).fit([], split)
    graph.y = graph.y[:-3]
    with pytest.raises(DemonetError, match=r"\b53\b.*\b56\b"):
        made(name).fit(graph, split)
    graph.y = None
    with pytest.raises(DemonetError, match=r"\by\b.*-1"):
        made(name).fit(graph, split)
