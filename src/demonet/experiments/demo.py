"""The computations of ``demonet demo``: three small problems with a known answer, five methods, the same splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet import baselines
from demonet.baselines.base import labels
from demonet.baselines.convolutional import GCN
from demonet.data.splits import Split, thirds
from demonet.data.synthetic import mirrored_karate, role_graph, small_graphs
from demonet.experiments.statistics import spread
from demonet.experiments.twins import half
from demonet.train import History, TrainConfig, family_of, preset, train_graphs, train_nodes

SCHEMES = ("weight", "hash", "smooth")
FEATURES = "degree-rbf+degree-onehot"  # there are no attributes: every network starts from the degree
METHODS = (*(f"demonet-{scheme}" for scheme in SCHEMES), "gcn", "degree-knn")
EPOCHS, PATIENCE = 300, 30
NOISE = 0.2  # share of moved edges, so that degrees alone are not enough


@dataclass
class Comparison:
    """The accuracies of every method on one problem, one per split, and the learning curves on the first split."""

    title: str
    accuracy: dict[str, list[float]] = field(default_factory=dict)
    curves: dict[str, History] = field(default_factory=dict)

    def row(self, method: str) -> tuple[float, float, float]:
        """Mean, standard deviation and half the width of the 95 % interval."""
        return spread(self.accuracy[method])


@dataclass(frozen=True)
class Mirror:
    """The mirrored karate club: coordinates of the nodes, and distances between mirrored nodes."""

    data: Data
    xy: Tensor
    mirrored_distance: float
    other_distance: float
    test_accuracy: float


@dataclass(frozen=True)
class Demo:
    """Everything that the page shows."""

    roles: Comparison
    graphs: Comparison
    mirror: Mirror


def run(splits: int = 3, seed: int = 0, on_step: Callable[[str], None] = lambda step: None) -> Demo:
    """Train everything; ``on_step`` is called with the name of each step before it starts."""
    roles = _compare("Roles in a graph", role_graph(seed), splits, seed, on_step)
    graphs = _compare("Families of small graphs", small_graphs(120, seed, noise=NOISE), splits, seed, on_step)
    on_step("Mirrored karate club: demonet-smooth")
    return Demo(roles, graphs, mirror(seed))


def steps(splits: int) -> int:
    """How many times ``run`` calls ``on_step``."""
    return 2 * splits * len(METHODS) + 1


def _compare(
    title: str, data: Data | Sequence[Data], splits: int, seed: int, on_step: Callable[[str], None]
) -> Comparison:
    result = Comparison(title)
    y = labels(data)
    for number in range(splits):
        split = thirds(y, seed + number, stratified=True)
        for method in METHODS:
            on_step(f"{title}, split {number + 1}: {method}")
            accuracy, history = _one(method, data, y, split, seed + number)
            result.accuracy.setdefault(method, []).append(accuracy)
            if number == 0 and history is not None:
                result.curves[method] = history
    return result


def _one(method: str, data: Data | Sequence[Data], y: Tensor, split: Split, seed: int) -> tuple[float, History | None]:
    scheme = method.removeprefix("demonet-")
    if scheme == method:
        options: dict[str, Any] = {"features": FEATURES, "train": _training(data)} if method == "gcn" else {}
        baseline = baselines.get(method)(**options).fit(data, split, seed)
        return baseline.score(split.test, y), baseline.history if isinstance(baseline, GCN) else None
    base = preset("default", family_of(data))
    chosen = replace(base, features=FEATURES, model=replace(base.model, scheme=scheme), train=_training(data))
    if isinstance(data, Data):
        trained = train_nodes(data, split, chosen, seed=seed)
    else:
        trained = train_graphs(data, split, chosen, seed=seed)
    return trained.test_metric, trained.history


def _training(data: Data | Sequence[Data]) -> TrainConfig:
    """The training settings of every network: full batch, early stopping, few epochs."""
    return replace(preset("default", family_of(data)).train, epochs=EPOCHS, patience=PATIENCE, batch_size=None)


def mirror(seed: int = 0) -> Mirror:
    """Train on one copy of the karate club to tell its 34 members apart, and embed the other copy."""
    data = mirrored_karate()
    base, n = preset("default", "nodes"), data.y.numel()
    trained = train_nodes(data, half(data, seed), replace(base, train=replace(base.train, epochs=EPOCHS)), seed=seed)
    with torch.no_grad():
        embedding = trained.model.eval().embed(*trained.inputs).double()  # type: ignore[operator]
    centred = embedding - embedding.mean(0)
    distance = torch.cdist(centred, centred)
    nodes, others = torch.arange(n), ~torch.eye(n, dtype=torch.bool)
    others[nodes, data.mirror] = False
    xy = centred @ torch.linalg.svd(centred, full_matrices=False).Vh[:2].T  # the two principal components
    mirrored, other = float(distance[nodes, data.mirror].mean()), float(distance[others].mean())
    return Mirror(data, xy, mirrored, other, trained.test_metric)
