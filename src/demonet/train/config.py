"""How a network is trained, as one plain value: the defaults are the paper's."""

from __future__ import annotations

import math
from dataclasses import dataclass

from demonet.errors import DemonetError


@dataclass(frozen=True)
class TrainConfig:
    """Adam with coupled L2, early stopping, best weights restored.

    Attributes:
        epochs: At most this many.
        patience: Stop after this many epochs without validation accuracy or loss as good as its best.
        lr: Learning rate of Adam.
        weight_decay: L2, added to the gradient (coupled, not AdamW's).
        decay_biases: Whether biases (and norms) are decayed too, as in the authors' code.
        degree_decay: How many times stronger the decay is on the degrees' own matrices.
        halve_lr_every: The learning rate is halved after every so many epochs; None for never.
        batch_size: Graphs in a batch, drawn anew every epoch; None for all at once. Nodes are always all at once.
        seed: Of dropout and of the order of batches.
    """

    epochs: int = 1000
    patience: int = 100
    lr: float = 0.005
    weight_decay: float = 5e-4
    decay_biases: bool = False
    degree_decay: float = 1.0
    halve_lr_every: int | None = None
    batch_size: int | None = None
    seed: int = 0

    def lr_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0.

        >>> TrainConfig(lr=0.01, halve_lr_every=50).lr_at(49), TrainConfig(lr=0.01, halve_lr_every=50).lr_at(100)
        (0.01, 0.0025)
        """
        return self.lr if self.halve_lr_every is None else self.lr * 0.5 ** (epoch // self.halve_lr_every)

    def __post_init__(self) -> None:
        for name in ("epochs", "patience"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise DemonetError(f"{name}={getattr(self, name)!r} is not a whole number of at least 1")
        if not 0.0 < self.lr < math.inf:
            raise DemonetError(f"lr={self.lr!r} is not a number above 0")
        for name in ("weight_decay", "degree_decay"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise DemonetError(f"{name}={getattr(self, name)!r} is not a number of at least 0")
        if self.halve_lr_every is not None and (not isinstance(self.halve_lr_every, int) or self.halve_lr_every < 1):
            raise DemonetError(f"halve_lr_every={self.halve_lr_every!r}: a whole number of at least 1, or None")
        if self.batch_size is not None and (not isinstance(self.batch_size, int) or self.batch_size < 2):
            raise DemonetError(f"batch_size={self.batch_size!r}: a whole number of at least 2, or None for all at once")
        if not 0 <= self.seed < 2**32:
            raise DemonetError(f"seed={self.seed!r} is not from 0 to 2**32 - 1")
