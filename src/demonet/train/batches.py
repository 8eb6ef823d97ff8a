"""Training on batches of nodes, and when a graph needs it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from demonet.checks import available_memory
from demonet.data.splits import Split
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.nn.blocks import NeighbourSampler, NodeBatch, WholeGraph
from demonet.nn.config import ModelConfig
from demonet.nn.models import NodeDEMONet
from demonet.nn.prepared import GraphInput
from demonet.train.objective import Objective
from demonet.train.problem import LabelledBatch, NodeProblem

BATCH_SIZE, NEIGHBOURS = 8192, 16  # where the whole graph does not fit
KEPT = 6  # numbers that a training step on all nodes keeps for each unit of a layer
USABLE = 0.8  # share of the available memory that it may take


class Batching(NamedTuple):
    """How nodes are put into batches: how many nodes, and how many drawn neighbours of each (None for all)."""

    size: int
    neighbours: int | None


class NodeBatchProblem:
    """Nodes of one graph in batches, each with the neighbours that it needs; evaluated exactly, in blocks of rows.

    Args:
        sampler: Makes the batches.
        y: Targets of all nodes, as :func:`~demonet.train.problem.labels` gives them.
        split: Training, validation and test nodes.
        batch_size: Training nodes of a batch.
        weight, objective: As in :class:`~demonet.train.problem.NodeProblem`.
    """

    def __init__(
        self,
        sampler: NeighbourSampler,
        y: Tensor,
        split: Split,
        batch_size: int,
        weight: Tensor | None = None,
        objective: Objective | None = None,
    ) -> None:
        if batch_size < 1:
            raise DemonetError(f"batch_size={batch_size}", hint="at least 1")
        self._sampler, self._batch_size = sampler, batch_size
        whole = NodeProblem((WholeGraph(sampler.graph),), y, split, weight, objective)
        self.objective, self._train = whole.objective, whole.train
        self.validation, self.test = self._exact(whole.validation), self._exact(whole.test)

    def _exact(self, part: LabelledBatch) -> LabelledBatch:
        """The same items, with no more of the graph than their scores need."""
        found = self._sampler.evaluation(part.rows) if part.rows.numel() else None
        if not isinstance(found, NodeBatch):
            return part
        return LabelledBatch((found,), torch.arange(part.rows.numel(), device=part.rows.device), part.y, part.weight)

    @property
    def identity(self) -> list[Any]:
        """What a checkpoint belongs to."""
        return [self.validation, self._train, self._batch_size, self._sampler.neighbours]

    def training(self, seed: int, epoch: int) -> Iterator[LabelledBatch]:
        """All training nodes in batches of nearly equal size, shuffled and sampled by seed and epoch.

        A batch has two nodes at least, which batch normalisation needs.
        """
        train = self._train
        generator = torch.Generator(train.y.device).manual_seed(seed * 1_000_003 + epoch)
        count = train.rows.numel()
        order = torch.randperm(count, generator=generator, device=train.y.device)
        for some in order.tensor_split(min(math.ceil(count / self._batch_size), max(count // 2, 1))):
            weight = None if train.weight is None else train.weight[some]
            batch = self._sampler.batch(train.rows[some], generator)
            yield LabelledBatch((batch,), torch.arange(some.numel(), device=some.device), train.y[some], weight)


def decide_batches(
    model: NodeDEMONet, graph: GraphInput, batch_size: int | None, neighbours: int | None
) -> Batching | None:
    """The batches that were asked for; otherwise None, or batches, with a warning, where all nodes do not fit."""
    if batch_size is not None:
        return Batching(batch_size, neighbours)
    if neighbours is not None:
        return Batching(BATCH_SIZE, neighbours)
    layout, free = graph.layout, USABLE * available_bytes(graph.layout.key.device)
    need = float(layout.num_nodes * step_values(model.config) * graph.x.dtype.itemsize)
    if need <= free:
        return None
    problem = (
        f"training on all {layout.num_nodes:,} nodes at once would take about {need / 1e9:.1f} GB, "
        f"{free / 1e9:.1f} GB can be used: batches of {BATCH_SIZE:,} nodes, {NEIGHBOURS} neighbours drawn of each"
    )
    hint = Hint("{batch_size} and {neighbours} choose others", batch_size=..., neighbours=...)
    warn(DemonetWarning(problem, hint=hint))
    return Batching(BATCH_SIZE, NEIGHBOURS)


def step_values(config: ModelConfig) -> int:
    """Roughly how many numbers a training step on all nodes keeps for each of them."""
    layers = config.layers + config.stem + 1
    return (KEPT + layers if config.recompute else KEPT * layers) * config.hidden


def available_bytes(device: torch.device) -> float:
    """The memory that is free on a device; on a CPU what :func:`~demonet.checks.available_memory` says."""
    return float(torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else available_memory())
