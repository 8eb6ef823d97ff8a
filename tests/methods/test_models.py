"""Every model: probabilities, refit, state; forests and ridge against their definitions."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from tests.methods.problems import graph_set, labelled_of, roles
from torch_geometric.data import Data

from demonet.closedform.link import Link
from demonet.data.splits import Split
from demonet.ensemble import portfolio
from demonet.errors import DemonetError
from demonet.features.views import GraphView, NodeView, heavy_tails, view_of
from demonet.methods import Labelled, Model, get
from demonet.methods.closed_form import Kernel
from demonet.methods.demonet_average import NetworkAverage
from demonet.methods.forest import predict_trees, tree_arrays
from demonet.methods.kernel_ridge import NodeKernel, OrderedLogit
from demonet.methods.linear import Linear, OwnLinear
from demonet.methods.model import CoarseSettings, OutOfTimeError, ranks_by_degree
from demonet.methods.selection import item_losses
from demonet.methods.wl_models import intersection, l1_distances


def small(model: Model) -> Model:
    """The same model, with few and short networks."""
    changes = {"seeds": 2, "epochs": 4} if isinstance(model, NetworkAverage) else {}
    return type(model)(model.name, **model.options | changes)


def problems():
    nodes, labelled = roles(), labelled_of(roles())
    numbers = roles()
    numbers.x = torch.randn(numbers.num_nodes, 3)
    counts = roles()
    counts.x = (torch.rand(counts.num_nodes, 12) < 0.2).float()
    for name, data in (("bare", nodes), ("numbers", numbers), ("counts", counts)):
        for member in portfolio(NodeView(data), labelled):
            if (
                name == "bare"
                or member.name.endswith(("-attributes", "-own"))
                or member.name in ("linear", "linear-own", "linear-diffused", "linear-adjacency", "machine")
            ):
                yield pytest.param(data, labelled, small(member), id=f"{name}-{member.name}")
    for name in ("labels", "none"):
        graphs = graph_set(40, name == "labels")
        for member in portfolio(GraphView(graphs), labelled_of(graphs)):
            yield pytest.param(graphs, labelled_of(graphs), small(member), id=f"{name}-{member.name}")


@pytest.mark.parametrize(("data", "labelled", "model"), list(problems()))
def test_a_model_fits_refits_and_comes_back_from_its_state(data, labelled, model):
    view = view_of(data)
    hidden = np.where(np.isin(np.arange(len(labelled.y)), [*labelled.train, *labelled.val]), labelled.y, -1)
    masked = type(labelled)(hidden, labelled.outputs, labelled.train, labelled.val, labelled.seed)
    fitted = model.fit_on(view, masked)
    probability = fitted.outputs(view)
    assert probability.shape == (view.num_items, labelled.outputs)
    np.testing.assert_allclose(probability.sum(1), 1, atol=1e-6)
    np.testing.assert_array_equal(model.fit_on(view, masked).outputs(view), probability)
    assert model.estimate(view, len(labelled.train)) > 0
    refitted = fitted.refit_on(view, masked)
    assert (refitted.chosen or {}).keys() == (fitted.chosen or {}).keys()
    facts, arrays = refitted.state()
    back = Model.from_state(json.loads(json.dumps(facts)), arrays)
    np.testing.assert_array_equal(back.outputs(view), refitted.outputs(view))
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in arrays.values())


def test_a_model_is_a_method_on_a_split():
    """Fitted by name on data and a split, it gives what it gives on a view; and so does its refit."""
    data, labelled = roles(), labelled_of(roles())
    rest = np.setdiff1d(np.arange(data.num_nodes), [*labelled.train, *labelled.val])
    split = Split("test", 0, *map(torch.from_numpy, (labelled.train, labelled.val, rest)))
    view, model = NodeView(data), get("node-kernel")(coarse=True)
    fitted, known = model.fit(data, split), NodeKernel(coarse=True).fit_on(view, labelled)
    np.testing.assert_array_equal(fitted.predict_proba().numpy(), known.outputs(view))
    again = fitted.refit(data, split).predict_proba().numpy()
    np.testing.assert_array_equal(again, known.refit_on(view, labelled).outputs(view))


def test_quick_candidates_compare_settings_coarsely_and_no_others_do():
    data = roles()
    data.x = torch.randn(data.num_nodes, 3)
    for items in (data, graph_set()):
        for effort in ("quick", "standard"):
            every = portfolio(view_of(items), labelled_of(items), effort)
            assert {m.settings.coarse for m in every if isinstance(m.settings, CoarseSettings)} == {effort == "quick"}
            assert {m.settings.screen < 1000 for m in every if isinstance(m, Kernel)} == {effort == "quick"}


@pytest.mark.parametrize("coarse", [True, False])
def test_a_coarse_kernel_keeps_its_setting_when_it_is_refitted(coarse, monkeypatch):
    view, labelled = NodeView(roles()), labelled_of(roles())
    model = NodeKernel(kernel="structure", coarse=coarse).fit_on(view, labelled)
    monkeypatch.setattr("demonet.methods.kernel_ridge.LENGTHS", (0.17,))
    assert model.refit_on(view, labelled).facts["length"] == (model.facts["length"] if coarse else 0.17)


def test_a_coarse_regression_chooses_on_few_nodes_and_is_fitted_on_all(monkeypatch):
    data = roles()
    data.x = torch.randn(data.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    view, labelled = NodeView(data), labelled_of(data)
    monkeypatch.setattr("demonet.methods.linear.COARSE_ROWS", 20)
    member = Linear(coarse=True).fit_on(view, labelled)
    chosen = member.chosen
    assert chosen["items"] == len(labelled.train) > 20
    exact = LogisticRegression(C=chosen["strength"], max_iter=100)
    rows = member._rows(view, chosen["scale"], labelled.train)
    np.testing.assert_allclose(member.arrays["coef"], exact.fit(rows, labelled.y[labelled.train]).coef_)


def test_a_machine_predicts_the_same_with_inputs_that_the_view_keeps_and_without():
    data, other = roles(), roles(seed=3)
    view, labelled = NodeView(data), labelled_of(data)
    member = Kernel(task="classes", members=2).fit_on(view, labelled)
    state = view.facts, view.arrays
    np.testing.assert_array_equal(member.outputs(view), member.outputs(NodeView(data, state)))
    elsewhere = NodeView(other)
    member.fit_on(elsewhere, labelled_of(other))  # inputs that were learned from another graph are not these
    np.testing.assert_array_equal(member.outputs(elsewhere), member.outputs(NodeView(other, state)))


def test_columns_with_heavy_tails_become_ranks_and_no_others():
    generator = np.random.default_rng(0)
    flag = (generator.random(400) < 0.01).astype(float)  # of high kurtosis, but with two values
    rows = np.column_stack([generator.normal(size=400), np.exp(2 * generator.normal(size=400)), flag])
    assert heavy_tails(rows).tolist() == [False, True, False]
    data = Data(x=torch.from_numpy(rows), edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=400)
    view = NodeView(data)
    assert np.corrcoef(view.own[:, 1], np.argsort(np.argsort(rows[:, 1])))[0, 1] > 0.99
    np.testing.assert_allclose(view.own[:, 0], (rows[:, 0] - rows[:, 0].mean()) / rows[:, 0].std())
    beyond = Data(x=torch.full((1, 3), 1e9), edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=1)
    assert NodeView(beyond, (view.facts, view.arrays)).own[0, 1] == view.own[:, 1].max()


@pytest.mark.parametrize("make", [RandomForestClassifier, ExtraTreesClassifier])
def test_trees_as_arrays_predict_what_scikit_learn_does(make):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(300, 6)), generator.integers(3, size=300) * 2  # classes 0, 2, 4 of 5
    forest = make(30, min_samples_leaf=2, random_state=0).fit(x[:200], y[:200])
    found = predict_trees(tree_arrays(forest, 5), x)
    np.testing.assert_allclose(found[:, [0, 2, 4]], forest.predict_proba(x), atol=1e-12)
    assert not found[:, [1, 3]].any()


def test_an_ordered_link_recovers_its_parameters():
    """Proportional odds with slope 2 and cuts at -0.5 and 0.25 on a path-like score; class 2 is the lowest."""
    generator = np.random.default_rng(0)
    value, order = generator.normal(size=4000), np.array([2, 0, 1])
    true = np.exp(Link(2.0, (-0.5, 0.25), (0, 1, 2)).log_probabilities(value[:, None]))
    y = order[(generator.random(4000)[:, None] > np.cumsum(true, 1)).sum(1)]
    view = type("View", (), {"log_degree": value[:, None], "raw_log_degree": value})()
    fitted = OrderedLogit().fit_on(view, Labelled(y, 3, np.arange(4000), np.arange(0)))
    slope, cuts, ranks = fitted.facts["link"]
    assert slope == pytest.approx(2.0, abs=0.2)
    assert ranks == (1, 2, 0)
    np.testing.assert_allclose(cuts, [-0.5, 0.25], atol=0.1)
    np.testing.assert_allclose(fitted.outputs(view)[:, order], true, atol=0.05)


def test_classes_are_ranked_by_mean_log_degree():
    data, labelled = roles(), labelled_of(roles())
    ranks, explained = ranks_by_degree(NodeView(data), labelled)
    value, y = NodeView(data).raw_log_degree[labelled.train], labelled.y[labelled.train]
    means = [value[y == c].mean() for c in np.argsort(ranks)]
    assert means == sorted(means)
    assert 0 < explained <= 1


def test_histogram_distances_are_l1():
    view = GraphView(graph_set(12))
    rows = {f"counts{k}": view.histogram(k, k)[1] for k in range(4)} | {"size": view.sizes[:, None].astype(float)}
    counts = view.histogram(0, 0)[1].toarray()
    expected = np.abs(counts[:, None] - counts).sum(-1)
    np.testing.assert_allclose(next(l1_distances(rows, rows)), expected)
    np.testing.assert_allclose(
        intersection(rows["counts0"], rows["counts0"]), np.minimum(counts[:, None], counts).sum(-1)
    )


def test_the_deepest_network_reads_few_attributes_alone():
    """Columns of structure would outnumber them; beside many words they help."""
    data = roles(motifs=300)
    for width, wanted in ((0, "structure"), (7, "encoded"), (80, "encoded+structure")):
        data.x = torch.randn(data.num_nodes, width, generator=torch.Generator().manual_seed(0)) if width else None
        view, labelled = NodeView(data), labelled_of(data)
        found = {model.name: model.settings for model in NetworkAverage.candidates(view, labelled, "best")}
        assert found["network-12"].features == wanted
        assert found["network-5"].features == ("encoded+structure" if width else "structure")


def test_deep_networks_are_tried_where_many_nodes_are_labelled():
    data = roles(motifs=300)
    view, labelled = NodeView(data), labelled_of(data)
    assert len(labelled.train) >= 1000
    few = replace(labelled, train=labelled.train[:500])
    both = {"network-5": "", "network-12": ""}
    deep = {"quick": {}, "standard": both | {"network-12": "network-5"}, "best": both}
    for effort, wanted in deep.items():
        shallow, found = (
            {model.name: model.after for model in NetworkAverage.candidates(view, part, effort)}
            for part in (few, labelled)
        )
        assert {name: found[name] for name in found.keys() - shallow.keys()} == wanted
    data.x = torch.randn(data.num_nodes, 80, generator=torch.Generator().manual_seed(0))
    wide = {model.name for model in NetworkAverage.candidates(NodeView(data), labelled, "standard")}
    assert "network-12" not in wide, "it takes long beside many attributes"


def test_a_network_that_is_chosen_by_a_metric_scales_its_scores_by_validation_loss():
    data = roles()
    view, labelled = NodeView(data), replace(labelled_of(data), metric="accuracy")
    fitted = NetworkAverage(seeds=1, epochs=30, lr=0.05, choose_by="metric").fit_on(view, labelled)
    losses = {}
    for scale in (1.0, 0.5, 0.25):
        fitted.chosen["scale"], before = scale, fitted.chosen["scale"]
        losses[scale] = labelled.loss(fitted.outputs(view)[labelled.val], labelled.val)
        fitted.chosen["scale"] = before
    chosen = labelled.loss(fitted.outputs(view)[labelled.val], labelled.val)
    assert chosen <= min(losses.values())
    late = replace(labelled, deadline=0.0)
    assert NetworkAverage(seeds=1, epochs=30).fit_on(view, late).chosen["epochs"] == 1
    with pytest.raises(OutOfTimeError):
        fitted.refit_on(view, late)


def test_the_linear_member_with_two_classes():
    data = roles()
    data.x = torch.randn(data.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    data.y = (data.x[:, 0] > 0).long()
    labelled = labelled_of(data)
    found = Linear().fit_on(NodeView(data), labelled).outputs(NodeView(data))
    assert (found.argmax(1) == labelled.y).mean() > 0.9


def test_a_state_of_an_unknown_method_is_refused():
    for name in ("pickled", "majority"):
        with pytest.raises(DemonetError, match=f"'{name}'.*node-forest"):
            Model.from_state({"method": name, "name": "p", "options": {}, "facts": {}, "chosen": None}, {})


def noisy_table(n: int = 400, seed: int = 0) -> tuple[Data, Labelled]:
    """Gaussian attributes around the means of four classes, edges that know nothing of them, 40 training labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    x = 0.6 * rng.normal(size=(4, 16))[y] + rng.normal(size=(n, 16))
    edge = torch.from_numpy(rng.integers(n, size=(2, 3 * n)))
    edge = torch.cat([edge, edge.flip(0)], 1)
    data = Data(x=torch.from_numpy(x).float(), edge_index=edge, y=torch.from_numpy(y), num_nodes=n)
    return data, Labelled(y, 4, np.arange(40), np.arange(40, 140), seed)


def test_the_regression_on_own_attributes_reads_nothing_else():
    data, labelled = noisy_table()
    member = OwnLinear().fit_on(NodeView(data), labelled)
    assert member.arrays["coef"].shape == (4, 16)
    rewired = data.clone()
    rewired.edge_index = data.edge_index.roll(7, 1)[[1, 0]]
    member.chosen["reach"] = 0.0  # smoothing alone reads edges
    same = member.outputs(NodeView(rewired, (NodeView(data).facts, NodeView(data).arrays)))
    np.testing.assert_allclose(same, member.outputs(NodeView(data)))


def test_scores_that_a_strong_penalty_made_small_are_multiplied():
    """With few labels and many columns the penalty is strong: softmax(t Wx) with t > 1 has the lower loss."""
    data, labelled = noisy_table()
    view = NodeView(data)
    member = OwnLinear().fit_on(view, labelled)
    chosen = member.chosen
    assert chosen["temperature"] > 1
    given = member._unsmoothed(view)[labelled.val]
    score = view.own[labelled.val] @ member.arrays["coef"].T + member.arrays["intercept"]
    expected = np.exp(chosen["temperature"] * score)
    np.testing.assert_allclose(given, expected / expected.sum(1, keepdims=True), atol=1e-12)
    timid = np.exp(score) / np.exp(score).sum(1, keepdims=True)
    y = labelled.y[labelled.val]
    assert item_losses("classify", given, y).mean() < item_losses("classify", timid, y).mean()


def test_a_refit_with_more_items_keeps_the_size_of_scores():
    """C times the number of items stays the same where a temperature was chosen, so W shrinks as little as before."""
    data, labelled = noisy_table()
    view = NodeView(data)
    member = OwnLinear().fit_on(view, labelled)
    before, after = (np.std(m.outputs(view)) for m in (member, member.refit_on(view, labelled)))
    assert 0.8 < after / before < 1.25
