"""Probabilities of the kernel machine and of networks: calibrated on validation items, by a model that is strict."""

import numpy as np
import pytest
from tests.estimators.problems import words

from demonet import DEMONetClassifier
from demonet.data.splits import fractions
from demonet.ensemble.calibration import Calibration
from demonet.estimators import models
from demonet.train.metrics import METRICS

KINDS = pytest.mark.parametrize("options", [{"model": "kernel"}, {"model": "network", "epochs": 3}], ids=["k", "n"])
FLAT = Calibration("temperature", 3.0, 0.0, 0.1)


def fitted(options, monkeypatch):
    """A model that is calibrated by `FLAT`, its graph and split, and what was asked for the calibration."""
    asked = []

    def calibrate(*given):
        asked.append(given)
        return FLAT

    monkeypatch.setattr(models, "calibrate", calibrate)
    data = words(motifs=16)
    split = fractions(data.y, (0.5, 0.5, 0.0), 0, stratified=True)
    return DEMONetClassifier(**options).fit_split(data, split), data, split, asked


@KINDS
def test_validation_items_calibrate_what_was_not_fitted_on_them(options, monkeypatch, tmp_path):
    classifier, data, split, [(task, outputs, y, *_)] = fitted(options, monkeypatch)
    probability, model = classifier.predict_proba(), classifier.fitted_.model
    known = split.val[np.isin(data.y[split.val], data.y[split.train])].numpy()
    assert task == "classify"
    np.testing.assert_array_equal(y, data.y[known])
    classifier.save(tmp_path / "m")
    np.testing.assert_array_equal(DEMONetClassifier.load(tmp_path / "m", graph=data).predict_proba(), probability)
    judge = model.strict if options["model"] == "kernel" else model
    model.calibration = judge.calibration = Calibration()
    np.testing.assert_allclose(FLAT.apply(classifier.predict_proba()), probability, atol=1e-12)
    np.testing.assert_allclose(judge.outputs(data)[known], outputs, atol=1e-12)
    if options["model"] == "kernel":
        assert len(model.machine.y_) == len(split.train) + len(split.val)
        assert len(judge.machine.y_) == len(split.train)


def test_a_kernel_machine_without_validation_items_is_that_of_its_link():
    data = words()
    plain = DEMONetClassifier(model="kernel").fit(data)
    assert plain.fitted_.model.calibration.method == "none"
    assert plain.fitted_.model.strict is None
    assert plain.split_.val.numel() == 0


def test_thresholds_of_a_kernel_machine_are_those_of_validation_items():
    """They are chosen by the machine of the training part: the other one has seen these items."""
    data = words(motifs=16)
    classifier = DEMONetClassifier(model="kernel", metric="macro-f1", validation_fraction=0.5).fit(data)
    val, strict = classifier.split_.val.numpy(), classifier.fitted_.model.strict
    chosen = METRICS["macro-f1"].choose_decision(strict.outputs(data, val), data.y.numpy()[val])
    assert classifier.fitted_.objective.decision == chosen
    assert {row["name"] for row in classifier.importance()} >= {"structure"}
