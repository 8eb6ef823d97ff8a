"""The training loop: one for every network here, ours and the baselines, nodes and graphs."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from demonet.errors import DemonetError
from demonet.train.checkpoint import load_checkpoint, save_checkpoint
from demonet.train.config import TrainConfig
from demonet.train.identity import run_identity
from demonet.train.problem import Problem
from demonet.train.steps import Steps


class Epoch(NamedTuple):
    """One finished epoch."""

    number: int
    train_loss: float
    val_loss: float
    val_accuracy: float


@dataclass
class History:
    """What happened, epoch by epoch, and which epoch was kept.

    Attributes:
        train_loss, val_loss, val_accuracy: One value an epoch.
        best_epoch: The epoch whose weights were restored: the best validation accuracy, ties by loss.
        seconds: Time spent in all epochs, earlier sittings included.
    """

    train_loss: list[float] = field(default_factory=list)
    val_loss: list[float] = field(default_factory=list)
    val_accuracy: list[float] = field(default_factory=list)
    best_epoch: int = -1
    seconds: float = 0.0

    @property
    def epochs(self) -> int:
        """Number of finished epochs."""
        return len(self.train_loss)

    @property
    def best_accuracy(self) -> float:
        """Validation accuracy of the restored weights."""
        return self.val_accuracy[self.best_epoch]


def fit(
    model: nn.Module,
    problem: Problem,
    config: TrainConfig,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 25,
) -> History:
    """Train a model in place, and leave it with its best weights.

    Two runs with the same model, problem and configuration end in the same bits (on a CPU with as many threads), and
    so does a run that was killed and started again with the same ``checkpoint``.

    Args:
        model: Called as ``model(*part.inputs)``. Where it has an ``auxiliary_loss``, which its forward pass leaves
            behind, that is added to the cross-entropy while training.
        problem: What to train on.
        config: How.
        on_epoch: Told about every finished epoch.
        checkpoint: Where to save the state every so often; if there is one already, training goes on from it. One that
            belongs to another configuration, model, graph or split is refused.
        checkpoint_every: Epochs between two checkpoints.
    """
    if problem.validation.rows.numel() == 0:
        raise DemonetError("the validation set is empty", hint="early stopping needs one")
    if checkpoint is not None and not Path(checkpoint).parent.is_dir():
        raise DemonetError("there is no such folder for a checkpoint", file=checkpoint)
    if checkpoint_every < 1:
        raise DemonetError(f"a checkpoint every {checkpoint_every} epochs: at least 1 is needed")
    identity = {} if checkpoint is None else run_identity(model, problem, config)
    steps = Steps(model, config, problem.validation.y.device)
    history, best, waited = History(), copy.deepcopy(model.state_dict()), 0
    with torch.random.fork_rng(steps.generators):  # the caller's random numbers are not ours to spend
        torch.manual_seed(config.seed)
        if checkpoint is not None and Path(checkpoint).exists():
            best, facts = load_checkpoint(checkpoint, model, steps.optimizer, identity, steps.device)
            history, waited = History(**facts["history"]), facts["waited"]
        for number in range(history.epochs, config.epochs):
            if waited >= config.patience:
                break
            start = time.perf_counter()
            train_loss = _train_epoch(steps, problem, config, number)
            val_loss, val_accuracy = steps.evaluate(problem.validation)
            improved, as_good = compare(history, val_loss, val_accuracy)
            history.train_loss.append(train_loss)
            history.val_loss.append(val_loss)
            history.val_accuracy.append(val_accuracy)
            if improved:
                history.best_epoch = number
                for name, value in model.state_dict().items():
                    best[name].copy_(value)
            waited = 0 if as_good else waited + 1
            history.seconds += time.perf_counter() - start
            if on_epoch is not None:
                on_epoch(Epoch(number, train_loss, val_loss, val_accuracy))
            if checkpoint is not None and (number + 1) % checkpoint_every == 0:
                facts = {"history": vars(history), "waited": waited}
                save_checkpoint(checkpoint, model, steps.optimizer, best, identity, facts, steps.device)
    model.load_state_dict(best)
    return history


def _train_epoch(steps: Steps, problem: Problem, config: TrainConfig, number: int) -> float:
    steps.set_lr(config.lr_at(number))
    total = items = 0.0
    for part in problem.training(config.seed, number):
        value = steps.train(part)
        if not math.isfinite(value):
            raise DemonetError(f"the loss is {value} in epoch {number + 1}", hint="scale features or lower lr")
        size = part.y.numel() if part.weight is None else part.weight.sum().item()
        total, items = total + value * size, items + size
    return total / items


def compare(history: History, loss: float, accuracy: float) -> tuple[bool, bool]:
    """Whether an epoch is the best so far (accuracy, ties by loss), and whether either is at least as good as ever."""
    if history.best_epoch < 0:
        return True, True
    best = (history.val_accuracy[history.best_epoch], -history.val_loss[history.best_epoch])
    as_good = accuracy >= max(history.val_accuracy) or loss <= min(history.val_loss)
    return (accuracy, -loss) > best, as_good
