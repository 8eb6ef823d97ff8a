"""Training problems: batches of labelled items, for the nodes of one graph or for many graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from demonet.data.splits import Split, check_split
from demonet.errors import DemonetError
from demonet.train.objective import Classify, Objective

Take = Callable[[Sequence[Tensor]], Iterable[tuple[Any, ...]]]


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """Labelled items and the model inputs that give their scores: ``model(*inputs)[rows]`` are the scores for ``y``.

    ``y`` are encoded targets, see :meth:`Objective.encode`. With a ``weight``, one number an item, losses and metrics
    are weighted means. ``size`` is what the whole batch counts (:meth:`Objective.size`) where this is a part of one.
    """

    inputs: tuple[Any, ...]
    rows: Tensor
    y: Tensor
    weight: Tensor | None = None
    size: float | None = None

    @cached_property
    def spread(self) -> tuple[Tensor, Tensor]:
        """The class of every node of a prepared graph and its share of the loss, 0 for nodes outside this batch."""
        weight = torch.ones_like(self.y, dtype=torch.float32) if self.weight is None else self.weight.float()
        target = self.y.new_zeros(self.inputs[0].layout.num_nodes)
        share = torch.zeros_like(target, dtype=torch.float32)
        weight = weight / (weight.sum() if self.size is None else self.size)
        return target.index_copy(0, self.rows, self.y), share.index_copy(0, self.rows, weight)


def labels(data: Data | Sequence[Data], objective: Objective | None = None) -> Tensor:
    """The checked targets ``y`` of every node of a graph, or of every graph; classes if no objective is given."""
    objective = objective or Classify()
    graphs = [data] if isinstance(data, Data) else list(data)
    if not graphs:
        raise DemonetError("there are no graphs")
    for number, graph in enumerate(graphs):
        if graph.y is None:
            where = "the graph" if isinstance(data, Data) else f"graph {number}"
            raise DemonetError(f"{where} has no labels", hint="set y, -1 for unlabelled")
    if isinstance(data, Data):
        return objective.check(data.y, int(data.num_nodes or 0))
    if objective.task == "classify":
        rows = [graph.y if graph.y.dim() == 1 else graph.y.view(-1) for graph in graphs]
    else:
        rows = [graph.y.view(1, -1) for graph in graphs]
    for number, row in enumerate(rows):
        if row.dim() == 2 and row.size(1) != rows[0].size(1):
            raise DemonetError(f"graph {number} has {row.size(1)} targets, graph 0 has {rows[0].size(1)}")
    return objective.check(torch.cat(rows), len(graphs))


class Problem(Protocol):
    """What :func:`~demonet.train.fit` trains on."""

    objective: Objective
    validation: LabelledBatch

    def training(self, seed: int, epoch: int) -> Iterator[LabelledBatch]:
        """The training batches of an epoch, which depend on the seed and the epoch alone."""
        ...


class NodeProblem:
    """Nodes of one graph: every batch sees the whole graph and its own targets.

    Args:
        inputs: What the model is called with.
        y: Targets of all nodes, as :func:`labels` gives them.
        split: Training, validation and test nodes.
        weight: ``[items]`` the weight of each item in the loss; all equal if None.
        objective: The fitted objective; classification if None.
    """

    def __init__(
        self,
        inputs: tuple[Any, ...],
        y: Tensor,
        split: Split,
        weight: Tensor | None = None,
        objective: Objective | None = None,
    ) -> None:
        self.objective, y, weight = _settle(objective, y, split, weight)
        train, val, test = (rows.to(y.device) for rows in (split.train, split.val, split.test))
        own = [None if weight is None else weight[rows] for rows in (train, val)]
        self.train = LabelledBatch(inputs, train, y[train], own[0])
        self.validation = LabelledBatch(inputs, val, y[val], own[1])
        self.test = LabelledBatch(inputs, test, y[test])

    def training(self, seed: int, epoch: int) -> Iterator[LabelledBatch]:
        """All training nodes, every epoch."""
        yield self.train


class GraphProblem:
    """Many graphs, each batch a set of them.

    Args:
        y: Targets of all graphs, as :func:`labels` gives them.
        split: Training, validation and test graphs.
        take: From the indices of the graphs of every batch to what the model is called with for each:
            :func:`collated`, or a function that caches what it has prepared. No graph is in two batches.
        batch_size: Graphs in a training batch; None for all at once.
        weight, objective: As in :class:`NodeProblem`.
    """

    def __init__(
        self,
        y: Tensor,
        split: Split,
        take: Take,
        batch_size: int | None = None,
        weight: Tensor | None = None,
        objective: Objective | None = None,
    ) -> None:
        self.objective, self._y, self._weight = _settle(objective, y, split, weight)
        self._take, self._batch_size = take, batch_size
        self._train_rows = split.train
        self.train, self.validation, self.test = (self._batch(rows) for rows in (split.train, split.val, split.test))
        self.test = replace(self.test, weight=None)

    def training(self, seed: int, epoch: int) -> Iterator[LabelledBatch]:
        """All training graphs at once, or in batches shuffled by seed and epoch."""
        size = self._batch_size
        if size is None or size >= self._train_rows.numel():
            yield self.train
            return
        generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
        order = self._train_rows[torch.randperm(self._train_rows.numel(), generator=generator)]
        batches = list(order.split(size))
        if batches[-1].numel() == 1:  # batch normalisation needs at least two graphs
            batches[-2:] = [torch.cat(batches[-2:])]
        for rows, inputs in zip(batches, self._take(batches), strict=True):
            yield self._labelled(inputs, rows)

    def _batch(self, rows: Tensor) -> LabelledBatch:
        inputs = next(iter(self._take([rows]))) if rows.numel() else ()
        return self._labelled(inputs, rows)

    def _labelled(self, inputs: tuple[Any, ...], rows: Tensor) -> LabelledBatch:
        rows = rows.to(self._y.device)
        weight = None if self._weight is None else self._weight[rows]
        return LabelledBatch(inputs, torch.arange(rows.numel(), device=rows.device), self._y[rows], weight)


def collated(graphs: Sequence[Data], collate: Callable[[Batch], tuple[Any, ...]]) -> Take:
    """A ``take`` for :class:`GraphProblem` that collates PyG batches and passes them to ``collate``."""
    return lambda batches: (collate(Batch.from_data_list([graphs[i] for i in rows.tolist()])) for rows in batches)


def _settle(
    objective: Objective | None, y: Tensor, split: Split, weight: Tensor | None
) -> tuple[Objective, Tensor, Tensor | None]:
    """The fitted objective, and targets and weights as its loss takes them."""
    objective = objective or Classify()
    y = objective.check(y, y.size(0))
    check_split(split, y)
    if weight is not None and weight.shape != y.shape[:1]:
        raise DemonetError(f"weights {list(weight.shape)} for {y.size(0)} items", hint="one for each item")
    if not objective.outputs:
        objective = fitted_objective(objective, y, split)
    return objective, objective.encode(y), None if weight is None else weight.to(y.device).float()


def fitted_objective(objective: Objective, y: Tensor, split: Split) -> Objective:
    """The objective, fitted on the training part; classes are those of all items."""
    train = y[split.train.to(y.device)]
    if not isinstance(objective, Classify):
        return objective.fit(train)
    objective = objective.fit(y[y >= 0])
    unseen = set(range(objective.outputs)) - set(train.tolist())
    return replace(objective, unseen=tuple(sorted(unseen)))
