"""The operators in ``torch.library``: one kernel family per call, shapes for tracing, derivatives.

Every derivative is made of these operators again, so that second derivatives, ``torch.compile`` and ``torch.export``
work without anything more. Which family of kernels runs is decided by :mod:`demonet.ops.backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from demonet.checks import check_edge_index
from demonet.degree.lists import neighbour_lists
from demonet.ops import backend, cpu, gpu, reference
from demonet.ops.cpu_products import group_multiply, group_outer
from demonet.ops.graph import Graph, Options, Weights, buffers_of, tiles_of
from demonet.ops.noise import Noise
from demonet.ops.schedule.gpu import Tiles

_WEIGHTS = "Tensor seed, Tensor matrices"
_OPTIONS = "str aggr, str combine, str activation, bool keep"
_HEAD = "Tensor h, Tensor weight, Tensor bias, Tensor target, Tensor share"
library = torch.library.Library("demonet", "DEF")
for _schema in (
    "neighbour_lists(Tensor edge_index, SymInt sources, SymInt targets) -> (Tensor, Tensor, Tensor)",
    "aggregate(Tensor x, Tensor pointer, Tensor neighbours, Tensor? weight, str aggr, Tensor[] back, Tensor[] tiles) "
    "-> Tensor",
    "edge_product(Tensor x, Tensor y, Tensor pointer, Tensor neighbours) -> Tensor",
    "degree_linear(Tensor x, Tensor weight, Tensor offsets, Tensor task) -> Tensor",
    "degree_outer(Tensor x, Tensor y, Tensor offsets, Tensor task, SymInt num_tasks) -> Tensor",
    "degree_pool(Tensor x, Tensor cell, SymInt num_cells, str mode) -> Tensor",
    f"conv(Tensor x, Tensor? a, {_WEIGHTS}, Tensor? bias, Tensor[] graph, Tensor? noise, float p, {_OPTIONS}) "
    "-> (Tensor, Tensor)",
    f"conv_backward(Tensor grad, Tensor out, Tensor x, Tensor a, {_WEIGHTS}, Tensor[] graph, Tensor? noise, float p, "
    f"{_OPTIONS}, bool[] needs, bool known) -> Tensor[]",
    f"linear_cross_entropy({_HEAD}) -> Tensor",
    f"linear_cross_entropy_backward(Tensor grad, {_HEAD}) -> (Tensor, Tensor, Tensor)",
):
    library.define(_schema)
ops = torch.ops.demonet

# ---------------------------------------------------------------------------------------------------------- kernels

_FAMILIES: dict[str, Any] = {"reference": reference, "cpu": cpu, "triton": gpu}


def kernel_of(name: str, x: Tensor) -> Callable[..., Any]:
    """The function of that name in the family for ``x``, or its definition."""
    kernel: Callable[..., Any] = getattr(_FAMILIES[backend.family(x)], name, getattr(reference, name))
    return kernel


def _neighbour_lists(edge_index: Tensor, sources: int, targets: int) -> tuple[Tensor, Tensor, Tensor]:
    check_edge_index(edge_index, (sources, targets))
    source, target = edge_index.long()
    return neighbour_lists(source, target, sources, targets)


def _aggregate(
    x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str, back: Any, tiles: list[Tensor]
) -> Tensor:
    if backend.family(x) == "triton":
        return gpu.aggregate(x, pointer, neighbours, weight, aggr, Tiles(*tiles[:6]) if tiles else tiles_of(pointer))
    out: Tensor = kernel_of("aggregate", x)(x, pointer, neighbours, weight, aggr)
    return out


def _conv(
    x: Tensor,
    a: Tensor | None,
    seed: Tensor,
    matrices: Tensor,
    bias: Tensor | None,
    graph: list[Tensor],
    noise: Tensor | None,
    p: float,
    *options: Any,
) -> tuple[Tensor, Tensor]:
    given = Weights(seed, matrices, bias), Graph(*graph), Options(*options)
    out, sums = kernel_of("conv", x)(x, a, *given, _noise(noise, p))
    return out, sums if a is None and given[2].keep else x.new_empty(0, x.size(1))


def _conv_backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    graph: list[Tensor],
    noise: Tensor | None,
    p: float,
    *rest: Any,
) -> list[Tensor]:
    *options, needs, known = rest
    given = Weights(seed, matrices), Graph(*graph), Options(*options)
    if a.size(0) != x.size(0):  # not kept
        a = _aggregate(x, *given[1].lists, None, given[2].aggr, [], graph[5:])
    if backend.family(x) == "reference":
        found = reference.conv_backward(grad, out, x, a, *given, known=known, noise=_noise(noise, p))
        return [x.new_empty(0) if by is None else by for by in found]
    kernel = kernel_of("conv_backward", x)
    gradients: list[Tensor] = kernel(grad, out, x, a, *given, needs, known=known, noise=_noise(noise, p))
    return gradients


def _noise(values: Tensor | None, p: float) -> Noise | None:
    return None if values is None else Noise(values, p)


def _dispatched(name: str) -> Callable[..., Any]:
    return lambda *args: kernel_of(name, args[1] if name.endswith("entropy_backward") else args[0])(*args)


_IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "neighbour_lists": _neighbour_lists,
    "aggregate": _aggregate,
    "conv": _conv,
    "conv_backward": _conv_backward,
}

# ----------------------------------------------------------------------------------------------- shapes for tracing


def _conv_shapes(
    x: Tensor,
    a: Tensor | None,
    seed: Tensor,
    matrices: Tensor,
    bias: Any,
    graph: Any,
    noise: Any,
    p: Any,
    *options: Any,
) -> tuple[Tensor, Tensor]:
    given = Options(*options)
    width = Weights(seed, matrices).width(given.combine)
    return x.new_empty(x.size(0), width), x.new_empty(x.size(0) if a is None and given.keep else 0, x.size(1))


def _conv_backward_shapes(
    grad: Tensor, out: Tensor, x: Tensor, a: Tensor, seed: Tensor, matrices: Tensor, *rest: Any
) -> list[Tensor]:
    *_, needs, known = rest
    needs = [needs[0], needs[1] and known, *needs[2:]]
    tensors = (x, x, seed, matrices, grad.new_empty(grad.size(1)))
    return [t.new_empty(t.shape if need else 0) for t, need in zip(tensors, needs, strict=True)]


_SHAPES: dict[str, Callable[..., Any]] = {
    "neighbour_lists": lambda edge_index, sources, targets: tuple(
        edge_index.new_empty(size, dtype=torch.long) for size in (targets + 1, edge_index.size(1), edge_index.size(1))
    ),
    "aggregate": lambda x, pointer, *_: x.new_empty(pointer.size(0) - 1, x.size(1)),
    "edge_product": lambda x, y, pointer, neighbours: x.new_empty(neighbours.size(0)),
    "degree_linear": lambda x, weight, offsets, task: x.new_empty(x.size(0), weight.size(2)),
    "degree_outer": lambda x, y, offsets, task, num_tasks: x.new_empty(num_tasks, x.size(1), y.size(1)),
    "degree_pool": lambda x, cell, num_cells, mode: x.new_empty(num_cells, x.size(1)),
    "conv": _conv_shapes,
    "conv_backward": _conv_backward_shapes,
    "linear_cross_entropy": lambda h, *_: h.new_empty((), dtype=torch.promote_types(h.dtype, torch.float32)),
    "linear_cross_entropy_backward": lambda grad, h, weight, bias, *_: tuple(
        given.new_empty(given.shape) for given in (h, weight, bias)
    ),
}
for _name, _shape in _SHAPES.items():
    library.impl(_name, _IMPLEMENTATIONS.get(_name, _dispatched(_name)), "CompositeExplicitAutograd")
    torch.library.register_fake(f"demonet::{_name}", _shape, lib=library)


# ------------------------------------------------------------------------------------------------------ derivatives


def _aggregate_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, pointer, neighbours, weight, ctx.aggr, back, tiles = inputs
    ctx.rows, ctx.back, ctx.tiles = x.size(0), len(back), len(tiles)
    ctx.save_for_backward(x if weight is not None else None, pointer, neighbours, weight, *back, *tiles)


def _aggregate_backward(ctx: Any, grad: Tensor, kernel: Callable[..., Tensor] | None = None) -> tuple[Any, ...]:
    """By x: the same sum along the reversed edges. By the weights: a product along every edge."""
    kernel = kernel or aggregate
    x, pointer, neighbours, weight, *rest = ctx.saved_tensors
    back, tiles = rest[: ctx.back], rest[ctx.back :]
    scale = reference.aggregate_scale(pointer, ctx.aggr, grad.dtype)
    if scale is not None:
        grad = grad * scale[:, None]
    by_x = by_weight = None
    if ctx.needs_input_grad[0]:
        if len(back) < (2 if weight is None else 3):  # the reversed edges are not sorted yet
            back, tiles = reversed_lists(pointer, neighbours, grad.size(0), ctx.rows), []
        back_weight = None if weight is None else weight[back[2]]
        by_x = kernel(grad, *back[:2], back_weight, "sum", [pointer, neighbours], [*tiles[6:], *tiles[:6]])
    if weight is not None and ctx.needs_input_grad[3]:
        by_weight = ops.edge_product(x, grad, pointer, neighbours).to(weight.dtype)
    return by_x, None, None, by_weight, None, [None] * ctx.back, [None] * ctx.tiles


def reversed_lists(pointer: Tensor, neighbours: Tensor, targets: int, sources: int) -> Sequence[Tensor]:
    """The lists of the reversed edges, and the entry of the given lists that each of them comes from."""
    reverse = torch.stack([reference.owner(pointer, neighbours.size(0)), neighbours.long()])
    lists: Sequence[Tensor] = ops.neighbour_lists(reverse, targets, sources)
    return lists


def _edge_product_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, y, pointer, neighbours = ctx.saved_tensors
    by_y = ops.aggregate(x, pointer, neighbours, grad, "sum", [], [])
    back_pointer, back_neighbours, back_entry = reversed_lists(pointer, neighbours, y.size(0), x.size(0))
    by_x = ops.aggregate(y, back_pointer, back_neighbours, grad[back_entry], "sum", [], [])
    return by_x, by_y, None, None


def _degree_linear_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, offsets, task = ctx.saved_tensors
    by_x = by_weight = None
    if ctx.needs_input_grad[0]:
        by_x = ops.degree_linear(grad, weight.transpose(1, 2), offsets, task)
    if ctx.needs_input_grad[1]:
        by_weight = ops.degree_outer(x, grad, offsets, task, weight.size(0))
    return by_x, by_weight, None, None


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


def conv_backward_twice(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor | None,
    weights: Weights,
    graph: Graph,
    options: Options,
    noise: Noise | None = None,
) -> Sequence[Tensor | None]:
    """Derivatives of a convolution made of operators that have derivatives themselves; ``a`` where it was given."""
    sums = partial(ops.aggregate, tiles=[])
    forth, back = [*graph.lists], [*graph.back]
    given = a if a is not None else sums(x, *forth, None, options.aggr, back)
    kernels = reference.Kernels(partial(sums, back=forth), ops.degree_linear, ops.degree_outer)
    known = a is not None
    return reference.conv_backward(
        grad, out, x, given, weights, graph, options, known=known, kernels=kernels, noise=noise
    )


def _conv_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, a, seed, matrices, bias, graph, noise, ctx.p, *options = inputs
    out, sums = output
    ctx.options, ctx.known, ctx.bias, ctx.tensors = Options(*options), a is not None, bias is not None, len(graph)
    ctx.set_materialize_grads(False)  # the sums are not differentiated: no zeros of their size
    ctx.save_for_backward(out, x, sums if a is None else a, seed, matrices, noise, *graph)


def _conv_gradient(ctx: Any, grad: Tensor, _by_sums: None) -> tuple[Any, ...]:
    out, x, a, seed, matrices, noise, *graph = ctx.saved_tensors
    found: Sequence[Tensor | None]
    if torch.is_grad_enabled():
        given = (Weights(seed, matrices), Graph(*graph), ctx.options)
        found = conv_backward_twice(grad, out, x, a if ctx.known else None, *given, _noise(noise, ctx.p))
    else:
        needs = [*ctx.needs_input_grad[:4], ctx.bias and ctx.needs_input_grad[4]]
        given = (seed, matrices, graph, noise, ctx.p, *ctx.options)
        found = ops.conv_backward(grad.contiguous(), out, x, a, *given, needs, known=ctx.known)
    wanted = [by if need else None for by, need in zip(found, ctx.needs_input_grad[:5], strict=True)]
    return (*wanted, [None] * ctx.tensors, *[None] * 6)


def _linear_cross_entropy_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return (*ops.linear_cross_entropy_backward(grad, *ctx.saved_tensors), None, None)


def _save_tensors(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*(given for given in inputs if isinstance(given, Tensor)))


for _name, _backward, _context in (
    ("aggregate", _aggregate_backward, _aggregate_context),
    ("edge_product", _edge_product_backward, _save_tensors),
    ("degree_linear", _degree_linear_backward, _save_tensors),
    ("degree_outer", _degree_outer_backward, _save_tensors),
    ("degree_pool", _degree_pool_backward, _degree_pool_context),
    ("conv", _conv_gradient, _conv_context),
    ("linear_cross_entropy", _linear_cross_entropy_backward, _save_tensors),
):
    torch.library.register_autograd(f"demonet::{_name}", _backward, setup_context=_context, lib=library)

# --------------------------------------------- kernels as plain autograd functions, see demonet.ops.backend.direct


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
        noise: Noise | None,
    ) -> Tensor:
        """The convolution."""
        out, sums = kernel_of("conv", x)(x, a, Weights(seed, matrices, bias), graph, options, noise)
        ctx.graph, ctx.options, ctx.noise = graph, options, noise
        ctx.sums = sums if a is None and options.keep else None  # neither input nor output, so not saved below
        ctx.save_for_backward(out, x, a, seed, matrices)
        kept: Tensor = out
        return kept

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Its derivatives."""
        out, x, a, seed, matrices = ctx.saved_tensors
        graph, options, needs = ctx.graph, ctx.options, ctx.needs_input_grad[:5]
        grad, weights = grad.contiguous(), Weights(seed, matrices)
        found: Sequence[Tensor | None]
        if torch.is_grad_enabled():
            found = conv_backward_twice(grad, out, x, a, weights, graph, options, ctx.noise)
        else:
            sums = ctx.sums if a is None else a
            if sums is None:
                tiles = list(graph.tiles) if backend.family(x) == "triton" else []
                sums = _aggregate(x, graph.pointer, graph.neighbours, None, options.aggr, [], tiles)
            given = (grad, out, x, sums, weights, graph, options, needs)
            found = kernel_of("conv_backward", x)(*given, known=a is not None, noise=ctx.noise)
        return (*[by if need else None for by, need in zip(found, needs, strict=True)], None, None, None)


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(*given: Any) -> Tensor:
        return _aggregate_again(*given)

    setup_context = staticmethod(_aggregate_context)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        kernel = None if torch.is_grad_enabled() else _aggregate_again
        return *_aggregate_backward(ctx, grad, kernel)[:5], None, None


def _aggregate_again(x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, *rest: Any) -> Tensor:
    """The operator in training: the same lists are summed in every epoch, so the memory of the sums is kept."""
    if backend.family(x) != "cpu":
        return _aggregate(x, pointer, neighbours, weight, *rest)
    buffers = buffers_of(pointer) if pointer.numel() > backend.current().piece_graph_rows else None
    return cpu.aggregate(x, pointer, neighbours, weight, rest[0], buffers)


def aggregate(x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, *rest: Any) -> Tensor:
    """The operator ``aggregate``, by the shortest way."""
    tensors = (x,) if weight is None else (x, weight)
    if not backend.eager(*tensors):
        found: Tensor = ops.aggregate(x, pointer, neighbours, weight, *rest)
    elif torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        found = _Aggregate.apply(x, pointer, neighbours, weight, *rest)
    else:
        found = _aggregate(x, pointer, neighbours, weight, *rest)
    return found


class LinearCrossEntropy(torch.autograd.Function):
    """:func:`demonet.ops.linear_cross_entropy`."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
        """The loss."""
        ctx.save_for_backward(h, weight, bias, target, share)
        loss: Tensor = kernel_of("linear_cross_entropy", h)(h, weight, bias, target, share)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Its derivatives."""
        h, weight, bias, *rest = ctx.saved_tensors
        if torch.is_grad_enabled():
            loss = reference.linear_cross_entropy(h, weight, bias, *rest)
            return *reference.derivatives([loss], [h, weight, bias], [grad]), None, None
        return *kernel_of("linear_cross_entropy_backward", h)(grad, h, weight, bias, *rest), None, None


class Grouped(torch.autograd.Function):
    """:func:`demonet.ops.grouped`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrices: Tensor, graph: Graph) -> Tensor:
        """The products."""
        ctx.graph = graph
        ctx.save_for_backward(x, matrices)
        return group_multiply(x, matrices, graph.blocks, x.new_empty(x.size(0), matrices.size(2)))

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
            by_x = group_multiply(grad, matrices.transpose(1, 2), graph.blocks, torch.empty_like(x))
        if ctx.needs_input_grad[1]:
            by_matrices = group_outer(x, grad, graph.blocks, graph.buffers.empty(tuple(matrices.shape), x))
        return by_x, by_matrices, None
