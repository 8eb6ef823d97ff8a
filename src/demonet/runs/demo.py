"""The computations of ``demonet demo``: four small problems with a known answer, the same splits for all methods.

Every network has the same limit of epochs and the same patience, both large enough that the GCN stops by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier
from torch import Tensor
from torch_geometric.data import Data

from demonet import methods
from demonet.closedform import KernelMachine
from demonet.data.splits import Split, half, thirds
from demonet.data.synthetic import flip_graph, mirrored_karate, role_graph, small_graphs
from demonet.degree.count import count_degree
from demonet.features import FeatureMap
from demonet.features.graph import adjacency
from demonet.methods.base import labels
from demonet.methods.selection import logistic, select
from demonet.runs.statistics import spread
from demonet.train import History, family_of, preset

SCHEMES = ("weight", "hash", "smooth")
FEATURES = "degree-rbf+degree-onehot"  # there are no attributes: every network starts from the degree
METHODS = (*(f"demonet-{scheme}" for scheme in SCHEMES), "gcn", "degree-knn")
FLIP_METHODS = (
    *("kernel", "kernel, s_d = 0", "kernel, shuffled degrees", "demonet-default"),
    *("gcn", "gcn + degree", "sage + degree", "lr + degree", "mlp + degree"),
)
EPOCHS, PATIENCE = 2_000, 100
NOISE = 0.2  # share of moved edges, so that degrees alone are not enough


@dataclass
class Comparison:
    """Of every method on one problem: accuracies, one per split; who is right; learning curves on the first split."""

    title: str
    accuracy: dict[str, list[float]] = field(default_factory=dict)
    right: dict[str, list[NDArray[np.bool_]]] = field(default_factory=dict)
    curves: dict[str, History] = field(default_factory=dict)

    def row(self, method: str) -> tuple[float, float, float]:
        """Mean, standard deviation and half the width of the 95 % interval."""
        return spread(self.accuracy[method])


@dataclass(frozen=True)
class Flip:
    """A rule that flips with the degree: the comparison, and who is right at which degree.

    Attributes:
        comparison: Accuracies and learning curves.
        ceiling: The accuracy of whoever knows the rule.
        threshold: The degree above which the rule is reversed.
        degree: The degrees of the tested nodes, split after split.
    """

    comparison: Comparison
    ceiling: float
    threshold: float
    degree: NDArray[np.int64]

    @property
    def right(self) -> dict[str, NDArray[np.bool_]]:
        """For each method, whether each of these nodes is classified correctly."""
        return {method: np.concatenate(parts) for method, parts in self.comparison.right.items()}


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
    flip: Flip
    mirror: Mirror


def run(splits: int = 3, seed: int = 0, on_step: Callable[[str], None] = lambda step: None) -> Demo:
    """Train everything; ``on_step`` is called with the name of each step before it starts."""
    roles = _compare("Roles in a graph", role_graph(seed), METHODS, splits, seed, on_step)
    families = small_graphs(120, seed, noise=NOISE)
    graphs = _compare("Families of small graphs", families, METHODS, splits, seed, on_step)
    flipped = flip(splits, seed, on_step)
    on_step("Mirrored karate club: demonet-smooth")
    return Demo(roles, graphs, flipped, mirror(seed))


def steps(splits: int) -> int:
    """How many times ``run`` calls ``on_step``."""
    return splits * (2 * len(METHODS) + len(FLIP_METHODS)) + 1


def _compare(
    title: str,
    data: Data | Sequence[Data],
    names: Sequence[str],
    splits: int,
    seed: int,
    on_step: Callable[[str], None],
) -> Comparison:
    result, y = Comparison(title), labels(data)
    for number in range(splits):
        split, machines = thirds(y, seed + number, stratified=True), list[KernelMachine]()
        for method in names:
            on_step(f"{title}, split {number + 1}: {method}")
            predicted, history = _predicted(method, data, split, seed + number, machines)
            found = (predicted == y)[split.test].numpy()
            result.right.setdefault(method, []).append(found)
            result.accuracy.setdefault(method, []).append(float(found.mean()))
            if number == 0 and history is not None:
                result.curves[method] = history
    return result


def _predicted(
    method: str, data: Any, split: Split, seed: int, machines: list[KernelMachine]
) -> tuple[Tensor, History | None]:
    """The class of every item, and the learning curves of a network, which reads the degree where it is asked to."""
    if method.startswith("kernel"):
        return _kernel(method, data, split, seed, machines), None
    if method.startswith(("lr", "mlp")):
        return _tabular(method, data, split, seed), None
    name, _, degree = method.partition(" + ")
    options: dict[str, Any] = {"preset": "default"} if name.startswith("demonet-") else {}
    if name != "degree-knn":
        first = data if isinstance(data, Data) else data[0]
        features = FEATURES if first.x is None else "standardised+degree-rbf" if degree else "standardised"
        options |= {"features": features, "train": _training(data)}
    fitted = methods.get(name)(**options).fit(data, split, seed)
    return fitted.predict(), fitted.history


def _training(data: Data | Sequence[Data]) -> dict[str, Any]:
    """The training settings of every network: full batch, and early stopping that lets it train out."""
    default = asdict(preset("default", family_of(data)).train) | {"epochs": EPOCHS, "patience": PATIENCE}
    return {name: value for name, value in default.items() if name not in ("seed", "batch_size")} | {"batch_size": None}


def flip(splits: int = 3, seed: int = 0, on_step: Callable[[str], None] = lambda step: None) -> Flip:
    """Every method of :data:`FLIP_METHODS` on a graph whose rule flips with the degree."""
    data = flip_graph(seed)
    result = _compare("A rule that flips with the degree", data, FLIP_METHODS, splits, seed, on_step)
    degree = count_degree(data.edge_index, data.y.numel()).numpy()
    tested = [degree[thirds(data.y, seed + number, stratified=True).test.numpy()] for number in range(splits)]
    return Flip(result, data.ceiling, float(np.median(degree)), np.concatenate(tested))


def _kernel(method: str, data: Data, split: Split, seed: int, machines: list[KernelMachine]) -> Tensor:
    """Predictions of the closed form; shuffled degrees go with the settings that were chosen with the true ones."""
    train, val, y = split.train.numpy(), split.val.numpy(), data.y.numpy()
    if method == "kernel, shuffled degrees":
        view = machines[0].inputs_.transform(data).shuffled(seed)
        machine = KernelMachine(machines[0].task_, settings=[setting for setting, _ in machines[0].members_])
        machine.fit_views(view.take(train), y[train], view.take(val), y[val])
    else:
        machine = KernelMachine(degree=method == "kernel").fit(data, train, y[train], val, y[val])
        view = machine.inputs_.transform(data)
        machines.append(machine)
    scores = machine.link_.log_probabilities(machine.decision_of(view))
    return torch.from_numpy(scores.argmax(axis=1))


def _tabular(method: str, data: Data, split: Split, seed: int) -> Tensor:
    """A linear model or a perceptron on a table of all that the rule reads.

    Its columns are the attributes of a node, the mean attributes of its neighbours, and a radial basis of its degree.
    """
    edges = adjacency(data)
    mean = (edges @ data.x.numpy()) / np.maximum(edges.sum(axis=1), 1)[:, None]
    columns = FeatureMap("standardised+degree-rbf").fit_transform(data).numpy()
    x = np.hstack([columns, mean / mean.std(axis=0)]).astype(np.float64)
    if method.startswith("lr"):
        return logistic(x, data.y, split).predict(x)
    models = [MLPClassifier((64,), alpha=decay, max_iter=500, random_state=seed) for decay in (1e-2, 1e-1, 1)]
    return select(models, x, data.y, split, default=models[0]).predict(x)


def mirror(seed: int = 0) -> Mirror:
    """Train on one copy of the karate club to tell its 34 members apart, and embed the other copy."""
    data = mirrored_karate()
    n, split = data.y.numel(), half(data, seed)
    fitted = methods.get("demonet-default")(train={"epochs": EPOCHS}).fit(data, split, seed)
    embedding = fitted.embeddings().double()
    centred = embedding - embedding.mean(0)
    distance = torch.cdist(centred, centred)
    nodes, others = torch.arange(n), ~torch.eye(n, dtype=torch.bool)
    others[nodes, data.mirror] = False
    xy = centred @ torch.linalg.svd(centred, full_matrices=False).Vh[:2].T  # the two principal components
    mirrored, other = float(distance[nodes, data.mirror].mean()), float(distance[others].mean())
    return Mirror(data, xy, mirrored, other, fitted.score(split.test, data.y))
