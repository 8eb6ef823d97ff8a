"""The hyper-parameters of the structural embeddings, as their papers suggest them: :mod:`settings`, continued."""

from __future__ import annotations

from dataclasses import dataclass

from demonet.baselines.settings import Settings, at_least
from demonet.errors import DemonetError


@dataclass(frozen=True)
class GraphWaveSettings(Settings):
    """Heat wavelets.

    Attributes:
        scales: At how many scales heat is looked at.
        points: At how many points the characteristic function is read.
        last: The last of them; the first is 0.
        kept: The share of heat, in the sense of the paper's equation for scales, that the first and last scale keep.
        order: Of the Chebyshev polynomials.
        exact: By the dense eigendecomposition instead.
    """

    scales: int = 2
    points: int = 25
    last: float = 100.0
    kept: tuple[float, float] = (0.95, 0.80)
    order: int = 30
    exact: bool = False

    def __post_init__(self) -> None:
        at_least(1, scales=self.scales, Chebyshev_order=self.order)
        at_least(2, points=self.points)
        if not 0 < self.kept[1] <= self.kept[0] < 1:
            raise DemonetError(f"shares {self.kept} of heat kept", hint="inside (0, 1), the larger one first")
        if self.last <= 0:
            raise DemonetError(f"{self.last} as the last point", hint="a number above 0")


@dataclass(frozen=True)
class RolXSettings(Settings):
    """Recursive features and roles.

    Attributes:
        roles: How many roles; None for the number of the shortest description.
        most_roles: The largest number of roles that is tried.
        bits: The sizes of code that are tried.
        share: Of the nodes that are left, those that go to the next bin.
        rounds: The largest number of recursions.
        iterations: Of the factorisation.
    """

    roles: int | None = None
    most_roles: int = 20
    bits: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    share: float = 0.5
    rounds: int = 10
    iterations: int = 500

    def __post_init__(self) -> None:
        at_least(1, roles=1 if self.roles is None else self.roles, iterations=self.iterations)
        at_least(1, most_roles=self.most_roles, bits=min(self.bits, default=0))
        at_least(0, rounds=self.rounds)
        if not 0 < self.share < 1:
            raise DemonetError(f"a share of {self.share!r} for each bin", hint="inside (0, 1)")


@dataclass(frozen=True)
class Struc2vecSettings(Settings):
    """Distances between rings of neighbours, walks among like nodes, skip-gram.

    Attributes:
        layers: The rings that are looked at, the node itself as the first: the paper's third optimisation.
        neighbours: How many nodes of next higher and next lower degree a node is compared with; None for log2 n, the
            paper's second optimisation; 0 for all nodes.
        compressed: Equal degrees of a ring as one, with their number: the paper's first optimisation.
        stay: The chance that a step stays in its layer.
        walks: From each node.
        length: Nodes in a walk.
        dimensions: Width of the embedding.
        window: Words to either side that skip-gram predicts.
        epochs: How often it reads the walks.
    """

    layers: int = 6
    neighbours: int | None = None
    compressed: bool = True
    stay: float = 0.3
    walks: int = 10
    length: int = 80
    dimensions: int = 128
    window: int = 10
    epochs: int = 5

    def __post_init__(self) -> None:
        at_least(1, layers=self.layers, walks=self.walks, length=self.length, dimensions=self.dimensions)
        at_least(1, window=self.window, epochs=self.epochs)
        at_least(0, neighbours=0 if self.neighbours is None else self.neighbours)
        if not 0 < self.stay <= 1:
            raise DemonetError(f"a chance of {self.stay!r} to stay", hint="above 0, at most 1")


GRAPHWAVE = GraphWaveSettings(
    "Donnat et al., KDD'18, sections 3 and 4; points, scales and order of the authors' program"
)
# Theirs prunes all features again in every recursion, and minimises squares where it factors.
ROLX = RolXSettings(
    "Henderson et al., KDD'12 (roles) and KDD'11 (ReFeX, bins of one half); here a feature that was kept once stays, "
    "and both factors and their description go by the Kullback-Leibler divergence"
)
# The number of passes is gensim's own, which the authors' program leaves as it is.
STRUC2VEC = Struc2vecSettings("Ribeiro et al., KDD'17, sections 3.5 and 4; chance to stay of the authors' program")
