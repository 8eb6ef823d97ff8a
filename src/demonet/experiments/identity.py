"""One run of the identity figure: where the nodes of a graph with structural twins land.

The paper defines no training without labels, so networks are looked at twice. With their first weights: what the
architecture and the features do by themselves, over several draws. And trained: half of the graph, in which every
role occurs, is labelled with the roles (orbits); half of the other half chooses the epoch, the rest is tested. On the
second half a network can only be right by treating twins alike. Structural embeddings see no labels, and run once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet import baselines
from demonet.baselines.embedding import Embedding
from demonet.baselines.network import Network
from demonet.data.features import FeatureMap
from demonet.data.splits import Split
from demonet.data.synthetic import barbell, cycle, mirrored_karate
from demonet.errors import DemonetError
from demonet.experiments.ledger.job import Cell, Job, Outcome
from demonet.experiments.measure import Meter
from demonet.experiments.methods import OURS, DemoNet
from demonet.experiments.twins import nearness, orbits, plane
from demonet.train.recipes import node_model, train_nodes

GRAPHS: dict[str, Callable[[], Data]] = {"mirrored-karate": mirrored_karate, "barbell": barbell, "cycle": cycle}
IDENTITY = "identity"  # features that name each node: the unit matrix, as GCN's paper has where there are no attributes


def identity(job: Job, device: str = "cpu") -> Outcome:
    """Weights ``seed`` of a cell, on the CPU.

    Options are ``features``, as :class:`~demonet.data.FeatureMap` names them or ``"identity"``, and ``trained``. The
    value is the mean distance of twins over that of all pairs; beside it stand the other distances, every node's role
    and its place in the plane of the first two principal components and, for a trained network, the accuracy.
    """
    meter = Meter()
    data = graph_of(job.cell.dataset)
    z, accuracy = embed(job.cell, data, job.seed)
    near = nearness(z, data.y.numpy())
    extra: dict[str, Any] = {name: value for name, value in asdict(near).items() if not np.isnan(value)}
    extra |= {"roles": data.y.tolist(), "points": plane(z).round(5).tolist()}
    if accuracy is not None:
        extra["accuracy"] = accuracy
    return Outcome(near.twins, meter.seconds, meter.peak_memory_mb, extra)


def graph_of(dataset: str) -> Data:
    """The graph of that name; the class of a node is its orbit."""
    if dataset not in GRAPHS:
        raise DemonetError(f"no graph {dataset!r} with twins", hint=f"there are {', '.join(GRAPHS)}")
    data = GRAPHS[dataset]()
    data.y = torch.from_numpy(orbits(data))
    return data


def embed(cell: Cell, data: Data, seed: int) -> tuple[np.ndarray, float | None]:
    """A row for each node, float64, and the accuracy on the tested nodes where something was trained."""
    options = json.loads(cell.options)
    trained, features = options.get("trained", False), options.get("features")
    if features == IDENTITY:
        data, features = data.clone(), "attributes"
        data.x = torch.eye(int(data.num_nodes or 0))
    split = half(data, seed)
    if cell.method in OURS:
        z, accuracy = _ours(cell, data, split, seed, features, trained)
    else:
        z, accuracy = _baseline(cell.method, data, split, seed, features, trained)
    return z.double().numpy(), accuracy


def half(data: Data, seed: int) -> Split:
    """The first half of the nodes trains; of the others one half validates, drawn by the seed, and one is tested."""
    n = int(data.num_nodes or 0)
    other = n // 2 + torch.randperm(n - n // 2, generator=torch.Generator().manual_seed(seed))
    return Split("half", seed, torch.arange(n // 2), other[: len(other) // 2], other[len(other) // 2 :])


def _ours(
    cell: Cell, data: Data, split: Split, seed: int, features: str | None, trained: bool
) -> tuple[Tensor, float | None]:
    preset = DemoNet(cell.method, cell.preset, {"features": features} if features else {}).chosen("nodes")
    if trained:
        done = train_nodes(data, split, preset, seed=seed)
        model, inputs, accuracy = done.model, done.inputs[0], done.test_accuracy
    else:
        x = FeatureMap(preset.features).fit_transform(data)
        model, accuracy = node_model(data, x, preset, seed), None
        inputs = model.prepare(x, data.edge_index)
    with torch.no_grad():
        return model.eval().embed(inputs), accuracy  # type: ignore[operator]


def _baseline(
    name: str, data: Data, split: Split, seed: int, features: str | None, trained: bool
) -> tuple[Tensor, float | None]:
    found = baselines.get(name)
    if issubclass(found, Embedding):
        return torch.from_numpy(found().embed(data, seed)), None
    if not issubclass(found, Network):
        raise DemonetError(f"{name} has no embedding of nodes")
    network = found(features)
    if not trained:
        return network.first_embeddings(data, seed), None
    fitted = network.fit(data, split, seed)
    return fitted.embeddings(), fitted.score(split.test, data.y)
