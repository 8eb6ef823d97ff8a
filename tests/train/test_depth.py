"""``layers="auto"``: the network that is best on validation is the one that is kept."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.train import problems

from demonet import DEMONetClassifier, DemonetError, DEMONetRegressor
from demonet.data.splits import Split
from demonet.estimators.core import settle
from demonet.train import Multilabel, Regress, preset, train_best, train_graphs, train_nodes, with_layers
from demonet.train.presets import DEPTHS, PRESETS
from demonet.train.recipes import Trained

MADE = {"nodes": problems.nodes, "attributes": problems.attributes, "graphs": problems.graphs}


def presets(family: str, **train):
    """A small network of every depth."""
    return [problems.quick(name, family, model={"hidden": 8}, **train) for name in ("strong", "deep-5", "deep-12")]


def best(found: list[Trained], by_loss: bool = False) -> int:
    """The index of the best validation metric, ties by loss, of equals the first; or of the lowest loss."""
    losses = [each.history.val_loss[each.history.best_epoch] for each in found]
    if by_loss:
        return losses.index(min(losses))
    sign = 1 if found[0].objective.larger_is_better else -1
    scores = [(sign * each.val_metric, -loss) for each, loss in zip(found, losses, strict=True)]
    return scores.index(max(scores))


def targets(task: str, data) -> torch.Tensor:
    """Targets of a task that follow from the roles."""
    if task == "multilabel":
        return torch.nn.functional.one_hot(data.y).float()[:, :3]
    return data.y.float()[:, None] if task == "regress" else data.y


@pytest.mark.parametrize(
    ("family", "task", "by_loss"),
    [
        ("nodes", "classify", False),
        ("nodes", "classify", True),
        ("nodes", "regress", False),
        ("attributes", "multilabel", False),
        ("graphs", "classify", False),
    ],
)
def test_the_best_depth_on_validation_is_kept(family, task, by_loss):
    data, split = MADE[family]()
    objective = {"multilabel": Multilabel(), "regress": Regress()}.get(task)
    if family != "graphs":
        data.y = targets(task, data)
    recipe = train_graphs if family == "graphs" else train_nodes
    tried = presets(family, epochs=8, **({"choose_by": "loss"} if by_loss else {}))
    alone = [recipe(data, split, each, objective=objective) for each in tried]
    found = train_best(recipe, data, split, tried, objective=objective)
    expected = alone[best(alone, by_loss)]
    assert found.preset == expected.preset
    assert problems.same_bits(found.model.state_dict(), expected.model.state_dict())
    assert found.val_metric == expected.val_metric
    values = [each.history.val_loss[each.history.best_epoch] if by_loss else each.val_metric for each in alone]
    assert found.history.depths == dict(zip(["2", "5", "12"], values, strict=True))


def test_an_undefined_metric_is_worse_than_any_other_and_equals_keep_the_first():
    data, split = problems.nodes()
    found = {each.name: train_nodes(data, split, each) for each in presets("nodes", epochs=1)}
    for metrics, losses, expected in [
        ([math.nan, 0.1, 0.2], [1.0, 2.0, 3.0], "deep-12"),
        ([0.5, 0.5, 0.5], [2.0, 1.0, 1.0], "deep-5"),
        ([0.5, 0.5, 0.4], [1.0, 1.0, 0.1], "strong"),
        ([math.nan] * 3, [2.0, 3.0, 1.0], "deep-12"),
    ]:
        for each, metric, loss in zip(found.values(), metrics, losses, strict=True):
            each.history.val_metric[0], each.history.val_loss[0] = metric, loss
        tried = [each.preset for each in found.values()]
        assert train_best(lambda data, split, each, **_: found[each.name], data, split, tried).preset.name == expected


def test_an_interrupted_choice_goes_on_to_the_same_bits(tmp_path):
    data, split = problems.nodes()
    tried = presets("nodes", epochs=28, patience=28)[:2]
    whole = train_best(train_nodes, data, split, tried)
    seen: list[tuple[int | None, int]] = []

    def interrupt(epoch):
        if (epoch.layers, epoch.number) == (5, 26):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_best(train_nodes, data, split, tried, on_epoch=interrupt, checkpoint=tmp_path / "state")
    resumed = train_best(
        train_nodes,
        data,
        split,
        tried,
        on_epoch=lambda epoch: seen.append((epoch.layers, epoch.number)),
        checkpoint=tmp_path / "state",
    )
    assert seen == [(layers, number) for layers in (2, 5) for number in (25, 26, 27)]
    assert problems.same_bits(resumed.model.state_dict(), whole.model.state_dict())
    assert resumed.history.depths == whole.history.depths


def test_presets_of_all_depths():
    for family in MADE:
        assert [each.model.layers for each in with_layers(preset("strong", family), "auto")] == [2, *DEPTHS]
        assert with_layers(preset("deep-5", family), "auto") == [preset("deep-5", family), preset("deep-12", family)]
        assert with_layers(preset("strong", family), None) == [preset("strong", family)]
        (five,) = with_layers(preset("strong", family), 5)
        assert five.model == preset("strong", family).model.changed(layers=5)
        assert five.train == preset("strong", family).train


@pytest.mark.parametrize("family", ["nodes", "graphs"])
def test_it_is_an_argument(monkeypatch, family):
    data, split = MADE[family]()
    first, *deep = presets(family, epochs=3)
    for each in deep:
        monkeypatch.setitem(PRESETS, (each.name, family), each)
    recipe = train_graphs if family == "graphs" else train_nodes
    found, wanted = recipe(data, split, first, layers="auto"), train_best(recipe, data, split, [first, *deep])
    assert found.history.depths == wanted.history.depths
    assert problems.same_bits(found.model.state_dict(), wanted.model.state_dict())
    assert recipe(data, split, first, layers=3).model.config.layers == 3
    with pytest.raises(DemonetError, match="choose=False"):
        recipe(data, split, first, layers="auto", choose=False)


def ids_and_targets(data, split: Split):
    known = torch.cat([split.train, split.val]).numpy()
    return known, data.y.numpy()[known]


def test_an_estimator_chooses_the_depth_and_its_file_says_it(tmp_path):
    data, split = problems.nodes()
    known, y = ids_and_targets(data, split)
    options = {"graph": data, "model": "network", "hidden": 8, "epochs": 20, "random_state": 3}
    auto = DEMONetClassifier(layers="auto", **options).fit(known, y)
    alone = {
        layers: DEMONetClassifier(preset=name, **options).fit(known, y)
        for layers, name in ((2, "strong"), (5, "deep-5"), (12, "deep-12"))
    }
    assert auto.history_.depths == {str(layers): each.history_.best_metric for layers, each in alone.items()}
    layers = auto.preset_.model.layers
    assert len(auto.model_.layers) == layers
    assert np.array_equal(auto.predict_proba(), alone[layers].predict_proba())
    auto.save(tmp_path / "model.safetensors")
    loaded = DEMONetClassifier.load(tmp_path / "model.safetensors", graph=data)
    assert (loaded.layers, loaded.preset_.model.layers, len(loaded.model_.layers)) == ("auto", layers, layers)
    assert loaded.history_.depths == auto.history_.depths
    assert np.array_equal(loaded.predict_proba(), auto.predict_proba())


def test_a_number_of_layers_changes_nothing_else():
    data, split = problems.nodes()
    five = DEMONetClassifier(layers=5, model="network", hidden=8, epochs=5).fit_split(data, split)
    (settled,) = settle(five, data, 0)
    assert settled.model == preset("strong", "nodes").model.changed(layers=5, hidden=8)
    y = torch.from_numpy(five.predict_proba())
    trained = train_nodes(data, split, settled)
    assert torch.equal(trained.objective.activate(trained.model.eval()(*trained.inputs).double()), y)
    assert five.history_.depths == {}


@pytest.mark.parametrize(
    "given",
    [{"layers": "five"}, {"layers": 0}, {"layers": "auto", "model": "auto"}, {"layers": 3, "model": "kernel"}],
)
def test_another_depth_is_refused(given):
    data, split = problems.nodes()
    with pytest.raises(ValueError, match="layers"):
        DEMONetRegressor(**({"model": "network"} | given)).fit_split(data, split)
