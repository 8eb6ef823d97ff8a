"""The convolutions called one by one on a CPU: autograd's own functions around the kernels, without a registry.

``torch.library`` sorts its arguments and looks for their kernel in Python, which takes longer than the whole
convolution of a small graph. Where nobody traces, compiles or maps, its operators and these functions are the same
kernels with the same derivatives, so that may be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from demonet.degree.layout import DegreeLayout
from demonet.ops import cpu, cpu_conv, cpu_groups
from demonet.ops.convolution import conv_twice, gather_conv_twice, ops


def is_eager(*tensors: Tensor) -> bool:
    """Whether these are plain numbers in main memory: nobody traces, compiles or maps over them."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return all(type(tensor) in (Tensor, Parameter) and tensor.device.type == "cpu" for tensor in tensors)


class Conv(torch.autograd.Function):
    """:func:`demonet.ops.conv`: with sums that are known, or that are taken here."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        a: Tensor | None,
        seed: Tensor,
        matrices: Tensor,
        bias: Tensor | None,
        layout: DegreeLayout,
        options: tuple[str, str, str],
        keep: bool,
    ) -> Tensor:
        """The convolution."""
        aggr, combine, activation = options
        sums = cpu.aggregate(x, layout.pointer, layout.neighbours, None, aggr) if a is None else a
        out = cpu_conv.conv(x, sums, seed, matrices, layout.blocks, bias, combine, activation)
        ctx.layout, ctx.options = layout, options
        # Sums that were taken here are nobody's input or output.
        ctx.sums = sums if a is None and keep else None
        ctx.save_for_backward(out, x, a, seed, matrices)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Its derivatives."""
        found: Sequence[Tensor | None]
        if ctx.saved_tensors[2] is not None:
            found = _by_all(ctx, grad.contiguous())
        else:
            by_x, *others = _by_all_but_sums(ctx, grad.contiguous())
            found = (by_x, None, *others)
        return (*[one if need else None for one, need in zip(found, ctx.needs_input_grad, strict=False)], *[None] * 3)


def _by_all(ctx: Any, grad: Tensor) -> Sequence[Tensor]:
    """By x, the sums, the seed map, the matrices, the bias."""
    out, x, a, seed, matrices = ctx.saved_tensors
    layout, (_, combine, activation) = ctx.layout, ctx.options
    if torch.is_grad_enabled():
        return conv_twice(grad, out, x, a, seed, matrices, layout.offsets, combine, activation)
    options = (combine, activation, ctx.needs_input_grad[:5], layout.buffers)
    return cpu_conv.conv_backward(grad, out, x, a, seed, matrices, layout.blocks, *options)


def _by_all_but_sums(ctx: Any, grad: Tensor) -> Sequence[Tensor]:
    """By x, the seed map, the matrices, the bias."""
    out, x, _, seed, matrices = ctx.saved_tensors
    layout, (aggr, combine, activation) = ctx.layout, ctx.options
    options = (aggr, combine, activation)
    if torch.is_grad_enabled():
        lists: Any = (layout.pointer, layout.neighbours, [], layout.back_pointer, layout.back_neighbours, [])
        return gather_conv_twice(grad, out, x, seed, matrices, layout.offsets, *options, lists)
    a = cpu.aggregate(x, layout.pointer, layout.neighbours, None, aggr) if ctx.sums is None else ctx.sums
    back = (layout.pointer, layout.back_pointer, layout.back_neighbours, layout.buffers)
    needs = (ctx.needs_input_grad[0], *ctx.needs_input_grad[2:5])
    return cpu_conv.gather_conv_backward(grad, out, x, a, seed, matrices, layout.blocks, *options, needs, *back)


class Grouped(torch.autograd.Function):
    """Rows times the matrix of their group: :func:`demonet.ops.grouped`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrices: Tensor, layout: DegreeLayout) -> Tensor:
        """The products."""
        ctx.layout = layout
        ctx.save_for_backward(x, matrices)
        return cpu_groups.multiply(x, matrices, layout.blocks, x.new_empty(x.size(0), matrices.size(2)))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Their derivatives."""
        (x, matrices), layout = ctx.saved_tensors, ctx.layout
        by_x = by_matrices = None
        if torch.is_grad_enabled():
            group = torch.arange(matrices.size(0))
            by_x = ops.degree_linear(grad, matrices.transpose(1, 2), layout.offsets, group)
            return by_x, ops.degree_outer(x, grad, layout.offsets, group, matrices.size(0)), None
        if ctx.needs_input_grad[0]:
            by_x = cpu_groups.multiply(grad, matrices.transpose(1, 2), layout.blocks, torch.empty_like(x))
        if ctx.needs_input_grad[1]:
            by_matrices = cpu_groups.outer(x, grad, layout.blocks, layout.buffers)
        return by_x, by_matrices, None
