"""Selection against a naive loop."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from demonet.ensemble.selection import ensemble_weights, greedy_weights, plausible, soften


def example(seed: int, members: int = 5, items: int = 37, classes: int = 3):
    generator = np.random.default_rng(seed)
    y = generator.integers(classes, size=items)
    score = generator.normal(size=(members, items, classes)) + 0.8 * np.eye(classes)[y]
    power = np.exp(score)
    return power / power.sum(-1, keepdims=True), y


def naive_greedy(probability, y, rounds):
    taken = []
    for _ in range(rounds):
        scores = []
        for candidate in range(len(probability)):
            bag = np.mean([probability[i] for i in [*taken, candidate]], axis=0)
            score = np.mean([-np.log(bag[i, c]) for i, c in enumerate(y)])
            score -= np.mean([bag[i].argmax() == c for i, c in enumerate(y)])
            scores.append(round(score, 12))
        taken.append(scores.index(min(scores)))
    return np.bincount(taken, minlength=len(probability)) / rounds


@pytest.mark.parametrize("seed", range(4))
def test_greedy_is_the_naive_loop(seed):
    probability, y = example(seed)
    np.testing.assert_allclose(greedy_weights(probability, y), naive_greedy(probability, y, 25))


def test_a_weight_is_a_number_of_items():
    probability, y = example(5)
    copies = 1.0 + 9 * (y == 1)
    many = np.repeat(np.arange(37), copies.astype(int))
    repeated = greedy_weights(probability[:, many], y[many])
    np.testing.assert_array_equal(greedy_weights(probability, y, weight=copies), repeated)
    assert repeated.tolist() != greedy_weights(probability, y).tolist()
    found = ensemble_weights(probability, y, weight=copies)
    np.testing.assert_allclose(found, ensemble_weights(probability, y, weight=10 * copies))  # only their ratios count
    np.testing.assert_array_equal(
        ensemble_weights(probability, y, weight=np.ones(37)), ensemble_weights(probability, y)
    )


def test_who_is_plausible_is_asked_of_the_weighted_loss():
    """The second candidate is right about a tenth of the items, and these count a hundred times."""
    y = np.arange(200) % 10 // 9
    probability = np.stack([np.full((200, 2), [0.9, 0.1]), np.full((200, 2), [0.1, 0.9])])
    assert plausible(probability, y).tolist() == [True, False]
    assert plausible(probability, y, weight=np.where(y, 100.0, 1.0)).tolist() == [False, True]


def test_the_first_of_equal_candidates_is_taken():
    probability, y = example(0, members=2)
    best = greedy_weights(probability, y)
    twice = greedy_weights(np.concatenate([probability, probability]), y)
    np.testing.assert_array_equal(twice, [*best, 0, 0])


def test_weights_are_drawn_towards_equal_ones_by_the_number_of_validation_items():
    probability, y = example(1, items=50)
    greedy, kept = greedy_weights(probability, y), plausible(probability, y) | (greedy_weights(probability, y) > 0)
    expected = greedy / 3 + 2 / 3 * kept / kept.sum()  # 50 / (50 + 100)
    np.testing.assert_allclose(ensemble_weights(probability, y), expected)
    assert ensemble_weights(probability, y).sum() == pytest.approx(1)


def test_a_candidate_that_is_clearly_worse_gets_nothing():
    probability, y = example(3, items=200)
    wrong = soften(np.eye(3)[(y + 1) % 3])
    weights = ensemble_weights(np.concatenate([probability, wrong[None]]), y)
    assert weights[-1] == 0
    assert weights[:-1].sum() == pytest.approx(1)


def test_softening_keeps_rows_at_one_and_no_class_impossible():
    np.testing.assert_allclose(soften(np.array([[1.0, 0.0]])), [[0.99, 0.01]])


def test_a_score_of_ones_own_replaces_log_loss():
    """The first is more often right, the second is never far off; equal scores are decided by log-loss."""
    y = np.array([0, 0, 0, 1])
    bold = np.array([[0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.99, 0.01]])
    mild = np.array([[0.49, 0.51], [0.9, 0.1], [0.9, 0.1], [0.51, 0.49]])

    def accuracy(probability, y):
        return float((probability.argmax(1) == y).mean())

    both = np.stack([bold, mild])
    assert greedy_weights(both, y, rounds=1).tolist() == [0, 1]
    assert greedy_weights(both, y, rounds=1, score=accuracy).tolist() == [1, 0]
    assert greedy_weights(both, y, rounds=1, score=lambda probability, y: 0.5).tolist() == [0, 1]


def test_a_candidate_without_ranks_gets_nothing_from_a_metric_of_ranks():
    """Noise of one part in a thousand around a constant, averaged with what ranks well, changes the AUC by nothing."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    chance = 1 / (1 + np.exp(-(3 * y - 1.5 + rng.normal(size=2000))))
    flat = 0.5 + 1e-3 * rng.normal(size=2000)
    both = np.stack([np.stack([1 - p, p], 1) for p in (flat, chance)])

    def auc(probability, y):
        return float(roc_auc_score(y, probability[:, 1]))

    weights = greedy_weights(both, y, score=auc)
    assert weights[1] > 0.9
