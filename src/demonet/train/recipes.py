"""From data, a split and a preset to a trained model: what estimators, experiments and the demo all call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from demonet.checks import check_edge_index, check_split
from demonet.data.features import FeatureMap
from demonet.data.splits import Split
from demonet.degree.count import count_degree
from demonet.nn.models import DEMONet, GraphDEMONet, NodeDEMONet
from demonet.nn.prepared import GraphUnion
from demonet.train.loop import Epoch, History, fit
from demonet.train.presets import Family, Preset
from demonet.train.problem import GraphProblem, NodeProblem, labels
from demonet.train.steps import evaluate


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model with all that is needed to use it on another graph, and what came of it.

    Attributes:
        model: The network, with its best weights.
        features: The fitted feature map.
        preset: How it was made.
        history: Its learning curves.
        val_accuracy, test_accuracy: Of the restored weights; the test set was looked at once, after training.
        inputs: What the model was trained on, for embeddings of the same items.
    """

    model: DEMONet
    features: FeatureMap
    preset: Preset
    history: History
    val_accuracy: float
    test_accuracy: float
    inputs: tuple[Any, ...]


def family_of(data: Data | Sequence[Data]) -> Family:
    """Which family of problems a graph or a set of graphs belongs to."""
    if not isinstance(data, Data):
        return "graphs"
    return "nodes" if data.x is None else "attributes"


def train_nodes(
    data: Data,
    split: Split,
    preset: Preset,
    *,
    seed: int = 0,
    class_weight: Tensor | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Trained:
    """Train on some nodes of a graph, on the device that holds it, and test on others.

    Args:
        data: The graph, with labels in ``y``.
        split: Who is trained on, who chooses the epoch, who is tested.
        preset: How.
        seed: Of the first weights, hash functions and dropout.
        class_weight: ``[classes]`` how much a node of each class counts while training and choosing the epoch.
        on_epoch, checkpoint: As :func:`~demonet.train.fit` takes them.
    """
    y = checked(data, split)
    features = FeatureMap(preset.features)
    x = features.fit_transform(data)
    model = node_model(data, x, preset, seed)
    inputs = (model.prepare(x, data.edge_index, edge_weight=data.get("edge_weight")),)
    problem = NodeProblem(inputs, y, split, class_weight)
    return _train(model, features, preset, problem, inputs, seed, on_epoch, checkpoint)


def node_model(data: Data, x: Tensor, preset: Preset, seed: int) -> NodeDEMONet:
    """The untrained network for the features ``x`` of a graph, with its first weights."""
    tasks = preset.make_tasks(count_degree(data.edge_index, x.size(0)))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # weights are drawn on the CPU: a GPU's numbers are left alone
        return NodeDEMONet(x.size(1), int(data.y.max()) + 1, tasks, preset.model, seed=seed).to(x.device)


def train_graphs(
    graphs: Sequence[Data],
    split: Split,
    preset: Preset,
    *,
    seed: int = 0,
    class_weight: Tensor | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Trained:
    """Train on some graphs, and test on others; features and tasks know the training graphs alone.

    The arguments are those of :func:`train_nodes`.
    """
    y = checked(graphs, split)
    seen = [graphs[i] for i in split.train.tolist()]
    features = FeatureMap(preset.features).fit(seen)
    ready = [replace_features(graph, features.transform(graph)) for graph in graphs]
    tasks = preset.make_tasks(torch.cat([count_degree(graph.edge_index, int(graph.num_nodes or 0)) for graph in seen]))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # weights are drawn on the CPU: a GPU's numbers are left alone
        model = GraphDEMONet(features.num_features, int(y.max()) + 1, tasks, preset.model, seed=seed).to(y.device)
    inputs = prepare_batch(model, Batch.from_data_list(ready))
    arcs = [graph.edge_index.size(1) for graph in ready]
    kept = GraphUnion(inputs[0], [int(graph.num_nodes or 0) for graph in ready], arcs)
    problem = GraphProblem(y, split, lambda rows: (kept.take(rows),), preset.train.batch_size, class_weight)
    return _train(model, features, preset, problem, inputs, seed, on_epoch, checkpoint)


def prepare_batch(model: DEMONet, batch: Batch) -> tuple[Any, ...]:
    """What a graph model is called with for a batch of graphs."""
    options = {"batch": batch.batch, "num_graphs": batch.num_graphs, "edge_weight": batch.get("edge_weight")}
    return (model.prepare(batch.x, batch.edge_index, **options),)


def replace_features(graph: Data, x: Tensor) -> Data:
    """The graph with other features and nothing else that batching would trip over."""
    return Data(x=x, edge_index=graph.edge_index, edge_weight=graph.get("edge_weight"), num_nodes=graph.num_nodes)


def checked(data: Data | Sequence[Data], split: Split) -> Tensor:
    """The labels, once the graphs and the split are known to be sound: before any work is done on them."""
    y = labels(data)
    check_split(split, y)
    for graph in [data] if isinstance(data, Data) else data:
        check_edge_index(graph.edge_index, graph.num_nodes)
    return y


def _train(
    model: DEMONet,
    features: FeatureMap,
    preset: Preset,
    problem: NodeProblem | GraphProblem,
    inputs: tuple[Any, ...],
    seed: int,
    on_epoch: Callable[[Epoch], None] | None,
    checkpoint: str | Path | None,
) -> Trained:
    config = replace(preset.train, seed=seed)
    history = fit(model, problem, config, on_epoch=on_epoch, checkpoint=checkpoint)
    tested = evaluate(model, problem.test)[1] if problem.test.rows.numel() else float("nan")
    return Trained(model, features, preset, history, history.best_accuracy, tested, inputs)
