"""Presets: named configurations that cover data policy, features, model and training together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torch import Tensor

from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.nn.config import ModelConfig
from demonet.train.config import TrainConfig

Family = Literal["nodes", "attributes", "graphs"]
DEPTHS = (5, 12)  # hidden layers of the deep presets


@dataclass(frozen=True)
class Preset:
    """A complete configuration, from reading a graph to training a model.

    Attributes:
        name: ``"paper"``, ``"authors"``, ``"default"``, ``"strong"``, ``"deep-5"`` or ``"deep-12"``.
        family: ``"nodes"`` (without attributes), ``"attributes"`` (nodes with attributes), ``"graphs"``.
        self_loops: Whether self-loops are dropped or kept when data is read:
            ``load(name, self_loops=preset.self_loops)``. Training takes the graph as it is.
        features: The node features, see :class:`~demonet.features.FeatureMap`.
        tasks: ``"exact"``, ``"log2"`` or ``"quantiles:K"``.
        model: The architecture.
        train: Optimizer and early stopping.
    """

    name: str
    family: Family
    self_loops: Literal["drop", "keep"] = "drop"
    features: str = "degree-onehot"
    tasks: str = "exact"
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def of_family(self, family: Family, features: str, model: ModelConfig | None = None, **train: Any) -> Preset:
        """The preset for another family: its features, its model if that differs, and changes in training."""
        changed = replace(self.train, **train)
        return replace(self, family=family, features=features, model=model or self.model, train=changed)

    def without_attributes(self) -> Preset:
        """The preset for graphs without attributes.

        In place of ``"attributes"`` it has the one-hot degree, as in the paper; in place of ``"encoded"``, structure.
        """
        instead = {"attributes": "degree-onehot", "encoded": "structure"}
        blocks = [instead.get(block, block) for block in self.features.split("+")]
        return replace(self, features="+".join(dict.fromkeys(blocks)))

    def make_tasks(self, degree: Tensor) -> DegreeTasks:
        """The degree tasks for the degrees of the training graph."""
        if self.tasks == "exact":
            return DegreeTasks.exact(degree)
        if self.tasks == "log2":
            return DegreeTasks.log2(int(degree.max()) if degree.numel() else 0)
        kind, _, count = self.tasks.partition(":")
        if kind != "quantiles" or not count.isdigit():
            raise DemonetError(f"tasks={self.tasks!r} is not 'exact', 'log2' or 'quantiles:K'")
        return DegreeTasks.quantiles(degree, int(count))


# The text of the paper: one-hot degrees without attributes, sum aggregation, concatenation, a softmax layer.
_PAPER_MODEL = ModelConfig(scheme="weight", aggr="sum", combine="concat", bias=False)
_PAPER = Preset("paper", "nodes", model=_PAPER_MODEL)
# The authors' released code: mean aggregation, addition, biases, a third degree-specific layer, decay on everything.
_AUTHORS_MODEL = _PAPER_MODEL.changed(aggr="mean", combine="add", bias=True, head="degree")
_AUTHORS = Preset("authors", "nodes", "keep", "adjacency", model=_AUTHORS_MODEL, train=TrainConfig(decay_biases=True))
# GIN-like layers with a smooth degree term that starts small and has a stronger weight decay than the rest.
_SMOOTH = ModelConfig(
    scheme="smooth", aggr="sum", combine="add", bias=True, dropout=0.5, degree_scale=0.3, activation="relu", refine=True
)
_DEFAULT = Preset(
    "default", "nodes", features="degree-rbf+degree-onehot", model=_SMOOTH, train=TrainConfig(lr=0.01, degree_decay=4.0)
)

# What the estimators train. Normalisation and dropout as in "Classic GNNs are strong baselines" (Luo et al., 2024);
# the map of the seed is the residual connection. Degree and structure are always among the inputs. A few structural
# features carry more if none of them is dropped.
_STRONG = Preset(
    "strong",
    "nodes",
    features="structure",
    tasks="log2",
    model=_SMOOTH.changed(aggr="mean", refine=False, norm="batch", stem=True, basis_size=4),
    train=TrainConfig(epochs=300, patience=40, choose_by="loss", lr=0.01, weight_decay=1e-3, degree_decay=4.0),
)

# Deep networks as tuned ones are: a linear map of the node beside each convolution, a norm, ReLU, dropout. The degree
# scales the columns of one matrix, and the map of the seed is the linear map beside it.
_DEEP = _STRONG.model.changed(scheme="scale", stem=False, basis_size=5, dropout=0.2, degree_scale=1.0)


def _deep(layers: int) -> tuple[Preset, Preset, Preset]:
    """The presets of one depth."""
    model = _DEEP.changed(layers=layers)
    train = TrainConfig(epochs=2000, patience=300, choose_by="metric", lr=0.01, weight_decay=0.0)
    nodes = replace(_STRONG, name=f"deep-{layers}", model=model, train=train)
    wide, summed = model.changed(norm="layer", dropout=0.5), model.changed(aggr="sum", pooling="sum")
    return (
        nodes,
        nodes.of_family("attributes", "encoded+structure", wide, lr=0.001, weight_decay=5e-5),
        nodes.of_family("graphs", "encoded+constant", summed, epochs=300, patience=60, lr=0.001, batch_size=64),
    )


# One convolution from the attributes to the scores; the degree term starts at zero.
_SINGLE = _AUTHORS_MODEL.changed(scheme="smooth", dropout=0.0, degree_scale=0.0, layers=0)
_POOLED = _SMOOTH.changed(dropout=0.3, head="mlp", pooling="sum+degree")
_WIDE = _STRONG.model.changed(norm="layer", input_dropout=0.5)
_EVERY = (
    _PAPER,
    *(_PAPER.of_family(family, "attributes") for family in ("attributes", "graphs")),
    _AUTHORS,
    _AUTHORS.of_family("attributes", "attributes"),
    # The released code has no graph classification: this is its layers with the paper's readout.
    _AUTHORS.of_family("graphs", "attributes", _AUTHORS_MODEL.changed(head="linear")),
    _DEFAULT,
    _DEFAULT.of_family("attributes", "tfidf", _SINGLE, weight_decay=1e-4),
    _DEFAULT.of_family("graphs", "attributes+degree-rbf", _POOLED, batch_size=32),
    _STRONG,
    # Many attributes and few labels: entries are dropped, steps are smaller, the decay is stronger. Normalising rows is
    # several points better there than normalising columns, whose statistics differ with and without dropout.
    _STRONG.of_family("attributes", "encoded+structure", _WIDE, lr=0.005, weight_decay=2e-3),
    # Sums over the constant column count neighbours and nodes. With few graphs, a degree term that starts at zero and
    # is strongly decayed, sums and a linear head did better than a term of the same scale, degree pooling and an MLP.
    _STRONG.of_family(
        "graphs",
        "encoded+constant",
        _SMOOTH.changed(pooling="sum", degree_scale=0.0, basis_size=4),
        epochs=150,
        patience=30,
        batch_size=64,
        weight_decay=5e-4,
        degree_decay=40.0,
    ),
    *(each for depth in DEPTHS for each in _deep(depth)),
)
PRESETS: dict[tuple[str, Family], Preset] = {(each.name, each.family): each for each in _EVERY}


def preset(name: str, family: Family) -> Preset:
    """The preset of that name for that family of problems."""
    found = PRESETS.get((name, family))
    if found is None:
        names = sorted({known for known, _ in PRESETS})
        raise DemonetError(f"no preset {name!r} for {family!r}", hint=f"presets are {', '.join(names)}")
    return found


def with_layers(base: Preset, layers: int | str | None) -> list[Preset]:
    """The preset with so many hidden layers; with its own number, if None.

    With ``"auto"``, it is one of several: the preset as it is and those of :data:`DEPTHS`, by their number of layers.
    :func:`~demonet.train.train_best` chooses among them.

    >>> tuple(each.model.layers for each in with_layers(preset("strong", "nodes"), "auto"))
    (2, 5, 12)
    """
    if layers == "auto":
        deep = [preset(f"deep-{depth}", base.family) for depth in DEPTHS]
        return sorted([each for each in deep if each.name != base.name] + [base], key=lambda each: each.model.layers)
    return [base if layers is None else replace(base, model=base.model.changed(layers=layers))]
