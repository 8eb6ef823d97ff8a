"""The whole: fitting, the table, limits, failures, state, another graph."""

from __future__ import annotations

import json
import time
from typing import ClassVar

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from tests.methods.problems import Broken, Ridge, Undefined, graph_set, roles

from demonet.data import thirds
from demonet.data.splits import Split
from demonet.ensemble import Ensemble, Progress, ensemble
from demonet.ensemble.ensemble import FEW
from demonet.ensemble.fitting import Clock
from demonet.ensemble.selection import ensemble_weights
from demonet.errors import DemonetError
from demonet.estimators.models import EnsembleModel
from demonet.methods.boosted import BoostedTrees
from demonet.methods.closed_form import Kernel
from demonet.methods.forest import NodeForest
from demonet.methods.kernel_ridge import NodeKernel
from demonet.methods.wl_models import WLForest, WLNeighbour


def members():
    return [
        Ridge("ridge"),
        NodeKernel("kernel", kernel="structure"),
        NodeForest("forest", columns="structure", trees=10, leaf=2),
    ]


def test_nodes_from_fit_to_state_and_another_graph():
    data = roles(motifs=32)
    split, seen = thirds(data.y, 0), []
    ensemble = Ensemble.fit(data, split, members=members(), on_progress=seen.append)
    test = split.test.numpy()
    accuracy = (ensemble.predict(data)[test] == data.y.numpy()[test]).mean()
    single = max(row.score for row in ensemble.candidates)
    assert accuracy > 0.5 * single
    assert ensemble.strict_outputs.shape == (data.num_nodes, int(data.y.max()) + 1)
    assert sum(row.weight for row in ensemble.candidates) == pytest.approx(1)
    for row in ensemble.candidates:
        assert row.status == "fitted"
        assert row.score_low <= row.score <= row.score_high
        assert row.loss_error > 0
    stages = [progress.stage for progress in seen if isinstance(progress, Progress)]
    assert stages[:6] == ["fit", "done"] * 3
    assert stages.count("refitted") == len(ensemble.members)
    facts, tensors = ensemble.state()
    back = Ensemble.from_state(json.loads(json.dumps(facts, allow_nan=False)), load(save(tensors)))
    np.testing.assert_allclose(ensemble.fitted_outputs, ensemble.outputs(data), atol=1e-12)
    other = roles(5, motifs=8)
    other.edge_index = torch.cat([other.edge_index, torch.tensor([[0] * 30, list(range(20, 50))])], 1)  # new degrees
    np.testing.assert_array_equal(back.outputs(other), ensemble.outputs(other))
    np.testing.assert_allclose(back.outputs(data), ensemble.outputs(data), atol=1e-12)
    np.testing.assert_allclose(back.outputs(other).sum(1), 1)
    assert back.candidates == ensemble.candidates


def test_of_no_rows_there_are_no_outputs():
    some = [*members(), BoostedTrees("trees"), Kernel("machine", screen=50)]
    for data, tried in ((roles(), some), (graph_set(), [WLNeighbour("near"), Kernel("machine", screen=50)])):
        ensemble = Ensemble.fit(data, members=tried, refit=False)
        assert "Kernel" in {type(member).__name__ for member in ensemble.members}
        assert ensemble.outputs(data, np.zeros(0, int)).shape == (0, ensemble.objective.outputs)


def test_labels_outside_training_and_validation_are_not_looked_at():
    data = roles()
    split = thirds(data.y, 0)
    first = Ensemble.fit(data, split, members=members()).outputs(data)
    data.y[split.test] = data.y[split.test].flip(0)
    np.testing.assert_array_equal(Ensemble.fit(data, split, members=members()).outputs(data), first)


def test_graphs_with_and_without_labels():
    for labels in (True, False):
        graphs = graph_set(90, labels)
        y = torch.cat([graph.y for graph in graphs])
        ensemble = Ensemble.fit(graphs, thirds(y, 0), members=[WLNeighbour("near"), WLForest("forest", trees=10)])
        assert (ensemble.predict(graphs) == y.numpy()).mean() > 0.8
        facts, tensors = ensemble.state()
        back = Ensemble.from_state(json.loads(json.dumps(facts, allow_nan=False)), tensors)
        new = graph_set(100, labels)[90:]
        np.testing.assert_allclose(back.outputs(new), ensemble.outputs(new), atol=1e-9)


def test_a_few_labelled_rows_are_judged_by_cross_validation():
    data = roles()
    rows = torch.cat([torch.nonzero(data.y == label)[:6, 0] for label in range(int(data.y.max()) + 1)])
    ensemble = Ensemble.fit(data, rows, members=[Ridge("a"), NodeKernel("b", kernel="degree")])
    n, ridge = len(rows), ensemble.candidates[0]
    assert n // 4 < FEW
    assert ridge.score * n == pytest.approx(round(ridge.score * n))  # a share of all labelled items
    kept = [member for member in ensemble.members if member.name == "a"]
    assert all(member.chosen["strength"] < n / 4 for member in kept)  # the median over folds


def test_a_member_that_fails_is_named_and_left_out():
    data = roles()
    tried = [Broken("broken"), Ridge("ridge"), Undefined("undefined")]
    with pytest.warns(RuntimeWarning, match="broken|undefined") as caught:
        ensemble = Ensemble.fit(data, thirds(data.y, 0), members=tried)
    assert len(caught) == 2
    broken, ridge, undefined = ensemble.candidates
    assert (broken.status, ridge.status, undefined.status) == ("failed", "fitted", "failed")
    assert "17 is not a kernel" in broken.reason
    assert [member.name for member in ensemble.members] == ["ridge"]
    with pytest.warns(RuntimeWarning), pytest.raises(DemonetError, match="17 is not a kernel"):
        Ensemble.fit(data, thirds(data.y, 0), members=[Broken("broken")])


def test_a_time_limit_skips_what_would_exceed_it_but_never_the_first():
    data = roles()
    tried = [Ridge("first"), Ridge("long", cost=1e9), Ridge("short")]
    for limits in ({"time_limit": 1e6, "effort": "best"}, {"effort": "standard"}):
        ensemble = Ensemble.fit(data, thirds(data.y, 0), members=tried, **limits)
        assert [row.status for row in ensemble.candidates] == ["fitted", "skipped", "fitted"]
        assert "limit" in ensemble.candidates[1].reason
        assert ensemble.candidates[1].weight == 0
        assert ensemble.candidates[1].loss is None
        json.dumps(ensemble.state()[0], allow_nan=False)
    ensemble = Ensemble.fit(data, thirds(data.y, 0), members=tried[1:2], time_limit=1e-9)
    assert ensemble.candidates[0].status == "fitted"
    assert ensemble.candidates[0].reason == "not refitted: time limit"


class Watched(Ridge):
    """Keeps the sizes of the parts that it is fitted on, by name."""

    seen: ClassVar[dict[str, list[int]]] = {}

    def _learn(self, view, labelled):
        self.seen.setdefault(self.name, []).append(len(labelled.train))
        super()._learn(view, labelled)


def test_folds_over_all_labelled_items_choose_where_validation_is_larger_than_training():
    """Strict members are weighed on validation, those of a refit by folds; without a refit there are no folds."""
    data, rng = roles(motifs=32), np.random.default_rng(0)
    order = rng.permutation(data.num_nodes)
    train, val = order[:30], order[30:150]
    split = Split("few", 0, *(torch.from_numpy(np.sort(part)) for part in (train, val, order[150:])))
    Watched.seen.clear()
    tried = [Watched("a"), NodeForest("forest", columns="structure", trees=10, leaf=2)]
    found = Ensemble.fit(data, split, members=tried, effort="quick")
    assert Watched.seen["a"][:4] == [30, 100, 100, 100]
    assert found.folds
    assert len(found.judged_items) == 150
    strict = Ensemble.fit(data, split, members=tried, effort="quick", refit=False)
    assert not strict.folds
    np.testing.assert_array_equal(strict.strict_outputs, found.strict_outputs)
    np.testing.assert_allclose(EnsembleModel(found).strict.outputs(data), found.strict_outputs)
    weights = [row.weight for row in found.candidates]
    y = data.y.numpy()[found.judged_items]
    by_folds = ensemble_weights(np.stack([found.judged[name] for name in ("a", "forest")]), y)
    np.testing.assert_allclose(weights, by_folds)


@pytest.mark.parametrize(("limit", "order"), [(1e6, ["cheap", "dear", "long"]), (None, ["dear", "cheap", "long"])])
def test_the_order_of_fits_and_the_table_keeps_its_own(limit, order):
    """The cheapest first where time is limited; otherwise the longest, but for those that depend on others."""
    data, seen = roles(), []
    tried = [Ridge("long", cost=100.0), Ridge("dear", cost=3.0), Ridge("cheap", cost=1.0)]
    options = {"members": tried, "time_limit": limit, "on_progress": seen.append}
    found = Ensemble.fit(data, thirds(data.y, 0), **options)
    assert [progress.candidate.name for progress in seen if progress.stage == "done"] == order
    assert [row.name for row in found.candidates] == ["long", "dear", "cheap"]
    assert [row.status for row in found.candidates] == ["skipped", "fitted", "fitted"]
    left = [progress.left for progress in seen if progress.stage in ("fit", "done")]
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0


def test_an_expensive_candidate_that_adds_nothing_on_a_part_is_not_fitted_on_all():
    """The estimates grow with the items; a second ridge adds nothing to the first, a forest does."""
    data = roles(motifs=600)
    rows = torch.arange(data.num_nodes)

    class Growing(Watched):
        def estimate(self, view, num_train):
            return 2e-6 * num_train**2

    class GrowingForest(NodeForest):
        def estimate(self, view, num_train):
            return 2e-6 * num_train**2

    Watched.seen.clear()
    tried = [Ridge("cheap"), Growing("same"), GrowingForest("forest", columns="structure", trees=10, leaf=2)]
    found = Ensemble.fit(data, rows, members=tried, refit=False)
    assert [row.status for row in found.candidates] == ["fitted", "skipped", "fitted"]
    assert Watched.seen["same"] == [1000]


def test_what_a_candidate_adds_on_a_part_is_told_beside_one_that_takes_little_time_there():
    data = roles(motifs=600)

    class Growing(Watched):
        def estimate(self, view, num_train):
            return 4e-6 * num_train**2

    class Dear(NodeForest):
        def estimate(self, view, num_train):
            return 9.0

    Watched.seen.clear()
    tried = [Ridge("cheap"), Dear("best", columns="structure", trees=10, leaf=2), Growing("same")]
    found = Ensemble.fit(data, torch.arange(data.num_nodes), members=tried, refit=False)
    best, same = found.candidates[1:]
    assert best.loss < found.candidates[0].loss
    assert Watched.seen["same"] == [1000]
    assert same.status == "skipped"
    assert same.reason.endswith("cheap")


def test_a_candidate_comes_after_a_similar_one_only_if_that_one_adds_something():
    data = roles()
    forest = NodeForest("first", columns="structure", trees=10, leaf=2)
    for first, status in ((forest, "fitted"), (Ridge("first"), "skipped")):
        deeper = Ridge("deeper", cost=1.0)
        deeper.after = "first"
        found = Ensemble.fit(data, thirds(data.y, 0), members=[Ridge("rival"), first, deeper], refit=False)
        assert found.candidates[2].status == status


def test_where_time_is_short_a_cheaper_candidate_takes_the_place_of_one(tmp_path, monkeypatch):
    """Also after an interruption: the one that was fitted is found again."""
    data, split = roles(), thirds(roles().y, 0)
    full, quick = [Ridge("a"), Ridge("b", cost=1e9)], [Ridge("a"), Ridge("b", cost=0.02), Ridge("c")]
    monkeypatch.setattr(ensemble, "portfolio", lambda view, labelled, effort: quick if effort == "quick" else full)
    for _ in range(2):
        found = Ensemble.fit(data, split, time_limit=1e6, checkpoint=tmp_path)
        assert [(row.name, row.status) for row in found.candidates] == [("a", "fitted"), ("b", "fitted")]
        assert found.candidates[1].estimate == 0.02


def test_estimates_are_corrected_by_what_a_kind_has_taken():
    clock = Clock(time.monotonic(), 100.0, "standard")
    assert clock.expected("a", 10.0) == pytest.approx(10.0)
    clock.note("a", 10.0, 40.0)
    assert 30 < clock.expected("a", 10.0) < 40
    assert clock.expected("a", 10.0) >= clock.expected("b", 10.0) > 10
    clock.note("b", 1000.0, 1.0)
    assert clock.expected("b", 10.0) == pytest.approx(1.0), "a tenth, at least"
    assert 30 < clock.expected("a", 10.0) < 40


def test_strict_without_refit():
    data = roles()
    ensemble = Ensemble.fit(data, thirds(data.y, 0), members=members(), refit=False)
    np.testing.assert_allclose(ensemble.outputs(data), ensemble.strict_outputs)


def test_what_cannot_be_fitted_is_refused():
    data = roles()
    with pytest.raises(DemonetError, match=r"\['a', 'a'\]"):
        Ensemble.fit(data, members=[Ridge("a"), Ridge("a")])
    with pytest.raises(DemonetError, match=r"effort='fast'.*quick, standard, best"):
        Ensemble.fit(data, effort="fast")
    del data.y
    with pytest.raises(DemonetError, match=r"\by\b.*-1"):
        Ensemble.fit(data)
