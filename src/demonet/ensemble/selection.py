r"""Weights for an average of candidates: greedy selection on validation, drawn towards equal weights.

Greedy selection with replacement (Caruana et al., ICML 2004) adds, round by round, the candidate whose addition makes
the average best. With few validation items its choice is mostly luck, so the weights are

.. math:: w = \lambda \, w_{greedy} + (1 - \lambda) \, w_{equal}, \qquad \lambda = n_{val} / (n_{val} + 100)

where equal weights go to the candidates that are not clearly worse than the best one; of classes, also to all that were
taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demonet.closedform.link import shares
from demonet.methods.selection import item_losses
from demonet.train.metrics import Task

Float = NDArray[np.float64]
Targets = NDArray[Any]  # [items] classes, or [items, outputs] with NaN for unknown

ROUNDS = 25
SOFTENING = 0.02
PRIOR_ITEMS = 100  # validation items at which greedy and equal weights count the same
Score = Callable[[Float, Targets], float]  # of [items, outputs] probabilities or values and targets; higher is better
SCORE_DIGITS = 3  # to which scores are compared: a metric of ranks is blind to a constant, which the loss is not
WORSE = 2.0  # standard errors of a paired difference beyond which a candidate is clearly worse


def soften(outputs: Float, task: Task = "classify") -> Float:
    """Probabilities mixed with 2 % of the uniform distribution: nothing is ever impossible. Numbers as they are."""
    if task == "regress":
        return outputs
    return (1 - SOFTENING) * outputs + SOFTENING / (outputs.shape[-1] if task == "classify" else 2)


def objective(outputs: Float, y: Targets, task: Task = "classify", weight: Float | None = None) -> Float:
    """``[...]``: the mean loss, of classes minus the accuracy, both by the weights; lower is better."""
    loss = item_losses(task, outputs, y, weight).mean(-1)
    right = 1.0 if weight is None else shares(weight)
    return loss - (right * (outputs.argmax(-1) == y)).mean(-1) if task == "classify" else loss


def greedy_weights(
    outputs: Float,
    y: Targets,
    task: Task = "classify",
    weight: Float | None = None,
    *,
    rounds: int = ROUNDS,
    score: Score | None = None,
) -> Float:
    """``[candidates]`` how often each was taken in greedy selection, as shares; the first of equals is taken.

    Args:
        outputs: ``[candidates, items, outputs]`` probabilities or values on validation.
        y: The targets.
        task: What they are.
        weight: ``[items]`` how much each counts; None if all are 1.
        rounds: How many to take.
        score: Judge by this instead of :func:`objective`; of scores that are equal to three
            digits, the one of lower loss is better.
    """
    taken, total = np.zeros(len(outputs)), np.zeros(outputs.shape[1:])
    for number in range(1, rounds + 1):
        average = (total + outputs) / number
        if score is None:
            best = int(np.argmin(np.round(objective(average, y, task, weight), 12)))  # equal candidates stay equal
        else:
            worse = np.array([-round(score(each, y), SCORE_DIGITS) for each in average])
            best = int(np.lexsort((np.round(item_losses(task, average, y, weight).mean(-1), 12), worse))[0])
        taken[best] += 1
        total += outputs[best]
    return taken / rounds


def plausible(outputs: Float, y: Targets, task: Task = "classify", weight: Float | None = None) -> NDArray[np.bool_]:
    """Which candidates are not clearly worse in loss than the best: within two standard errors, paired."""
    loss = item_losses(task, outputs, y, weight)
    best = int(np.argmin(np.round(loss.mean(1), 12)))
    difference = loss - loss[best]
    error = difference.std(1, ddof=1) / math.sqrt(len(y)) if len(y) > 1 else np.full(len(loss), np.inf)
    return difference.mean(1) <= WORSE * error + 1e-12


def ensemble_weights(
    outputs: Float,
    y: Targets,
    task: Task = "classify",
    weight: Float | None = None,
    *,
    score: Score | None = None,
) -> Float:
    """``[candidates]`` weights that sum to one, from softened probabilities or values on validation.

    The arguments are those of :func:`greedy_weights`.
    """
    greedy = greedy_weights(outputs, y, task, weight, score=score)
    trust = len(y) / (len(y) + PRIOR_ITEMS)
    kept = plausible(outputs, y, task, weight)
    if task == "classify":  # elsewhere an equal share would make much of the little that a poor candidate adds
        kept |= greedy > 0
    return trust * greedy + (1 - trust) * kept / kept.sum()
