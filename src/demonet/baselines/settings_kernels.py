"""The hyper-parameters of kernels and of histograms of sub-structures: :mod:`settings`, continued."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from demonet.baselines.settings import Settings, at_least, not_empty
from demonet.errors import DemonetError


@dataclass(frozen=True)
class SubtreeSettings(Settings):
    """A method on Weisfeiler-Lehman rounds.

    Attributes:
        rounds: The numbers of rounds that validation chooses from, the fewest first.
        untuned: The number of rounds where a split has no validation part.
    """

    rounds: tuple[int, ...]
    untuned: int = 2

    def __post_init__(self) -> None:
        not_empty(rounds=self.rounds)
        for rounds in (*self.rounds, self.untuned):
            at_least(0, rounds=rounds)


@dataclass(frozen=True)
class ForestSettings(SubtreeSettings):
    """A forest of so many ``trees``."""

    trees: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, trees=self.trees)


@dataclass(frozen=True)
class KernelSettings(SubtreeSettings):
    """A support vector machine on a kernel.

    Attributes:
        strengths: The C that validation chooses from.
        normalize: Whether graphs are scaled to length one: validation chooses.
    """

    strengths: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    normalize: tuple[bool, ...] = (False, True)

    def __post_init__(self) -> None:
        super().__post_init__()
        not_empty(strengths=self.strengths, normalize=self.normalize)
        for strength in self.strengths:
            if not strength > 0:
                raise DemonetError(f"C of {strength!r}", hint="a number above 0")


@dataclass(frozen=True)
class DeepWLSettings(KernelSettings):
    """Vectors of sub-structures.

    Attributes:
        dimensions: Their widths: validation chooses.
        windows: How many words to either side each has to predict: validation chooses.
        epochs: How often the sentences are read.
    """

    dimensions: tuple[int, ...] = (2, 5, 10, 25, 50)
    windows: tuple[int, ...] = (2, 5, 10, 25, 50)
    epochs: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        not_empty(dimensions=self.dimensions, windows=self.windows)
        for dimensions, window in product(self.dimensions, self.windows):
            at_least(1, dimensions=dimensions, window=window, epochs=self.epochs)


# Their rounds are 1 to 6; with none the kernel counts node labels, the floor of several sets.
WL = KernelSettings("Xu et al., ICLR'19, section 7; C as Morris et al., TUDataset, 2020", rounds=(0, 1, 2, 3, 4, 5, 6))
DEGREE_WL = KernelSettings("ours: as the subtree kernel", rounds=WL.rounds)
# Two rounds and the hierarchical softmax are those of the authors' program, five passes gensim's own number.
DEEP_WL = DeepWLSettings("Yanardag and Vishwanathan, KDD'15, and the authors' program", rounds=(2,))
WL_HISTOGRAM = SubtreeSettings("ours: a floor", rounds=(0, 1, 2, 3))
WL_FOREST = ForestSettings("Breiman, 2001, as scikit-learn has it: fully grown trees", rounds=WL_HISTOGRAM.rounds)
