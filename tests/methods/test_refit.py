"""Fitted again on training and validation part: what was chosen is kept, and test labels are not looked at."""

import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier
from tests.study.experiments.tiny import tiny

from demonet import methods
from demonet.data.splits import Split, thirds
from demonet.methods.base import labels
from demonet.methods.simple import degree_rows
from demonet.train import TrainConfig

SHORT = {"train": TrainConfig(lr=0.01, epochs=6)}
CASES = [
    *(("brazil", name, {}) for name in ("majority", "degree-knn", "degree-svm", "structural-lr", "graphwave")),
    *(("blogcatalog", f"attribute-{name}lr", {}) for name in ("", "neighbour-", "adjacency-")),
    *(("brazil", name, SHORT) for name in ("gcn", "gcn-cheby", "sage", "gat", "gin", "union", "intersection")),
    *(("MUTAG", name, {}) for name in ("attribute-lr", "wl-1nn", "wl-lr")),
    ("MUTAG", "wl-rf", {"trees": 5}),
    *(("MUTAG", name, {"rounds": (0, 2), "strengths": (0.1, 10.0)}) for name in ("wl", "degree-wl")),
    *(("MUTAG", name, SHORT) for name in ("dcnn", "patchy-san", "diffpool", "gin")),
    *(("brazil", f"demonet-{name}", {"train": {"epochs": 6}}) for name in ("hash", "default")),
    ("MUTAG", "demonet-m-weight", {"train": {"epochs": 3}}),
    ("brazil", "demonet-kernel", {}),
    *(("brazil", "demonet-auto", {"effort": "quick", "both": both}) for both in (True, False)),
]


def shuffled(data, items):
    """The same data with other labels on some items."""
    y = labels(data).clone()
    y[items] = y[items].roll(1)
    if isinstance(data, list):
        for graph, label in zip(data, y, strict=True):
            graph.y = label.view(1)
    else:
        data.y = y
    return data


def settings(chosen):
    """What was chosen, without what was learned: parameters of estimators, plain values as they are."""
    if isinstance(chosen, tuple):
        return tuple(map(settings, chosen))
    return (type(chosen), str(chosen.get_params())) if hasattr(chosen, "get_params") else chosen


@pytest.mark.parametrize(("dataset", "name", "options"), CASES, ids=lambda case: case if isinstance(case, str) else "")
def test_the_choice_is_kept_and_the_test_part_is_not_looked_at(dataset, name, options):
    data = tiny(dataset)
    split = thirds(labels(data), 1, stratified=True)
    fitted = methods.get(name)(**options).fit(data, split, seed=3)
    before, chosen, probability = fitted.predict().clone(), settings(fitted.chosen), fitted.predict_proba()
    assert probability.shape == (before.numel(), int(labels(data).max()) + 1)
    assert torch.allclose(probability.sum(1), torch.ones(before.numel(), dtype=torch.float64))
    assert torch.equal(probability.argmax(1), before)
    again = fitted.refit(data, split, seed=3)
    assert torch.equal(fitted.predict(), before)
    assert settings(fitted.chosen) == settings(again.chosen) == chosen
    assert (chosen is None) == (name == "majority")
    other = fitted.refit(shuffled(tiny(dataset), split.test), split, seed=3)
    assert torch.equal(other.predict(), again.predict())
    if options is SHORT and name not in ("union", "intersection"):
        assert again.history.epochs == fitted.chosen == fitted.history.best_epoch + 1


def test_neighbours_by_hand():
    data = tiny("brazil")
    split = thirds(data.y, 0, stratified=True)
    fitted = methods.get("degree-knn")().fit(data, split)
    known = torch.cat([split.train, split.val]).sort().values.numpy()
    rows = degree_rows(data)
    by_hand = KNeighborsClassifier(fitted.chosen.n_neighbors).fit(rows[known], data.y.numpy()[known])
    found = fitted.refit(data, split).predict()[split.test]
    assert found.tolist() == by_hand.predict(rows[split.test.numpy()]).tolist()


def test_the_majority_of_both_parts():
    data = tiny("brazil")
    data.y = torch.arange(data.num_nodes) % 2
    even, odd = (data.y == 0).nonzero()[:, 0], (data.y == 1).nonzero()[:, 0]
    split = Split("made", 0, torch.cat([even[:3], odd[:2]]), odd[2:8], even[3:9])
    fitted = methods.get("majority")().fit(data, split)
    assert (fitted.predict()[0], fitted.refit(data, split).predict()[0]) == (0, 1)


def test_another_fit_chooses_anew():
    data = tiny("brazil")
    split = thirds(data.y, 0, stratified=True)
    twice = methods.get("gcn")(**SHORT).fit(data, split)
    twice.chosen = 1
    assert twice.fit(data, split).history.epochs > 1
