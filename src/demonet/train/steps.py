"""The steps of an epoch: one step of Adam on a training batch, and the evaluation of a validation batch.

On a GPU, a step that repeats is captured in a CUDA graph: on a small graph, launching the kernels of an epoch one by
one takes longer than running them.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from demonet.train.config import TrainConfig
from demonet.train.objective import Classify, Objective
from demonet.train.problem import LabelledBatch

WARM_UP = 3  # calls before the capture, in which kernels are compiled and libraries allocate their buffers


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
        """The mean loss of a batch.

        A model may have a method ``loss_on(batch)`` that computes the cross-entropy without the scores of all items, or
        returns None where it cannot: see :meth:`demonet.nn.models.NodeDEMONet.loss_on`.
        """
        loss_on = getattr(self.model, "loss_on", None) if isinstance(self._objective, Classify) else None
        if loss_on is not None and (loss := loss_on(batch)) is not None:
            return loss
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


class Captured:
    """A GPU step without arguments: the first calls run eagerly, the later ones replay a CUDA graph.

    Every call is one step, captured or not, and draws the same random numbers either way. A step that synchronises
    with the GPU (it reads a value back) cannot be captured: it stays eager, and ``waits`` is True after the warm-up.

    Args:
        step: Reads and writes tensors at fixed addresses, and returns one tensor.
        device: The GPU.
    """

    def __init__(self, step: Callable[[], Tensor], device: torch.device) -> None:
        self._step, self._device = step, device
        self._calls, self.waits = 0, False
        self._graph: torch.cuda.CUDAGraph | None = None
        self._out: Tensor | None = None

    def __call__(self) -> Tensor:
        """Run one step; the next call overwrites the result."""
        self._calls += 1
        if self._graph is None and (self._calls <= WARM_UP or self.waits):
            return self._run()
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with _without_garbage_collection(), torch.cuda.device(self._device), torch.cuda.graph(self._graph):
                self._out = self._step()
        self._graph.replay()
        assert self._out is not None
        return self._out

    def _run(self) -> Tensor:
        """Run the step on a side stream, as captures require; the last warm-up checks whether it synchronises."""
        main, side = torch.cuda.current_stream(self._device), torch.cuda.Stream(self._device)
        side.wait_stream(main)
        with torch.cuda.stream(side):
            if self._calls == WARM_UP:
                out, self.waits = _run_and_check(self._step)
            else:
                out = self._step()
        main.wait_stream(side)
        out.record_stream(main)
        return out


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Collect garbage before a capture and not during it: freeing an old graph meanwhile breaks the new one."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _run_and_check(step: Callable[[], Tensor]) -> tuple[Tensor, bool]:
    """The result of a step, and whether it synchronised with the GPU."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            out = step()
        finally:
            torch.cuda.set_sync_debug_mode(before)
    return out, any("synchronizing CUDA operation" in str(warning.message) for warning in caught)
