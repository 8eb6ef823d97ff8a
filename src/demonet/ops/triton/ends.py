"""What follows the sums of a convolution, inside the kernel that makes them: splines, dropout, bias, activation."""

from __future__ import annotations

from typing import Any, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from demonet.ops.noise import RowNoise, chances
from demonet.ops.scale import Splines
from demonet.ops.triton.blocks import ACTIVATIONS
from demonet.ops.triton.drop import drop


@triton.jit
def activate(y, ACTIVATION: tl.constexpr):
    """ELU, ReLU or nothing."""
    if ACTIVATION == 1:
        return tl.where(y > 0, y, tl.exp(tl.minimum(y, 0.0)) - 1.0)
    if ACTIVATION == 2:
        return tl.maximum(y, 0.0)
    return y


@triton.jit
def times_slope(g, y, ACTIVATION: tl.constexpr):
    """A gradient before the activation, from the one after it; the slopes follow from the output ``y``."""
    if ACTIVATION == 1:
        return tl.where(y > 0, g, g * (y + 1.0))
    if ACTIVATION == 2:
        return tl.where(y > 0, g, 0.0)
    return g


@triton.jit
def scaled(
    rows,
    row,
    inside,
    f,
    F,
    basis,
    gamma,
    beta,
    bias,
    own,
    key,
    place,
    LEFT,
    SPLINES: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_OWN: tl.constexpr,
    KEPT: tl.constexpr,
    HAS_PLACE: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """:func:`demonet.ops.scale.definition` of a tile; its rows are at ``row [BM]``, its columns are ``f [BF]``."""
    total = rows
    for k in tl.static_range(SPLINES):
        b = tl.load(basis + row * SPLINES + k, mask=inside, other=0).to(tl.float32)
        scale = tl.load(gamma + k * F + f, mask=f < F, other=0).to(tl.float32)
        shift = tl.load(beta + k * F + f, mask=f < F, other=0).to(tl.float32)
        total += b[:, None] * (scale[None, :] * rows + shift[None, :])
    at = drop_row(place, row, inside, HAS_PLACE)
    total = drop(total, key, at, LEFT + f, KEPT)
    if HAS_BIAS:
        total += tl.load(bias + f, mask=f < F, other=0).to(tl.float32)[None, :]
    if HAS_OWN:
        mask = inside[:, None] & (f < F)[None, :]
        seed = tl.load(own + row[:, None] * F + f[None, :], mask=mask, other=0).to(tl.float32)
        total += drop(seed, key, at, f, KEPT)
    return activate(total, ACTIVATION)


@triton.jit
def drop_row(place, row, inside, HAS_PLACE: tl.constexpr):
    """The rows that dropout counts by: those in degree order."""
    found = row
    if HAS_PLACE:
        found = tl.load(place + row, mask=inside, other=0)
    return found


class End(NamedTuple):
    """The arguments of :func:`scaled`, as kernels take them.

    Attributes:
        tensors: Where the rows before it are kept; splines, bias, own rows, key and places; None for what is not given.
        left: As in :class:`~demonet.ops.noise.RowNoise`.
        constants: Which of them there are, and the activation.
    """

    tensors: tuple[Tensor | None, ...] = (None,) * 8
    left: int = 0
    constants: dict[str, Any] = {  # noqa: RUF012
        **dict.fromkeys(("HAS_Y", "HAS_BIAS", "HAS_OWN", "HAS_PLACE"), False),
        **dict.fromkeys(("SPLINES", "KEPT", "ACTIVATION"), 0),
    }

    @classmethod
    def of(
        cls,
        y: Tensor | None,
        splines: Splines,
        bias: Tensor | None,
        own: Tensor | None,
        noise: RowNoise | None,
        activation: str,
    ) -> End:
        """Read from what the operators take; ``y`` is where the rows before the end are kept."""
        key, place = (None, None) if noise is None else (noise.key, noise.place)
        constants = {
            "HAS_Y": y is not None,
            "HAS_BIAS": bias is not None,
            "HAS_OWN": own is not None,
            "HAS_PLACE": place is not None,
            "SPLINES": splines.basis.size(1),
            "KEPT": 0 if noise is None else chances(noise.p),
            "ACTIVATION": ACTIVATIONS[activation],
        }
        return cls((y, *splines, bias, own, key, place), 0 if noise is None else noise.left, constants)


NOTHING = End()
