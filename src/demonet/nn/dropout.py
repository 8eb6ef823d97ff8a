"""Dropout, drawn faster than ``torch.nn.functional.dropout``: see :mod:`demonet.ops.noise`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demonet.ops import backend, reference
from demonet.ops.library import kernel_of, library, ops
from demonet.ops.noise import Noise, apart, chances, draw_key, joined
from demonet.ops.schedule.cpu import Buffers


def draw_noise(
    size: int, p: float, dtype: torch.dtype, generator: torch.Generator | None = None, buffers: Buffers | None = None
) -> Tensor:
    """``[size]`` factors 0 (with probability p) or ``1 / (1 - p)``, in main memory, or in that of ``buffers``.

    Drawing a random number is the expensive part. So each number of 64 bits serves four factors, and p is rounded to a
    multiple of 2**-16; ``F.dropout`` draws a number per factor.
    """
    buffers = buffers or Buffers()
    words = buffers.empty((_words(size),), torch.empty(0, dtype=torch.int64))
    return _factors(_fill(words, generator)[:size], p, buffers.empty((size,), torch.empty(0, dtype=dtype)))


# In a compiled graph an operator draws, so that the numbers are the same as without compiling. It takes what is
# dropped, so that the layers draw one after another.
library.define("dropout_noise(Tensor like, SymInt size, float p) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
library.impl("dropout_noise", lambda like, size, p: draw_noise(size, p, like.dtype), "CompositeExplicitAutograd")
torch.library.register_fake("demonet::dropout_noise", lambda like, size, p: like.new_empty(size), lib=library)


def _words(size: int) -> int:
    """Number of 64-bit words that hold so many 16-bit numbers."""
    return -(-size // 4)


def _fill(words: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Random 16-bit numbers, four per word."""
    return words.random_(-(2**63), None, generator=generator).view(torch.int16)


def _factors(bits: Tensor, p: float, out: Tensor) -> Tensor:
    """The factors that 16 random bits each stand for; compared straight into floats, three times as fast as by bool."""
    return torch.le(bits, _chances(p) - 2**15 - 1, out=out).mul_(2**16 / _chances(p))


def _chances(p: float) -> int:
    """How many of the 2**16 values keep an entry."""
    return max(round((1 - p) * 2**16), 1)


class _Drop(torch.autograd.Function):
    """Rows times the factors of a key, which are computed again for the derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, noise: Noise) -> Tensor:
        values, ctx.noise = apart(noise)
        ctx.save_for_backward(values)
        dropped: Tensor = kernel_of("dropout", x)(x, noise)
        return dropped

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (values,) = ctx.saved_tensors
        return _Drop.apply(grad, joined(values, ctx.noise)), None


class Dropout(nn.Module):
    """Dropout with probability ``p`` while training.

    Attributes:
        p: The probability.
        source: Gives ``[size]`` factors in place of the random number generator, for a size, a probability and a tensor
            of their dtype; or None.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p, self._memory = p, Buffers()
        self.source: Callable[[int, float, Tensor], Tensor] | None = None

    @property
    def active(self) -> bool:
        """Whether entries are dropped now."""
        return self.training and self.p > 0

    def forward(self, x: Tensor) -> Tensor:
        """Drop entries of x."""
        if not self.active:
            return x
        if backend.exporting() or backend.mapped():
            return F.dropout(x, self.p)
        rows = x if x.dim() == 2 else x.reshape(-1, 1)
        noise = self.noise(rows.size(0), (rows.size(1), 0), x)
        keyed = noise.is_key and backend.eager(x)
        out: Tensor = _Drop.apply(rows, noise) if keyed else reference.dropped(rows, rows[:, :0], noise)[0]
        return out.view(x.shape)

    def noise(self, rows: int, widths: tuple[int, int], like: Tensor) -> Noise:
        """What the two halves of a layer are multiplied by: factors on a CPU, otherwise the key of them."""
        size = rows * sum(widths)
        if self.source is not None:
            return Noise(self.source(size, self.p, like), self.p, 2**32 / chances(self.p))
        if backend.family(like) == "triton" or like.device.type != "cpu":
            return Noise(draw_key(like.device), self.p)
        if backend.tracing():
            return Noise(ops.dropout_noise(like.detach(), size, self.p), self.p)
        noise = draw_noise(size, self.p, like.dtype, buffers=self._memory)
        return Noise(noise, self.p, 2**16 / _chances(self.p))

    def halves(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Drop entries of both halves of a layer."""
        if not self.active or backend.exporting() or backend.mapped():
            return self(left), self(right)
        return reference.dropped(left, right, self.noise(left.size(0), (left.size(1), right.size(1)), left))

    def extra_repr(self) -> str:
        """Arguments shown by ``print``."""
        return f"p={self.p}"
