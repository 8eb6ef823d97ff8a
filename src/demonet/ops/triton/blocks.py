"""What all kernels share: how they start, codes of the activations, products and their precision, the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime import driver
from triton.runtime.jit import JITFunction

ACTIVATIONS = {"none": 0, "elu": 1, "relu": 2}


def precision(dtype: torch.dtype) -> str:
    """Precision of products: float32 as three TF32 products, as precise as plain float32.

    16-bit operands are exact in the matrix units.
    """
    return "tf32x3" if dtype == torch.float32 else "ieee"


@triton.jit
def split(y, PRECISION: tl.constexpr):
    """A TF32 number and the rest, for three TF32 products; otherwise the operand itself, twice."""
    high = y
    low = y
    if PRECISION == "tf32x3":
        # Rounded, not cut off: the product of both rests, which is left out, is a quarter of what it would be.
        high = ((y.to(tl.uint32, bitcast=True) + 0x1000) & 0xFFFFE000).to(tl.float32, bitcast=True)
        low = tl.where(high == y, 0.0, y - high)  # infinity has no rest
    return high, low


@triton.jit
def add_product(total, left_high, left_low, high, low, PRECISION: tl.constexpr):
    """``total`` plus the product of two operands that were :func:`split`, small terms first."""
    if PRECISION == "tf32x3":
        total = tl.dot(left_low, high, total, input_precision="tf32")
        total = tl.dot(left_high, low, total, input_precision="tf32")
        total = tl.dot(left_high, high, total, input_precision="tf32")
    else:
        total = tl.dot(left_high, high, total, input_precision=PRECISION)
    return total


@triton.jit
def product(y, high, low, PRECISION: tl.constexpr):
    """Rows times a matrix that was :func:`split` once for many of them: that takes as long as a product."""
    own_high, own_low = split(y, PRECISION)
    return add_product(tl.zeros([y.shape[0], high.shape[1]], tl.float32), own_high, own_low, high, low, PRECISION)


_HERE = nullcontext()


def on_device(x: Tensor) -> AbstractContextManager[object]:
    """Make the device of ``x`` current: Triton starts kernels there."""
    return _HERE if not x.is_cuda or x.device.index == torch.cuda.current_device() else torch.cuda.device(x.device)


class Kernel:
    """A kernel of Triton, which is started as its own are, ``kernel[grid](...)``, but faster.

    Triton finds the compiled form in Python, in every call, by all arguments; with small graphs, this takes longer than
    the kernel. Here the form is kept by what it depends on.

    Args:
        function: The kernel.
        options: Of ``triton.jit``.
    """

    def __init__(self, function: Callable[..., None], options: dict[str, Any]) -> None:
        self._function = triton.jit(function, **options)
        self._names = list(self._function.arg_names)
        self._known: dict[tuple[object, ...], Any] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return partial(self._start, grid)

    def _start(self, grid: tuple[int, ...], *given: Any, **named: Any) -> None:
        if not isinstance(self._function, JITFunction):  # interpreted
            self._function[grid](*given, **named)
            return
        device = torch.cuda.current_device() if torch.cuda.is_initialized() else None
        key = (device, *map(_form, given), *named, *map(_form_of_named, named.values()))
        compiled, hook = self._known.get(key), triton.knobs.runtime.launch_enter_hook
        if compiled is None or getattr(hook, "calls", hook):  # a profiler counts starts
            self._known[key] = self._function[grid](*given, **named)
            return
        across = (*grid, 1, 1)[:3]
        stream = driver.active.get_current_stream(device)
        rest = [named[name] for name in self._names[len(given) :]]
        compiled.run(*across, stream, compiled.function, compiled.packed_metadata, None, None, None, *given, *rest)


def _form(given: Any) -> object:
    """What Triton compiles a kernel for: a dtype and whether the address is a multiple of 16; the same of numbers."""
    if isinstance(given, Tensor):
        return given.dtype if given.data_ptr() % 16 == 0 else (given.dtype,)
    return given if given is None else (given == 1, given % 16 == 0, given >= 2**31)


def _form_of_named(given: Any) -> object:
    return _form(given) if isinstance(given, Tensor) else given


def kernel(*, do_not_specialize: Sequence[str] = ()) -> Callable[[Callable[..., None]], Kernel]:
    """Make a function a :class:`Kernel`."""
    return lambda function: Kernel(function, {"do_not_specialize": do_not_specialize})
