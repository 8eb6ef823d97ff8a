"""Presets: named configurations that cover data policy, features, model and training together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from torch import Tensor

from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.nn.config import ModelConfig
from demonet.train.config import TrainConfig

Family = Literal["nodes", "attributes", "graphs"]


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
# The authors' released code: mean aggregation, addition, biases, a third degree-specific layer, decay on everything.
_AUTHORS_MODEL = _PAPER_MODEL.changed(aggr="mean", combine="add", bias=True, head="degree")
_AUTHORS = Preset("authors", "nodes", "keep", "adjacency", model=_AUTHORS_MODEL, train=TrainConfig(decay_biases=True))
# GIN-like layers with a smooth degree term that starts small and has a stronger weight decay than the rest.
_SMOOTH = ModelConfig(
    scheme="smooth",
    aggr="sum",
    combine="add",
    bias=True,
    dropout=0.5,
    degree_scale=0.3,
    activation="relu",
    refine=True,
)
_DEFAULT = Preset(
    "default",
    "nodes",
    features="degree-rbf+degree-onehot",
    model=_SMOOTH,
    train=TrainConfig(lr=0.01, degree_decay=4.0),
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


def _deep(name: str, layers: int) -> dict[tuple[str, Family], Preset]:
    """The presets of one depth."""
    nodes = replace(
        _STRONG,
        name=name,
        model=_DEEP.changed(layers=layers),
        train=TrainConfig(epochs=2000, patience=300, choose_by="metric", lr=0.01, weight_decay=0.0),
    )
    attributes = replace(
        nodes,
        family="attributes",
        features="encoded+structure",
        model=nodes.model.changed(norm="layer", dropout=0.5),
        train=replace(nodes.train, lr=0.001, weight_decay=5e-5),
    )
    graphs = replace(
        nodes,
        family="graphs",
        features="encoded+constant",
        model=nodes.model.changed(aggr="sum", pooling="sum"),
        train=replace(nodes.train, epochs=300, patience=60, lr=0.001, batch_size=64),
    )
    return {(name, preset.family): preset for preset in (nodes, attributes, graphs)}


PRESETS: dict[tuple[str, Family], Preset] = {
    ("paper", "nodes"): Preset("paper", "nodes", model=_PAPER_MODEL),
    ("paper", "attributes"): Preset("paper", "attributes", features="attributes", model=_PAPER_MODEL),
    ("paper", "graphs"): Preset("paper", "graphs", features="attributes", model=_PAPER_MODEL),
    ("authors", "nodes"): _AUTHORS,
    ("authors", "attributes"): replace(_AUTHORS, family="attributes", features="attributes"),
    # The released code has no graph classification: this is its layers with the paper's readout.
    ("authors", "graphs"): replace(
        _AUTHORS, family="graphs", features="attributes", model=_AUTHORS_MODEL.changed(head="linear")
    ),
    ("default", "nodes"): _DEFAULT,
    # One convolution from the attributes to the scores; the degree term starts at zero.
    ("default", "attributes"): replace(
        _DEFAULT,
        family="attributes",
        features="tfidf",
        model=_AUTHORS_MODEL.changed(scheme="smooth", dropout=0.0, degree_scale=0.0, layers=0),
        train=replace(_DEFAULT.train, weight_decay=1e-4),
    ),
    ("default", "graphs"): replace(
        _DEFAULT,
        family="graphs",
        features="attributes+degree-rbf",
        model=_SMOOTH.changed(dropout=0.3, head="mlp", pooling="sum+degree"),
        train=replace(_DEFAULT.train, batch_size=32),
    ),
    ("strong", "nodes"): _STRONG,
    # Many attributes and few labels: entries are dropped, steps are smaller, the decay is stronger. Normalising rows is
    # several points better there than normalising columns, whose statistics differ with and without dropout.
    ("strong", "attributes"): replace(
        _STRONG,
        family="attributes",
        features="encoded+structure",
        model=_STRONG.model.changed(norm="layer", input_dropout=0.5),
        train=replace(_STRONG.train, lr=0.005, weight_decay=2e-3),
    ),
    # Sums over the constant column count neighbours and nodes. With few graphs, a degree term that starts at zero and
    # is strongly decayed, sums and a linear head did better than a term of the same scale, degree pooling and an MLP.
    ("strong", "graphs"): replace(
        _STRONG,
        family="graphs",
        features="encoded+constant",
        model=_SMOOTH.changed(pooling="sum", degree_scale=0.0, basis_size=4),
        train=replace(_STRONG.train, epochs=150, patience=30, batch_size=64, weight_decay=5e-4, degree_decay=40.0),
    ),
    **_deep("deep-5", 5),
    **_deep("deep-12", 12),
}


def preset(name: str, family: Family) -> Preset:
    """The preset of that name for that family of problems."""
    found = PRESETS.get((name, family))
    if found is None:
        names = sorted({known for known, _ in PRESETS})
        raise DemonetError(f"no preset {name!r} for {family!r}", hint=f"presets are {', '.join(names)}")
    return found
