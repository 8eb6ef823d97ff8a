"""The hyper-parameters of networks, as their papers suggest them.

What all networks share is not here but in the one training loop: Adam with coupled L2, at most 1,000 epochs, early
stopping with patience 100, best weights restored. Where a paper trains otherwise, its rate and its batches are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from demonet.baselines.settings import Settings, at_least
from demonet.errors import DemonetError
from demonet.train.config import TrainConfig


@dataclass(frozen=True)
class NetworkSettings(Settings):
    """``train`` says how it is trained."""

    train: TrainConfig


@dataclass(frozen=True)
class LayerSettings(NetworkSettings):
    """Hidden layers ``hidden`` wide, which forget the share ``dropout`` of their values while training."""

    hidden: int
    dropout: float = 0.0

    def __post_init__(self) -> None:
        at_least(1, hidden=self.hidden)
        if not 0.0 <= self.dropout < 1.0:
            raise DemonetError(f"dropout of {self.dropout!r}", hint="a number from 0 to below 1")


@dataclass(frozen=True)
class DeepSettings(LayerSettings):
    """``layers`` hidden layers."""

    layers: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, layers=self.layers)


@dataclass(frozen=True)
class ChebSettings(LayerSettings):
    """``order`` is the largest power of the Laplacian in the polynomial."""

    order: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, Chebyshev_order=self.order)


@dataclass(frozen=True)
class GATSettings(LayerSettings):
    """``heads`` attentions side by side, each ``hidden`` wide."""

    heads: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, heads=self.heads)


@dataclass(frozen=True)
class CoTrainingSettings(LayerSettings):
    """Walks are absorbed at the rate ``alpha``; ``added`` nodes for each class, None for as many as the layers need."""

    alpha: float = 1e-6
    added: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alpha > 0.0:
            raise DemonetError(f"an absorption of {self.alpha!r}", hint="a number above 0")
        if self.added is not None:
            at_least(1, added=self.added)


@dataclass(frozen=True)
class PNASettings(DeepSettings):
    """``towers`` share the width between them."""

    towers: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, towers=self.towers)
        if self.hidden % self.towers:
            raise DemonetError(f"{self.towers} towers of {self.hidden} hidden units", hint="they share them evenly")


@dataclass(frozen=True)
class DiffPoolSettings(DeepSettings):
    """``clusters`` that a graph is pooled into, or None for ``ratio`` of the nodes of the largest training graph."""

    ratio: float = 0.1
    clusters: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.ratio <= 1.0:
            raise DemonetError(f"a ratio of {self.ratio!r} clusters to nodes", hint="above 0, at most 1")
        if self.clusters is not None:
            at_least(1, clusters=self.clusters)


@dataclass(frozen=True)
class DCNNSettings(NetworkSettings):
    """Steps of diffusion from 0 to ``hops``."""

    hops: int = 2

    def __post_init__(self) -> None:
        at_least(0, hops=self.hops)


@dataclass(frozen=True)
class PatchySettings(LayerSettings):
    """Receptive fields of ``field`` nodes, for ``width`` nodes a graph (None for the mean number of nodes).

    ``filters`` are the channels of the two convolutions, of which the second looks at ``reach`` fields at once.
    """

    field: int = 10
    width: int | None = None
    filters: tuple[int, int] = (16, 8)
    reach: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, receptive_field=self.field, reach=self.reach, first_filters=self.filters[0])
        at_least(1, second_filters=self.filters[1], width=1 if self.width is None else self.width)
        if self.field > 15:
            raise DemonetError(f"receptive field of {self.field} nodes", hint="at most 15")


# They decay the first layer alone, stop after 200 epochs or 10 without a better loss, and divide rows by their sums.
_GCN_TRAIN = TrainConfig(lr=0.01, weight_decay=5e-4)

GCN = LayerSettings("Kipf and Welling, ICLR'17, section 5.2", _GCN_TRAIN, hidden=16, dropout=0.5)
# K = 3: the largest power of the Laplacian is the third.
GCN_CHEBY = ChebSettings("Kipf and Welling, ICLR'17, section 6.2", _GCN_TRAIN, hidden=16, dropout=0.5)
# Their batches of 512 sampled neighbourhoods become the whole graph at once. No dropout, no L2.
SAGE = DeepSettings(
    "Hamilton et al., NeurIPS'17, section 4; width as in the authors' supervised trainer",
    TrainConfig(lr=0.01, weight_decay=0.0),
    hidden=128,
)
GAT = GATSettings(
    "Veličković et al., ICLR'18, section 3.3, transductive",
    TrainConfig(lr=0.005, weight_decay=5e-4),
    hidden=8,
    dropout=0.6,
)
CO_TRAINING = CoTrainingSettings("Li et al., AAAI'18, section 5", _GCN_TRAIN, hidden=16, dropout=0.5)
# They count the input as one of five layers: four sums. Their batches are 32 or 128 graphs, hidden layers 16, 32
# (molecules) or 64 (social networks) wide. No L2.
GIN = DeepSettings(
    "Xu et al., ICLR'19, section 7",
    TrainConfig(lr=0.01, weight_decay=0.0, batch_size=32, halve_lr_every=50),
    hidden=64,
    layers=4,
    dropout=0.5,
)
# Their classifier of images as graphs.
PNA = PNASettings(
    "Corso et al., NeurIPS'20, and the authors' command for CIFAR10",
    TrainConfig(lr=0.001, weight_decay=3e-6, batch_size=128),
    hidden=75,
    layers=4,
    dropout=0.1,
)
# One pooling, which they find as good as two on small sets; then 10 % of the nodes are clusters, not 25 %.
DIFFPOOL = DiffPoolSettings(
    "Ying et al., NeurIPS'18, section 4.1; width, rate and batches as in the authors' example for ENZYMES",
    TrainConfig(lr=0.001, weight_decay=0.0, batch_size=20),
    hidden=30,
    layers=3,
)
# They use AdaGrad with this rate.
DCNN = DCNNSettings("Atwood and Towsley, NeurIPS'16, section 3", TrainConfig(lr=0.05, weight_decay=0.0))
# They use RMSProp, and choose the number of epochs and the size of the batches.
PATCHY_SAN = PatchySettings(
    "Niepert et al., ICML'16, section 6.3",
    TrainConfig(lr=0.001, weight_decay=0.0, batch_size=32),
    hidden=128,
    dropout=0.5,
)
