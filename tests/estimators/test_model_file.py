"""A model in a file: the same bits in a new process; anything damaged, foreign or incomplete refused, nothing run."""

import json
import pickle
import re
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.estimators.problems import QUICK, club, roles, words

from demonet import (
    DEMONetClassifier,
    DemonetError,
    DEMONetGraphClassifier,
)
from demonet.estimators.core import FORMAT, Fitted
from demonet.methods.forest import NodeForest
from demonet.methods.kernel_ridge import NodeKernel
from demonet.tensorfile import read_tensors, write_tensors

CASES = {
    "default": (roles, {}),
    "authors": (roles, {"preset": "authors"}),
    "attributes": (words, {}),
    "hash of attributes": (words, {"preset": "paper", "scheme": "hash"}),
}


@pytest.mark.parametrize("name", CASES)
def test_saved_and_loaded(name, tmp_path):
    data, options = CASES[name][0](), CASES[name][1]
    fitted = DEMONetClassifier(**QUICK, **options).fit(data)
    fitted.save(tmp_path / "model.safetensors")
    loaded = DEMONetClassifier.load(tmp_path / "model.safetensors", graph=data)
    np.testing.assert_array_equal(loaded.predict_proba(), fitted.predict_proba())
    np.testing.assert_array_equal(loaded.transform(), fitted.transform())
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert loaded.history_ == fitted.history_
    assert loaded.split_ == fitted.split_
    assert loaded.preset_ == fitted.preset_
    assert loaded.get_params() | {"graph": None} == fitted.get_params()
    alone = DEMONetClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(alone.predict_proba(data), fitted.predict_proba())
    with pytest.raises(DemonetError, match=r"graph="):
        alone.predict()
    loaded.save(tmp_path / "again.safetensors")
    again = DEMONetClassifier.load(tmp_path / "again.safetensors", graph=data)
    np.testing.assert_array_equal(again.predict_proba(), fitted.predict_proba())


@pytest.mark.parametrize("values", [[7, -3], ["ja", "<script>"], [True, False], [3.0, 2.0]])
def test_classes_and_their_weights_keep_their_types(values, tmp_path):
    graph, people, sides = club()
    y = [values[int(side == sides[0])] for side in sides]
    weights = {values[0]: 2, values[1]: np.float64(0.5)}
    fitted = DEMONetClassifier(graph=graph, class_weight=weights, **QUICK).fit(people, y)
    fitted.save(tmp_path / "m.safetensors")
    loaded = DEMONetClassifier.load(tmp_path / "m.safetensors", graph)
    assert loaded.class_weight == weights
    np.testing.assert_array_equal(loaded.predict(), fitted.predict())
    assert [type(name) for name in loaded.classes_.tolist()] == [type(name) for name in fitted.classes_.tolist()]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    DEMONetClassifier(model="network", epochs=1, hidden=2, scheme="hash", preset="paper").fit(words()).save(path)
    return path


class Trap:
    """Touches a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_pickle_is_refused_and_not_run(model, tmp_path):
    sprung = tmp_path / "sprung"
    trap = pickle.dumps(Trap(str(sprung)))
    torch.save({"model": Trap(str(sprung))}, tmp_path / "torch.safetensors")
    (tmp_path / "plain.safetensors").write_bytes(trap)
    tensors, facts, _ = read_tensors(model, FORMAT)
    inside = tensors | {"model.network.layers.0.conv.seed.weight": torch.frombuffer(bytearray(trap), dtype=torch.uint8)}
    write_tensors(tmp_path / "tensor.safetensors", FORMAT, inside, facts)
    write_tensors(
        tmp_path / "fact.safetensors", FORMAT, tensors, facts | {"model": facts["model"] | {"preset": trap.hex()}}
    )
    for name in ("torch", "plain", "tensor", "fact"):
        with pytest.raises(DemonetError, match=rf"{name}\.safetensors: "):
            DEMONetClassifier.load(tmp_path / f"{name}.safetensors")
    assert not sprung.exists()
    pickle.loads(trap).close()
    assert sprung.exists(), "the trap works where it is sprung"


def spoiled_tensors(tensors):
    for name in (name for name in tensors if "tasks" not in name):  # files of older versions have these in facts alone
        yield f"without {name}", {key: value for key, value in tensors.items() if key != name}
    weight = tensors["model.network.head.weight"]
    yield "wrong shape", tensors | {"model.network.head.weight": weight.t().contiguous()}
    yield "wrong shape of a feature", tensors | {"model.features.degree-onehot.degrees": torch.arange(3)}
    yield "one more", tensors | {"model.network.extra": weight}
    yield "another room", tensors | {"kitchen.sink": weight}


def test_missing_keys_and_wrong_shapes(tmp_path):
    path = tmp_path / "model.safetensors"
    DEMONetClassifier(model="network", epochs=1, hidden=2, preset="paper").fit(roles()).save(path)
    tensors, facts, _ = read_tensors(path, FORMAT)
    for what, spoiled in spoiled_tensors(tensors):
        write_tensors(tmp_path / "spoiled.safetensors", FORMAT, spoiled, facts)
        with pytest.raises(DemonetError, match=r"spoiled\.safetensors: does not hold a model"):
            pytest.fail(f"{what}: {DEMONetClassifier.load(tmp_path / 'spoiled.safetensors')}")
    for part, name in [(facts, name) for name in facts] + [(facts["model"], name) for name in facts["model"]]:
        value = part.pop(name)
        for wrong in (..., None, 3, "x", [], {}):
            if wrong is not ...:
                part[name] = wrong
            write_tensors(tmp_path / "spoiled.safetensors", FORMAT, tensors, facts)
            if name in ("num_attributes", "history") and wrong in (3, {}):
                continue  # a count, and an empty history, are what they claim to be
            if name == "calibration" and wrong == {}:
                continue  # none
            if name == "numbers" and wrong in (..., [], {}):
                continue  # there are none without weights and attributes
            if name in ("columns", "weighted") and wrong is None:
                continue  # not every model has a table of attributes, or knows of weights
            with pytest.raises(DemonetError, match=r"spoiled\.safetensors: "):
                pytest.fail(f"{name}={wrong!r}: {DEMONetClassifier.load(tmp_path / 'spoiled.safetensors')}")
        part[name] = value


def test_an_ensemble_with_other_members_or_rows_is_refused(tmp_path):
    path, members = tmp_path / "model.safetensors", [NodeKernel(kernel="degree"), NodeForest(trees=3)]
    data = roles()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["demonet.ensemble.ensemble"], "portfolio", lambda *given: members)
        DEMONetClassifier(effort="quick").fit(data).save(path)
    tensors, facts, _ = read_tensors(path, FORMAT)
    model = facts["model"]
    row = model["candidates"][0]
    changes = [{"members": []}, {"members": model["members"][:1]}, {"weights": []}, {"view": {}}, {"calibration": []}]
    changes += [{"candidates": [row | {name: []}]} for name in ("loss", "loss_error", "weight", "status", "machine")]
    changes += [{"objective": {"name": "classify", "num_classes": 10**9}}]
    for forged in changes:
        write_tensors(tmp_path / "forged.safetensors", FORMAT, tensors, facts | {"model": model | forged})
        with pytest.raises(DemonetError, match=r"forged\.safetensors: "):
            pytest.fail(f"{forged}: {DEMONetClassifier.load(tmp_path / 'forged.safetensors').predict_proba(data)}")


@pytest.mark.parametrize(
    ("kernel", "name"), [("degree", "degree.mean"), ("structure", "structure.scale"), ("ranks", "structure.quantiles")]
)
def test_what_a_view_learned_has_the_shape_of_the_data(tmp_path, kernel, name):
    path, data = tmp_path / "model.safetensors", roles()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["demonet.ensemble.ensemble"], "portfolio", lambda *given: [NodeKernel(kernel=kernel)])
        DEMONetClassifier(effort="quick").fit(data).save(path)
    tensors, facts, _ = read_tensors(path, FORMAT)
    full = next(key for key in tensors if key.endswith(f"view.{name}"))
    for forged in (torch.cat([tensors[full], tensors[full]], -1), tensors[full] * torch.nan, tensors[full].int()):
        write_tensors(path, FORMAT, tensors | {full: forged}, facts)
        with pytest.raises(DemonetError, match=re.escape(name)):
            DEMONetClassifier.load(path, graph=data).predict_proba(data)


def test_idf_is_missed_when_the_model_is_loaded(tmp_path):
    path = tmp_path / "model.safetensors"
    DEMONetClassifier(model="network", preset="default", epochs=1).fit(words()).save(path)
    tensors, facts, _ = read_tensors(path, FORMAT)
    idf = tensors.pop("model.features.tfidf.idf")
    write_tensors(path, FORMAT, tensors, facts)
    with pytest.raises(DemonetError, match=r"model\.safetensors: .*KeyError.*'idf'"):
        DEMONetClassifier.load(path)
    write_tensors(path, FORMAT, tensors | {"model.features.tfidf.idf": idf[1:].clone()}, facts)
    with pytest.raises(DemonetError, match=r"model\.safetensors: .*ValueError"):
        DEMONetClassifier.load(path)


def test_other_formats_and_versions(model, tmp_path):
    tensors, facts, _ = read_tensors(model, FORMAT)
    path = tmp_path / "other.safetensors"
    write_tensors(path, "demonet-model-2", tensors, facts)
    with pytest.raises(DemonetError, match="'demonet-model-2'"):
        DEMONetClassifier.load(path)
    write_tensors(path, "demonet-checkpoint-2", tensors, facts)
    with pytest.raises(DemonetError, match="'demonet-checkpoint-2'"):
        DEMONetClassifier.load(path)
    save_file(load_file(model), path)
    with pytest.raises(DemonetError, match=r"other\.safetensors"):
        DEMONetClassifier.load(path)
    save_file(load_file(model), path, metadata={"format": FORMAT, "facts": json.dumps(facts)})
    with pytest.raises(DemonetError, match="checksum"):
        DEMONetClassifier.load(path)
    with pytest.raises(DemonetError, match=r"DEMONetClassifier.*DEMONetGraphClassifier"):
        DEMONetGraphClassifier.load(model)
    with pytest.raises(DemonetError, match=r"nowhere\.safetensors: "):
        DEMONetClassifier.load(tmp_path / "nowhere.safetensors")
    with pytest.raises(DemonetError, match=r"no/model\.safetensors: "):
        DEMONetClassifier.load(model).save(tmp_path / "no" / "model.safetensors")


@pytest.mark.parametrize(("name", "value"), [("hidden", 2**40), ("layers", 10**6)])
def test_hostile_sizes_are_not_allocated(model, tmp_path, name, value):
    tensors, facts, _ = read_tensors(model, FORMAT)
    facts["model"]["preset"]["model"] |= {name: value}
    write_tensors(tmp_path / "huge.safetensors", FORMAT, tensors, facts)
    with pytest.raises(DemonetError, match=rf"huge\.safetensors: .*{name}"):
        Fitted.load(tmp_path / "huge.safetensors", "DEMONetClassifier", "nodes")


def test_a_kernel_machine_has_an_output_for_each_class(tmp_path):
    data, path = roles(), tmp_path / "kernel.safetensors"
    DEMONetClassifier(graph=data, model="kernel").fit(data.node_ids, data.y.numpy()).save(path)
    tensors, facts, _ = read_tensors(path, FORMAT)
    facts["model"]["outputs"] = 2**40
    write_tensors(path, FORMAT, tensors, facts)
    with pytest.raises(DemonetError, match=r"kernel\.safetensors: .*1099511627776 outputs"):
        Fitted.load(path, "DEMONetClassifier", "nodes")


@pytest.mark.parametrize("task", ["classes", "labels"])
def test_a_decision_in_a_file_fits_and_decides(task, tmp_path):
    """Without one, the most probable class is predicted, or each label from 0.5 on."""
    data = roles()
    y = data.y.numpy() if task == "classes" else np.stack([data.y == 0, data.y > 1], 1).astype(int)
    DEMONetClassifier(graph=data, **QUICK).fit(data.node_ids, y).save(tmp_path / "m.safetensors")
    tensors, facts, _ = read_tensors(tmp_path / "m.safetensors", FORMAT)
    objective = {name: value for name, value in facts["objective"].items() if name != "decision"}
    numbers = np.linspace(0.1, 0.9, objective["outputs"])

    def loaded(**given):
        write_tensors(tmp_path / "n.safetensors", FORMAT, tensors, facts | {"objective": objective | given})
        found = DEMONetClassifier.load(tmp_path / "n.safetensors", graph=data)
        return found.predict(), found.predict_proba()

    for given in (numbers[1:], 0 * numbers):
        with pytest.raises(DemonetError, match=r"decision|factors|thresholds"):
            loaded(decision=given.tolist())
    predicted, p = loaded(decision=numbers.tolist())
    np.testing.assert_array_equal(predicted, (p * numbers).argmax(1) if y.ndim == 1 else p >= numbers)
    predicted, p = loaded()
    np.testing.assert_array_equal(predicted, p.argmax(1) if y.ndim == 1 else p >= 0.5)
