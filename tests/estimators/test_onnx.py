"""Exported models give the same probabilities in onnxruntime, on graphs of any size."""

import json
import sys

import numpy as np
import pytest
import torch

from demonet import DEMONetClassifier, DemonetError, DEMONetGraphClassifier, DEMONetRegressor
from demonet.data.synthetic import power_law, role_graph, small_graphs, uniform_random
from demonet.degree.count import count_degree
from demonet.ensemble.calibration import Calibration, LabelCalibration


def labelled(attributes):
    data = power_law(60, 150, seed=0)
    generator = torch.Generator().manual_seed(0)
    data.y = torch.randint(3, (60,), generator=generator)
    if attributes:
        data.x = torch.randint(4, (60, 5), generator=generator).float()
    return data


def run(path, *inputs, output="probabilities"):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]
    (found,) = session.run([output], dict(zip(names, inputs, strict=True)))
    return found, session.get_modelmeta().custom_metadata_map


@pytest.mark.parametrize(
    ("preset", "scheme", "attributes"),
    [("paper", "weight", False), ("authors", "hash", True), ("default", None, True)],
)
def test_nodes_on_another_graph(tmp_path, preset, scheme, attributes):
    classifier = DEMONetClassifier(preset=preset, scheme=scheme, model="network", epochs=3).fit(labelled(attributes))
    classifier.fitted_.model.calibration = Calibration("temperature", 2.0, 0.0, 0.1)
    classifier.to_onnx(tmp_path / "model.onnx")
    for other in (labelled(attributes), uniform_random(37, 90, seed=4)):
        if attributes and other.x is None:
            other.x = torch.rand(37, 5, generator=torch.Generator().manual_seed(1)).round()
        x = classifier.features_.transform(other).to_dense().numpy()
        found, facts = run(tmp_path / "model.onnx", x, other.edge_index.numpy())
        np.testing.assert_allclose(found, classifier.predict_proba(graph=other), atol=2e-5)
    assert json.loads(facts["classes"]) == [0, 1, 2]
    assert facts["features"] == classifier.features_.spec


def test_graphs_one_at_a_time(tmp_path):
    graphs = small_graphs(24, seed=0)
    classifier = DEMONetGraphClassifier(model="network", epochs=3).fit(graphs)
    classifier.to_onnx(tmp_path / "model.onnx")
    expected = classifier.predict_proba(graphs)
    for number in (0, 5, 23):
        x = classifier.features_.transform(graphs[number]).numpy()
        found, _ = run(tmp_path / "model.onnx", x, graphs[number].edge_index.numpy())
        np.testing.assert_allclose(found, expected[[number]], atol=2e-5)


def test_numbers_and_several_labels(tmp_path):
    """Values in the units of the targets, and one probability for each label."""
    data = labelled(False)
    degree = count_degree(data.edge_index, data.num_nodes).numpy()
    numbers, tags = np.stack([100 + 10 * degree, -degree], 1).astype(float), np.stack([degree > 2, degree > 4], 1)
    for kind, y, output in ((DEMONetRegressor, numbers, "values"), (DEMONetClassifier, tags * 1, "probabilities")):
        fitted = kind(graph=data, model="network", epochs=3, hidden=8).fit(range(60), y)
        if output == "probabilities":
            ways = Calibration("bias", 0.5, 1.5, 0.2), Calibration()
            fitted.fitted_.model.calibration = LabelCalibration(ways)
        fitted.to_onnx(tmp_path / "model.onnx")
        x = fitted.features_.transform(data).numpy()
        found, facts = run(tmp_path / "model.onnx", x, data.edge_index.numpy(), output=output)
        expected = fitted.predict() if output == "values" else fitted.predict_proba()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3 if output == "values" else 2e-5)
        assert facts["task"] == ("regress" if output == "values" else "multilabel")
        assert ("classes" in facts) == (output == "probabilities")


def test_weights_are_an_input(tmp_path):
    data = role_graph(motifs=6)
    source, target = data.edge_index
    data.edge_weight = 1.0 + (source + target).float() % 3  # the same both ways
    classifier = DEMONetClassifier(model="network", epochs=2).fit(data)
    classifier.to_onnx(tmp_path / "model.onnx", weighted=True)
    x = classifier.features_.transform(data).numpy()
    found, _ = run(tmp_path / "model.onnx", x, data.edge_index.numpy(), data.edge_weight.numpy())
    np.testing.assert_allclose(found, classifier.predict_proba(graph=data), atol=2e-5)


def test_what_is_amiss_is_said(tmp_path, monkeypatch):
    classifier = DEMONetClassifier(model="network", epochs=1).fit(labelled(False))
    with pytest.raises(DemonetError, match=r"none/model\.onnx: "):
        classifier.to_onnx(tmp_path / "none" / "model.onnx")
    monkeypatch.setattr(torch.onnx, "export", lambda *_, **__: exec("raise RuntimeError('no rule\\nmore')"))
    with pytest.raises(DemonetError, match=r"model\.onnx: .*no rule$"):
        classifier.to_onnx(tmp_path / "model.onnx")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(DemonetError, match=r"demonet\[onnx\]"):
        classifier.to_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
