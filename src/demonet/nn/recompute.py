"""Layers that keep nothing but their input: what else their derivatives need is computed again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from demonet.degree.keep import on_tape
from demonet.ops import backend


def recomputed(step: Callable[[Any], Tensor], h: Any, norm: nn.Module | None, *, generators: bool) -> Tensor:
    """``step(h)``, computed once more in the backward pass, so that only ``h`` is kept until then.

    The same entries are dropped both times, and running statistics are moved the first time alone. Compiled calls and
    ``torch.func`` compute it once: the compiler decides itself what it keeps.

    Args:
        step: A layer.
        h: Its input.
        norm: What has running statistics, if anything.
        generators: Whether the state of torch's generators is kept as well. Dropout on a CPU and modules of PyTorch
            need it. It cannot be read while a CUDA graph is captured.
    """
    if not torch.is_grad_enabled() or backend.tracing() or backend.mapped():
        return step(h)
    values: list[Any] = []

    def note(make: Callable[[], Any]) -> Any:
        values.append(make())
        return values[-1]

    contexts = on_tape(note), _Again(values, norm)
    options: Any = {"use_reentrant": False, "preserve_rng_state": generators, "context_fn": lambda: contexts}
    out: Tensor = checkpoint(step, h, **options)
    return out


class _Again:
    """Entered whenever the layer is computed again: reads the tape, and gives norms copies of their buffers."""

    def __init__(self, values: list[Any], norm: nn.Module | None) -> None:
        self._values, self._norm, self._stack = values, norm, ExitStack()

    def __enter__(self) -> None:
        values = iter(self._values)
        self._stack.enter_context(on_tape(lambda make: next(values)))
        for part in () if self._norm is None else self._norm.modules():
            buffers = {name: buffer for name, buffer in part._buffers.items() if buffer is not None}
            self._stack.callback(part._buffers.update, buffers)
            part._buffers.update({name: buffer.clone() for name, buffer in buffers.items()})

    def __exit__(self, *error: object) -> None:
        self._stack.close()
