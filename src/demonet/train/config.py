"""How a network is trained, as one plain value: the defaults are the paper's."""

from __future__ import annotations

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
        batch_size: Graphs in a batch, drawn anew every epoch; None for all at once. Nodes are always all at once.
        seed: Of dropout and of the order of batches.
    """

    epochs: int = 1000
    patience: int = 100
    lr: float = 0.005
    weight_decay: float = 5e-4
    decay_biases: bool = False
    degree_decay: float = 1.0
    batch_size: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.patience < 1 or self.lr <= 0 or self.weight_decay < 0:
            raise DemonetError(
                f"epochs={self.epochs}, patience={self.patience}, lr={self.lr}, weight_decay={self.weight_decay}: "
                "at least 1, at least 1, above 0 and at least 0 are needed"
            )
        if self.batch_size is not None and self.batch_size < 2:
            raise DemonetError(f"batch_size={self.batch_size}: at least 2, or None for all at once")
