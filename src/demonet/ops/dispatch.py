"""The primitives as ``torch.library`` operators: kernels per device, shapes for tracing, derivatives.

Each derivative is again made of these operators, so that second derivatives, ``torch.compile`` and ``torch.export``
need nothing more. A kernel for another device joins with one ``library.impl`` line.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from demonet.checks import check_edge_index
from demonet.degree.lists import neighbour_lists
from demonet.ops import cpu, cuda, reference

library = torch.library.Library("demonet", "DEF")
library.define("neighbour_lists(Tensor edge_index, SymInt sources, SymInt targets) -> (Tensor, Tensor, Tensor)")
library.define(
    "aggregate(Tensor x, Tensor pointer, Tensor neighbours, Tensor? weight, str aggr, "
    "Tensor? back_pointer, Tensor? back_neighbours, Tensor? back_entry, Tensor[] tiles, Tensor[] back_tiles) -> Tensor"
)
library.define("edge_product(Tensor x, Tensor y, Tensor pointer, Tensor neighbours) -> Tensor")
library.define("degree_linear(Tensor x, Tensor weight, Tensor offsets, Tensor task) -> Tensor")
library.define("degree_outer(Tensor x, Tensor y, Tensor offsets, Tensor task, SymInt num_tasks) -> Tensor")
library.define("degree_pool(Tensor x, Tensor cell, SymInt num_cells, str mode) -> Tensor")
ops = torch.ops.demonet

# ---------------------------------------------------------------------------------------------------------- kernels


def _neighbour_lists(edge_index: Tensor, sources: int, targets: int) -> tuple[Tensor, Tensor, Tensor]:
    check_edge_index(edge_index, (sources, targets))
    source, target = edge_index.long()
    return neighbour_lists(source, target, sources, targets)


def _aggregate(x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str, *_: Any) -> Tensor:
    return reference.aggregate(x, pointer, neighbours, weight, aggr)


def _aggregate_cpu(x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str, *_: Any) -> Tensor:
    return cpu.aggregate(x, pointer, neighbours, weight, aggr)


def _aggregate_cuda(
    x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str, *rest: Any
) -> Tensor:
    return cuda.aggregate(x, pointer, neighbours, weight, aggr, rest[3])


library.impl("neighbour_lists", _neighbour_lists, "CompositeExplicitAutograd")
library.impl("aggregate", _aggregate, "CompositeExplicitAutograd")
library.impl("aggregate", _aggregate_cpu, "CPU")
library.impl("aggregate", _aggregate_cuda, "CUDA")
library.impl("edge_product", reference.edge_product, "CompositeExplicitAutograd")
library.impl("degree_linear", reference.degree_linear, "CompositeExplicitAutograd")
library.impl("degree_linear", cpu.degree_linear, "CPU")
library.impl("degree_linear", cuda.degree_linear, "CUDA")
library.impl("degree_outer", reference.degree_outer, "CompositeExplicitAutograd")
library.impl("degree_outer", cpu.degree_outer, "CPU")
library.impl("degree_outer", cuda.degree_outer, "CUDA")
library.impl("degree_pool", reference.degree_pool, "CompositeExplicitAutograd")
library.impl("degree_pool", cuda.degree_pool, "CUDA")

# ----------------------------------------------------------------------------------------------- shapes for tracing


@torch.library.register_fake("demonet::neighbour_lists", lib=library)
def _(edge_index: Tensor, sources: int, targets: int) -> tuple[Tensor, Tensor, Tensor]:
    arcs = edge_index.size(1)
    return tuple(edge_index.new_empty(size, dtype=torch.long) for size in (targets + 1, arcs, arcs))  # type: ignore[return-value]


@torch.library.register_fake("demonet::aggregate", lib=library)
def _(x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str, *_: Any) -> Tensor:
    return x.new_empty(pointer.size(0) - 1, x.size(1))


@torch.library.register_fake("demonet::edge_product", lib=library)
def _(x: Tensor, y: Tensor, pointer: Tensor, neighbours: Tensor) -> Tensor:
    return x.new_empty(neighbours.size(0))


@torch.library.register_fake("demonet::degree_linear", lib=library)
def _(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    return x.new_empty(x.size(0), weight.size(2))


@torch.library.register_fake("demonet::degree_outer", lib=library)
def _(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    return x.new_empty(num_tasks, x.size(1), y.size(1))


@torch.library.register_fake("demonet::degree_pool", lib=library)
def _(x: Tensor, cell: Tensor, num_cells: int, mode: str) -> Tensor:
    return x.new_empty(num_cells, x.size(1))


# ------------------------------------------------------------------------------------------------------ derivatives


def _aggregate_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, pointer, neighbours, weight, ctx.aggr, *back, tiles, back_tiles = inputs
    ctx.rows, ctx.cuts = x.size(0), (len(tiles), len(back_tiles))
    lists = (pointer, neighbours, weight, *back)
    ctx.save_for_backward(x if weight is not None else None, *lists, *tiles, *back_tiles)


def _aggregate_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """By x: the same sum along the reversed arcs. By the weights: a product along every arc."""
    x, pointer, neighbours, weight, back_pointer, back_neighbours, back_entry, *cuts = ctx.saved_tensors
    tiles, back_tiles = cuts[: ctx.cuts[0]], cuts[ctx.cuts[0] :]
    scale = reference.aggregate_scale(pointer, ctx.aggr, grad.dtype)
    if scale is not None:
        grad = grad * scale[:, None]
    by_x = by_weight = None
    if ctx.needs_input_grad[0]:
        if back_pointer is None or (weight is not None and back_entry is None):
            # Nobody has laid out the reversed arcs: do it now, for this once.
            target = reference.owner(pointer, neighbours.size(0))
            reverse = torch.stack([target, neighbours.long()])
            back_pointer, back_neighbours, back_entry = ops.neighbour_lists(reverse, grad.size(0), ctx.rows)
            back_tiles = []
        back_weight = None if weight is None else weight[back_entry]
        forth = (pointer, neighbours, None, back_tiles, tiles)
        by_x = ops.aggregate(grad, back_pointer, back_neighbours, back_weight, "sum", *forth)
    if weight is not None and ctx.needs_input_grad[3]:
        by_weight = ops.edge_product(x, grad, pointer, neighbours).to(weight.dtype)
    nothing = [[None] * count for count in ctx.cuts]
    return by_x, None, None, by_weight, None, None, None, None, *nothing


def _edge_product_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _edge_product_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, y, pointer, neighbours = ctx.saved_tensors
    by_y = ops.aggregate(x, pointer, neighbours, grad, "sum", None, None, None, [], [])
    reverse = torch.stack([reference.owner(pointer, neighbours.size(0)), neighbours.long()])
    back_pointer, back_neighbours, back_entry = ops.neighbour_lists(reverse, y.size(0), x.size(0))
    by_x = ops.aggregate(y, back_pointer, back_neighbours, grad[back_entry], "sum", None, None, None, [], [])
    return by_x, by_y, None, None


def _degree_linear_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _degree_linear_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, offsets, task = ctx.saved_tensors
    by_x = by_weight = None
    if ctx.needs_input_grad[0]:
        by_x = ops.degree_linear(grad, weight.transpose(1, 2), offsets, task)
    if ctx.needs_input_grad[1]:
        by_weight = ops.degree_outer(x, grad, offsets, task, weight.size(0))
    return by_x, by_weight, None, None


def _degree_outer_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:4])


def _degree_outer_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, y, offsets, task = ctx.saved_tensors
    by_x = ops.degree_linear(y, grad.transpose(1, 2), offsets, task)
    by_y = ops.degree_linear(x, grad.contiguous(), offsets, task)
    return by_x, by_y, None, None, None


def _degree_pool_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, cell, ctx.num_cells, ctx.mode = inputs
    ctx.save_for_backward(cell)


def _degree_pool_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    (cell,) = ctx.saved_tensors
    if ctx.mode == "mean":
        one = torch.ones(cell.size(0), 1, dtype=grad.dtype, device=grad.device)
        grad = grad / ops.degree_pool(one, cell, ctx.num_cells, "sum").clamp(min=1)
    return grad[cell], None, None, None


for _name in ("aggregate", "edge_product", "degree_linear", "degree_outer", "degree_pool"):
    torch.library.register_autograd(
        f"demonet::{_name}",
        globals()[f"_{_name}_backward"],
        setup_context=globals()[f"_{_name}_context"],
        lib=library,
    )
