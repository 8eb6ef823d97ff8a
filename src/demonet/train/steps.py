"""The steps of an epoch: one step of Adam on a training batch, and the evaluation of a validation batch."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from demonet.train.capture import Captured
from demonet.train.config import TrainConfig
from demonet.train.objective import Classify, Objective
from demonet.train.problem import LabelledBatch


class Steps:
    """A model and its optimizer on one device; on a GPU, steps that repeat are captured in CUDA graphs.

    Attributes:
        model: The network.
        optimizer: Adam with the weight decay of the configuration.
        device: The device of the targets.
        generators: The GPUs whose random number generators are used.
    """

    def __init__(self, model: nn.Module, config: TrainConfig, device: torch.device, objective: Objective) -> None:
        self.model, self.device, self._objective = model, device, objective
        on_gpu = device.type == "cuda"
        self.generators = [device] if on_gpu else []
        rate = torch.tensor(config.lr, device=device) if on_gpu else config.lr  # a captured step reads a tensor anew
        groups = parameter_groups(model, config)
        self.optimizer = torch.optim.Adam(groups, lr=rate, fused=True, capturable=on_gpu)
        self._captured: dict[str, tuple[LabelledBatch, Captured]] = {}

    def set_lr(self, lr: float) -> None:
        """Set the learning rate."""
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr

    def size(self, batch: LabelledBatch) -> float:
        """How much a batch counts in the mean over an epoch."""
        return self._objective.size(batch.y, batch.weight) if batch.size is None else batch.size

    def train(self, batch: LabelledBatch) -> float:
        """One optimizer step; returns the loss before it."""
        self.model.train()
        return self._call("train", batch, partial(self._train, batch)).item()

    def evaluate(self, batch: LabelledBatch) -> tuple[float, float]:
        """Loss and metric of a batch. Metrics that need scikit-learn are computed outside the captured step."""
        self.model.eval()
        if self._objective.measures_on_device:
            measured = self._call("evaluate", batch, partial(measure, self.model, batch, self._objective))
        else:
            scores = self._call("evaluate", batch, partial(predict, self.model, batch))
            measured = self._objective.measure(scores, batch.y, batch.weight)
        loss, metric = measured.tolist()
        return loss, metric

    def _train(self, batch: LabelledBatch) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._loss(batch) + getattr(self.model, "auxiliary_loss", 0.0)
        loss.backward()
        self._add_gradients()
        self.optimizer.step()
        return loss.detach()

    def _loss(self, batch: LabelledBatch) -> Tensor:
        """The mean loss of a batch."""
        if isinstance(self._objective, Classify):
            return _loss(self.model, batch)
        return self._objective.loss(self.model(*batch.inputs)[batch.rows], batch.y, batch.weight)

    def _add_gradients(self) -> None:
        """Over processes, add up the gradients of all of them."""

    def _call(self, name: str, batch: LabelledBatch, step: Any) -> Tensor:
        """Run a step; on a GPU it is captured once the same batch has come often enough."""
        if self.device.type != "cuda":
            return step()
        if name not in self._captured or self._captured[name][0] is not batch:
            self._captured[name] = (batch, Captured(step, self.device))
        return self._captured[name][1]()


def _loss(model: nn.Module, batch: LabelledBatch) -> Tensor:
    """Mean cross-entropy of a batch.

    A model may have a method ``loss_on(batch)`` that computes it without the scores of all items, or returns None where
    it cannot: see :meth:`demonet.nn.models.NodeDEMONet.loss_on`.
    """
    loss_on = getattr(model, "loss_on", None)
    if loss_on is not None and (loss := loss_on(batch)) is not None:
        return loss
    return Classify().loss(model(*batch.inputs)[batch.rows], batch.y, batch.weight)


@torch.no_grad()
def measure(model: nn.Module, batch: LabelledBatch, objective: Objective) -> Tensor:
    """``[2]`` loss and metric of a batch; the model stays in its present mode."""
    return objective.measure(model(*batch.inputs)[batch.rows], batch.y, batch.weight)


def evaluate(model: nn.Module, batch: LabelledBatch, objective: Objective | None = None) -> tuple[float, float]:
    """Loss (by the weights of its items) and metric of a batch: cross-entropy and accuracy if no objective is given."""
    model.eval()
    loss, metric = measure(model, batch, objective or Classify()).tolist()
    return loss, metric


@torch.no_grad()
def predict(model: nn.Module, batch: LabelledBatch) -> Tensor:
    """Scores of the items of a batch."""
    model.eval()
    scores: Tensor = model(*batch.inputs)[batch.rows]
    return scores


def parameter_groups(model: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """Parameters by how they decay: matrices, those of single degrees, and what is not decayed.

    A model may have a method ``degree_parameters()``, as :meth:`demonet.nn.models.DegreeNetwork.degree_parameters`.
    """
    groups: dict[float, list[nn.Parameter]] = {}
    of_degrees = {id(parameter) for parameter in getattr(model, "degree_parameters", list)()}
    for parameter in model.parameters():
        decay = config.weight_decay
        if parameter.dim() < 2 and not config.decay_biases:
            decay = 0.0
        elif id(parameter) in of_degrees:
            decay *= config.degree_decay
        groups.setdefault(decay, []).append(parameter)
    return [{"params": parameters, "weight_decay": decay} for decay, parameters in groups.items()]
