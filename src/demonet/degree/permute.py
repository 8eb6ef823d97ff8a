"""Rows in another order, with a derivative that is a permutation too."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def permuted(x: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
    """``x[index]``, where ``index`` is a permutation.

    The derivative of ``index_select`` adds into zeros, because an index may occur twice. Here it selects again.
    """
    plain = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if plain or not x.requires_grad:
        return x.index_select(0, index)
    out: Tensor = _Permuted.apply(x, index, inverse)
    return out


class _Permuted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(index, inverse)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        index, inverse = ctx.saved_tensors
        return permuted(grad, inverse, index), None, None
