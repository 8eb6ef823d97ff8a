"""The training loop of every network in this package: DEMO-Net and baselines, nodes and graphs."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from demonet.errors import DemonetError
from demonet.train.checkpoint import fingerprint_of, load_checkpoint, save_checkpoint
from demonet.train.config import TrainConfig
from demonet.train.problem import Problem
from demonet.train.steps import Steps

AROUND = 10  # epochs around a given one whose weights are averaged, a quarter of those before it at most


class Epoch(NamedTuple):
    """One finished epoch; ``val_metric`` is the value of the validation metric that ``metric`` names.

    ``layers`` is the number of hidden layers, where networks of several depths are trained one after the other.
    """

    number: int
    train_loss: float
    val_loss: float
    val_metric: float
    metric: str = "accuracy"
    layers: int | None = None


@dataclass
class History:
    """The learning curves.

    Attributes:
        train_loss, val_loss, val_metric: One value an epoch.
        best_epoch: The epoch whose weights were restored: the best validation metric, ties by validation loss; or the
            lowest validation loss, see :class:`~demonet.train.TrainConfig`.
        seconds: Time spent in all epochs, including those before a checkpoint was resumed.
        metric: The name of the validation metric.
        depths: Where the depth was chosen: from the number of layers of every network that was trained to the value
            that chose among them, its validation metric or loss.
    """

    train_loss: list[float] = field(default_factory=list)
    val_loss: list[float] = field(default_factory=list)
    val_metric: list[float] = field(default_factory=list)
    best_epoch: int = -1
    seconds: float = 0.0
    metric: str = "accuracy"
    depths: dict[str, float] = field(default_factory=dict)

    @property
    def epochs(self) -> int:
        """Number of finished epochs."""
        return len(self.train_loss)

    @property
    def best_metric(self) -> float:
        """Validation metric of the restored weights."""
        return self.val_metric[self.best_epoch]


def fit(
    model: nn.Module,
    problem: Problem,
    config: TrainConfig,
    *,
    choose: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = 25,
    make_steps: type[Steps] = Steps,
) -> History:
    """Train a model in place, and restore its best weights.

    Two runs with the same model, problem and configuration give the same bits (on a CPU with the same number of
    threads), and so does a run that was killed and resumed from its checkpoint.

    Args:
        model: Called as ``model(*batch.inputs)``. If it has an ``auxiliary_loss``, set by its forward pass, that is
            added to the loss in training.
        problem: The objective and the data.
        config: Optimizer and early stopping.
        choose: Whether the validation part chooses the epoch. If not, it is not looked at: all epochs are trained, and
            the last weights stay. This is how a network is fitted again on training and validation items together,
            once the number of epochs is known.
        on_epoch: Callback after every epoch.
        checkpoint: File to which the state is saved. If it exists, training resumes from it; one of another
            configuration, objective, model, graph or split is refused.
        checkpoint_every: Epochs between two checkpoints; None to read one, but write none.
        make_steps: The class of what is done in an epoch.
    """
    objective = problem.objective
    steps = make_steps(model, config, problem.validation.y.device, objective)
    if choose and steps.size(problem.validation) == 0:
        raise DemonetError("the validation set is empty", hint="early stopping needs one")
    if checkpoint is not None and not Path(checkpoint).parent.is_dir():
        raise DemonetError("there is no such folder for a checkpoint", file=checkpoint)
    if checkpoint_every is not None and checkpoint_every < 1:
        raise DemonetError(f"checkpoint_every={checkpoint_every} is not at least 1")
    fingerprint = {} if checkpoint is None else fingerprint_of(model, problem, config)
    history, waited = History(metric=objective.metric), 0
    best = copy.deepcopy(model.state_dict()) if choose else {}
    with torch.random.fork_rng(steps.generators):  # leaves the caller's generators as they were
        torch.manual_seed(config.seed)
        if checkpoint is not None and Path(checkpoint).exists():
            best, facts = load_checkpoint(checkpoint, model, steps.optimizer, fingerprint, steps.device)
            history, waited = History(**facts["history"]), facts["waited"]
        for number in range(history.epochs, config.epochs):
            if waited >= config.patience:
                break
            start = time.perf_counter()
            train_loss = _train_epoch(steps, problem, config, number)
            history.train_loss.append(train_loss)
            if not choose:
                history.seconds += time.perf_counter() - start
                continue
            val_loss, val_metric = steps.evaluate(problem.validation)
            improved, as_good = compare(history, val_loss, val_metric, larger_is_better=objective.larger_is_better)
            if config.choose_by == "loss":
                improved = as_good = not history.val_loss or val_loss < min(history.val_loss)
            history.val_loss.append(val_loss)
            history.val_metric.append(val_metric)
            if improved:
                history.best_epoch = number
                _take([best], [model], 1.0)
            waited = 0 if as_good else waited + 1
            history.seconds += time.perf_counter() - start
            if on_epoch is not None:
                on_epoch(Epoch(number, train_loss, val_loss, val_metric, objective.metric))
            if checkpoint is not None and checkpoint_every is not None and (number + 1) % checkpoint_every == 0:
                facts = {"history": vars(history), "waited": waited}
                save_checkpoint(checkpoint, model, steps.optimizer, best, fingerprint, facts, steps.device)
    if choose:
        model.load_state_dict(best)
    return history


def fit_together(
    models: Sequence[nn.Module],
    problems: Sequence[Problem],
    config: TrainConfig,
    *,
    choose: bool,
    deadline: float = math.inf,
) -> int:
    """Train several models in step, for an average of their predictions.

    With ``choose``, all of them get back their weights of the epoch at which the mean of their validation losses is
    lowest, or that of their metrics best (of a single curve the best point is too often luck), and training stops after
    ``patience`` epochs without a better mean. Otherwise the validation part is not looked at, and weights are the mean
    over the epochs around the last one: nothing tells whether a single epoch has spoiled them.

    Args:
        models: Trained in place. Model ``i`` is trained on problem ``i`` with the seed of the configuration plus ``i``.
        problems: As in :func:`fit`.
        config: Optimizer and epochs.
        choose: Whether the validation part chooses the epoch.
        deadline: By :func:`time.monotonic`: no epoch begins after it, but one is always trained.

    Returns:
        How many epochs the weights have been trained for.
    """
    pairs = list(zip(models, problems, strict=True))
    every = [Steps(model, config, problem.validation.y.device, problem.objective) for model, problem in pairs]
    sign = -1.0 if problems[0].objective.larger_is_better else 1.0
    around = 0 if choose else min(AROUND, config.epochs // 4)
    lowest, best, kept = (math.inf, math.inf), 0, [copy.deepcopy(model.state_dict()) for model in models]
    with torch.random.fork_rng(every[0].generators):
        torch.manual_seed(config.seed)
        for number in range(config.epochs + around // 2):
            if number and time.monotonic() >= deadline:
                break
            for i, (steps, problem) in enumerate(zip(every, problems, strict=True)):
                _train_epoch(steps, problem, replace(config, seed=config.seed + i), number)
            if not choose:
                best = min(number + 1, config.epochs)
                _take(kept, models, 1 / max(1, number + 1 - config.epochs + (around + 1) // 2))
                continue
            found = [steps.evaluate(problem.validation) for steps, problem in zip(every, problems, strict=True)]
            loss, metric = (math.fsum(values) for values in zip(*found, strict=True))
            value = (loss if config.choose_by == "loss" or math.isnan(metric) else sign * metric, loss)
            if value < lowest:
                lowest, best = value, number + 1
                _take(kept, models, 1.0)
            elif number + 1 - best >= config.patience:
                break
    for weights, model in zip(kept, models, strict=True):
        model.load_state_dict(weights)
    return best


def _take(kept: Sequence[dict[str, torch.Tensor]], models: Sequence[nn.Module], share: float) -> None:
    """Move the kept weights towards those of the models by a share of the way; counts of steps are taken over."""
    for weights, model in zip(kept, models, strict=True):
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                weights[name].lerp_(tensor, share)
            else:
                weights[name].copy_(tensor)


def compare(history: History, loss: float, metric: float, *, larger_is_better: bool = True) -> tuple[bool, bool]:
    """Whether an epoch is the best so far (metric, ties by loss), and whether metric or loss equals its best so far.

    An undefined metric (NaN) is worse than any other value; if it is undefined in every epoch, the loss decides.
    """
    if history.best_epoch < 0:
        return True, True
    best = standing(history.best_metric, history.val_loss[history.best_epoch], larger_is_better=larger_is_better)
    found = standing(metric, loss, larger_is_better=larger_is_better)
    most = max(standing(value, loss, larger_is_better=larger_is_better) for value in history.val_metric)
    return found > best, (not math.isnan(metric) and found >= most) or loss <= min(history.val_loss)


def standing(metric: float, loss: float, *, larger_is_better: bool) -> tuple[float, float]:
    """What is larger where the metric is better, ties by loss; an undefined metric (NaN) is worse than any other."""
    if math.isnan(metric):
        return -math.inf, -loss
    return (metric if larger_is_better else -metric), -loss


def _train_epoch(steps: Steps, problem: Problem, config: TrainConfig, number: int) -> float:
    steps.set_lr(config.lr_at(number))
    total = items = 0.0
    for batch in problem.training(config.seed, number):
        value = steps.train(batch)
        if not math.isfinite(value):
            raise DemonetError(f"the loss is {value} in epoch {number + 1}", hint="scale the features or lower lr")
        size = steps.size(batch)
        total, items = total + value * size, items + size
    return total / items
