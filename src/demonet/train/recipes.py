"""Train a model from data, a split and a preset: what the estimators, the experiments and the demo call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from demonet.checks import check_edge_index
from demonet.data.splits import Split, check_split
from demonet.degree.count import count_degree
from demonet.errors import DemonetError
from demonet.features import FeatureMap
from demonet.nn.blocks import NeighbourSampler, WholeGraph
from demonet.nn.models import DegreeNetwork, GraphDEMONet, NodeDEMONet
from demonet.nn.prepared import GraphUnion
from demonet.train.batches import NodeBatchProblem, decide_batches
from demonet.train.loop import Epoch, History, fit, standing
from demonet.train.objective import Classify, Objective
from demonet.train.presets import Family, Preset, with_layers
from demonet.train.problem import GraphProblem, NodeProblem, fitted_objective, labels
from demonet.train.steps import evaluate


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model with all that is needed to apply it to another graph, and its results.

    Attributes:
        model: The network, with its best weights.
        objective: The fitted objective: its ``activate`` and ``decide`` turn scores into predictions.
        features: The fitted feature map.
        preset: The preset, with the features that were used.
        history: The learning curves.
        val_metric, test_metric: Of the restored weights, by the metric of the objective. The test part is evaluated
            once, after training; NaN if it is empty.
        inputs: What the model was trained on, for embeddings of the same items; nothing where it was in parts.
    """

    model: DegreeNetwork
    objective: Objective
    features: FeatureMap
    preset: Preset
    history: History
    val_metric: float
    test_metric: float
    inputs: tuple[Any, ...]


def family_of(data: Data | Sequence[Data]) -> Family:
    """The family of presets for a graph or a set of graphs."""
    if not isinstance(data, Data):
        return "graphs"
    return "nodes" if data.x is None else "attributes"


def train_nodes(
    data: Data,
    split: Split | None,
    preset: Preset,
    *,
    layers: int | str | None = None,
    objective: Objective | None = None,
    seed: int = 0,
    choose: bool = True,
    weight: Tensor | None = None,
    batch_size: int | None = None,
    neighbours: int | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Trained:
    """Train on some nodes of a graph, on the device that holds it, and test on others.

    In batches, the degree of a node is that in the whole graph, the first sums are over all neighbours, and evaluation
    is exact, see :mod:`demonet.nn.blocks`.

    Args:
        data: The graph, with targets in ``y``.
        split: Training, validation and test nodes; None for the ``train_mask``, ``val_mask`` and ``test_mask`` of the
            graph.
        preset: Features, model and training.
        layers: How many hidden layers there are instead of the preset's; ``"auto"`` trains networks of several depths
            and keeps the one that is best on validation (:func:`train_best` with
            :func:`~demonet.train.presets.with_layers`).
        objective: The task and its metric; classification by accuracy if None.
        seed: Seed of the initial weights, hash functions and dropout.
        choose: Whether validation chooses the epoch; if not, all epochs of the preset are trained.
        weight: ``[items]`` the weight of each item in the loss; None if all are 1.
        batch_size: Training nodes of a batch. If None, all nodes are one batch, unless they do not fit into memory;
            8,192 where only ``neighbours`` is given.
        neighbours: How many neighbours of a node are drawn in a batch, for each layer after the first; all if None.
        on_epoch, checkpoint: See :func:`~demonet.train.fit`.
    """
    split = Split.from_masks(data) if split is None else split
    preset, *others = with_layers(preset, layers)
    if others:
        options: dict[str, Any] = {"objective": objective, "seed": seed, "choose": choose, "weight": weight}
        options |= {"batch_size": batch_size, "neighbours": neighbours, "on_epoch": on_epoch, "checkpoint": checkpoint}
        return train_best(train_nodes, data, split, [preset, *others], **options)
    y, objective = checked_targets(data, split, objective)
    features = FeatureMap(preset.features)
    x = features.fit_transform(data)
    model = node_model(data, x, preset, seed, objective.outputs)
    graph = model.prepare(x, data.edge_index, edge_weight=data.get("edge_weight"))
    del x  # the graph has its rows in another order
    batches = decide_batches(model, graph, batch_size, neighbours)
    if batches is None:
        whole = NodeProblem((graph,), y, split, weight, objective)
        return _train(model, features, preset, whole, (graph,), seed, choose, on_epoch, checkpoint)
    sampler = NeighbourSampler(model, graph, batches.neighbours)
    problem = NodeBatchProblem(sampler, y, split, batches.size, weight, objective)
    return _train(model, features, preset, problem, (WholeGraph(graph),), seed, choose, on_epoch, checkpoint)


def node_model(data: Data, x: Tensor, preset: Preset, seed: int, outputs: int | None = None) -> NodeDEMONet:
    """The untrained network for the features ``x`` of a graph; by default with one output for each class in ``y``."""
    tasks = preset.make_tasks(count_degree(data.edge_index, x.size(0)))
    outputs = int(data.y.max()) + 1 if outputs is None else outputs
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # weights are drawn on the CPU: GPU generators stay as they are
        return NodeDEMONet(x.size(1), outputs, tasks, preset.model, seed=seed).to(x.device)


def train_graphs(
    graphs: Sequence[Data],
    split: Split,
    preset: Preset,
    *,
    layers: int | str | None = None,
    objective: Objective | None = None,
    seed: int = 0,
    choose: bool = True,
    weight: Tensor | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Trained:
    """Train on some graphs, and test on others; features and tasks are fitted on the training graphs alone.

    The arguments are those of :func:`train_nodes`. Graphs without attributes get degree features in their place, see
    :meth:`Preset.without_attributes`.
    """
    preset, *others = with_layers(preset, layers)
    if others:
        options: dict[str, Any] = {"objective": objective, "seed": seed, "choose": choose, "weight": weight}
        options |= {"on_epoch": on_epoch, "checkpoint": checkpoint}
        return train_best(train_graphs, graphs, split, [preset, *others], **options)
    y, objective = checked_targets(graphs, split, objective)
    if all(graph.x is None for graph in graphs):
        preset = preset.without_attributes()
    seen = [graphs[i] for i in split.train.tolist()]
    features = FeatureMap(preset.features).fit(seen)
    ready = [replace_features(graph, features.transform(graph)) for graph in graphs]
    tasks = preset.make_tasks(torch.cat([count_degree(graph.edge_index, int(graph.num_nodes or 0)) for graph in seen]))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # weights are drawn on the CPU: GPU generators stay as they are
        model = GraphDEMONet(features.num_features, objective.outputs, tasks, preset.model, seed=seed).to(y.device)
    inputs = prepare_batch(model, Batch.from_data_list(ready))
    edges = [graph.edge_index.size(1) for graph in ready]
    prepared = GraphUnion(inputs[0], [int(graph.num_nodes or 0) for graph in ready], edges)
    problem = GraphProblem(y, split, lambda each: zip(prepared.take(each)), preset.train.batch_size, weight, objective)
    return _train(model, features, preset, problem, inputs, seed, choose, on_epoch, checkpoint)


def train_best(
    recipe: Callable[..., Trained],
    data: Data | Sequence[Data],
    split: Split | None,
    presets: Sequence[Preset],
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> Trained:
    """Train by each of several presets, and keep the network that is best on validation; of equals, the first.

    The metric of the objective decides, ties by loss; the loss alone, where it chooses the epoch in all of them.

    Args:
        recipe: :func:`train_nodes` or :func:`train_graphs`.
        data, split, options: Of the recipe.
        presets: Such as :func:`~demonet.train.presets.with_layers` gives; networks of different depth.
        on_epoch: As in :func:`~demonet.train.fit`; an :class:`Epoch` says how many layers its network has.
        checkpoint: A folder, which is made if there is none; each preset has a file in it.
    """
    if not options.get("choose", True):
        raise DemonetError("choose=False with several presets", hint="validation chooses among them")
    by_loss = all(each.train.choose_by == "loss" for each in presets)
    if checkpoint is not None:
        Path(checkpoint).mkdir(parents=True, exist_ok=True)
    kept: Trained | None = None
    best, depths = (-math.inf, -math.inf), {}
    for each in presets:
        file = None if checkpoint is None else Path(checkpoint) / f"{each.name}.safetensors"
        told = None if on_epoch is None else _with_depth(on_epoch, each.model.layers)
        trained = recipe(data, split, each, on_epoch=told, checkpoint=file, **options)
        history, larger = trained.history, trained.objective.larger_is_better
        loss = history.val_loss[history.best_epoch]
        found = (-loss, 0.0) if by_loss else standing(history.best_metric, loss, larger_is_better=larger)
        depths[str(each.model.layers)] = loss if by_loss else history.best_metric
        if kept is None or found > best:
            kept, best = trained, found
    assert kept is not None
    kept.history.depths = depths
    return kept


def _with_depth(on_epoch: Callable[[Epoch], None], layers: int) -> Callable[[Epoch], None]:
    return lambda epoch: on_epoch(epoch._replace(layers=layers))


def prepare_batch(model: DegreeNetwork, batch: Batch) -> tuple[Any, ...]:
    """The inputs of a graph model for a batch of graphs."""
    options = {"batch": batch.batch, "num_graphs": batch.num_graphs, "edge_weight": batch.get("edge_weight")}
    return (model.prepare(batch.x, batch.edge_index, **options),)


def replace_features(graph: Data, x: Tensor) -> Data:
    """The graph with other features, without attributes that cannot be batched."""
    return Data(x=x, edge_index=graph.edge_index, edge_weight=graph.get("edge_weight"), num_nodes=graph.num_nodes)


def checked_targets(data: Data | Sequence[Data], split: Split, objective: Objective | None) -> tuple[Tensor, Objective]:
    """The checked targets and the fitted objective. Graphs and split are checked before any work is done on them."""
    objective = objective or Classify()
    y = labels(data, objective)
    check_split(split, y)
    for graph in [data] if isinstance(data, Data) else data:
        check_edge_index(graph.edge_index, graph.num_nodes)
    return y, fitted_objective(objective, y, split)


def _train(
    model: DegreeNetwork,
    features: FeatureMap,
    preset: Preset,
    problem: NodeProblem | NodeBatchProblem | GraphProblem,
    inputs: tuple[Any, ...],
    seed: int,
    choose: bool,
    on_epoch: Callable[[Epoch], None] | None,
    checkpoint: str | Path | None,
) -> Trained:
    config = replace(preset.train, seed=seed)
    history = fit(model, problem, config, choose=choose, on_epoch=on_epoch, checkpoint=checkpoint if choose else None)
    objective, chosen = problem.objective, history.best_metric if choose else float("nan")
    tested = evaluate(model, problem.test, objective)[1] if problem.test.rows.numel() else float("nan")
    return Trained(model, objective, features, preset, history, chosen, tested, inputs)
