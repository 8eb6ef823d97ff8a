"""CPU kernels as plain autograd functions, without ``torch.library``; see :func:`demonet.ops.backend.direct`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from demonet.ops import cpu
from demonet.ops.graph import Graph, Options, Weights
from demonet.ops.library import conv_backward_twice, ops


class Conv(torch.autograd.Function):
    """:func:`demonet.ops.conv`."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        a: Tensor | None,
        seed: Tensor,
        matrices: Tensor,
        bias: Tensor | None,
        graph: Graph,
        options: Options,
    ) -> Tensor:
        """The convolution."""
        out, sums = cpu.conv(x, a, Weights(seed, matrices, bias), graph, options)
        ctx.graph, ctx.options = graph, options
        ctx.sums = sums if a is None and options.keep else None  # neither input nor output, so not saved below
        ctx.save_for_backward(out, x, a, seed, matrices)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Its derivatives."""
        out, x, a, seed, matrices = ctx.saved_tensors
        graph, options, needs = ctx.graph, ctx.options, ctx.needs_input_grad[:5]
        grad, weights = grad.contiguous(), Weights(seed, matrices)
        found: Sequence[Tensor | None]
        if torch.is_grad_enabled():
            found = conv_backward_twice(grad, out, x, a, weights, graph, options)
        else:
            sums = ctx.sums if a is None else a
            if sums is None:
                sums = cpu.aggregate(x, graph.pointer, graph.neighbours, None, options.aggr)
            found = cpu.conv_backward(grad, out, x, sums, weights, graph, options, needs, known=a is not None)
        return (*[by if need else None for by, need in zip(found, needs, strict=True)], None, None)


class Grouped(torch.autograd.Function):
    """:func:`demonet.ops.grouped`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrices: Tensor, graph: Graph) -> Tensor:
        """The products."""
        ctx.graph = graph
        ctx.save_for_backward(x, matrices)
        return cpu.group_multiply(x, matrices, graph.blocks, x.new_empty(x.size(0), matrices.size(2)))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Their derivatives."""
        (x, matrices), graph = ctx.saved_tensors, ctx.graph
        by_x = by_matrices = None
        if torch.is_grad_enabled():
            group = torch.arange(matrices.size(0))
            by_x = ops.degree_linear(grad, matrices.transpose(1, 2), graph.offsets, group)
            return by_x, ops.degree_outer(x, grad, graph.offsets, group, matrices.size(0)), None
        if ctx.needs_input_grad[0]:
            by_x = cpu.group_multiply(grad, matrices.transpose(1, 2), graph.blocks, torch.empty_like(x))
        if ctx.needs_input_grad[1]:
            by_matrices = cpu.group_outer(x, grad, graph.blocks, graph.buffers)
        return by_x, by_matrices, None
