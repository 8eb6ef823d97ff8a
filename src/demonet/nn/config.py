"""ModelConfig: the shape of a model as plain values; the defaults of its convolutions are those of the layer."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from demonet.errors import DemonetError
from demonet.nn.conv import AGGRS, COMBINES, Scheme
from demonet.nn.weights import SCHEMES

CHOICES: dict[str, tuple[str, ...]] = {
    "aggr": AGGRS,
    "combine": COMBINES,
    "activation": ("elu", "relu"),
    "norm": ("none", "batch", "layer"),
    "head": ("linear", "degree", "mlp"),
    "pooling": ("degree", "mean", "sum", "sum+degree"),
    "without": ("none", "seed", "shared", "degree"),
}

_LAYERS = 1024  # more than any network has


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a node or graph model.

    Attributes:
        scheme, aggr, combine, bias, residual, dropout, hash_size, basis_size, degree_scale: See
            :class:`~demonet.DEMOConv`.
        hidden: Width of every hidden layer, both halves together.
        layers: Number of hidden layers; none with ``head="degree"`` is one convolution from the input to the scores.
        activation: After every hidden layer.
        refine: Batch normalisation and a second linear map in every layer, as GIN has them; dropout then comes after
            these, not inside the convolution.
        stem: A linear map of the input to ``hidden`` columns before the first layer. Wide sparse attributes are then
            never summed over neighbours. Dropout comes after it and after every activation, not inside convolutions.
        norm: ``"batch"`` or ``"layer"`` normalisation between convolution and activation; dropout likewise comes after
            the activation. ``refine`` has its own.
        input_dropout: Probability with which features are dropped before the stem, entry by entry.
        head: ``"linear"``; ``"degree"``, one more degree-specific convolution (nodes only); ``"mlp"``, with one hidden
            layer.
        pooling: How a graph is read out: by ``"degree"`` (Eq. 11), by ``"mean"`` (the paper's DEMO-Net_m), by
            ``"sum"``, or ``"sum+degree"``, the degrees' blocks at half weight beside the sum.
        recompute: Whether layers keep nothing but their input for the derivatives, and are computed again in the
            backward pass: slower, less memory, the same result.
        without: A term of every convolution that is left out, see :meth:`demonet.DEMOConv.remove_term`; or ``"none"``.
        seed: Seed of the hash functions; every layer has its own. (The layer calls it ``hash_seed``; files that hold a
            configuration have this name.)
    """

    scheme: Scheme = "scale"
    aggr: Literal["sum", "mean", "sqrt", "sym"] = "sym"
    combine: Literal["concat", "add", "share"] = "share"
    bias: bool = True
    residual: bool = False
    dropout: float = 0.6
    hash_size: int = 256
    basis_size: int = 5
    degree_scale: float = 1.0
    hidden: int = 64
    layers: int = 2
    activation: Literal["elu", "relu"] = "elu"
    refine: bool = False
    stem: bool = False
    norm: Literal["none", "batch", "layer"] = "none"
    input_dropout: float = 0.0
    head: Literal["linear", "degree", "mlp"] = "linear"
    pooling: Literal["degree", "mean", "sum", "sum+degree"] = "degree"
    recompute: bool = False
    without: Literal["none", "seed", "shared", "degree"] = "none"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in ({"scheme": tuple(SCHEMES)} | CHOICES).items():
            if getattr(self, name) not in allowed:
                raise DemonetError(f"{name}={getattr(self, name)!r} is not one of {', '.join(map(repr, allowed))}")
        limits = {"hidden": (2, 1 << 20), "layers": (0, _LAYERS), "hash_size": (1, 1 << 24), "basis_size": (2, 1 << 16)}
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value <= most:
                raise DemonetError(f"{name}={value!r} is not a whole number from {least} to {most}")
        if self.layers == 0 and self.head != "degree":
            raise DemonetError("layers=0 leaves no convolution", hint="use head='degree'")
        if self.without == "seed" and self.combine == "share" and not self.residual:
            raise DemonetError("without='seed' with combine='share'", hint="one matrix serves node and neighbours")
        if self.without in ("shared", "degree") and self.without not in SCHEMES[self.scheme].terms:
            raise DemonetError(
                f"without={self.without!r} in the {self.scheme} scheme", hint="one matrix serves both terms there"
            )
        for name in ("dropout", "input_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise DemonetError(f"{name}={getattr(self, name)!r} is not in [0, 1)")
        if not 0.0 <= self.degree_scale < math.inf:
            raise DemonetError(f"degree_scale={self.degree_scale!r} is not a number of at least 0")

    def conv_options(self, layer: int) -> dict[str, Any]:
        """The options of the convolution of one layer."""
        names = ["scheme", "aggr", "combine", "bias", "residual", "without", "dropout", "hash_size", "basis_size"]
        names.append("degree_scale")
        # Models with consecutive seeds share no hash functions.
        options = {name: getattr(self, name) for name in names} | {"hash_seed": self.seed * _LAYERS + layer}
        return options | {"dropout": 0.0} if self.refine or self.stem or self.norm != "none" else options

    def changed(self, **changes: Any) -> ModelConfig:
        """The configuration with some fields changed; an unknown name is an error."""
        return ModelConfig.from_state(asdict(self) | changes)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ModelConfig:
        """The configuration that ``dataclasses.asdict`` gave; an unknown name is an error."""
        unknown = set(state) - {field.name for field in fields(cls)}
        if unknown:
            known = ", ".join(field.name for field in fields(cls))
            raise DemonetError(f"unknown model option {sorted(unknown)[0]!r}", hint=f"there are {known}")
        return cls(**state)
