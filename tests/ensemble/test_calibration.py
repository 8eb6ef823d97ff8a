"""Probabilities that validation makes frequencies of: which way is chosen, what it keeps, and what a file may hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from demonet import DemonetError
from demonet.data.synthetic import role_graph
from demonet.ensemble import Ensemble
from demonet.ensemble.calibration import Calibration, LabelCalibration
from demonet.methods.forest import NodeForest
from demonet.methods.selection import item_losses
from demonet.train.metrics import METRICS


def drawn(count, power, seed, classes=3):
    """Probabilities that are true after a power: those that are said, and classes drawn from the true ones."""
    generator = np.random.default_rng(seed)
    true = generator.dirichlet(np.ones(classes), size=count)
    said = true**power
    y = np.array([generator.choice(classes, p=row) for row in true])
    return said / said.sum(1, keepdims=True), y


@pytest.mark.parametrize("power", [0.4, 2.5])
def test_a_temperature_is_found(power):
    calibration = Calibration.choose(*drawn(2000, power, 0))
    assert calibration.method == "temperature"
    assert calibration.temperature == pytest.approx(power, rel=0.15)
    said, y = drawn(2000, power, 1)
    before, after = (item_losses("classify", p, y).mean() for p in (said, calibration.apply(said)))
    assert after < before - 0.05
    assert (calibration.apply(said).argmax(1) == said.argmax(1)).all()


def test_a_bias_of_two_classes_is_found():
    generator = np.random.default_rng(0)
    true = generator.beta(0.3, 3, size=6000)
    y = (generator.random(6000) < true).astype(int)
    odds = 4 * true / (1 - true)  # four times as rare as is said
    said = np.stack([1 / (1 + odds), odds / (1 + odds)], 1)
    calibration = Calibration.choose(said[:3000], y[:3000])
    assert calibration.method == "bias"
    assert np.exp(calibration.bias) == pytest.approx(1 / 4, rel=0.3)
    found = calibration.apply(said)
    assert found[3000:].mean(0) == pytest.approx(np.bincount(y[3000:]) / 3000, abs=0.02)
    assert (np.diff(found[said[:, 1].argsort(), 1]) >= 0).all()


def test_weights_of_classes_are_odds():
    """Probabilities that are true, where items of the second class count four times."""
    generator = np.random.default_rng(0)
    true = generator.beta(1, 3, size=4000)
    y, said = (generator.random(4000) < true).astype(int), np.stack([1 - true, true], 1)
    assert Calibration.choose(said, y).method != "bias"
    weight = np.where(y, 4.0, 1.0)
    found = Calibration.choose(said, y, weight=weight)
    assert found.method == "bias"
    assert np.exp(found.bias) == pytest.approx(4, rel=0.15)
    losses = [np.average(item_losses("classify", p, y), weights=weight) for p in (said, found.apply(said))]
    assert found.losses["none"] == pytest.approx(losses[0])
    assert found.losses["bias"] == pytest.approx(losses[1], rel=0.01)
    assert found.temperature == pytest.approx(Calibration.choose(said, y, weight=10 * weight).temperature)


@given(
    count=st.integers(30, 80),
    classes=st.integers(2, 4),
    power=st.sampled_from([0.5, 1.0, 3.0]),
    seed=st.integers(0, 99),
)
def test_rankings_and_classes_stay(count, classes, power, seed):
    """A temperature keeps the order of the classes of an item; all that two classes can get keeps that of the items."""
    said, y = drawn(count, power, seed, classes)
    calibration = Calibration.choose(said, y, seed)
    found = calibration.apply(said)
    np.testing.assert_allclose(found.sum(1), 1)
    if calibration.method != "bias":
        np.testing.assert_array_equal(found.argmax(1), said.argmax(1))
    if classes == 2:
        assert (np.diff(found[said[:, 1].argsort(), 1]) >= -1e-12).all()
    assert set(calibration.losses) == {"none", "temperature", *(["bias"] if classes == 2 else [])}


def test_nothing_is_learned_from_few_items():
    said, y = drawn(29, 3.0, 0)
    calibration = Calibration.choose(said, y)
    assert (calibration.method, calibration.losses) == ("none", {})
    assert calibration.apply(said) is said


def test_items_that_are_all_right_do_not_promise_certainty():
    y = np.arange(60) % 2
    said = np.where(np.eye(2)[y] == 1, 0.9, 0.1)
    assert Calibration.choose(said, y).apply(said).max() < 1 - 0.4 / 61


@pytest.mark.parametrize(
    "change",
    [
        {"method": "magic"},
        {"temperature": 0.0},
        {"temperature": float("nan")},
        {"softening": 2.0},
        {"bias": float("nan")},
        {"bias": 99.0},
    ],
)
def test_a_state_that_gives_no_probabilities(change):
    state = Calibration("bias", 0.5, -1.0, 0.01).state()
    assert Calibration.from_state(state, 2).state() == state
    for wrong, classes in ((state | change, 2), (state, 3)):
        with pytest.raises(DemonetError, match="calibration"):
            Calibration.from_state(wrong, classes)


def test_an_ensemble_is_calibrated_in_memory_and_from_a_file():
    data = role_graph(seed=0)
    noise = torch.rand(data.num_nodes, generator=torch.Generator().manual_seed(0)) < 0.4
    data.y = torch.where(noise, data.y.flip(0), data.y)  # trees that learn it by heart are too sure of themselves
    ensemble = Ensemble.fit(data, members=[NodeForest("forest", columns="degree", trees=5)], seed=0)
    assert ensemble.calibration.method != "none"
    own = ensemble.calibration.apply(ensemble.member_outputs(data)[0])
    np.testing.assert_allclose(ensemble.outputs(data), own)
    np.testing.assert_allclose(ensemble.fitted_outputs, own)
    again = Ensemble.from_state(*ensemble.state())
    np.testing.assert_array_equal(again.outputs(data), ensemble.outputs(data))


def labels(count, seed):
    """Two labels that are said too timidly and too surely, one that few items have; some labels are unknown."""
    generator = np.random.default_rng(seed)
    true = np.stack([generator.beta(0.5, 1.0, count), generator.beta(2.0, 2.0, count), np.full(count, 0.004)], 1)
    odds = (true / (1 - true)) ** np.array([0.4, 2.5, 1.0])
    y = (generator.random(true.shape) < true).astype(float)
    y[generator.random(true.shape) < 0.1] = np.nan
    return odds / (1 + odds), y


def test_labels_are_calibrated_one_by_one():
    calibration = LabelCalibration.choose(*labels(500, 0))
    assert [one.method for one in calibration.labels[:2]] == ["temperature"] * 2
    assert [one.temperature for one in calibration.labels[:2]] == pytest.approx([0.4, 2.5], rel=0.3)
    said, y = labels(2000, 1)
    found = calibration.apply(said)
    losses = [METRICS["log-loss"].functions["multilabel"](y[:, :2], p[:, :2], None) for p in (said, found)]
    assert losses[1] < losses[0] - 0.05
    assert calibration.labels[2].state() == Calibration().state()
    np.testing.assert_array_equal(found[:, 2], said[:, 2])
    again = LabelCalibration.from_state(calibration.state(), 3)
    np.testing.assert_array_equal(again.apply(said), found)
    with pytest.raises(DemonetError, match="3 labels"):
        LabelCalibration.from_state(calibration.state(), 2)


def test_an_ensemble_of_labels_is_calibrated_in_memory_and_from_a_file():
    data = role_graph(seed=0)
    noise = torch.rand(data.num_nodes, 2, generator=torch.Generator().manual_seed(0)) < 0.4
    data.y = (torch.stack([data.y % 2, data.y > 1], 1).bool() ^ noise).float()
    options = {"task": "multilabel", "members": [NodeForest("forest", columns="degree", trees=5)], "seed": 0}
    ensemble = Ensemble.fit(data, **options)
    assert {"none"} != {one.method for one in ensemble.calibration.labels}
    raw = ensemble.member_outputs(data)[0]
    np.testing.assert_allclose(ensemble.outputs(data), ensemble.calibration.apply(raw))
    np.testing.assert_allclose(ensemble.fitted_outputs, ensemble.outputs(data))
    assert (ensemble.outputs(data) != raw).any()
    facts, arrays = ensemble.state()
    np.testing.assert_array_equal(Ensemble.from_state(facts, arrays).outputs(data), ensemble.outputs(data))
