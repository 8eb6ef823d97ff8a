"""One epoch as a call without arguments: forward, cross-entropy over all nodes, backward, one step of Adam.

Eager, compiled (``torch.compile`` of the network), or graphed: the whole epoch captured in one CUDA graph and replayed.
Nothing here knows whose network it is.
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
from demonet.ops.adam import adam

Precision = Literal["float32", "tf32", "bfloat16", "autocast"]
PRECISIONS: tuple[Precision, ...] = ("float32", "tf32", "bfloat16", "autocast")
Mode = Literal["eager", "graphed", "compiled", "compiled+graphed"]
MODES: tuple[Mode, ...] = ("eager", "graphed", "compiled", "compiled+graphed")
WARM_UP = 3


@dataclass(frozen=True, eq=False)
class Built:
    """A network and what it is trained on.

    Attributes:
        model: Called as ``model(*inputs)``; gives scores.
        inputs: Constant from epoch to epoch.
        y: The class of every row, or of ``rows``.
        rows: Which rows of the scores count; all of them where it is None.
        groups: Adam's parameter groups; all parameters without decay where it is None.
        loss: The network's own way from inputs to the loss, where it has one and is not compiled.
    """

    model: nn.Module
    inputs: tuple[Any, ...]
    y: Tensor
    rows: Tensor | None = None
    groups: list[dict[str, Any]] | None = None
    loss: Callable[[], Tensor] | None = None

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self.model.parameters())


@contextlib.contextmanager
def products(precision: Precision) -> Iterator[None]:
    """Inside, float32 products on a GPU are as precise as ``precision`` says; before and after, as the user had it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def wait(device: torch.device) -> None:
    """Until everything that was started on the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(step: Callable[[], Any], epochs: int, device: torch.device) -> float:
    """Seconds of one epoch."""
    wait(device)
    start = time.perf_counter()
    for _ in range(epochs):
        step()
    wait(device)
    return (time.perf_counter() - start) / epochs


def one_line(error: BaseException) -> str:
    """What was raised, short enough for a table."""
    text = " ".join(str(error).split()).partition(" from user code")[0]  # where that stood is nobody's concern
    return (text if isinstance(error, DemonetError) else f"{type(error).__name__}: {text}")[:160]


def training_step(built: Built, mode: Mode = "eager", precision: Precision = "float32") -> Callable[[], Tensor]:
    """A call that trains for one epoch and returns the loss, a tensor that is not waited for.

    Args:
        built: What is trained, and on what.
        mode: How it runs.
        precision: ``"autocast"`` runs forward and loss in bfloat16 over float32 parameters. The others are as the
            network was built, and as :func:`products` has it.

    Raises:
        DemonetError: For a graphed step that is not on a GPU, or that waits for the GPU and so cannot be captured.
    """
    model, inputs, y, rows = built.model, built.inputs, built.y, built.rows
    if precision == "tf32" and y.device.type != "cuda":
        raise DemonetError("tf32 products are a GPU's", hint="use float32 or bfloat16")
    if "graphed" in mode and y.device.type != "cuda":
        raise DemonetError("a CUDA graph needs a CUDA device", hint="use 'eager' or 'compiled'")
    model.train()
    graphed = "graphed" in mode
    groups = built.groups or [{"params": list(model.parameters())}]
    optimizer = adam(groups, 0.001, y.device, capturable=graphed)
    network = torch.compile(model) if "compiled" in mode else model
    # A captured graph would read the casts that autocast keeps after they are gone.
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
    """The step as one CUDA graph, as training has it."""
    # Training keeps checkpoints, and with them comes a library that other modes do without.
    from demonet.train import capture as training

    captured = training.Captured(step, device)
    for _ in range(training.WARM_UP):
        captured()
    if captured.waits:
        raise DemonetError("it waits for the GPU, so it cannot be captured")
    captured()
    return captured
