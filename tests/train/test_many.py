"""Runs at once are the runs one by one."""

from __future__ import annotations

import pytest
import torch
from tests.train import problems

from demonet.data.splits import thirds
from demonet.errors import DemonetError
from demonet.train import many, train_nodes
from demonet.train.many import train_many

SEEDS = [3, 0, 7]


def both(chosen, data, **options):
    splits = [thirds(data.y, seed, stratified=True) for seed in SEEDS]
    single = [train_nodes(data, split, chosen, seed=seed, **options) for split, seed in zip(splits, SEEDS, strict=True)]
    return train_many(data, splits, chosen, SEEDS, **options), single


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.history.epochs == other.history.epochs
        assert one.history.best_epoch == other.history.best_epoch
        for curve in ("train_loss", "val_loss", "val_accuracy"):
            a, b = (torch.tensor(getattr(trained.history, curve)) for trained in (one, other))
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
        # Not the weights themselves: a bias before a norm has no gradient but rounding, and Adam scales that up.
        scores = [trained.model.eval()(*trained.inputs).detach() for trained in (one, other)]
        torch.testing.assert_close(*scores, rtol=1e-2, atol=1e-2)
        assert one.val_accuracy == other.val_accuracy
        assert one.test_accuracy == other.test_accuracy


@pytest.mark.parametrize("name", ["paper", "authors", "default"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_preset(monkeypatch, name, weighted):
    """Dropout, batch normalisation, a degree-specific head; train_nodes is not asked."""
    data = problems.nodes()[0]
    options = {"class_weight": torch.rand(int(data.y.max()) + 1) + 0.5} if weighted else {}
    chosen = problems.quick(name, "nodes", epochs=4)  # rounding grows from step to step
    splits = [thirds(data.y, seed, stratified=True) for seed in SEEDS]
    single = [train_nodes(data, split, chosen, seed=seed, **options) for split, seed in zip(splits, SEEDS, strict=True)]
    monkeypatch.setattr(many, "train_nodes", None)
    monkeypatch.setattr(many, "_pays", lambda *_: True)
    same(train_many(data, splits, chosen, SEEDS, **options), single)


def test_runs_that_stop_early_leave_the_others_alone(monkeypatch):
    monkeypatch.setattr(many, "_pays", lambda *_: True)
    found, single = both(problems.quick("paper", "nodes", epochs=40, patience=1), problems.nodes()[0])
    assert len({trained.history.epochs for trained in single}) > 1, "they should stop at different times"
    same(found, single)


@pytest.mark.parametrize(
    ("preset", "limit", "value"), [("default", "MOST_NODES", 3), ("default", "MOST_NUMBERS", 3), ("paper", "", 0)]
)
def test_what_does_not_pay_runs_one_by_one(monkeypatch, preset, limit, value):
    """Too many nodes, too many parameters, or a network whose step is one function."""
    if limit:
        monkeypatch.setattr(many, limit, value)
    monkeypatch.setattr(many, "fit_many", None)
    found, single = both(problems.quick(preset, "nodes", epochs=2), problems.nodes()[0])
    assert [trained.history.train_loss for trained in found] == [trained.history.train_loss for trained in single]


def test_hash_functions_are_each_runs_own():
    found, single = both(problems.quick("paper", "nodes", model={"scheme": "hash"}, epochs=2), problems.nodes()[0])
    assert [trained.history.train_loss for trained in found] == [trained.history.train_loss for trained in single]


def test_bad_input():
    data, split = problems.nodes()
    with pytest.raises(DemonetError, match="1 splits for 2 seeds"):
        train_many(data, [split], problems.quick("paper", "nodes"), [0, 1])
    with pytest.raises(DemonetError, match=r"a loss of .*(nan|inf)"):
        train_many(data, [split] * 2, problems.quick("authors", "nodes", epochs=20, lr=1e30), [0, 1])
