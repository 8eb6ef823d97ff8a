"""Large graphs: what does not fit into memory is left out with a reason, and fits read a bounded number of items."""

import sys

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from demonet import DemonetError
from demonet.closedform import KernelMachine, NodeSetting, machine
from demonet.closedform import nodes as kernel_nodes
from demonet.data import thirds
from demonet.data.synthetic import power_law
from demonet.ensemble import Ensemble, fitting, portfolio
from demonet.estimators.models import EnsembleModel, LabelledItems
from demonet.features import views
from demonet.features.views import view_of
from demonet.methods import closed_form, forest, linear, model, propagation, simple, wl_models
from demonet.methods.forest import NodeForest, predict_trees
from demonet.methods.kernel_ridge import NodeKernel
from demonet.methods.model import MOST_SECONDS, Labelled
from demonet.methods.propagation import AdjacencyLinear
from demonet.methods.wl_models import WLForest, WLKernel, WLNeighbour

ensembles = sys.modules["demonet.ensemble.ensemble"]


@pytest.fixture
def graph():
    data = power_law(300, 900, hub=40, seed=0)
    data.x = torch.randn(300, 5, generator=torch.Generator().manual_seed(0))
    data.y = (data.x[:, 0] > 0).long()
    return data


@pytest.fixture
def large(monkeypatch):
    """Every graph counts as large."""
    for module in (ensembles, fitting, closed_form, forest, linear, model, propagation, views):
        monkeypatch.setattr(module, "LARGE", 0)


def test_members_that_do_not_fit_into_memory_are_left_out_with_a_reason(graph, large, monkeypatch):
    monkeypatch.setattr(fitting, "available_bytes", lambda device: 8e6)
    ensemble = Ensemble.fit(graph, effort="quick")
    rows = {row.name: row for row in ensemble.candidates}
    assert rows["kernel-degree"].status == "skipped"
    assert "GB can be used" in rows["kernel-degree"].reason
    assert rows["linear"].status == "fitted"
    np.testing.assert_allclose(ensemble.fitted_outputs.sum(1), 1)


def test_memory_is_no_reason_on_a_small_graph(graph, monkeypatch):
    monkeypatch.setattr(fitting, "available_bytes", lambda device: 0.0)
    members = [NodeForest(trees=5), NodeKernel(kernel="degree")]
    assert {row.status for row in Ensemble.fit(graph, members=members).candidates} == {"fitted"}


def test_a_large_fit_reads_so_many_training_items(graph, large, monkeypatch):
    labelled = Labelled(graph.y.numpy(), 2, np.arange(200), np.arange(200, 300))
    drawn = labelled.some("linear", 300, 50)
    assert len(np.unique(drawn)) == 50
    assert np.isin(drawn, labelled.train).all()
    assert np.array_equal(drawn, labelled.some("linear", 300, 50))
    assert labelled.some("linear", 300, 200) is labelled.train
    monkeypatch.setattr(linear, "LINEAR_ROWS", 40)
    monkeypatch.setattr(closed_form, "ROWS", 40)
    view = view_of(graph)
    for name in ("linear", "linear-diffused", "machine"):
        (made,) = [m for m in portfolio(view, labelled, "quick") if m.name == name]
        fitted = made.fit_on(view, labelled)
        if name == "machine":
            assert len(fitted.machine().train_) == 40
        assert (fitted.outputs(view).argmax(1) == labelled.y).mean() > 0.7
        assert fitted.estimate(view, 200) == fitted.estimate(view, 40) or name == "machine"


def test_memory_grows_with_classes_and_with_what_is_kept(graph, large, monkeypatch):
    """With 20,000 classes every candidate was expected to take as much as with 4, and 9 GB were not enough."""
    few, many = (Labelled(graph.y.numpy(), count, np.arange(200), np.arange(200, 300)) for count in (2, 500))
    view = view_of(graph)
    for one, other in zip(portfolio(view, few, "quick"), portfolio(view, many, "quick"), strict=False):
        assert other.memory(view, 200) - one.memory(view, 200) >= 8 * 300 * 498
    forests = [NodeForest(name, trees=5).for_problem(few) for name in ("one", "two")]
    need = forests[0].memory(view, 225)  # beside the outputs of all items, and of a quarter that judges them
    monkeypatch.setattr(fitting, "available_bytes", lambda device: (need + 8 * 300) / fitting.USABLE)
    assert [row.status for row in Ensemble.fit(graph, members=forests).candidates] == ["fitted", "skipped"]


def test_memory_counts_where_attributes_are_many(graph, monkeypatch):
    monkeypatch.setattr(fitting, "available_bytes", lambda device: 0.0)
    monkeypatch.setattr(fitting, "LARGE", 301)
    assert Ensemble.fit(graph, members=[NodeForest(trees=5)]).members
    graph.x = torch.randn(300, 301, generator=torch.Generator().manual_seed(0))
    with pytest.raises(DemonetError, match="GB can be used"):
        Ensemble.fit(graph, members=[NodeForest(trees=5)])


@pytest.mark.parametrize("restarts", [1, 30])
def test_a_search_for_eigenvectors_ends(large, monkeypatch, restarts):
    """In a random graph with a hub of a million neighbours it took hours; what is found by then is used."""
    graph = power_law(3000, 9000, hub=40, seed=0)
    graph.y = torch.arange(3000) % 2
    monkeypatch.setattr(views, "EIGEN_RESTARTS", restarts)
    view = view_of(graph)
    assert (view.eigenvectors.shape[1] < views.EIGENVECTORS) == (restarts == 1)
    labelled = Labelled(graph.y.numpy(), 2, np.arange(200), np.arange(200, 300))
    fitted = AdjacencyLinear(coarse=True).fit_on(view, labelled)
    assert np.isfinite(fitted.outputs(view)).all()


def test_many_attributes_are_projected_on_fewer_columns(graph, monkeypatch):
    """A million sparse columns took 5 GB for 256 singular vectors."""
    graph.x = torch.randn(300, 300, generator=torch.Generator().manual_seed(0))
    assert view_of(graph).arrays["attributes.axes"].shape == (300, views.WIDE)
    monkeypatch.setattr(views, "AXES", 300 * 7 + 1)
    assert view_of(graph).arrays["attributes.axes"].shape == (300, 7)


def test_a_machine_whose_kernel_with_all_nodes_is_large_is_fitted_in_the_primal(graph, monkeypatch):
    """Eight kernels of a million nodes and 800 labelled ones took minutes for every prediction."""
    rows = np.arange(200)
    dual = KernelMachine("classes").fit(graph, rows, graph.y.numpy()[rows])
    monkeypatch.setattr(machine, "ENTRIES", 300 * 199)
    primal = KernelMachine("classes").fit(graph, rows, graph.y.numpy()[rows])
    assert (bool(dual.primal_), bool(primal.primal_)) == (False, True)
    assert (primal.predict(graph) == graph.y.numpy()).mean() > 0.8
    given = KernelMachine("classes", settings=[NodeSetting(height=1.0)]).fit(graph, rows, graph.y.numpy()[rows])
    assert not given.primal_


def test_averages_without_a_copy_are_the_same(graph, large, monkeypatch):
    found = Ensemble.fit(graph, members=[NodeForest(trees=5), NodeKernel(kernel="degree")])
    monkeypatch.setattr(ensembles, "LARGE", 1000)
    np.testing.assert_allclose(found.average(found.member_outputs(graph)), found.fitted_outputs, atol=1e-12)


def test_one_diffusion_is_kept(graph, large):
    view = view_of(graph)
    first = view.diffused(0.15).copy()
    view.diffused(0.4)
    assert len(view._diffused) == 1
    np.testing.assert_array_equal(view.diffused(0.15), first)


def test_a_large_graph_has_fewer_trees(graph, large, monkeypatch):
    labelled = Labelled(graph.y.numpy(), 2, np.arange(200), np.arange(200, 300))
    monkeypatch.setitem(MOST_SECONDS, "quick", 0.05)
    trees = [m.settings.trees for m in portfolio(view_of(graph), labelled, "quick") if m.kind == "forest"]
    assert trees
    assert all(10 <= count < 50 for count in trees)


def test_what_reads_the_degree_alone_is_computed_once_for_each_degree(graph):
    view = view_of(graph)
    labelled = Labelled(graph.y.numpy(), 2, np.arange(200), np.arange(200, 300))
    kernel = NodeKernel(kernel="degree").fit_on(view, labelled)
    every = kernel.outputs_of(kernel.rows(view))
    np.testing.assert_allclose(kernel.outputs(view), every, atol=1e-12)
    trees = NodeForest(columns="degree", trees=7).fit_on(view, labelled)
    every = predict_trees(trees.arrays, trees.rows(view))
    np.testing.assert_array_equal(trees.outputs(view), every)
    assert len(np.unique(view.log_degree)) < 100 < len(every)


@pytest.mark.parametrize("kernel", ["structure", "ranks", "demo"])
def test_kernels_in_blocks_of_any_size_are_the_same(graph, kernel, monkeypatch):
    view = view_of(graph)
    labelled = Labelled(graph.y.numpy(), 2, np.arange(200), np.arange(200, 300))
    fitted = NodeKernel(kernel=kernel).fit_on(view, labelled)
    found = fitted.outputs(view)
    monkeypatch.setattr(NodeKernel, "entries", 7 * 200)
    np.testing.assert_allclose(fitted.outputs(view), found, atol=1e-12)


def test_structural_kernels_in_blocks_of_any_size_are_the_same(monkeypatch):
    left, right = (torch.randn(n, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(n)) for n in (90, 40))
    setting = NodeSetting(structure=0.5, additive=2.0)
    found = kernel_nodes.structural(left, right, setting)
    monkeypatch.setattr(kernel_nodes, "CACHED", 3 * 40)
    assert torch.equal(kernel_nodes.structural(left, right, setting), found)
    gap = (left[:, None] - right) / kernel_nodes.ADDITIVE_WIDTH
    near = 0.5 * torch.exp(-0.5 * (left[:, None] - right).square().mean(2))
    assert torch.allclose(found, near + 2.0 * torch.exp(-0.5 * gap.square()).mean(2))


@pytest.fixture
def tiny_graphs():
    """Paths, stars and cycles of 3 to 6 nodes; each is there ten times."""
    graphs = []
    for number in range(120):
        size, shape = 3 + number % 4, number % 3
        ends = [(node if shape else 0, node + 1) for node in range(size - 1)] + [(size - 1, 0)] * (shape == 2)
        edge_index = torch.tensor([*ends, *((target, source) for source, target in ends)]).T
        graphs.append(Data(edge_index=edge_index, num_nodes=size, y=torch.tensor([int(shape == 0)])))
    return graphs


def test_of_many_graphs_a_kernel_is_computed_once_for_each_histogram(tiny_graphs, monkeypatch):
    """With a million graphs of five nodes it took minutes and gigabytes for every prediction."""
    y = np.array([int(graph.y) for graph in tiny_graphs])
    view, model, read, times = view_of(tiny_graphs), WLKernel(), list[int](), WLKernel.times
    fitted = model.fit_on(view, Labelled(y, 2, np.arange(80), np.arange(80, 120)))
    before, embedded = fitted.outputs(view), fitted.embed(view)

    def counted(self, rows, fitted, right):
        read.append(len(rows["size"]))
        return times(self, rows, fitted, right)

    monkeypatch.setattr(wl_models, "LARGE", 0)
    monkeypatch.setattr(WLKernel, "times", counted)
    np.testing.assert_allclose(fitted.outputs(view), before, atol=1e-12)
    np.testing.assert_allclose(fitted.embed(view), embedded, atol=1e-9)
    assert read == [11, 11]  # a path of three nodes is a star


def test_members_on_graphs_count_what_they_keep_of_every_graph(tiny_graphs):
    """With the effort "best", distances of all graphs to all training graphs were computed in whatever memory."""
    few, many = view_of(tiny_graphs), view_of(tiny_graphs * 10)
    added, columns = 9 * len(tiny_graphs), few.descriptors.shape[1]
    kept = [(WLNeighbour(), 2 * 80), (WLForest(trees=5), 2 * columns), (WLKernel(), 2 * 4 * 3)]
    for member, entries in kept:
        assert member.memory(many, 80) - member.memory(few, 80) > 8 * entries * added


def test_graphs_that_have_their_targets_are_not_copied(tiny_graphs, monkeypatch):
    y, given = torch.tensor([int(graph.y) for graph in tiny_graphs]), []
    monkeypatch.setattr(Ensemble, "fit", lambda items, *_, **__: given.append(items))
    monkeypatch.setattr(EnsembleModel, "__init__", lambda *_: None)
    EnsembleModel.fit(LabelledItems(tiny_graphs, y, thirds(y, 0), "classify", 0, "cpu"))
    assert given[0] is tiny_graphs


def test_beside_a_hub_many_graphs_have_columns_for_degrees_that_occur(tiny_graphs, monkeypatch):
    """A star of a million nodes gave every graph a million columns."""
    whole = simple.degree_rows(tiny_graphs)
    monkeypatch.setattr(simple, "ENTRIES", 0)
    np.testing.assert_array_equal(simple.degree_rows(tiny_graphs), whole[:, whole.any(0)])
