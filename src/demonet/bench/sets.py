"""Presets on the paper's node sets: their epochs as a user trains them, dropout, L2 and the training split included."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from demonet.bench.graphs import node_set
from demonet.bench.step import Built
from demonet.data.features import FeatureMap
from demonet.data.protocol import paper_split
from demonet.degree.count import count_degree
from demonet.nn.conv import Scheme
from demonet.nn.models import NodeDEMONet


def build_preset(name: str, preset: str, scheme: Scheme, seed: int = 0) -> Built:
    """A preset's network with one of the schemes, on a set of the paper and its first training split."""
    # Training keeps checkpoints, and with them comes a library that timing on synthetic graphs does without.
    from demonet.train.presets import preset as find_preset
    from demonet.train.problem import LabelledBatch
    from demonet.train.recipes import family_of
    from demonet.train.steps import parameter_groups

    data = node_set(name)
    chosen = find_preset(preset, family_of(data))
    if chosen.self_loops == "keep":
        data = node_set(name, self_loops="keep")
    config = replace(chosen.model, scheme=scheme)
    x = FeatureMap(chosen.features).fit_transform(data)
    tasks = chosen.make_tasks(count_degree(data.edge_index, x.size(0)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = NodeDEMONet(x.size(1), int(data.y.max()) + 1, tasks, config)
    rows = paper_split(name, data.y, seed).train
    inputs = (model.prepare(x, data.edge_index),)
    y = data.y[rows]
    return Built(
        model,
        inputs,
        y,
        rows,
        parameter_groups(model, chosen.train),
        loss=partial(model.loss, inputs[0], *LabelledBatch(inputs, rows, y).spread),
    )
