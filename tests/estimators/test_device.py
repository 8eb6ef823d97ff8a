"""``device="auto"``: a GPU where there is one, and a model that goes back to the CPU in its file."""

import numpy as np
import pytest
import torch
from tests.estimators.problems import QUICK, roles, words

from demonet import DEMONetClassifier, DemonetError
from demonet.errors import DemonetWarning

ELSEWHERE = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


def test_auto_is_the_gpu_where_there_is_one():
    fitted = DEMONetClassifier(device="auto", **QUICK).fit(roles())
    assert next(fitted.model_.parameters()).is_cuda == torch.cuda.is_available()
    assert fitted.graph_.edge_index.device.type == "cpu"


def test_a_gpu_is_taken_by_its_number_and_one_that_is_not_there_is_an_error(monkeypatch, tmp_path):
    fitted = DEMONetClassifier(**QUICK).fit(roles())
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [DEMONetClassifier(device=name)._device() for name in ("cuda", "cuda:1", "cpu")] == [
        torch.device(name) for name in ("cuda", "cuda:1", "cpu")
    ]
    with pytest.raises(DemonetError, match="device='cuda:2', and torch sees 2 GPUs"):
        DEMONetClassifier(device="cuda:2", **QUICK).fit(roles())
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DemonetError, match="device='cuda', and torch sees 0 GPUs"):
        DEMONetClassifier(device="cuda", **QUICK).fit(roles())
    fitted.fitted_.parameters["device"] = "cuda:1"
    fitted.save(tmp_path / "m.safetensors")
    with pytest.warns(DemonetWarning, match="there is no GPU here"):
        assert DEMONetClassifier.load(tmp_path / "m.safetensors").device == "cpu"


@ELSEWHERE
@pytest.mark.parametrize("options", [{}, {"scheme": "weight", "class_weight": "balanced"}])
def test_nodes_on_a_gpu(options, tmp_path):
    data = words()
    fitted = DEMONetClassifier(device="auto", model="network", epochs=40, **options).fit(data)
    fitted.save(tmp_path / "m.safetensors")
    loaded = DEMONetClassifier.load(tmp_path / "m.safetensors", graph=data)
    np.testing.assert_allclose(loaded.predict_proba(), fitted.predict_proba(), atol=1e-5)
    loaded.model_.cpu()
    np.testing.assert_allclose(loaded.predict_proba(), fitted.predict_proba(), atol=1e-3)
    assert fitted.transform().shape[0] == data.num_nodes
    assert fitted.explain(3).confidence == pytest.approx(fitted.predict_proba([3]).max(), abs=1e-3)


@ELSEWHERE
def test_the_ensemble_on_a_gpu(tmp_path):
    data = roles()
    here, there = (
        DEMONetClassifier(model="auto", device=device, random_state=0).fit(data) for device in ("cpu", "auto")
    )
    tables = [{row["name"]: row for row in fitted.candidates_} for fitted in (here, there)]
    assert all(row["status"] == "fitted" for row in tables[1].values())
    machine = [table["machine"]["loss"] for table in tables]
    assert machine[0] == pytest.approx(machine[1], abs=0.02)
    there.save(tmp_path / "m.safetensors")
    loaded = DEMONetClassifier.load(tmp_path / "m.safetensors", graph=data)
    np.testing.assert_allclose(loaded.predict_proba(), there.predict_proba(), atol=1e-6)
