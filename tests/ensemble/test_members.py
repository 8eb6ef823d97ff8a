"""Every member: probabilities, refit, state; forests and ridge against their definitions."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from tests.ensemble.problems import graph_set, labelled_of, roles
from torch_geometric.data import Data

from demonet.closedform.link import Link
from demonet.ensemble import Labelled, Member, portfolio
from demonet.ensemble.forest import predict_trees, tree_arrays
from demonet.ensemble.graphs import intersection, l1_distances
from demonet.ensemble.machines import MachineMember, kernel_inputs
from demonet.ensemble.networks import NetworkMember
from demonet.ensemble.nodes import LinearMember, NodeForest, NodeKernel, OrderedLogit, OwnLinear, classes_by_degree
from demonet.ensemble.ridge import RidgeMember, fit_ordered, normal_scores, ordered_link
from demonet.ensemble.selection import log_losses
from demonet.errors import DemonetError
from demonet.features.views import GraphView, NodeView, heavy_tails, view_of


def small(member: Member) -> Member:
    """The same member, with few and short networks."""
    changes = {"seeds": 2, "epochs": 4} if isinstance(member, NetworkMember) else {}
    return type(member)(member.name, **member.options | changes)


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


@pytest.mark.parametrize(("data", "labelled", "member"), list(problems()))
def test_a_member_fits_refits_and_comes_back_from_its_state(data, labelled, member):
    view = view_of(data)
    hidden = np.where(np.isin(np.arange(len(labelled.y)), [*labelled.train, *labelled.val]), labelled.y, -1)
    masked = type(labelled)(hidden, labelled.classes, labelled.train, labelled.val, labelled.seed)
    fitted = member.fit(view, masked)
    probability = fitted.predict_proba(view)
    assert probability.shape == (view.num_items, labelled.classes)
    np.testing.assert_allclose(probability.sum(1), 1, atol=1e-6)
    again = member.fresh().fit(view, masked).predict_proba(view)
    np.testing.assert_array_equal(again, probability)
    assert member.cost(view, len(labelled.train)) > 0
    refitted = fitted.refit(view, masked)
    assert refitted.facts.get("chosen", {}).keys() == fitted.facts.get("chosen", {}).keys()
    facts, arrays = refitted.state()
    back = Member.from_state(json.loads(json.dumps(facts)), arrays)
    np.testing.assert_array_equal(back.predict_proba(view), refitted.predict_proba(view))
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in arrays.values())


def test_quick_members_compare_settings_coarsely_and_no_others_do():
    data = roles()
    data.x = torch.randn(data.num_nodes, 3)
    labelled = labelled_of(data)
    for items, known in ((data, labelled), (graph_set(), labelled_of(graph_set()))):
        coarse = {m.name for m in portfolio(view_of(items), known, "quick") if m.options.get("coarse")}
        every = portfolio(view_of(items), known, "standard")
        assert coarse == {m.name for m in every if isinstance(m, MachineMember | RidgeMember | LinearMember)}
        assert not any("coarse" in m.options for m in every)


@pytest.mark.parametrize("coarse", [True, False])
def test_a_coarse_kernel_keeps_its_setting_when_it_is_refitted(coarse, monkeypatch):
    view, labelled = NodeView(roles()), labelled_of(roles())
    member = NodeKernel("kernel", kernel="structure", **{"coarse": True} if coarse else {}).fit(view, labelled)
    monkeypatch.setattr("demonet.ensemble.nodes.LENGTHS", (0.17,))
    assert member.refit(view, labelled).facts["setting"] == (member.facts["setting"] if coarse else 0.17)


def test_a_coarse_regression_chooses_on_few_nodes_and_is_fitted_on_all(monkeypatch):
    data = roles()
    data.x = torch.randn(data.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    view, labelled = NodeView(data), labelled_of(data)
    monkeypatch.setattr("demonet.ensemble.nodes.COARSE_ROWS", 20)
    member = LinearMember("linear", coarse=True).fit(view, labelled)
    assert member.facts["chosen"]["items"] == len(labelled.train) > 20
    chosen = member.facts["chosen"]
    exact = LogisticRegression(C=chosen["strength"], max_iter=100)
    rows = member._rows(view, chosen["scale"], labelled.train)
    np.testing.assert_allclose(member.arrays["coef"], exact.fit(rows, labelled.y[labelled.train]).coef_)


def test_a_machine_predicts_the_same_with_inputs_that_the_view_keeps_and_without():
    data, other = roles(), roles(seed=3)
    view, labelled = NodeView(data), labelled_of(data)
    member = MachineMember("machine", task="classes", settings=2).fit(view, labelled)
    state = view.facts, view.arrays
    np.testing.assert_array_equal(member.predict_proba(view), member.predict_proba(NodeView(data, state)))
    elsewhere = NodeView(other)
    kernel_inputs(elsewhere)  # inputs that were learned from another graph are not these
    np.testing.assert_array_equal(member.predict_proba(elsewhere), member.predict_proba(NodeView(other, state)))


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


def test_a_rule_of_two_attributes_that_no_regression_sees():
    """The class is whether two numbers have the same sign; the graph says nothing."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(400, 4))
    edges = torch.from_numpy(generator.integers(400, size=(2, 800)))
    data = Data(x=torch.from_numpy(x).float(), edge_index=edges, y=torch.from_numpy(1 * (x[:, 0] * x[:, 1] > 0)))
    view, labelled = NodeView(data), labelled_of(data)
    members = {member.name: member for member in portfolio(view, labelled, "quick")}
    test = np.setdiff1d(np.arange(400), [*labelled.train, *labelled.val])

    def accuracy(name: str) -> float:
        return (members[name].fit(view, labelled).predict_proba(view).argmax(1) == labelled.y)[test].mean()

    assert accuracy("linear") < 0.7
    assert min(accuracy("kernel-own"), accuracy("forest-own")) > 0.8


@pytest.mark.parametrize("make", [RandomForestClassifier, ExtraTreesClassifier])
def test_trees_as_arrays_predict_what_scikit_learn_does(make):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(300, 6)), generator.integers(3, size=300) * 2  # classes 0, 2, 4 of 5
    forest = make(30, min_samples_leaf=2, random_state=0).fit(x[:200], y[:200])
    found = predict_trees(tree_arrays(forest, 5), x)
    np.testing.assert_allclose(found[:, [0, 2, 4]], forest.predict_proba(x), atol=1e-12)
    assert not found[:, [1, 3]].any()


def test_normal_scores_have_mean_zero_and_grow():
    count = np.array([3.0, 10.0, 4.0])
    score = normal_scores(count)
    assert (np.diff(score) > 0).all()
    assert score @ count == pytest.approx(0, abs=1e-9)


def test_an_ordered_link_recovers_its_parameters():
    generator = np.random.default_rng(0)
    value, order = generator.normal(size=4000), np.array([2, 0, 1])
    true = Link(2.0, (-0.5, 0.25), (0, 1, 2)).log_probabilities(value[:, None])
    place = (generator.random(4000)[:, None] > np.cumsum(np.exp(true), 1)).sum(1)
    member = OrderedLogit("ordered")
    fit_ordered(member, value, place, order)
    assert member.facts["slope"] == pytest.approx(2.0, abs=0.2)
    np.testing.assert_allclose(member.arrays["cuts"], [-1.0, 0.5], atol=0.15)
    found = np.exp(ordered_link(member).log_probabilities(value[:, None]))
    np.testing.assert_allclose(found[:, order], np.exp(true), atol=0.05)


def test_classes_are_ordered_by_mean_log_degree():
    data = roles()
    order, explained = classes_by_degree(NodeView(data), labelled_of(data))
    labelled = labelled_of(data)
    value, y = NodeView(data).raw_log_degree[labelled.train], labelled.y[labelled.train]
    means = [value[y == c].mean() for c in order]
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


def test_a_refitted_network_trains_for_the_chosen_number_of_epochs():
    data, labelled = roles(), labelled_of(roles())
    options = {"family": "nodes", "features": "degree-rbf", "seeds": 1, "epochs": 6, "hidden": 8}
    fitted = NetworkMember("n", **options).fit(NodeView(data), labelled)
    assert 1 <= fitted.facts["chosen"]["epochs"] <= 6
    refitted = fitted.refit(NodeView(data), labelled)
    assert refitted.facts["chosen"] == fitted.facts["chosen"]


def test_members_know_classes_that_training_has_not():
    data = roles()
    labelled = labelled_of(data)
    labelled = type(labelled)(labelled.y, labelled.classes + 2, labelled.train, labelled.val)
    for member in (
        NodeForest("f", columns="degree", trees=3),
        NetworkMember("n", family="nodes", features="degree-rbf", seeds=1, epochs=2, hidden=8),
    ):
        assert member.fit(NodeView(data), labelled).predict_proba(NodeView(data)).shape[1] == labelled.classes


def test_the_linear_member_with_two_classes():
    data = roles()
    data.x = torch.randn(data.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    data.y = (data.x[:, 0] > 0).long()
    labelled = labelled_of(data)
    found = LinearMember("linear").fit(NodeView(data), labelled).predict_proba(NodeView(data))
    assert (found.argmax(1) == labelled.y).mean() > 0.9


def test_a_state_of_an_unknown_type_is_refused():
    with pytest.raises(DemonetError, match="'Pickled'"):
        Member.from_state({"type": "Pickled", "name": "p", "options": {}, "facts": {}}, {})


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
    member = OwnLinear("linear-own").fit(NodeView(data), labelled)
    assert member.arrays["coef"].shape == (4, 16)
    rewired = data.clone()
    rewired.edge_index = data.edge_index.roll(7, 1)[[1, 0]]
    member.facts["chosen"]["reach"] = 0.0  # smoothing alone reads edges
    same = member.predict_proba(NodeView(rewired, (NodeView(data).facts, NodeView(data).arrays)))
    np.testing.assert_allclose(same, member.predict_proba(NodeView(data)))


def test_scores_that_a_strong_penalty_made_small_are_multiplied():
    """With few labels and many columns the penalty is strong: softmax(t Wx) with t > 1 has the lower loss."""
    data, labelled = noisy_table()
    view = NodeView(data)
    member = OwnLinear("linear-own").fit(view, labelled)
    chosen = member.facts["chosen"]
    assert chosen["temperature"] > 1
    given = member._unsmoothed(view)[labelled.val]
    score = view.own[labelled.val] @ member.arrays["coef"].T + member.arrays["intercept"]
    expected = np.exp(chosen["temperature"] * score)
    np.testing.assert_allclose(given, expected / expected.sum(1, keepdims=True), atol=1e-12)
    timid = np.exp(score) / np.exp(score).sum(1, keepdims=True)
    y = labelled.y[labelled.val]
    assert log_losses(given, y).mean() < log_losses(timid, y).mean()


def test_a_refit_with_more_items_keeps_the_size_of_scores():
    """C times the number of items stays the same where a temperature was chosen, so W shrinks as little as before."""
    data, labelled = noisy_table()
    view = NodeView(data)
    member = OwnLinear("linear-own").fit(view, labelled)
    before, after = (np.std(m.predict_proba(view)) for m in (member, member.refit(view, labelled)))
    assert 0.8 < after / before < 1.25
