r"""Hash kernel (Eq. 8 and 9): signed hash maps :math:`\phi^{\xi_1, \xi_2}` that need no table.

:math:`\xi_1` and :math:`\xi_2` are computed from (seed, key, column) by integer mixing, so that every degree, seen in
training or not, has its own functions, the same in every process and on every device.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.ops import backend
from demonet.ops.library import library, ops

SHARED_KEY = -1  # the key of phi_g; degrees and buckets are keys from 0 on


def mix(x: Tensor) -> Tensor:
    """The finaliser of splitmix64: every output bit depends on every input bit. Products wrap around on purpose."""
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


def hash_functions(key: Tensor, column: Tensor, *, seed: int, size: int) -> tuple[Tensor, Tensor]:
    r""":math:`\xi_1(j) \in \{0..H-1\}` and :math:`\xi_2(j) = \pm 1` (int64) for broadcastable keys and columns."""
    return mixed(key, column, seed, size) if backend.onnx() else ops.hash_functions(key, column, seed, size)


def mixed(key: Tensor, column: Tensor, seed: int, size: int) -> tuple[Tensor, Tensor]:
    """What the operator computes: (seed, key, column) mixed into 64 bits, of which some are the place, one the sign."""
    stream = mix(torch.full_like(key, seed) + 0x1E3779B97F4A7C15)
    bits = mix(mix(stream ^ (key * 0x2545F4914F6CDD1D)) + column * 0x1E3779B97F4A7C15)
    return ((bits >> 20) & 0xFFFFFFFFFF) % size, (bits & 1) * 2 - 1


# An operator of its own, so that ``torch.compile`` leaves it alone: its code for such integers is wrong on a CPU.
library.define("hash_functions(Tensor key, Tensor column, int seed, int size) -> (Tensor, Tensor)")
library.impl("hash_functions", mixed, "CompositeExplicitAutograd")


@torch.library.register_fake("demonet::hash_functions", lib=library)
def _(key: Tensor, column: Tensor, seed: int, size: int) -> tuple[Tensor, Tensor]:
    shape = torch.broadcast_shapes(key.shape, column.shape)
    return key.new_empty(shape), key.new_empty(shape)


def hash_map(x: Tensor, xi1: Tensor, xi2: Tensor, size: int) -> Tensor:
    r"""Eq. 8: :math:`\phi_i(x) = \sum_{j : \xi_1(j) = i} \xi_2(j) x_j`.

    Args:
        x: ``[n, F]``.
        xi1, xi2: ``[F]``, or ``[n, F]`` for functions of each row's own.
        size: ``H``, the length of the hashed vectors.
    """
    signed = x * xi2.to(x.dtype)
    if xi1.dim() == 1 and x.is_cuda:
        return signed @ F.one_hot(xi1, size).to(x.dtype)
    out = x.new_zeros(x.size(0), size)
    if xi1.dim() == 1:
        return out.index_add(1, xi1, signed)
    if x.is_cuda:  # sorts what it adds up, where scatter_add has another order every time
        row = torch.arange(x.size(0), device=x.device)[:, None]
        return out.index_put((row, xi1), signed, accumulate=True)
    return out.scatter_add(1, xi1, signed)
