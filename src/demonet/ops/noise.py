r"""Noise: which entries of the two halves of a convolution dropout sets to zero.

On a CPU the factors are drawn beforehand, as one array (:mod:`demonet.nn.dropout`), which takes less time. On a GPU
they are computed where they are needed, forward and backward, and over processes for the nodes that each has, from a
key of two numbers: entry (v, j) is kept if

.. math:: \mathrm{mix}(\mathrm{mix}(v \oplus k_0) + c \, j + k_1) < (1 - p) \, 2^{32}

in 32-bit integers, where mix is a bijection that makes every input bit change half of the output bits, and c is odd.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from demonet.degree.keep import taped

# The multipliers of mix were found by search, to change output bits evenly; STEP is the golden ratio times 2**32.
FIRST, SECOND, STEP = 0x7FEB352D, 0x846CA68B, 0x9E3779B9
MASK = 2**32 - 1


class Noise(NamedTuple):
    """Factors of the entries of both halves.

    Attributes:
        values: ``[n * (S + W)]`` the factors, first all of the left half; or ``[2]`` int64, the key that they follow
            from.
        p: The probability of zero, used with a key.
        factor: What kept entries are multiplied by, used with factors.
    """

    values: Tensor
    p: float = 0.0
    factor: float = 1.0

    @property
    def is_key(self) -> bool:
        """Whether there is a key instead of factors."""
        return self.values.dtype == torch.int64

    @property
    def scale(self) -> float:
        """What kept entries are multiplied by."""
        return 2**32 / chances(self.p) if self.is_key else self.factor

    def halves(self, rows: int, left: int, right: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """``[n, S]`` and ``[n, W]``: the factors of the halves."""
        if self.is_key:
            both = keyed_factors(self.values, rows, left + right, self.p).to(dtype)
            return both[:, :left], both[:, left:]
        values = self.values.to(dtype)
        return values[: rows * left].view(rows, left), values[rows * left :].view(rows, right)


def apart(noise: Noise | None) -> tuple[Tensor | None, tuple[float, ...]]:
    """The values, for autograd to save, and the rest of a noise: :func:`joined` makes it of both."""
    return (None, ()) if noise is None else (noise.values, noise[1:])


def joined(values: Tensor | None, rest: tuple[float, ...]) -> Noise | None:
    """What :func:`apart` took apart."""
    return None if values is None else Noise(values, *rest)


class RowNoise(NamedTuple):
    """Noise of rows in any order, from a key.

    Attributes:
        key: ``[2]`` int64.
        p: The probability of zero.
        place: ``[n]`` the row of :class:`Noise` that each row is, or None where they are the same.
        left: Columns of the left half; those of the right half follow them.
    """

    key: Tensor
    p: float
    place: Tensor | None
    left: int

    def halves(self, rows: int, right: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """``[n, left]`` and ``[n, right]``: the factors of the halves."""
        place = torch.arange(rows, device=self.key.device) if self.place is None else self.place
        columns = torch.arange(self.left + right, device=self.key.device)
        both = factors_at(self.key, place[:, None], columns, self.p).to(dtype)
        return both[:, : self.left], both[:, self.left :]


def draw_key(device: torch.device) -> Tensor:
    """A new key; drawn on the device, so that a captured step draws another one in every replay."""
    return taped(lambda: torch.randint(0, 2**32, (2,), device=device))


def keyed_factors(key: Tensor, rows: int, columns: int, p: float) -> Tensor:
    """``[rows, columns]`` float32: the factors that follow from a key; also what the kernels compute."""
    return factors_at(key, torch.arange(rows, device=key.device)[:, None], torch.arange(columns, device=key.device), p)


def factors_at(key: Tensor, row: Tensor, column: Tensor, p: float) -> Tensor:
    """The same for the entries at some rows and columns, whose shapes are broadcast."""
    kept = chances(p)
    bits = mix((mix(row ^ key[0]) + STEP * column + key[1]) & MASK)
    return (bits < kept).float() * (2**32 / kept)


def chances(p: float) -> int:
    """How many of the 2**32 values keep an entry."""
    return min(max(round((1 - p) * 2**32), 1), MASK)


def mix(bits: Tensor) -> Tensor:
    """A bijection of 32-bit integers, computed in 64 bits."""
    bits = ((bits ^ (bits >> 16)) * FIRST) & MASK
    bits = ((bits ^ (bits >> 15)) * SECOND) & MASK
    return bits ^ (bits >> 16)
