"""The steps of an epoch over processes, and the problem that each of them trains on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from demonet.distributed.group import from_first, is_first, to_first, total
from demonet.distributed.noise import Clock
from demonet.nn.prepared import GraphInput
from demonet.train.config import TrainConfig
from demonet.train.objective import Classify, Objective
from demonet.train.problem import LabelledBatch
from demonet.train.steps import Steps, predict


@dataclass(frozen=True, eq=False)
class PartBatch(LabelledBatch):
    """The items of a batch that one process has.

    Attributes:
        place: ``[items]`` the position of each of them in the whole batch.
        whole: For the first process: targets and weights of the whole batch, in its order.
    """

    place: Tensor = None  # type: ignore[assignment]
    whole: tuple[Tensor, Tensor | None] | None = None

    @classmethod
    def gather(
        cls, graph: GraphInput, rows: Tensor, y: Tensor, weight: Tensor | None, place: Tensor, objective: Objective
    ) -> PartBatch:
        """The batch of all processes; each of them calls this with its own items."""
        order = _order(place)
        parts = [_in_order(values, order) for values in (y, weight)]
        whole = None if parts[0] is None else (parts[0], parts[1])
        size = torch.zeros((), dtype=torch.float64, device=y.device)
        if whole is not None:
            size.fill_(objective.size(*whole))
        return cls((graph,), rows, y, weight, from_first(size).item(), place, whole)


def _order(place: Tensor) -> Tensor | None:
    found = to_first(place)
    return None if found is None else found.argsort()


def _in_order(values: Tensor | None, order: Tensor | None) -> Tensor | None:
    found = None if values is None else to_first(values)
    return None if found is None or order is None else found[order]


@dataclass
class PartProblem:
    """The training, validation and test nodes that one process has.

    Args:
        train, validation, test: Its batches, each a `PartBatch`.
        objective: The fitted objective.
        clock: What dropout reads.
        identity: What a checkpoint belongs to; the same in all processes.
    """

    train: LabelledBatch
    validation: LabelledBatch
    test: LabelledBatch
    objective: Objective
    clock: Clock
    identity: list[Any]

    def training(self, seed: int, epoch: int) -> Iterator[LabelledBatch]:
        """All training nodes, every epoch."""
        self.clock.seed, self.clock.epoch = seed, epoch
        yield self.train


class PartSteps(Steps):
    """The steps of one process. Losses and metrics are those of the whole graph, the same bits in every process."""

    def __init__(self, model: nn.Module, config: TrainConfig, device: torch.device, objective: Objective) -> None:
        super().__init__(model, config, device, objective)
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._order: dict[int, Tensor | None] = {}

    def train(self, batch: LabelledBatch) -> float:
        """One optimizer step; returns the loss before it."""
        self.model.train()
        return total(self._train(batch)).item()

    @torch.no_grad()
    def evaluate(self, batch: LabelledBatch) -> tuple[float, float]:
        """Loss and metric of the whole batch, computed by the first process."""
        assert isinstance(batch, PartBatch)
        if id(batch) not in self._order:
            self._order[id(batch)] = _order(batch.place)
        scores = _in_order(predict(self.model, batch), self._order[id(batch)])
        measured = torch.zeros(2, dtype=torch.float64, device=self.device)
        if is_first():
            assert scores is not None
            assert batch.whole is not None
            measured.copy_(self._objective.measure(scores, *batch.whole))
        loss, metric = from_first(measured).tolist()
        return loss, metric

    def _loss(self, batch: LabelledBatch) -> Tensor:
        """What this process adds to the loss."""
        if isinstance(self._objective, Classify):
            return super()._loss(batch)
        scores = self.model(*batch.inputs)[batch.rows]
        size = self._objective.size(batch.y, batch.weight)
        if size == 0:  # it takes part nevertheless: the others wait for its rows and derivatives
            return scores.sum() * 0
        return self._objective.loss(scores, batch.y, batch.weight) * (size / self.size(batch))

    def _add_gradients(self) -> None:
        """Add up the gradients of all processes in one message; a parameter that none has used keeps none."""
        grads = [parameter.grad for parameter in self._parameters]
        used = [torch.zeros(()) if grad is None else torch.ones(()) for grad in grads]
        flat = [
            (parameter.new_zeros(parameter.numel()) if grad is None else grad.reshape(-1))
            for parameter, grad in zip(self._parameters, grads, strict=True)
        ]
        bucket = torch.cat([*flat, torch.stack(used).to(flat[0])])
        dist.all_reduce(bucket)
        *sums, found = bucket.split([*(one.numel() for one in flat), len(used)])
        for parameter, grad, count in zip(self._parameters, sums, found.tolist(), strict=True):
            parameter.grad = grad.view_as(parameter) if count else None
