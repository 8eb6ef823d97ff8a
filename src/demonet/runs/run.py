"""The results of a run: what its folder stores and its page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import KNeighborsRegressor

from demonet.checks import labelled
from demonet.data.load import degrees
from demonet.data.splits import Split
from demonet.degree.count import count_degree
from demonet.errors import DemonetError
from demonet.estimators.core import Fitted
from demonet.estimators.models import NetworkModel
from demonet.options import Settings
from demonet.runs.plan import Plan
from demonet.train.metrics import METRICS, Metric, Task
from demonet.train.objective import decided

MAX_TSNE, QUICK_TSNE = 1000, 500  # t-SNE takes seconds for so many items; with `--effort quick`, one
LEAST_TSNE, TSNE_RATE = 250, 15  # points with a time limit: at least, and for each of its seconds
STEPS_TSNE = 500  # half of scikit-learn's: the divergence is within a hundredth of where it ends
MAX_COMPONENTS = 200_000  # items that principal components are computed from
BLOCK = 65_536  # items that are in double precision at once
MIN_TSNE = 20  # and is not meaningful for fewer
MAX_EDGES = 20_000  # edges up to which a run keeps all of them; of more, those around the items that rank first
MAX_FIRST, MAX_NEIGHBOURS = 300, 30  # so many items, and so many neighbours of each
NEAREST = 3  # items of the sample that say where another item lies
TSNE_COMPONENTS = 30  # principal components that t-SNE uses


@dataclass(frozen=True, eq=False)
class Run:
    """The results of a run. Items are the nodes of one graph, or graphs.

    Attributes:
        kind: What the items are.
        config: What was trained on which data and how: files, sizes, preset, scheme, seed, device, versions; as JSON.
        metrics: The content of ``metrics.json``: ``val_metric`` and ``test_metric`` by the ``metric``, other metrics of
            the ``task``, ``floors`` (the test metric of the simple baselines), ``epochs``, ``seconds``, ``seed``,
            ``split`` (sizes of the parts), and ``cv`` if splits were repeated. See :mod:`demonet.runs.fit`.
        history: Of a network: ``train_loss``, ``val_loss``, ``val_metric``, one value per epoch, and ``best_epoch``.
        class_names: The name of each class, label or target column.
        ids: The id of each item.
        y: ``[items]`` the true class, -1 if it is unknown; or ``[items, columns]`` labels or numbers, NaN if unknown.
        part: ``[items]`` 0 training, 1 validation, 2 test, -1 none of them.
        outputs: ``[items, classes]`` probabilities; or ``[items, columns]`` probabilities of labels, or numbers.
        degree: ``[items]`` the degree of each node; for graphs, the number of nodes.
        edge_count: ``[items]`` for graphs, the number of edges; None for nodes.
        place: ``[items, 2]`` the two-dimensional projection of the embedding.
        degrees: ``[k]`` the distinct degrees of all nodes, ascending.
        degree_counts: ``[k]`` how many nodes have each degree.
        edges: ``[2, m]`` of nodes: edges, each once, to draw the surroundings of a node; of a large graph those around
            the items that rank first.
        columns: The names of the attributes, if they have names.
        degree_task: ``[k]`` of a network: the task of each degree; equal numbers share a task.
    """

    kind: Literal["nodes", "graphs"]
    config: dict[str, Any]
    metrics: dict[str, Any]
    history: dict[str, Any]
    class_names: list[str]
    ids: Sequence[str]
    y: NDArray[Any]
    part: NDArray[np.int8]
    outputs: NDArray[np.float32]
    degree: NDArray[np.int64]
    edge_count: NDArray[np.int64] | None
    place: NDArray[np.float32]
    degrees: NDArray[np.int64]
    degree_counts: NDArray[np.int64]
    edges: NDArray[np.int64] | None = None
    columns: list[str] | None = None
    degree_task: NDArray[np.int64] | None = None

    @property
    def model(self) -> str:
        """``"auto"``, ``"kernel"`` or ``"network"``."""
        return self.metrics["model"]

    @property
    def task(self) -> Task:
        """What is predicted."""
        return self.config["task"]

    @property
    def metric(self) -> Metric:
        """The metric that is reported, and that chose weights or the epoch; its title names the positive class."""
        metric, names = METRICS[self.config["metric"]], self.class_names
        positive = self.config.get("positive")
        return metric if positive is None else metric.of_class(int(positive != names[0]), positive)

    @cached_property
    def prediction(self) -> NDArray[Any]:
        """``[items]`` the predicted class, see :attr:`decision`; or ``[items, columns]`` 0/1 labels or numbers."""
        return decided(self.task, self.outputs, self.decision)

    @property
    def decision(self) -> tuple[float, ...]:
        """What predictions are made by, see :class:`~demonet.train.metrics.Metric`."""
        told = self.metrics.get("decision") or {}
        found = tuple(told.get("thresholds" if self.task == "multilabel" else "factors", ()))
        if len(found) not in (0, len(self.class_names)):
            raise DemonetError(f"a decision of {len(found)} numbers for {len(self.class_names)} names")
        return found

    @property
    def confidence(self) -> NDArray[np.float32]:
        """``[items]`` the probability of the predicted class."""
        return np.take_along_axis(self.outputs, self.prediction[:, None], 1)[:, 0]

    @property
    def known(self) -> NDArray[np.bool_]:
        """``[items]`` whether an item has a target."""
        return labelled(torch.from_numpy(self.y)).numpy()


def summarise(
    plan: Plan,
    fitted: Fitted,
    config: dict[str, Any],
    metrics: dict[str, Any],
    results: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> Run:
    """The run of the model that was trained on the first split: its predictions, their projection, and degrees.

    ``results`` are the outputs and the embedding of all items, where they are known.
    """
    inputs, split, seed = plan.inputs, plan.splits[0], plan.settings.seed
    part = parts_of(split, len(inputs.ids))
    seen, counts = degrees(inputs.data).unique(return_counts=True)
    graphs, nodes = inputs.graphs, inputs.kind == "nodes"
    if nodes:
        size, edge_count = count_degree(graphs[0].edge_index, int(graphs[0].num_nodes)).numpy(), None
    else:
        size = np.array([int(graph.num_nodes) for graph in graphs])
        edge_count = np.array([graph.edge_index.size(1) // 2 for graph in graphs])
    curves: dict[str, Any] = {}
    tasks = None
    if isinstance(model := fitted.model, NetworkModel):
        history, tasks = model.history, model.network.tasks.cpu()(seen).numpy()
        curves = {name: getattr(history, name) for name in ("train_loss", "val_loss", "val_metric", "best_epoch")}
        curves["val_metric"] = [value if np.isfinite(value) else None for value in history.val_metric]
    outputs, embedding = results or fitted.outputs_and_embedding(inputs.data)
    first = first_items(outputs, part, MAX_FIRST)
    return Run(
        kind=inputs.kind,
        config=config,
        metrics=metrics,
        history=curves,
        class_names=list(map(str, inputs.names)),
        ids=inputs.ids,
        y=inputs.data.y.numpy(),
        part=part,
        outputs=outputs.astype(np.float32),
        degree=size,
        edge_count=edge_count,
        place=project(embedding, seed, _most_points(plan.settings)),
        degrees=seen.numpy(),
        degree_counts=counts.numpy(),
        degree_task=tasks,
        edges=edges_around(graphs[0].edge_index, first, len(inputs.ids)) if nodes else None,
        columns=inputs.columns,
    )


def _most_points(settings: Settings) -> int:
    """The points of a t-SNE: fewer with the effort ``"quick"``, and as many as a time limit has room for."""
    most = QUICK_TSNE if settings.effort == "quick" else MAX_TSNE
    return most if settings.time_limit is None else max(LEAST_TSNE, min(most, int(TSNE_RATE * settings.time_limit)))


def project(embedding: NDArray[np.float32], seed: int, most: int = MAX_TSNE) -> NDArray[np.float32]:
    """``[items, 2]``: t-SNE; of more than ``most`` items, of a sample, and the others lie at the nearest ones of it.

    >>> project(np.ones((3, 4), np.float32), 0).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """
    sample: Any = slice(None)
    if len(embedding) > most:
        sample = np.random.default_rng(seed).permutation(len(embedding))[:most]
    distinct = len(np.unique(embedding[sample], axis=0))
    if distinct < 2:
        return np.zeros((len(embedding), 2), np.float32)
    count = min(TSNE_COMPONENTS if len(embedding) <= MAX_COMPONENTS else 2, *embedding.shape)
    components = _principal(embedding, count)
    if distinct < MIN_TSNE:
        padded = np.pad(components, ((0, 0), (0, max(0, 2 - count))))
        return padded[:, :2].astype(np.float32)
    chosen = components[sample]
    perplexity = min(30.0, (len(chosen) - 1) / 3)
    init = "pca" if count > 1 else "random"
    tsne = TSNE(2, init=init, perplexity=perplexity, max_iter=STEPS_TSNE, random_state=seed)
    place = tsne.fit_transform(chosen)
    if len(chosen) < len(components):
        place = KNeighborsRegressor(NEAREST, weights="distance").fit(chosen, place).predict(components)
    return place.astype(np.float32)


def _principal(embedding: NDArray[np.float32], count: int) -> NDArray[np.float64]:
    """``[items, count]`` principal components; of many items, those of an even sample, with no copy of them all."""
    rows = embedding[:: -(-len(embedding) // MAX_COMPONENTS)].astype(np.float64)
    mean = rows.mean(0)
    solver = "covariance_eigh" if rows.shape[1] < len(rows) else "full"
    fitted = PCA(count, svd_solver=solver).fit(rows - mean)
    blocks = (embedding[start : start + BLOCK] for start in range(0, len(embedding), BLOCK))
    return np.concatenate([fitted.transform(block.astype(np.float64) - mean) for block in blocks])


def parts_of(split: Split, count: int) -> NDArray[np.int8]:
    """``[items]`` 0 training, 1 validation, 2 test, -1 none of them."""
    part = np.full(count, -1, dtype=np.int8)
    for number, rows in enumerate((split.train, split.val, split.test)):
        part[rows.numpy()] = number
    return part


def first_items(outputs: NDArray[Any], part: NDArray[np.int8], most: int) -> NDArray[np.int64]:
    """The items that rank first by each output, ``most`` in all: those without a label, then those of the test.

    >>> first_items(np.array([[0.1], [0.9], [0.4], [0.8]]), np.array([-1, 0, -1, 2], np.int8), 2).tolist()
    [2, 0]
    """
    groups = [np.flatnonzero(part == number) for number in (-1, 2)]
    each = max(1, most // outputs.shape[1])
    found = [
        np.concatenate([group[np.argsort(-column[group], kind="stable")][:each] for group in groups])[:each]
        for column in outputs.T
    ]
    return np.array(list(dict.fromkeys(np.concatenate(found).tolist())), np.int64)[:most]


def edges_around(edge_index: torch.Tensor, items: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """``[2, m]`` all edges of a small graph, each once and without loops.

    Of a large one, those among these nodes and their neighbours (of many, the first ones).
    """
    edges = edge_index.sort(0).values.numpy()
    if edges.shape[1] > 2 * MAX_EDGES:
        near = np.zeros(num_nodes, dtype=bool)
        near[items] = True
        touching = edges[:, near[edges[0]] | near[edges[1]]]
        for item in items.tolist():
            ends = np.unique(touching[:, (touching == item).any(0)])
            near[ends[: MAX_NEIGHBOURS + 1]] = True
        edges = edges[:, near[edges[0]] & near[edges[1]]]
    return np.unique(edges[:, edges[0] != edges[1]], axis=1)
