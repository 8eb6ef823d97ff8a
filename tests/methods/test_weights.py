"""Weights of items in every model: how often an item is there; equal weights of a vote change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.methods.problems import graph_set, labelled_of, roles, two_blocks

from demonet.ensemble.ensemble import portfolio
from demonet.features.views import view_of
from demonet.methods import Labelled
from demonet.methods.kernel_ridge import NodeKernel, OrderedLogit
from demonet.methods.linear import DiffusedLinear, Linear, OwnLinear
from demonet.methods.propagation import AdjacencyLinear, Propagation
from demonet.methods.selection import item_losses
from demonet.methods.wl_models import WLNeighbour


def problem(task: str, graphs: bool = False) -> tuple[object, Labelled]:
    """Targets that the attributes tell a little about."""
    data = graph_set() if graphs else roles()
    labelled, generator = labelled_of(data), np.random.default_rng(0)
    count = len(labelled.y)
    if not graphs:
        data.x = torch.from_numpy(generator.normal(size=(count, 4)) + (labelled.y == 1)[:, None]).float()
    if task != "classify":
        number = labelled.y[:, None] + generator.normal(size=(count, 2))
        number = number if task == "regress" else (number > 2).astype(float)
        number[::7, 1] = np.nan
        labelled = replace(labelled, y=number, outputs=2, task=task)
    return view_of(data), replace(labelled, val=labelled.val[:0])


def copied(labelled: Labelled) -> tuple[Labelled, Labelled]:
    """Items with weights of 1 to 3, and as many copies."""
    copies = np.random.default_rng(1).integers(1, 4, size=len(labelled.y))
    train = np.repeat(labelled.train, copies[labelled.train])
    return replace(labelled, weight=copies.astype(float)), replace(labelled, train=train)


@pytest.mark.parametrize("task", ["classify", "multilabel", "regress"])
@pytest.mark.parametrize("make", [Linear, OwnLinear, DiffusedLinear, AdjacencyLinear])
def test_a_weight_is_a_number_of_copies_in_linear_models(make, task):
    view, labelled = problem(task)
    weighted, repeated = (make().fit_on(view, each).outputs(view) for each in copied(labelled))
    np.testing.assert_allclose(weighted, repeated, atol=2e-3)  # solvers stop at a tolerance
    assert np.abs(weighted - make().fit_on(view, labelled).outputs(view)).max() > 0.01


@pytest.mark.parametrize("make", [OrderedLogit, WLNeighbour])
def test_a_weight_is_a_number_of_copies_where_one_is_asked_about_all(make):
    view, labelled = problem("classify", graphs=make is WLNeighbour)
    fitted = [make().fit_on(view, each) for each in copied(labelled)]
    if make is WLNeighbour:  # a copy of a graph is its own neighbour, so what the vote is worth differs
        fitted[1].facts["trust"] = fitted[0].facts["trust"]
    weighted, repeated = (each.outputs(view) for each in fitted)
    np.testing.assert_allclose(weighted, repeated, atol=1e-4)
    assert np.abs(weighted - make().fit_on(view, labelled).outputs(view)).max() > 0.01


@pytest.mark.parametrize("kernel", ["degree", "structure", "own"])
def test_a_weight_is_a_number_of_copies_in_kernels(monkeypatch, kernel):
    """With given noise and length: otherwise copies that stay tell a regression about the one that is left out."""
    monkeypatch.setattr("demonet.methods.kernel_ridge.NOISES", (0.3,))
    view, labelled = problem("regress")
    labelled = replace(labelled, y=np.nan_to_num(labelled.y))
    model = NodeKernel(kernel=kernel, coarse=True).fit_on(view, labelled)
    weighted, repeated = (model.keep_on(view, each).outputs(view) for each in copied(labelled))
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)
    assert np.abs(weighted - model.outputs(view)).max() > 0.01


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("task", ["classify", "multilabel", "regress"])
def test_every_candidate_reads_weights(monkeypatch, task, graphs):
    """Items of the first class, with the first label, or with large numbers count thirty times."""
    monkeypatch.setattr("demonet.methods.demonet_average.SEEDS", {"quick": 1})
    monkeypatch.setattr("demonet.methods.demonet_average.EPOCHS_GRAPHS", 15)  # before it knows them by heart
    monkeypatch.setattr("demonet.methods.boosted.QUICK", 1e9)
    view, labelled = problem(task, graphs)
    labelled = replace(labelled, y=np.random.default_rng(4).permutation(labelled.y))  # nothing tells them apart
    heavy = labelled.y == 0 if task == "classify" else labelled.y[:, 0] > (0.5 if task == "multilabel" else 2.0)
    weighted = replace(labelled, weight=np.where(heavy, 30.0, 1.0))
    models = portfolio(view, labelled, "quick")
    assert len(models) > 5
    for model in models:
        plain, found = (model.fit_on(view, each).outputs(view)[:, 0].mean() for each in (labelled, weighted))
        assert found > plain + 0.01, model.name


def test_equal_weights_of_a_walk_change_nothing():
    view = view_of(data := two_blocks())
    labelled = labelled_of(data)
    plain = Propagation().fit_on(view, labelled)
    twice = Propagation().fit_on(view, replace(labelled, weight=np.full(len(labelled.y), 2.0)))
    assert twice.chosen == plain.chosen
    prior = np.abs(twice.arrays["prior"] - plain.arrays["prior"]).max()  # each class counted once more
    np.testing.assert_allclose(twice.outputs(view), plain.outputs(view), atol=prior + 1e-12)


@pytest.mark.parametrize(("mapped", "expected"), [(None, 3.0), (0, 3.0), (1, 0.5)])
def test_a_target_that_became_known_counts_as_those_of_its_class(mapped, expected):
    data = two_blocks()
    view, labelled = view_of(data), labelled_of(data)
    model = Propagation().fit_on(view, replace(labelled, weight=np.where(labelled.y == 0, 3.0, 0.5)))
    known = model.known_targets(view).copy()
    new = int(np.flatnonzero(known < 0)[0]) if mapped is not None else int(np.flatnonzero(known == 0)[0])
    rows = np.array([new])
    target = np.eye(2)[[known[new] if mapped is None else mapped]]
    targets, count = model.counted(view, rows, target, np.ones((1, 2)))
    np.testing.assert_allclose(targets, expected * target)
    np.testing.assert_allclose(count, expected)


@pytest.mark.parametrize("task", ["classify", "multilabel", "regress"])
def test_the_mean_loss_is_weighted(task):
    _, labelled = problem(task)
    rng, items = np.random.default_rng(3), labelled.train
    outputs = rng.dirichlet(np.ones(labelled.outputs), size=len(items))
    copies = rng.integers(1, 4, size=len(items))
    y, many = labelled.y[items], np.repeat(np.arange(len(items)), copies)
    weighted, repeated = item_losses(task, outputs, y, 1.0 * copies), item_losses(task, outputs[many], y[many])
    assert weighted.mean() == pytest.approx(repeated.mean())
    whole = np.zeros(len(labelled.y))
    whole[items] = copies
    assert replace(labelled, weight=whole).loss(outputs, items) == pytest.approx(repeated.mean())
