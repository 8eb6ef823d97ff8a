"""What a network is trained on: parts with inputs and labels, for nodes of one graph or for many graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from demonet.checks import check_labels, check_split
from demonet.data.splits import Split
from demonet.errors import DemonetError


@dataclass(frozen=True, eq=False)
class Part:
    """Labelled items and how a model reaches them: ``model(*inputs)[rows]`` are scores for ``y``.

    Where there is a ``weight``, one number an item, losses and accuracies are means in which items count by it.
    """

    inputs: tuple[Any, ...]
    rows: Tensor
    y: Tensor
    weight: Tensor | None = None

    @cached_property
    def spread(self) -> tuple[Tensor, Tensor]:
        """The class of every node of a prepared graph, and how much it counts: nothing, outside this part."""
        weight = torch.ones_like(self.y, dtype=torch.float32) if self.weight is None else self.weight.float()
        target = self.y.new_zeros(self.inputs[0].layout.num_nodes)
        share = torch.zeros_like(target, dtype=torch.float32)
        return target.index_copy(0, self.rows, self.y), share.index_copy(0, self.rows, weight / weight.sum())


def labels(data: Data | Sequence[Data]) -> Tensor:
    """The class of every node of a graph, or of every graph, -1 for unlabelled."""
    graphs = [data] if isinstance(data, Data) else list(data)
    if not graphs:
        raise DemonetError("there are no graphs")
    for number, graph in enumerate(graphs):
        if graph.y is None:
            where = "the graph" if isinstance(data, Data) else f"graph {number}"
            raise DemonetError(f"{where} has no labels", hint="set y, -1 for unlabelled")
    if isinstance(data, Data):
        check_labels(data.y, int(data.num_nodes or 0))
        return data.y
    y = torch.cat([graph.y.view(-1) for graph in graphs])
    check_labels(y, len(graphs))
    return y


class Problem(Protocol):
    """What :func:`~demonet.train.fit` asks for."""

    validation: Part

    def training(self, seed: int, epoch: int) -> Iterator[Part]:
        """The batches of one epoch, the same ones whenever asked for that seed and epoch."""
        ...


class NodeProblem:
    """Nodes of one graph: every part sees the whole graph, and its own labels.

    Args:
        inputs: What the model is called with.
        y: ``[n]`` labels, -1 for unlabelled, as :func:`labels` gives them.
        split: Who is trained on, who stops the training, who is tested.
        class_weight: ``[classes]`` how much an item of each class counts while training and stopping; all the same if
            None. The test counts everyone once.
    """

    def __init__(self, inputs: tuple[Any, ...], y: Tensor, split: Split, class_weight: Tensor | None = None) -> None:
        check_labels(y, y.numel())
        check_split(split, y)
        train, val, test = (rows.to(y.device) for rows in (split.train, split.val, split.test))
        self.train = Part(inputs, train, y[train], _weights(class_weight, y[train]))
        self.validation = Part(inputs, val, y[val], _weights(class_weight, y[val]))
        self.test = Part(inputs, test, y[test])

    def training(self, seed: int, epoch: int) -> Iterator[Part]:
        """The whole training part, every epoch."""
        yield self.train


class GraphProblem:
    """Many graphs: each part is a set of its own; training may go in batches.

    Args:
        y: ``[graphs]`` labels.
        split: Who is trained on, who stops the training, who is tested.
        take: From the numbers of some graphs to what the model is called with for them: :func:`collated`, or
            something that keeps what it has once worked out.
        batch_size: Graphs in a training batch, or None for all at once.
        class_weight: As in :class:`NodeProblem`.
    """

    def __init__(
        self,
        y: Tensor,
        split: Split,
        take: Callable[[Tensor], tuple[Any, ...]],
        batch_size: int | None = None,
        class_weight: Tensor | None = None,
    ) -> None:
        check_labels(y, y.numel())
        check_split(split, y)
        self._y, self._take, self._batch_size = y, take, batch_size
        self._chosen = split.train
        self.train, self.validation = (self._part(rows, class_weight) for rows in (split.train, split.val))
        self.test = self._part(split.test)
        self._class_weight = class_weight

    def training(self, seed: int, epoch: int) -> Iterator[Part]:
        """All training graphs at once, or in batches shuffled by seed and epoch."""
        size = self._batch_size
        if size is None or size >= self._chosen.numel():
            yield self.train
            return
        generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
        order = self._chosen[torch.randperm(self._chosen.numel(), generator=generator)]
        batches = list(order.split(size))
        if batches[-1].numel() == 1:  # batch normalisation has nothing to say about a single graph
            batches[-2:] = [torch.cat(batches[-2:])]
        for rows in batches:
            yield self._part(rows, self._class_weight)

    def _part(self, rows: Tensor, class_weight: Tensor | None = None) -> Part:
        y = self._y[rows.to(self._y.device)]
        if rows.numel() == 0:
            return Part((), rows, y)
        everyone = torch.arange(rows.numel(), device=y.device)
        return Part(self._take(rows), everyone, y, _weights(class_weight, y))


def collated(
    graphs: Sequence[Data], collate: Callable[[Batch], tuple[Any, ...]]
) -> Callable[[Tensor], tuple[Any, ...]]:
    """Batches made by PyG, anew every time: from the numbers of some graphs to what ``collate`` makes of them."""
    return lambda rows: collate(Batch.from_data_list([graphs[i] for i in rows.tolist()]))


def _weights(class_weight: Tensor | None, y: Tensor) -> Tensor | None:
    return None if class_weight is None else class_weight.to(y.device)[y]
