"""Whole convolutions as operators: Eq. 5 with its sums, products, bias and activation in one call, and a fused head.

What they compute is written in :mod:`demonet.ops.reference`; they exist because a kernel that does all of it moves far
fewer bytes. A derivative of their derivatives is made of the smaller operators.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from demonet.degree.blocks import cut_blocks
from demonet.ops import cpu_conv, cpu_head, cuda, reference
from demonet.ops.dispatch import library, ops

__all__ = ["ops"]

_ROWS = "Tensor x, Tensor a, Tensor seed, Tensor matrices, Tensor offsets"
_SHAPE = "str combine, str activation"
_LISTS = "Tensor pointer, Tensor neighbours, Tensor[] tiles, Tensor[] groups"
_BACK = "Tensor back_pointer, Tensor back_neighbours, Tensor[] back_tiles"
library.define(f"conv({_ROWS}, Tensor? bias, {_SHAPE}, Tensor[] groups) -> Tensor")
library.define(f"conv_backward(Tensor grad, Tensor out, {_ROWS}, {_SHAPE}, bool[] needs, Tensor[] groups) -> Tensor[]")
library.define(
    "gather_conv(Tensor x, Tensor seed, Tensor matrices, Tensor offsets, Tensor? bias, str aggr, "
    f"{_SHAPE}, bool keep, {_LISTS}, {_BACK}) -> (Tensor, Tensor)"
)
library.define(
    f"gather_conv_backward(Tensor grad, Tensor out, {_ROWS}, str aggr, {_SHAPE}, bool[] needs, {_LISTS}, {_BACK}) "
    "-> Tensor[]"
)
_HEAD = "Tensor h, Tensor weight, Tensor bias, Tensor target, Tensor share"
library.define(f"linear_cross_entropy({_HEAD}) -> Tensor")
library.define(f"linear_cross_entropy_backward(Tensor grad, {_HEAD}) -> (Tensor, Tensor, Tensor)")

# ---------------------------------------------------------------------------------------------------------- kernels


def _conv(*args: Any) -> Tensor:
    return reference.conv(*args[:-1])


def _conv_cpu(*args: Any) -> Tensor:
    x, a, seed, matrices, offsets, bias, combine, activation, _ = args
    return cpu_conv.conv(x, a, seed, matrices, cut_blocks(offsets), bias, combine, activation)


def _conv_backward(*args: Any) -> list[Tensor]:
    return list(reference.conv_backward(*args[:-2]))


def _conv_backward_cpu(*args: Any) -> list[Tensor]:
    grad, out, x, a, seed, matrices, offsets, combine, activation, needs, _ = args
    return cpu_conv.conv_backward(grad, out, x, a, seed, matrices, cut_blocks(offsets), combine, activation, needs)


def _gather_conv(*args: Any) -> tuple[Tensor, Tensor]:
    x, seed, matrices, offsets, bias, aggr, combine, activation, keep, pointer, neighbours, *_ = args
    a = ops.aggregate(x, pointer, neighbours, None, aggr, None, None, None, [], [])
    out = ops.conv(x, a, seed, matrices, offsets, bias, combine, activation, [])
    return out, a if keep else x.new_empty(0, x.size(1))


def _gather_conv_backward(*args: Any) -> list[Tensor]:
    pointer, *_, back_pointer, back_neighbours, _back_tiles = args[11:]

    def back(z: Tensor) -> Tensor:
        return reference.aggregate(z, back_pointer, back_neighbours, None, "sum")

    return list(reference.gather_conv_backward(*_with_sums(args)[:10], pointer, back))  # type: ignore[call-arg]


def _gather_conv_backward_cpu(*args: Any) -> list[Tensor]:
    grad, out, x, a, seed, matrices, offsets, aggr, combine, activation, needs, *lists = _with_sums(args)
    around = (lists[0], *lists[4:6])
    options = (aggr, combine, activation, needs)
    return cpu_conv.gather_conv_backward(grad, out, x, a, seed, matrices, cut_blocks(offsets), *options, *around)


def _with_sums(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a derivative, with the sums over the lists taken once more if they were not kept."""
    x, a, aggr, pointer, neighbours = args[2], args[3], args[7], args[11], args[12]
    if a.size(0) != x.size(0):
        a = ops.aggregate(x, pointer, neighbours, None, aggr, None, None, None, [], [])
    return (*args[:3], a, *args[4:])


library.impl("conv", _conv, "CompositeExplicitAutograd")
library.impl("conv", _conv_cpu, "CPU")
library.impl("conv", cuda.conv, "CUDA")
library.impl("conv_backward", _conv_backward, "CompositeExplicitAutograd")
library.impl("conv_backward", _conv_backward_cpu, "CPU")
library.impl("conv_backward", cuda.conv_backward, "CUDA")
library.impl("gather_conv", _gather_conv, "CompositeExplicitAutograd")
library.impl("gather_conv", cuda.gather_conv, "CUDA")
library.impl("gather_conv_backward", _gather_conv_backward, "CompositeExplicitAutograd")
library.impl("gather_conv_backward", _gather_conv_backward_cpu, "CPU")
library.impl("gather_conv_backward", cuda.gather_conv_backward, "CUDA")
library.impl("linear_cross_entropy", reference.linear_cross_entropy, "CompositeExplicitAutograd")
library.impl("linear_cross_entropy", cpu_head.linear_cross_entropy, "CPU")
library.impl("linear_cross_entropy", cuda.linear_cross_entropy, "CUDA")
library.impl("linear_cross_entropy_backward", reference.linear_cross_entropy_backward, "CompositeExplicitAutograd")
library.impl("linear_cross_entropy_backward", cpu_head.linear_cross_entropy_backward, "CPU")
library.impl("linear_cross_entropy_backward", cuda.linear_cross_entropy_backward, "CUDA")

# ----------------------------------------------------------------------------------------------- shapes for tracing


@torch.library.register_fake("demonet::conv", lib=library)
def _(
    x: Tensor, a: Tensor, seed: Tensor, matrices: Tensor, offsets: Tensor, bias: Any, combine: str, *_: Any
) -> Tensor:
    return x.new_empty(x.size(0), matrices.size(2) + (0 if combine == "add" else seed.size(1)))


def _fake_gradients(needs: list[bool], *tensors: Tensor) -> list[Tensor]:
    return [t.new_empty(t.shape if need else 0) for t, need in zip(tensors, needs, strict=True)]


@torch.library.register_fake("demonet::conv_backward", lib=library)
def _(grad: Tensor, out: Tensor, x: Tensor, a: Tensor, seed: Tensor, matrices: Tensor, *rest: Any) -> list[Tensor]:
    return _fake_gradients(rest[3], x, a, seed, matrices, grad.new_empty(grad.size(1)))


@torch.library.register_fake("demonet::gather_conv", lib=library)
def _(
    x: Tensor, seed: Tensor, matrices: Tensor, offsets: Tensor, bias: Any, aggr: str, combine: str, *rest: Any
) -> tuple[Tensor, Tensor]:
    _activation, keep, *_ = rest
    width = matrices.size(2) + (0 if combine == "add" else seed.size(1))
    return x.new_empty(x.size(0), width), x.new_empty(x.size(0) if keep else 0, x.size(1))


@torch.library.register_fake("demonet::gather_conv_backward", lib=library)
def _(grad: Tensor, out: Tensor, x: Tensor, a: Tensor, seed: Tensor, matrices: Tensor, *rest: Any) -> list[Tensor]:
    return _fake_gradients(rest[4], x, seed, matrices, grad.new_empty(grad.size(1)))


@torch.library.register_fake("demonet::linear_cross_entropy", lib=library)
def _(h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
    return h.new_empty((), dtype=torch.promote_types(h.dtype, torch.float32))


@torch.library.register_fake("demonet::linear_cross_entropy_backward", lib=library)
def _(grad: Tensor, h: Tensor, weight: Tensor, bias: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return h.new_empty(h.shape), weight.new_empty(weight.shape), bias.new_empty(bias.shape)


# ------------------------------------------------------------------------------------------------------ derivatives


# The derivatives of a convolution that knows its sums, made of operators that have derivatives themselves.
conv_twice = partial(reference.conv_backward, linear=ops.degree_linear, outer=ops.degree_outer)


def gather_conv_twice(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    seed: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    aggr: str,
    combine: str,
    activation: str,
    lists: tuple[Any, ...],
) -> tuple[Tensor, ...]:
    """The same for one that takes its sums."""
    pointer, neighbours, tiles, back_pointer, back_neighbours, back_tiles = lists
    back_lists = (back_pointer, back_neighbours, None)
    a = ops.aggregate(x, pointer, neighbours, None, aggr, *back_lists, tiles, back_tiles)

    def back(z: Tensor) -> Tensor:
        forth = (pointer, neighbours, None, back_tiles, tiles)
        return ops.aggregate(z, back_pointer, back_neighbours, None, "sum", *forth)

    same = (seed, matrices, offsets, aggr, combine, activation, pointer, back, ops.degree_linear, ops.degree_outer)
    return reference.gather_conv_backward(grad, out, x, a, *same)


def _conv_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, a, seed, matrices, offsets, bias, ctx.combine, ctx.activation, groups = inputs
    ctx.bias = bias is not None
    ctx.save_for_backward(output, x, a, seed, matrices, offsets, *groups)


def _conv_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    out, x, a, seed, matrices, offsets, *groups = ctx.saved_tensors
    same = (x, a, seed, matrices, offsets, ctx.combine, ctx.activation)
    if torch.is_grad_enabled():
        by_x, by_a, by_seed, by_matrices, by_bias = conv_twice(grad, out, *same)
    else:
        needs = [*ctx.needs_input_grad[:4], ctx.bias and ctx.needs_input_grad[5]]
        by_x, by_a, by_seed, by_matrices, by_bias = ops.conv_backward(grad.contiguous(), out, *same, needs, groups)
    gradients = (by_x, by_a, by_seed, by_matrices, None, by_bias)
    needed = ctx.needs_input_grad[:6]
    chosen = [gradient if need else None for gradient, need in zip(gradients, needed, strict=True)]
    return (*chosen, None, None, [None] * len(groups))


def _gather_conv_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, seed, matrices, offsets, bias, ctx.aggr, ctx.combine, ctx.activation, _keep, *lists = inputs
    pointer, neighbours, tiles, groups, back_pointer, back_neighbours, back_tiles = lists
    ctx.bias, ctx.cuts = bias is not None, (len(tiles), len(groups), len(back_tiles))
    out, a = output
    ctx.set_materialize_grads(False)  # nobody differentiates by the sums: no zeros of their size, please
    graph = (pointer, neighbours, back_pointer, back_neighbours)
    ctx.save_for_backward(out, x, a, seed, matrices, offsets, *graph, *tiles, *groups, *back_tiles)


def _gather_conv_gradient(ctx: Any, grad: Tensor, _by_a: None) -> tuple[Any, ...]:
    out, x, a, seed, matrices, offsets, pointer, neighbours, back_pointer, back_neighbours, *cuts = ctx.saved_tensors
    first, second = ctx.cuts[0], ctx.cuts[0] + ctx.cuts[1]
    tiles, groups, back_tiles = cuts[:first], cuts[first:second], cuts[second:]
    weights = (seed, matrices, offsets)
    if torch.is_grad_enabled():
        around = (pointer, neighbours, tiles, back_pointer, back_neighbours, back_tiles)
        same = (*weights, ctx.aggr, ctx.combine, ctx.activation, around)
        by_x, by_seed, by_matrices, by_bias = gather_conv_twice(grad, out, x, *same)
    else:
        needs = [*ctx.needs_input_grad[:3], ctx.bias and ctx.needs_input_grad[4]]
        options = (ctx.aggr, ctx.combine, ctx.activation, needs)
        lists = (pointer, neighbours, tiles, groups, back_pointer, back_neighbours, back_tiles)
        gradients = ops.gather_conv_backward(grad.contiguous(), out, x, a, *weights, *options, *lists)
        by_x, by_seed, by_matrices, by_bias = gradients
    found = (by_x, by_seed, by_matrices, None, by_bias)
    chosen = [gradient if need else None for gradient, need in zip(found, ctx.needs_input_grad[:5], strict=True)]
    nothing = [[None] * count for count in ctx.cuts]
    return (*chosen, *[None] * 6, nothing[0], nothing[1], None, None, nothing[2])


def _head_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _head_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return (*ops.linear_cross_entropy_backward(grad, *ctx.saved_tensors), None, None)


torch.library.register_autograd("demonet::conv", _conv_gradient, setup_context=_conv_context, lib=library)
torch.library.register_autograd(
    "demonet::gather_conv", _gather_conv_gradient, setup_context=_gather_conv_context, lib=library
)
torch.library.register_autograd(
    "demonet::linear_cross_entropy", _head_gradient, setup_context=_head_context, lib=library
)
