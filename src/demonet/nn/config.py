"""What a DEMO-Net is made of, as one plain value: the defaults are the paper's."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from demonet.errors import DemonetError
from demonet.nn.conv import Scheme

CHOICES: dict[str, tuple[str, ...]] = {
    "scheme": ("weight", "hash", "smooth"),
    "aggr": ("sum", "mean", "sqrt"),
    "combine": ("concat", "add"),
    "activation": ("elu", "relu"),
    "head": ("linear", "degree", "mlp"),
    "pooling": ("degree", "mean", "sum", "sum+degree"),
    "without": ("none", "seed", "shared", "degree"),
}

_LAYERS = 1024  # more than any network has


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a node or graph model.

    Attributes:
        scheme, aggr, combine, bias, dropout, hash_size, basis_size, degree_scale: See :class:`~demonet.DEMOConv`.
        hidden: Width of every hidden layer, both halves together.
        layers: Number of hidden layers; none with ``head="degree"`` is one convolution from the input to the scores.
        activation: After every hidden layer.
        refine: Batch normalisation and a second linear map in every layer, as GIN has them; dropout then comes after
            these, not inside the convolution.
        jump: The head reads every layer's output side by side, the input included, not only the last one's.
        head: ``"linear"``; ``"degree"``, one more degree-specific convolution (nodes only); ``"mlp"``, with one hidden
            layer.
        pooling: How a graph is read out: by ``"degree"`` (Eq. 11), by ``"mean"`` (the paper's DEMO-Net_m), by
            ``"sum"``, or ``"sum+degree"``, the degrees' blocks at half weight beside the sum.
        without: A term of every convolution that is left out, see :mod:`demonet.nn.without`; ``"none"`` for the whole.
        seed: Where the hash functions come from; every layer draws its own.
    """

    scheme: Scheme = "weight"
    aggr: Literal["sum", "mean", "sqrt"] = "sum"
    combine: Literal["concat", "add"] = "concat"
    bias: bool = False
    dropout: float = 0.6
    hash_size: int = 256
    basis_size: int = 5
    degree_scale: float = 1.0
    hidden: int = 64
    layers: int = 2
    activation: Literal["elu", "relu"] = "elu"
    refine: bool = False
    jump: bool = False
    head: Literal["linear", "degree", "mlp"] = "linear"
    pooling: Literal["degree", "mean", "sum", "sum+degree"] = "degree"
    without: Literal["none", "seed", "shared", "degree"] = "none"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise DemonetError(f"{name}={getattr(self, name)!r} is not one of {', '.join(map(repr, allowed))}")
        for name, least in (("hidden", 2), ("layers", 0), ("hash_size", 1), ("basis_size", 2)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise DemonetError(f"{name}={value!r} is not a whole number of at least {least}")
        if self.layers == 0 and self.head != "degree":
            raise DemonetError("layers=0 leaves no convolution", hint="use head='degree'")
        if self.scheme == "hash" and self.without in ("shared", "degree"):
            raise DemonetError(
                f"without={self.without!r} in the hash scheme", hint="one matrix serves both terms there"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise DemonetError(f"dropout={self.dropout!r} is not in [0, 1)")
        if not 0.0 <= self.degree_scale < math.inf:
            raise DemonetError(f"degree_scale={self.degree_scale!r} is not a number of at least 0")

    def conv_options(self, layer: int) -> dict[str, Any]:
        """The options of the convolution of one layer."""
        names = ("scheme", "aggr", "combine", "bias", "dropout", "hash_size", "basis_size", "degree_scale")
        # Models with seeds side by side share no hash functions.
        options = {name: getattr(self, name) for name in names} | {"seed": self.seed * _LAYERS + layer}
        return options | {"dropout": 0.0} if self.refine else options

    def changed(self, **changes: Any) -> ModelConfig:
        """The configuration with some fields changed; an unknown name is an error."""
        return ModelConfig.from_state(asdict(self) | changes)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ModelConfig:
        """The configuration that ``dataclasses.asdict`` described; an unknown name is an error, not a guess."""
        unknown = set(state) - {field.name for field in fields(cls)}
        if unknown:
            known = ", ".join(field.name for field in fields(cls))
            raise DemonetError(f"unknown model option {sorted(unknown)[0]!r}", hint=f"there are {known}")
        return cls(**state)
