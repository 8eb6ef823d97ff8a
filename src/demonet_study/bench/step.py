"""One epoch as a call without arguments: forward, cross-entropy over all nodes, backward, one step of Adam.

Eager, compiled (``torch.compile`` of the network), or graphed: the whole epoch captured in one CUDA graph and replayed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demonet.errors import DemonetError

Precision = Literal["float32", "tf32", "bfloat16", "autocast"]
PRECISIONS: tuple[Precision, ...] = ("float32", "tf32", "bfloat16", "autocast")
Mode = Literal["eager", "graphed", "compiled", "compiled+graphed"]
MODES: tuple[Mode, ...] = ("eager", "graphed", "compiled", "compiled+graphed")
WARM_UP = 3


@dataclass(frozen=True, eq=False)
class Built:
    """A network and its training data."""

    model: nn.Module  # model(*inputs) returns scores
    inputs: tuple[Any, ...]  # the same in every epoch
    y: Tensor  # the class of each row, or of rows
    rows: Tensor | None = None  # the rows of the scores in the loss; all if None
    groups: list[dict[str, Any]] | None = None  # Adam's parameter groups; all parameters without weight decay if None
    loss: Callable[[], Tensor] | None = None  # the network's own computation of the loss, used unless it is compiled

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(parameter.numel() for parameter in self.model.parameters())


@contextlib.contextmanager
def products(precision: Precision) -> Iterator[None]:
    """Set the precision of float32 products on a GPU inside the block."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def wait(device: torch.device) -> None:
    """Wait until the device has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(step: Callable[[], Any], epochs: int, device: torch.device) -> float:
    """Seconds per epoch."""
    wait(device)
    start = time.perf_counter()
    for _ in range(epochs):
        step()
    wait(device)
    return (time.perf_counter() - start) / epochs


def one_line(error: BaseException) -> str:
    """The message of an error, short enough for a table."""
    text = " ".join(str(error).split()).partition(" from user code")[0]
    return (text if isinstance(error, DemonetError) else f"{type(error).__name__}: {text}")[:160]


def training_step(built: Built, mode: Mode = "eager", precision: Precision = "float32") -> Callable[[], Tensor]:
    """A function that trains for one epoch and returns the loss without waiting for the device.

    Args:
        built: The network and its data.
        mode: How it runs.
        precision: ``"autocast"`` runs forward and loss in bfloat16 with float32 parameters. The others are set when the
            network is built, and by :func:`products`.

    Raises:
        DemonetError: If a graphed step is not on a GPU, or waits for the GPU and so cannot be captured.
    """
    model, inputs, y, rows = built.model, built.inputs, built.y, built.rows
    if precision == "tf32" and y.device.type != "cuda":
        raise DemonetError("tf32 needs a GPU", hint="use float32 or bfloat16")
    if "graphed" in mode and y.device.type != "cuda":
        raise DemonetError("a CUDA graph needs a CUDA device", hint="use 'eager' or 'compiled'")
    model.train()
    graphed = "graphed" in mode
    groups = built.groups or [{"params": list(model.parameters())}]
    optimizer = torch.optim.Adam(groups, lr=0.001, fused=True, capturable=graphed)
    network = torch.compile(model) if "compiled" in mode else model
    # A captured graph would read casts from the cache of autocast after they are freed.
    cast = partial(torch.autocast, y.device.type, torch.bfloat16, precision == "autocast", cache_enabled=not graphed)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with cast():
            if built.loss is not None and network is model:
                loss = built.loss()
            else:
                scores = network(*inputs)
                loss = F.cross_entropy(scores if rows is None else scores[rows], y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return capture(step, y.device) if graphed else step


def capture(step: Callable[[], Tensor], device: torch.device) -> Callable[[], Tensor]:
    """The step as one CUDA graph, as in training."""
    # Imported here, because training imports a library for checkpoints that other modes do not need.
    from demonet.train import steps as training

    captured = training.Captured(step, device)
    for _ in range(training.WARM_UP):
        captured()
    if captured.waits:
        raise DemonetError("the step waits for the GPU, so it cannot be captured")
    captured()
    return captured
