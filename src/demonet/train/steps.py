"""What an epoch is made of: a step of Adam on one part, and a look at another."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from demonet.ops.adam import adam
from demonet.train.capture import Captured
from demonet.train.config import TrainConfig
from demonet.train.loss import part_loss
from demonet.train.problem import Part


class Steps:
    """A model and its optimiser on one device; on a GPU, steps that repeat are captured.

    Attributes:
        model: The network.
        optimizer: Adam with the configuration's decay.
        device: Where the labels are.
        generators: The GPUs whose random numbers are used.
    """

    def __init__(self, model: nn.Module, config: TrainConfig, device: torch.device) -> None:
        self.model, self.device = model, device
        self.generators = [device] if device.type == "cuda" else []
        on_gpu = device.type == "cuda"
        self.optimizer = adam(parameter_groups(model, config), config.lr, device, capturable=on_gpu)
        self._captured: dict[str, tuple[Part, Captured]] = {}

    def set_lr(self, lr: float) -> None:
        """The learning rate from now on."""
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr

    def train(self, part: Part) -> float:
        """One step on a part; the loss before it."""
        self.model.train()
        return self._call("train", part, partial(self._train, part)).item()

    def evaluate(self, part: Part) -> tuple[float, float]:
        """Mean cross-entropy and accuracy on a part."""
        self.model.eval()
        loss, accuracy = self._call("evaluate", part, partial(measure, self.model, part)).tolist()
        return loss, accuracy

    def _train(self, part: Part) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = _loss(self.model, part) + getattr(self.model, "auxiliary_loss", 0.0)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def _call(self, name: str, part: Part, step: Any) -> Tensor:
        """Run a step; captured on a GPU, once the same part has come often enough."""
        if self.device.type != "cuda":
            return step()
        if name not in self._captured or self._captured[name][0] is not part:
            self._captured[name] = (part, Captured(step, self.device))
        return self._captured[name][1]()


def _loss(model: nn.Module, part: Part) -> Tensor:
    """Mean cross-entropy of a part.

    A model may have a method ``loss_on(part)`` that computes it without the scores of all items, or returns None where
    it cannot: see :meth:`demonet.nn.models.NodeDEMONet.loss_on`.
    """
    loss_on = getattr(model, "loss_on", None)
    if loss_on is not None and (loss := loss_on(part)) is not None:
        return loss
    return part_loss(model(*part.inputs)[part.rows], part)


@torch.no_grad()
def measure(model: nn.Module, part: Part) -> Tensor:
    """:func:`loss_and_accuracy` of a model on one part."""
    return loss_and_accuracy(model(*part.inputs)[part.rows], part)


def loss_and_accuracy(scores: Tensor, part: Part) -> Tensor:
    """``[2]``: mean cross-entropy and accuracy of scores, both by the items' weights where they have some."""
    right = scores.argmax(1) == part.y
    accuracy = right.double().mean() if part.weight is None else (right * part.weight).sum() / part.weight.sum()
    return torch.stack([part_loss(scores, part).double(), accuracy.double()])


def evaluate(model: nn.Module, part: Part) -> tuple[float, float]:
    """Mean cross-entropy and accuracy on one part, both by the items' weights where they have some."""
    model.eval()
    loss, accuracy = measure(model, part).tolist()
    return loss, accuracy


@torch.no_grad()
def predict(model: nn.Module, part: Part) -> Tensor:
    """Scores of one part's items."""
    model.eval()
    scores: Tensor = model(*part.inputs)[part.rows]
    return scores


def parameter_groups(model: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """Parameters by how they decay: matrices, those of single degrees, and what is not decayed.

    A model may have a method ``degree_parameters()``, as :meth:`demonet.nn.models.DEMONet.degree_parameters`.
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
