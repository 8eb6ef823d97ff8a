"""Probabilities that validation makes frequencies of: which way is chosen, what it keeps, and what a file may hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from demonet import DemonetError
from demonet.data.synthetic import role_graph
from demonet.ensemble import Ensemble
from demonet.ensemble.calibration import Calibration
from demonet.methods.forest import NodeForest
from demonet.methods.selection import item_losses


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
    two, y = drawn(500, power, 2, classes=2)
    order = Calibration("temperature", power, softening=0.01).apply(two)[:, 1].argsort()
    assert (np.diff(two[order, 1]) >= -1e-12).all()


def test_isotonic_where_no_temperature_helps():
    said, y = drawn(3000, 1.0, 0, classes=2)
    said = np.stack([1 - said[:, 1] / 4, said[:, 1] / 4], 1)
    calibration = Calibration.choose(said, y)
    assert calibration.method == "isotonic"
    assert calibration.apply(said).mean(0) == pytest.approx(np.bincount(y) / len(y), abs=0.01)
    order = said[:, 1].argsort()  # items on one step keep their order
    assert (np.diff(calibration.apply(said)[order, 1]) > 0).all()


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
        {"steps": []},
        {"steps": [([0.5, 0.1], [0.0, 1.0])] * 3},
        {"steps": [([0.1, 0.5], [0.0, 2.0])] * 3},
    ],
)
def test_a_state_that_gives_no_probabilities(change):
    state = Calibration("isotonic", steps=[([0.0, 1.0], [0.0, 1.0])] * 3).state()
    assert Calibration.from_state(state, 3).state() == state
    with pytest.raises(DemonetError, match="calibration"):
        Calibration.from_state(state | change, 3)


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
