"""A trained model seen from outside: every prediction, every place, every degree and its task."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from demonet.data.statistics import degrees
from demonet.degree.count import count_degree
from demonet.estimators import DEMONetClassifier
from demonet.runs.places import MOST_DRAWN, draw, in_two_dimensions
from demonet.runs.run import Run
from demonet.runs.trial import Estimator, Plan, embedding, probabilities


def picture(plan: Plan, estimator: Estimator, config: dict[str, Any], metrics: dict[str, Any]) -> Run:
    """The run of the first split, ready to be kept and shown."""
    inputs, split, seed = plan.inputs, plan.splits[0], plan.settings.seed
    part = np.full(len(inputs.ids), -1, dtype=np.int8)
    for number, rows in enumerate((split.train, split.val, split.test)):
        part[rows.numpy()] = number
    seen, counts = degrees(inputs.data).unique(return_counts=True)
    tasks = estimator.model_.tasks.cpu()
    graphs, nodes = inputs.graphs, isinstance(estimator, DEMONetClassifier)
    if nodes:
        size, edge_count = count_degree(graphs[0].edge_index, int(graphs[0].num_nodes)).numpy(), None
    else:
        size = np.array([int(graph.num_nodes) for graph in graphs])
        edge_count = np.array([graph.edge_index.size(1) // 2 for graph in graphs])
    edges = drawing = None
    if nodes and len(inputs.ids) <= MOST_DRAWN:
        edges = torch.unique(graphs[0].edge_index.sort(0).values, dim=1).numpy()
        drawing = draw(edges, len(inputs.ids), seed)
    history = estimator.history_
    curves = {name: getattr(history, name) for name in ("train_loss", "val_loss", "val_accuracy", "best_epoch")}
    return Run(
        kind=inputs.kind,
        config=config,
        metrics=metrics,
        history=curves,
        class_names=list(map(str, inputs.class_names)),
        ids=inputs.ids,
        y=inputs.data.y.numpy(),
        part=part,
        probabilities=probabilities(estimator, inputs).astype(np.float32),
        degree=size,
        edge_count=edge_count,
        place=in_two_dimensions(embedding(estimator, inputs), seed),
        degrees=seen.numpy(),
        degree_counts=counts.numpy(),
        degree_task=tasks(seen).numpy(),
        edges=edges,
        drawing=drawing,
        columns=inputs.columns,
    )
