"""The training configuration; the defaults are those of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from demonet.errors import DemonetError


@dataclass(frozen=True)
class TrainConfig:
    """Adam with coupled weight decay, early stopping, and the best weights restored at the end.

    Attributes:
        epochs: The maximum number of epochs.
        patience: Stop after this many epochs in which neither the validation metric nor the validation loss was at
            least as good as its best value.
        choose_by: ``"metric"``: the best epoch has the best validation metric, ties by loss; ``"loss"``: the lowest
            validation loss, and patience counts epochs without a lower one.
        lr: Learning rate of Adam.
        weight_decay: L2 penalty, added to the gradient (coupled, unlike AdamW).
        decay_biases: Whether biases and norms are decayed too, as in the authors' code.
        degree_decay: Factor on the weight decay of the degree-specific matrices.
        halve_lr_every: Halve the learning rate after every so many epochs; None for never.
        batch_size: Graphs in a batch, shuffled every epoch; None for all at once. Nodes are always trained at once.
        seed: Seed of dropout and of the order of batches.
    """

    epochs: int = 1000
    patience: int = 100
    choose_by: Literal["metric", "loss"] = "metric"
    lr: float = 0.005
    weight_decay: float = 5e-4
    decay_biases: bool = False
    degree_decay: float = 1.0
    halve_lr_every: int | None = None
    batch_size: int | None = None
    seed: int = 0

    def lr_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counting from 0.

        >>> TrainConfig(lr=0.01, halve_lr_every=50).lr_at(49), TrainConfig(lr=0.01, halve_lr_every=50).lr_at(100)
        (0.01, 0.0025)
        """
        return self.lr if self.halve_lr_every is None else self.lr * 0.5 ** (epoch // self.halve_lr_every)

    def changed(self, **changes: Any) -> TrainConfig:
        """The configuration with some fields changed; an unknown name, or the seed (of the run), is an error."""
        known = [field.name for field in fields(self) if field.name != "seed"]
        for name in changes:
            if name not in known:
                raise DemonetError(f"unknown training option {name!r}", hint=f"expected one of {', '.join(known)}")
        return replace(self, **changes)

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("patience", 1), ("halve_lr_every", 1), ("batch_size", 2)):
            value, optional = getattr(self, name), name in ("halve_lr_every", "batch_size")
            if not (optional and value is None) and (not isinstance(value, int) or value < least):
                raise DemonetError(f"{name}={value!r} is not an integer of at least {least}{' or None' * optional}")
        if self.choose_by not in ("metric", "loss"):
            raise DemonetError(f"choose_by={self.choose_by!r} is not 'metric' or 'loss'")
        if not 0.0 < self.lr < math.inf:
            raise DemonetError(f"lr={self.lr!r} is not a number above 0")
        for name in ("weight_decay", "degree_decay"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise DemonetError(f"{name}={getattr(self, name)!r} is not a number of at least 0")
        if not 0 <= self.seed < 2**32:
            raise DemonetError(f"seed={self.seed!r} is not from 0 to 2**32 - 1")
