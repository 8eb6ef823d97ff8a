"""Steps that are the same every epoch, captured in a CUDA graph: one launch instead of dozens.

On a small graph an epoch is shorter than the time it takes to start its kernels one by one.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

WARM_UP = 3  # calls before the capture: kernels are compiled and libraries make their buffers in these


class Captured:
    """A step without arguments on a GPU: the first calls run as they are, the later ones replay a CUDA graph.

    Every call is one step, captured or not, and draws the same random numbers either way. A step that waits for the
    GPU (it reads a value back) cannot be captured; it goes on as it is, and after the warm-up ``waits`` says so.

    Args:
        step: Works on tensors that stay where they are, and returns one.
        device: Where.
    """

    def __init__(self, step: Callable[[], Tensor], device: torch.device) -> None:
        self._step, self._device = step, device
        self._calls, self.waits = 0, False
        self._graph: torch.cuda.CUDAGraph | None = None
        self._out: Tensor | None = None

    def __call__(self) -> Tensor:
        """One step; the result is overwritten by the next call."""
        self._calls += 1
        if self._graph is None and (self._calls <= WARM_UP or self.waits):
            return self._run()
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with _undisturbed(), torch.cuda.device(self._device), torch.cuda.graph(self._graph):
                self._out = self._step()
        self._graph.replay()
        assert self._out is not None
        return self._out

    def _run(self) -> Tensor:
        """The step itself, on a stream of its own as captures want it; the last warm-up looks whether it waits."""
        main, side = torch.cuda.current_stream(self._device), torch.cuda.Stream(self._device)
        side.wait_stream(main)
        with torch.cuda.stream(side):
            if self._calls == WARM_UP:
                out, self.waits = _watched(self._step)
            else:
                out = self._step()
        main.wait_stream(side)
        out.record_stream(main)
        return out


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Collect garbage before a capture and not during it: an old graph that is freed meanwhile breaks the new one."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _watched(step: Callable[[], Tensor]) -> tuple[Tensor, bool]:
    """What a step returns, and whether it waited for the GPU."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            out = step()
        finally:
            torch.cuda.set_sync_debug_mode(before)
    return out, any("synchronizing CUDA operation" in str(warning.message) for warning in heard)
