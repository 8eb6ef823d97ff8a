"""Train a network over processes, from data, a split and a preset: ``train_nodes`` on a graph in parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from torch import Tensor
from torch_geometric.data import Data

from demonet.data.splits import Split
from demonet.degree.count import count_degree
from demonet.distributed.partition import assign, cut
from demonet.distributed.store import Store
from demonet.distributed.training import deal
from demonet.distributed.worker import Outcome, Training
from demonet.errors import DemonetError, Hint
from demonet.features import FeatureMap
from demonet.train.checkpoint import digest
from demonet.train.loop import Epoch
from demonet.train.objective import Objective
from demonet.train.presets import Preset
from demonet.train.recipes import Trained, checked_targets

Lead = Callable[..., Outcome]  # starts the workers of a training and waits for them, as a Leader does


def train_in_parts(
    data: Data,
    split: Split | None,
    preset: Preset,
    *,
    lead: Lead,
    workers: int,
    partition: str = "balanced",
    store: Store | None = None,
    objective: Objective | None = None,
    seed: int = 0,
    weight: Tensor | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Trained:
    """Train on some nodes of a graph that is cut into parts: the gradients are those of the whole graph.

    Args:
        data, split, preset, objective, seed, weight, on_epoch, checkpoint: As in
            :func:`~demonet.train.train_nodes`.
        lead: Starts the workers and waits for them: a :class:`~demonet.distributed.worker.Leader`, or
            :func:`~demonet.distributed.ray_train.lead_on_ray`.
        workers: Number of processes.
        partition: How the graph is cut, unless it is in a store that has as many parts.
        store: The store that the graph is from, if it is from one.
    """
    split = Split.from_masks(data) if split is None else split
    y, objective = checked_targets(data, split, objective)
    features = FeatureMap(preset.features)
    x, nodes = features.fit_transform(data), int(data.num_nodes or 0)
    config = replace(preset.train, seed=seed)
    store = None if store is None or store.parts is None else store  # only where it has parts
    if store is not None and store.parts != workers:
        hint = Hint("{workers} fits it, or write another store", workers=store.parts)
        raise DemonetError(f"the store has {store.parts} parts for {workers} workers", file=store.path, hint=hint)
    encoded = objective.encode(y).cpu()
    edge_index, edge_weight = data.edge_index.cpu(), data.get("edge_weight")
    rows = [part.cpu() for part in (split.train, split.val, split.test)]
    weights = [None if weight is None else weight.cpu().float()[part] for part in rows[:2]]
    training = Training(
        in_channels=x.size(1),
        tasks=preset.make_tasks(count_degree(edge_index, nodes)),
        model=preset.model,
        train=config,
        objective=objective,
        identity=digest([edge_index, edge_weight, x, encoded, rows, weights]),
        device=data.edge_index.device.type,
        store=None if store is None else (str(store.path.resolve()), store.checksum),
    )
    if store is not None:
        parts = [store.part(number) for number in range(workers)]
    else:
        parts = cut(edge_index, assign(edge_index, nodes, workers, partition), workers)
    shares = deal(
        parts,
        x.cpu(),
        encoded,
        rows,
        [*weights, None],
        None if edge_weight is None else edge_weight.cpu(),
        halo=not preset.model.stem,
    )
    outcome = lead(training, shares, on_epoch=on_epoch, checkpoint=checkpoint)
    model = training.network()
    model.load_state_dict(outcome.weights)
    history = outcome.history
    model = model.to(data.edge_index.device)
    return Trained(model, objective, features, preset, history, history.best_metric, outcome.test_metric, ())
