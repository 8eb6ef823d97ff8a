"""The hyper-parameters of every method, as its own paper suggests them, and where that is written.

What all networks share is not here but in the one training loop: Adam with coupled L2, at most 1,000 epochs, early
stopping with patience 100, best weights restored.
"""

from __future__ import annotations

from dataclasses import dataclass

from demonet.errors import DemonetError
from demonet.train.config import TrainConfig


@dataclass(frozen=True)
class Settings:
    """What every method has.

    Attributes:
        source: Where the values come from.
    """

    source: str


def at_least(least: int, **values: int) -> None:
    """Refuse settings that are not whole numbers of at least ``least``, by their names."""
    for name, value in values.items():
        if not isinstance(value, int) or value < least:
            raise DemonetError(f"{name.replace('_', ' ')} of {value!r}", hint=f"a whole number of at least {least}")


@dataclass(frozen=True)
class NetworkSettings(Settings):
    """A network.

    Attributes:
        train: How it is trained.
        hidden: Width of its hidden layers.
        layers: How many of them.
        dropout: Share of the values that a layer forgets while training.
    """

    train: TrainConfig
    hidden: int
    layers: int = 2
    dropout: float = 0.0

    def __post_init__(self) -> None:
        at_least(1, hidden=self.hidden, layers=self.layers)
        if not 0.0 <= self.dropout < 1.0:
            raise DemonetError(f"dropout of {self.dropout!r}", hint="a number from 0 to below 1")


@dataclass(frozen=True)
class ChebSettings(NetworkSettings):
    """``order`` is the largest power of the Laplacian in the polynomial."""

    order: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, Chebyshev_order=self.order)


@dataclass(frozen=True)
class GATSettings(NetworkSettings):
    """``heads`` attentions side by side, each ``hidden`` wide."""

    heads: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, heads=self.heads)


_GCN = {"hidden": 16, "dropout": 0.5, "train": TrainConfig(lr=0.01, weight_decay=5e-4)}

GCN = NetworkSettings("Kipf and Welling, ICLR'17, section 5.2", **_GCN)  # type: ignore[arg-type]
# The same section: the Chebyshev filter of Defferrard et al. with K = 3, in the same network.
GCN_CHEBY = ChebSettings("Kipf and Welling, ICLR'17, section 6.2 and Table 3", **_GCN)  # type: ignore[arg-type]
# Their batches of 512 sampled neighbourhoods become the whole graph at once. No dropout, no L2.
SAGE = NetworkSettings(
    "Hamilton et al., NeurIPS'17, section 4 and appendix C; widths of the authors' supervised trainer",
    train=TrainConfig(lr=0.01, weight_decay=0.0),
    hidden=128,
)
GAT = GATSettings(
    "Veličković et al., ICLR'18, section 3.3, transductive",
    train=TrainConfig(lr=0.005, weight_decay=5e-4),
    hidden=8,
    dropout=0.6,
)
# They count the input as one of five layers: four sums. The rate is halved every 50 epochs; no L2. Their batches are
# 32 or 128 graphs, hidden layers 16, 32 (molecules) or 64 (social networks) wide.
GIN = NetworkSettings(
    "Xu et al., ICLR'19, section 7",
    train=TrainConfig(lr=0.01, weight_decay=0.0, batch_size=32, halve_lr_every=50),
    hidden=64,
    layers=4,
    dropout=0.5,
)
