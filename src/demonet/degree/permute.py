"""Rows in another order, with a derivative that is a permutation too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _plain(x: Tensor, index: Tensor) -> Tensor:
    return x.index_select(0, index)


_select: Callable[[Tensor, Tensor], Tensor] = _plain


def select_by(kernel: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Let a kernel of :mod:`demonet.ops` select rows, in place of ``index_select``."""
    global _select
    _select = kernel


def permuted(x: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
    """``x[index]``, where ``index`` is a permutation.

    The derivative of ``index_select`` adds into zeros, because an index may occur twice. Here it selects again.
    """
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return _plain(x, index)
    if not x.requires_grad:
        return _select(x, index)
    out: Tensor = _Permuted.apply(x, index, inverse)
    return out


class _Permuted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(index, inverse)
        return _select(x, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        index, inverse = ctx.saved_tensors
        return permuted(grad, inverse, index), None, None
