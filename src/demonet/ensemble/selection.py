r"""Weights for an average of candidates: greedy selection on validation, drawn towards equal weights.

Greedy selection with replacement (Caruana et al., ICML 2004) adds, round by round, the candidate whose addition makes
the average of probabilities best. With few validation items its choice is mostly luck, so the weights are

.. math:: w = \lambda \, w_{greedy} + (1 - \lambda) \, w_{equal}, \qquad \lambda = n_{val} / (n_{val} + 100)

where equal weights go to the candidates that are not clearly worse than the best one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from demonet.methods.selection import log_losses

Float = NDArray[np.float64]
Int = NDArray[np.int64]

ROUNDS = 25
SOFTENING = 0.02
PRIOR_ITEMS = 100  # validation items at which greedy and equal weights count the same
Score = Callable[[Float, Int], float]  # of [items, classes] probabilities and [items] classes; higher is better
WORSE = 2.0  # standard errors of a paired difference beyond which a candidate is clearly worse


def soften(probability: Float) -> Float:
    """Rows mixed with 2 % of the uniform distribution: no class is ever impossible."""
    return (1 - SOFTENING) * probability + SOFTENING / probability.shape[-1]


def objective(probability: Float, y: Int) -> Float:
    """``[...]``: mean log-loss minus accuracy; lower is better."""
    return log_losses(probability, y).mean(-1) - (probability.argmax(-1) == y).mean(-1)


def greedy_weights(probability: Float, y: Int, *, rounds: int = ROUNDS, score: Score | None = None) -> Float:
    """``[candidates]`` how often each was taken in greedy selection, as shares; the first of equals is taken.

    Args:
        probability: ``[candidates, items, classes]`` on validation.
        y: ``[items]`` classes.
        rounds: How many to take.
        score: Judge by this instead of log-loss minus accuracy; of equal scores, the one of lower log-loss is better.
    """
    taken, total = np.zeros(len(probability)), np.zeros(probability.shape[1:])
    for number in range(1, rounds + 1):
        average = (total + probability) / number
        if score is None:
            best = int(np.argmin(np.round(objective(average, y), 12)))  # equal candidates stay equal
        else:
            worse = np.array([-round(score(p, y), 12) for p in average])
            best = int(np.lexsort((np.round(log_losses(average, y).mean(-1), 12), worse))[0])
        taken[best] += 1
        total += probability[best]
    return taken / rounds


def plausible(probability: Float, y: Int) -> NDArray[np.bool_]:
    """Which candidates are not clearly worse in log-loss than the best: within two standard errors, paired."""
    loss = log_losses(probability, y)
    best = int(np.argmin(np.round(loss.mean(1), 12)))
    difference = loss - loss[best]
    error = difference.std(1, ddof=1) / math.sqrt(len(y)) if len(y) > 1 else np.full(len(loss), np.inf)
    return difference.mean(1) <= WORSE * error + 1e-12


def ensemble_weights(probability: Float, y: Int, *, score: Score | None = None) -> Float:
    """``[candidates]`` weights that sum to one, from softened probabilities on validation.

    Args:
        probability: ``[candidates, items, classes]``.
        y: ``[items]`` classes.
        score: Of the greedy selection, in place of log-loss minus accuracy.
    """
    greedy = greedy_weights(probability, y, score=score)
    trust = len(y) / (len(y) + PRIOR_ITEMS)
    kept = plausible(probability, y) | (greedy > 0)
    return trust * greedy + (1 - trust) * kept / kept.sum()
