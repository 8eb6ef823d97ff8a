"""Capture a training step that repeats in a CUDA graph: one launch instead of dozens.

On a small graph, launching the kernels of an epoch one by one takes longer than running them.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

WARM_UP = 3  # calls before the capture, in which kernels are compiled and libraries allocate their buffers


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
