"""Metrics by hand, against scikit-learn, and by which validation chooses."""

import math

import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from demonet import DemonetError
from demonet.train import METRICS, Classify, History, Multilabel, Regress, metrics_for
from demonet.train.loop import compare

NAN = float("nan")
Y = np.array([0, 0, 0, 1, 2])
P = np.array([[0.7, 0.2, 0.1], [0.4, 0.5, 0.1], [0.6, 0.1, 0.3], [0.2, 0.6, 0.2], [0.5, 0.1, 0.4]])

# Predictions are 0, 1, 0, 1, 0: three of five right; recalls 2/3, 1, 0; F1 2/3, 2/3, 0.
BY_HAND = {
    "accuracy": 3 / 5,
    "balanced": (2 / 3 + 1 + 0) / 3,
    "macro-f1": (2 / 3 + 2 / 3 + 0) / 3,
    # Class 0 is ranked before the others in 5 of 6 pairs, class 1 in 4 of 4, class 2 in 4 of 4.
    "auc": (5 / 6 + 1 + 1) / 3,
    # Class 0 has ranks 1, 2 and 4 of its own probabilities; the others rank 1.
    "average-precision": ((1 + 1 + 3 / 4) / 3 + 1 + 1) / 3,
    "precision@100": (3 / 5 + 1 / 5 + 1 / 5) / 3,  # of all five
    "log-loss": -np.log([0.7, 0.4, 0.6, 0.6, 0.4]).mean(),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_classes_by_hand(name):
    metric = METRICS[name]
    given = P if metric.uses == "probabilities" else P.argmax(1)
    assert metric.functions["classify"](Y, given, None) == pytest.approx(BY_HAND[name])


def test_every_metric_of_classes_is_tested_by_hand():
    assert set(BY_HAND) == set(metrics_for("classify"))
    assert set(metrics_for("multilabel")) == set(BY_HAND) - {"accuracy"}
    assert set(metrics_for("regress")) == {"rmse", "mae", "r2"}


def test_classes_are_scikit_learns():
    generator = np.random.default_rng(0)
    y, weight = generator.integers(4, size=200), generator.random(200)
    p = generator.dirichlet(np.ones(4), size=200)
    for w in (None, weight):
        auc = sk.roc_auc_score(y, p, multi_class="ovr", average="macro", sample_weight=w)
        assert METRICS["auc"].functions["classify"](y, p, w) == pytest.approx(auc)
        balanced = sk.balanced_accuracy_score(y, p.argmax(1), sample_weight=w)
        assert METRICS["balanced"].functions["classify"](y, p.argmax(1), w) == pytest.approx(balanced)
        precision = sk.average_precision_score(np.eye(4)[y], p, sample_weight=w)
        assert METRICS["average-precision"].functions["classify"](y, p, w) == pytest.approx(precision)
    binary = p[:, :2] / p[:, :2].sum(1, keepdims=True)
    for name, function in (("auc", sk.roc_auc_score), ("average-precision", sk.average_precision_score)):
        found = METRICS[name].functions["classify"](y % 2, binary, None)
        assert found == pytest.approx(function(y % 2, binary[:, 1]))


@pytest.mark.parametrize("positive", [0, 1])
def test_the_positive_one_of_two_classes(positive):
    generator = np.random.default_rng(1)
    y, weight, p = generator.integers(2, size=50), generator.random(50), generator.dirichlet(np.ones(2), size=50)
    for name, metric in METRICS.items():
        if "classify" not in metric.functions:
            continue
        chosen = metric.of_class(positive, "hoch")
        given = y, p if metric.uses == "probabilities" else p.argmax(1), weight
        found = chosen.functions["classify"](*given)
        if name == "average-precision":
            expected = sk.average_precision_score(y == positive, p[:, positive], sample_weight=weight)
            assert found == pytest.approx(expected)
            assert "'hoch'" in chosen.title
        elif not metric.has_positive:
            assert chosen is metric
    scores = torch.from_numpy(np.log(p))
    objective = Classify(metric="average-precision", positive=positive)
    expected = sk.average_precision_score(y == positive, p[:, positive])
    assert objective.measure(scores, torch.from_numpy(y)).tolist()[1] == pytest.approx(expected)


def test_the_rarer_class_of_the_training_part_is_the_positive_one():
    objective = Classify(metric="average-precision")
    assert objective.fit(torch.tensor([0, 1, 1])).positive == 0
    assert objective.fit(torch.tensor([0, 0, 1])).positive == 1
    assert objective.fit(torch.tensor([0, 1])).positive == 1
    assert objective.fit(torch.tensor([0, 1, 2])).positive is None
    assert Classify(metric="average-precision", positive=1).fit(torch.tensor([0, 1, 1])).positive == 1


def test_a_class_that_is_not_in_the_part_is_left_out():
    assert METRICS["auc"].functions["classify"](Y[:4], P[:4], None) == pytest.approx(
        np.mean([sk.roc_auc_score(Y[:4] == c, P[:4, c]) for c in (0, 1)])
    )
    assert math.isnan(METRICS["auc"].functions["classify"](Y[:3], P[:3], None))


def test_tables_of_labels_by_hand():
    y = np.array([[1, 0, NAN], [0, NAN, 1], [1, 0, 1], [NAN, 0, 1]])
    p = np.array([[0.9, 0.2, 0.1], [0.6, 0.9, 0.7], [0.4, 0.3, 0.9], [0.9, 0.4, 0.2]])
    functions = {name: METRICS[name].functions["multilabel"] for name in metrics_for("multilabel")}
    decided = (p >= 0.5).astype(float)
    # Label 0: 1, 0, 1 with 0.9, 0.6, 0.4. Labels 1 and 2 have one known value each: no ranking is defined for them.
    assert functions["auc"](y, p, None) == pytest.approx(1 / 2)
    assert functions["average-precision"](y, p, None) == pytest.approx((1 + 2 / 3) / 2)
    assert functions["balanced"](y, decided, None) == pytest.approx((1 / 2 + 0) / 2)
    assert functions["macro-f1"](y, decided, None) == pytest.approx((1 / 2 + 0 + 4 / 5) / 3)
    losses = [-np.log([0.9, 0.4, 0.4]).mean(), -np.log([0.8, 0.7, 0.6]).mean(), -np.log([0.7, 0.9, 0.2]).mean()]
    assert functions["log-loss"](y, p, None) == pytest.approx(np.mean(losses))


def test_regression_by_hand():
    y, p = np.array([[1.0, 5.0], [3.0, NAN], [5.0, 9.0]]), np.array([[2.0, 5.0], [3.0, 0.0], [3.0, 7.0]])
    weight = np.array([1.0, 2.0, 3.0])
    functions = {name: METRICS[name].functions["regress"] for name in metrics_for("regress")}
    assert functions["rmse"](y, p, None) == pytest.approx((math.sqrt(5 / 3) + math.sqrt(2)) / 2)
    assert functions["mae"](y, p, None) == pytest.approx((1 + 1) / 2)
    assert functions["r2"](y, p, None) == pytest.approx(((1 - 5 / 8) + (1 - 4 / 8)) / 2)
    assert functions["mae"](y, p, weight) == pytest.approx((7 / 6 + 6 / 4) / 2)
    whole = np.nan_to_num(y)
    assert functions["r2"](whole, p, weight) == pytest.approx(sk.r2_score(whole, p, sample_weight=weight))
    assert functions["rmse"](whole, p, weight) == pytest.approx(
        sk.root_mean_squared_error(whole, p, sample_weight=weight)
    )


@pytest.mark.parametrize("metric", ["balanced", "macro-f1", "auc", "average-precision", "log-loss"])
def test_an_objective_measures_its_metric(metric):
    scores, y = torch.log(torch.tensor(P)), torch.tensor(Y)
    loss, value = Classify(metric=metric).measure(scores, y).tolist()
    assert value == pytest.approx(BY_HAND[metric])
    assert loss == pytest.approx(BY_HAND["log-loss"])
    assert Classify().measure(scores, y).tolist() == pytest.approx([loss, BY_HAND["accuracy"]])


def test_weights_count_in_the_loss_and_not_in_the_metric():
    scores, y, weight = torch.log(torch.tensor(P)), torch.tensor(Y), torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    loss, value = Classify().measure(scores, y, weight).tolist()
    assert loss == pytest.approx(METRICS["log-loss"].functions["classify"](Y, P, weight.numpy()))
    assert value == pytest.approx(BY_HAND["accuracy"])


def test_a_metric_that_does_not_fit_is_refused_with_those_that_do():
    for make, wrong, right in ((Classify, "rmse", "accuracy"), (Multilabel, "accuracy", "auc"), (Regress, "auc", "r2")):
        with pytest.raises(DemonetError, match=f"'{wrong}'.*{right}"):
            make(metric=wrong)
    with pytest.raises(DemonetError, match="'f2'"):
        Classify(metric="f2")


@pytest.mark.parametrize(
    ("values", "larger", "best"),
    [
        ([0.5, 0.7, 0.6], True, 1),
        ([0.5, 0.3, 0.4], False, 1),
        ([NAN, 0.1, 0.9], False, 1),
        ([NAN, 0.1, 0.9], True, 2),
        ([NAN, NAN, NAN], True, 1),  # the losses are 3, 1, 2
        ([0.5, 0.5, 0.5], True, 1),
        ([0.5, 0.5, 0.5], False, 1),
    ],
)
def test_the_epoch_is_chosen_by_the_metric_and_ties_by_the_loss(values, larger, best):
    history = History()
    for number, (loss, value) in enumerate(zip([3.0, 1.0, 2.0], values, strict=True)):
        improved, _ = compare(history, loss, value, larger_is_better=larger)
        history.val_loss.append(loss)
        history.val_metric.append(value)
        history.best_epoch = number if improved else history.best_epoch
    assert history.best_epoch == best


def test_an_undefined_metric_does_not_hold_up_the_patience():
    history = History(val_loss=[1.0], val_metric=[NAN], best_epoch=0)
    assert compare(history, 2.0, NAN) == (False, False)
    assert compare(history, 0.5, NAN) == (True, True)
