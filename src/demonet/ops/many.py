"""Many runs at once: the operators under ``torch.vmap``, so that a batch of models on one graph is one computation.

Runs share the graph, so sums over neighbours are taken of all their columns side by side, and a product grouped by
degree is one batched product a group: it costs little more for ten runs than for one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from demonet.errors import DemonetError
from demonet.ops.convolution import ops
from demonet.ops.dispatch import library
from demonet.ops.reference import activate

_GROUPS = "Tensor offsets, Tensor task"
library.define(f"degree_linear_many(Tensor x, Tensor weight, {_GROUPS}) -> Tensor")
library.define(f"degree_outer_many(Tensor x, Tensor y, {_GROUPS}, SymInt num_tasks) -> Tensor")


def degree_linear_many(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    """:func:`demonet.ops.degree_linear` of every run: ``[runs, n, F]`` times ``[runs, tasks, F, F']``."""
    out = x.new_zeros(x.size(0), x.size(1), weight.size(3))
    for start, end, t in _bounds(offsets, task):
        torch.bmm(x[:, start:end], weight[:, t], out=out[:, start:end])
    return out


def degree_outer_many(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    """Its derivative by the matrices: ``[runs, tasks, F, F']``."""
    out = x.new_zeros(x.size(0), num_tasks, x.size(2), y.size(2))
    for start, end, t in _bounds(offsets, task):
        torch.baddbmm(out[:, t], x[:, start:end].transpose(1, 2), y[:, start:end], out=out[:, t])
    return out


def _bounds(offsets: Tensor, task: Tensor) -> list[tuple[int, int, int]]:
    """First and last row (exclusive) and task of every group that has both."""
    bounds = offsets.tolist()
    groups = zip(bounds[:-1], bounds[1:], task.tolist(), strict=True)
    return [(start, end, t) for start, end, t in groups if end > start and t >= 0]


library.impl("degree_linear_many", degree_linear_many, "CompositeExplicitAutograd")
library.impl("degree_outer_many", degree_outer_many, "CompositeExplicitAutograd")


@torch.library.register_fake("demonet::degree_linear_many", lib=library)
def _(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    return x.new_empty(x.size(0), x.size(1), weight.size(3))


@torch.library.register_fake("demonet::degree_outer_many", lib=library)
def _(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    return x.new_empty(x.size(0), num_tasks, x.size(2), y.size(2))


def _context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:4])


def _linear_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, offsets, task = ctx.saved_tensors
    by_x = by_weight = None
    if ctx.needs_input_grad[0]:
        by_x = ops.degree_linear_many(grad, weight.transpose(2, 3), offsets, task)
    if ctx.needs_input_grad[1]:
        by_weight = ops.degree_outer_many(x, grad, offsets, task, weight.size(1))
    return by_x, by_weight, None, None


def _outer_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, y, offsets, task = ctx.saved_tensors
    by_x = ops.degree_linear_many(y, grad.transpose(2, 3), offsets, task)
    return by_x, ops.degree_linear_many(x, grad, offsets, task), None, None, None


torch.library.register_autograd("demonet::degree_linear_many", _linear_gradient, setup_context=_context, lib=library)
torch.library.register_autograd("demonet::degree_outer_many", _outer_gradient, setup_context=_context, lib=library)

# ------------------------------------------------------------------------------------------------------- vmap rules


def _runs(tensor: Tensor, dim: int | None, runs: int) -> Tensor:
    """Runs first; what they share is repeated without a copy."""
    return tensor.expand(runs, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _one_graph(*dims: Any) -> None:
    if any(dim is not None for dim in dims if not isinstance(dim, (list, tuple))):
        raise DemonetError("runs on different graphs at once", hint="only features and parameters may differ")


def _degree_linear(
    info: Any, dims: tuple[Any, ...], x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor
) -> tuple[Tensor, int]:
    _one_graph(*dims[2:])
    x, weight = _runs(x, dims[0], info.batch_size), _runs(weight, dims[1], info.batch_size)
    return ops.degree_linear_many(x, weight, offsets, task), 0


def _aggregate(info: Any, dims: tuple[Any, ...], x: Tensor, *lists: Any) -> tuple[Tensor, int]:
    _one_graph(*dims[1:])
    x = x.movedim(dims[0], 1)
    return ops.aggregate(x.flatten(1), *lists).unflatten(1, x.shape[1:]), 1


def _conv(
    info: Any,
    dims: tuple[Any, ...],
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    bias: Tensor | None,
    combine: str,
    activation: str,
    *_: Any,
) -> tuple[Tensor, int]:
    _one_graph(dims[4])
    x, a, seed, matrices = (
        _runs(tensor, dim, info.batch_size) for tensor, dim in zip((x, a, seed, matrices), dims, strict=False)
    )
    group = torch.arange(matrices.size(1), device=x.device)
    left, right = x @ seed, ops.degree_linear_many(a, matrices, offsets, group)
    out = left + right if combine == "add" else torch.cat([left, right], 2)
    out = out if bias is None else out + _runs(bias, dims[5], info.batch_size)[:, None]
    return activate(out, activation), 0


def _gather_conv(
    info: Any, dims: tuple[Any, ...], x: Tensor, seed: Tensor, matrices: Tensor, offsets: Tensor, *rest: Any
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    bias, aggr, combine, activation, _keep, pointer, neighbours, _tiles, _groups, *back, _back_tiles = rest
    lists = (pointer, neighbours, None, aggr, *back, None, [], [])
    a, dim = _aggregate(info, (dims[0], *[None] * len(lists)), x, *lists)
    weights: tuple[Any, ...] = (seed, matrices, offsets, bias, combine, activation, [])
    out, _ = _conv(info, (dims[0], dim, *dims[1:5], None, None, None), x, a, *weights)
    return (out, a), (0, dim)


torch.library.register_vmap("demonet::degree_linear", _degree_linear, lib=library)
torch.library.register_vmap("demonet::aggregate", _aggregate, lib=library)
torch.library.register_vmap("demonet::conv", _conv, lib=library)
torch.library.register_vmap("demonet::gather_conv", _gather_conv, lib=library)
