"""Dropout: drawn faster than torch's on a CPU, and with noise that a caller may bring along."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demonet.degree.buffers import Buffers


def draw_noise(size: int, p: float, dtype: torch.dtype, generator: torch.Generator | None = None) -> Tensor:
    """``[size]`` factors 0 (with probability p) or ``1 / (1 - p)``, in main memory.

    A random number costs more than what is done with it here. So each is cut into four of 16 bits, and p is rounded to
    a multiple of 2**-16; ``F.dropout`` draws a number for every factor.
    """
    words = torch.empty(_words(size), dtype=torch.int64)
    return _stays(_fill(words, generator)[:size], p) * _factor(p, dtype)


def draw_apart(
    rows: int, halves: list[tuple[int, int]], p: float, like: Tensor, source: Tensor, buffers: Buffers
) -> list[Tensor]:
    """The factors of all layers for rows that stand apart, drawn at once: for each, those of its left half come first.

    Args:
        rows: How many rows there are.
        halves: How many columns the halves of each layer have.
        p: The probability.
        like: Of the type of the factors.
        source: The row at each place.
        buffers: Memory.
    """
    widths = [width for pair in halves for width in pair]
    size, places = rows * sum(widths), source.numel()
    sizes = [rows * (left + right) for left, right in halves]
    words = [_words(size) for size in sizes]
    bits = _fill(buffers.empty((sum(words),), source))
    if bits.numel() > size:  # a layer drawn by itself begins with a number of its own
        layers = bits.split([4 * count for count in words])
        bits = torch.cat([layer[:size] for layer, size in zip(layers, sizes, strict=True)])
    noise = torch.mul(_stays(bits, p), _factor(p, like.dtype), out=buffers.empty((size,), like))
    if len(set(widths)) == 1:
        apart = buffers.empty((len(widths), places, widths[0]), like)
        torch.index_select(noise.view(len(widths), rows, -1), 1, source, out=apart)
        return list(apart.view(len(halves), -1))
    parts = [part.view(rows, -1).index_select(0, source) for part in noise.split([rows * width for width in widths])]
    return [torch.cat([left.view(-1), right.view(-1)]) for left, right in zip(parts[::2], parts[1::2], strict=True)]


def _words(size: int) -> int:
    """How many numbers of 64 bits hold so many of 16."""
    return -(-size // 4)


def _fill(words: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Random numbers of 16 bits, four in every word."""
    return words.random_(-(2**63), None, generator=generator).view(torch.int16)


def _stays(bits: Tensor, p: float) -> Tensor:
    """Which entries stay, by 16 random bits each."""
    return bits <= _chances(p) - 2**15 - 1


def _factor(p: float, dtype: torch.dtype) -> Tensor:
    return torch.ones((), dtype=dtype).mul_(2**16 / _chances(p))


def _chances(p: float) -> int:
    """Of 2**16 numbers, how many mean that an entry stays."""
    return max(round((1 - p) * 2**16), 1)


class Dropout(nn.Module):
    """Dropout with probability ``p`` while training.

    Attributes:
        noise: The factors to use, as :func:`draw_noise` gives them, or None to draw new ones every time. Many runs that
            train at once bring each run's own.
    """

    noise: Tensor | None

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.register_buffer("noise", None, persistent=False)

    @property
    def acts(self) -> bool:
        """Whether anything is dropped now."""
        return self.training and self.p > 0

    def forward(self, x: Tensor) -> Tensor:
        """Drop entries of x."""
        if not self.acts:
            return x
        return x * self._draw(x, x.numel()).view(x.shape) if self._here(x) else F.dropout(x, self.p)

    def halves(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Drop entries of both halves of a layer."""
        if not self.acts or not self._here(left):
            return self(left), self(right)
        noise = self._draw(left, left.numel() + right.numel())
        return left * noise[: left.numel()].view(left.shape), right * noise[left.numel() :].view(right.shape)

    def beside(self, both: Tensor, split: int) -> Tensor:
        """Drop entries of halves that stand side by side, with the factors that :meth:`halves` would use."""
        if not self.acts or not self._here(both):
            return self(both)
        rows = both.size(0)
        noise = self._draw(both, both.numel())
        return both * torch.cat([noise[: rows * split].view(rows, -1), noise[rows * split :].view(rows, -1)], 1)

    def _here(self, x: Tensor) -> bool:
        """Whether the factors are brought along or drawn here, not inside a kernel of torch."""
        return self.noise is not None or (x.device.type == "cpu" and not torch.compiler.is_compiling())

    def _draw(self, x: Tensor, size: int) -> Tensor:
        return draw_noise(size, self.p, x.dtype) if self.noise is None else self.noise

    def extra_repr(self) -> str:
        """What print shows."""
        return f"p={self.p}"
