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
from demonet.ops import backend, cpu, reference
from demonet.ops.cpu import group_multiply, group_outer
from demonet.ops.graph import BothTiles, Graph, Options, Weights, buffers_of, tiles_of
from demonet.ops.noise import Noise, apart, joined

_WEIGHTS = "Tensor seed, Tensor matrices"
_OPTIONS = "str aggr, str combine, str activation, bool keep"
_HEAD = "Tensor h, Tensor weight, Tensor bias, Tensor target, Tensor share"
library = torch.library.Library("demonet", "DEF")
for _schema in (
    "neighbour_lists(Tensor edge_index, SymInt sources, SymInt targets) -> (Tensor, Tensor, Tensor)",
    "aggregate(Tensor x, Tensor pointer, Tensor neighbours, Tensor? weight, str aggr, Tensor[] back, Tensor[] tiles) "
    "-> Tensor",
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


def operator(name: str) -> Callable[..., Any]:
    """An operator, or its definition in PyTorch's own operators where nothing else will do."""
    found: Callable[..., Any] = getattr(reference if backend.mapped() or backend.onnx() else ops, name)
    return found


# ---------------------------------------------------------------------------------------------------------- kernels


def kernel_of(name: str, x: Tensor) -> Callable[..., Any]:
    """The function of that name in the family for ``x``, or its definition."""
    family: Any = {"reference": reference, "cpu": cpu}.get(backend.family(x))
    if family is None:  # Triton is imported where it is used: the package works without it
        from demonet.ops.triton import operators as family
    kernel: Callable[..., Any] = getattr(family, name, None) or getattr(reference, name)
    return kernel


def _neighbour_lists(edge_index: Tensor, sources: int, targets: int) -> tuple[Tensor, Tensor, Tensor]:
    check_edge_index(edge_index, (sources, targets))
    source, target = edge_index.long()
    return neighbour_lists(source, target, sources, targets)


def _aggregate(
    x: Tensor,
    pointer: Tensor,
    neighbours: Tensor,
    weight: Tensor | None,
    aggr: str,
    back: Sequence[Tensor] = (),
    tiles: Sequence[Tensor] = (),
    *,
    reuse: bool = False,
) -> Tensor:
    """The kernel; with ``reuse`` for training, where the memory of the sums is kept for the next epoch on a CPU."""
    kernel = kernel_of("aggregate", x)
    more: tuple[Any, ...] = ()
    if kernel is cpu.aggregate:
        more = (buffers_of(pointer),) if reuse and pointer.numel() > backend.PIECE_GRAPH_ROWS else ()
    elif kernel is not reference.aggregate:
        more = (BothTiles.of(tiles).forth if tiles else tiles_of(pointer),)
    out: Tensor = kernel(x, pointer, neighbours, weight, aggr, *more)
    return out


def _conv(
    x: Tensor, a: Any, seed: Tensor, matrices: Tensor, bias: Any, graph: Any, noise: Any, p: float, *options: Any
) -> tuple[Tensor, Tensor]:
    weights, given = Weights(seed, matrices, bias), Options(*options)
    out, sums = kernel_of("conv", x)(x, a, weights, Graph(*graph), given, _noise(noise, p))
    return out, sums if a is None and given.keep else x.new_empty(0, x.size(1))


def _conv_backward(
    grad: Tensor, out: Tensor, x: Tensor, a: Tensor, seed: Tensor, matrices: Tensor, graph: Any, *rest: Any
) -> Sequence[Tensor]:
    noise, p, *options, needs, known = rest
    given = Weights(seed, matrices), Graph(*graph), Options(*options), _noise(noise, p)
    return _conv_gradients(grad, out, x, a, *given, needs, known=known)


def _conv_gradients(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    sums: Tensor | None,
    weights: Weights,
    graph: Graph,
    options: Options,
    noise: Noise | None,
    needs: Sequence[bool],
    *,
    known: bool,
) -> Sequence[Tensor]:
    """The kernel of a convolution's derivatives; sums that were not kept are computed again."""
    if sums is None or sums.size(0) != x.size(0):
        tiles = graph.tiles if backend.family(x) == "triton" else ()
        sums = _aggregate(x, *graph.lists, None, options.aggr, tiles=[*tiles, *tiles])
    kernel, given = kernel_of("conv_backward", x), (grad, out, x, sums, weights, graph, options)
    if backend.family(x) == "reference":
        return [x.new_empty(0) if by is None else by for by in kernel(*given, known=known, noise=noise)]
    found: Sequence[Tensor] = kernel(*given, needs, known=known, noise=noise)
    return found


def _noise(values: Tensor | None, p: float) -> Noise | None:
    return None if values is None else Noise(values, p)


def _cross_entropy_backward(grad: Tensor, h: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    found: tuple[Tensor, Tensor, Tensor] = kernel_of("linear_cross_entropy_backward", h)(grad, h, *rest)
    return found


def _dispatched(name: str) -> Callable[..., Any]:
    return lambda x, *rest: kernel_of(name, x)(x, *rest)


_IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {
    "neighbour_lists": _neighbour_lists,
    "aggregate": _aggregate,
    "conv": _conv,
    "conv_backward": _conv_backward,
    "linear_cross_entropy_backward": _cross_entropy_backward,
}

# ----------------------------------------------------------------------------------------------- shapes for tracing


def _conv_shapes(x: Tensor, a: Tensor | None, seed: Tensor, matrices: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    *_, combine, _, keep = rest
    width = Weights(seed, matrices).width(combine)
    return x.new_empty(x.size(0), width), x.new_empty(x.size(0) if a is None and keep else 0, x.size(1))


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
#
# Every operator has one function that saves what its derivatives need, and one that computes them. Both serve the
# operator in ``torch.ops``, which is called where something traces, and an autograd function around the kernels.


def _save_tensors(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*(given for given in inputs if isinstance(given, Tensor)))


def _aggregate_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, pointer, neighbours, weight, ctx.aggr, back, tiles = inputs
    ctx.rows, ctx.back, ctx.tiles = x.size(0), len(back), len(tiles)
    ctx.save_for_backward(x if weight is not None else None, pointer, neighbours, weight, *back, *tiles)


def _aggregate_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """By x: the same sum along the reversed edges. By the weights: a product along every edge."""
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
        tiles = BothTiles.of(tiles).reversed if tiles else []
        by_x = aggregate(grad, *back[:2], back_weight, "sum", [pointer, neighbours], tiles, reuse=True)
    if weight is not None and ctx.needs_input_grad[3]:
        by_weight = reference.edge_product(x, grad, pointer, neighbours).to(weight.dtype)
    return by_x, None, None, by_weight, None, [None] * ctx.back, [None] * ctx.tiles


def reversed_lists(pointer: Tensor, neighbours: Tensor, targets: int, sources: int) -> Sequence[Tensor]:
    """The lists of the reversed edges, and the entry of the given lists that each of them comes from."""
    reverse = torch.stack([reference.owner(pointer, neighbours.size(0)), neighbours.long()])
    lists: Sequence[Tensor] = ops.neighbour_lists(reverse, targets, sources)
    return lists


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


def _conv_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, a, seed, matrices, _, tensors, noise, p, *options = inputs
    out, sums = output
    ctx.set_materialize_grads(False)  # the sums are not differentiated: no zeros of their size
    ctx.save_for_backward(out, x, sums if a is None else a, seed, matrices, noise)
    ctx.graph, ctx.options, ctx.noise = Graph(*tensors), Options(*options), (p,)
    ctx.known, ctx.rest = a is not None, ([None] * len(tensors), *[None] * 6)


def _conv_derivatives(ctx: Any, grad: Tensor, _by_sums: None = None) -> tuple[Any, ...]:
    """By x, a, the seed map, the matrices and the bias."""
    out, x, sums, seed, matrices, values = ctx.saved_tensors
    needs, weights, grad = ctx.needs_input_grad[:5], Weights(seed, matrices), grad.contiguous()
    graph, options, noise = ctx.graph, ctx.options, joined(values, ctx.noise)
    found: Sequence[Tensor | None]
    if torch.is_grad_enabled():
        found = _conv_again(grad, out, x, sums if ctx.known else None, weights, graph, options, noise)
    elif backend.eager(grad, x):
        found = _conv_gradients(grad, out, x, sums, weights, graph, options, noise, needs, known=ctx.known)
    else:
        values, p = (None, 0.0) if noise is None else noise[:2]
        kept = x.new_empty(0, x.size(1)) if sums is None else sums
        given = (seed, matrices, graph.tensors, values, p, *options)
        found = ops.conv_backward(grad, out, x, kept, *given, needs, known=ctx.known)
    return (*[by if need else None for by, need in zip(found, needs, strict=True)], *ctx.rest)


def _conv_again(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor | None,
    weights: Weights,
    graph: Graph,
    options: Options,
    noise: Noise | None,
) -> Sequence[Tensor | None]:
    """Derivatives of a convolution made of operators that have derivatives themselves; ``a`` where it was given."""
    sums, forth, back = partial(ops.aggregate, tiles=[]), [*graph.lists], [*graph.back]
    given = a if a is not None else sums(x, *forth, None, options.aggr, back)
    kernels = reference.Kernels(partial(sums, back=forth), ops.degree_linear, ops.degree_outer)
    how: Any = {"known": a is not None, "kernels": kernels, "noise": noise}
    return reference.conv_backward(grad, out, x, given, weights, graph, options, **how)


def _cross_entropy_derivatives(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    h, weight, bias, *rest = ctx.saved_tensors
    found: Sequence[Tensor | None]
    if not backend.eager(h, weight, bias):
        found = ops.linear_cross_entropy_backward(grad, h, weight, bias, *rest)
    elif torch.is_grad_enabled():
        loss = reference.linear_cross_entropy(h, weight, bias, *rest)
        found = reference.derivatives([loss], [h, weight, bias], [grad])
    else:
        found = _cross_entropy_backward(grad, h, weight, bias, *rest)
    return *found, None, None


for _name, _backward, _context in (
    ("aggregate", _aggregate_backward, _aggregate_context),
    ("degree_linear", _degree_linear_backward, _save_tensors),
    ("degree_outer", _degree_outer_backward, _save_tensors),
    ("degree_pool", _degree_pool_backward, _degree_pool_context),
    ("conv", _conv_derivatives, _conv_context),
    ("linear_cross_entropy", _cross_entropy_derivatives, _save_tensors),
):
    torch.library.register_autograd(f"demonet::{_name}", _backward, setup_context=_context, lib=library)


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
        ctx.graph, ctx.options, ctx.known, ctx.rest = graph, options, a is not None, (None, None, None)
        values, ctx.noise = apart(noise)
        ctx.save_for_backward(out, x, sums if ctx.known or options.keep else None, seed, matrices, values)
        kept: Tensor = out
        return kept

    backward = staticmethod(_conv_derivatives)


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        out = _aggregate(*given, reuse=True)
        _aggregate_context(ctx, given, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return *_aggregate_backward(ctx, grad)[:5], None, None


def aggregate(
    x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, *rest: Any, reuse: bool = False
) -> Tensor:
    """The operator ``aggregate``, by the shortest way."""
    if not (backend.eager(x) if weight is None else backend.eager(x, weight)):
        found: Tensor = operator("aggregate")(x, pointer, neighbours, weight, *rest)
    elif torch.is_grad_enabled() and (x.requires_grad or (weight is not None and weight.requires_grad)):
        found = _Aggregate.apply(x, pointer, neighbours, weight, *rest)
    else:
        found = _aggregate(x, pointer, neighbours, weight, *rest, reuse=reuse)
    return found


class LinearCrossEntropy(torch.autograd.Function):
    """:func:`demonet.ops.linear_cross_entropy`."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
        """The loss."""
        ctx.save_for_backward(h, weight, bias, target, share)
        loss: Tensor = kernel_of("linear_cross_entropy", h)(h, weight, bias, target, share)
        return loss

    backward = staticmethod(_cross_entropy_derivatives)


class Grouped(torch.autograd.Function):
    """:func:`demonet.ops.grouped`: ``degree_linear`` where every group is a task of its own, cut once on a CPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrices: Tensor, graph: Graph) -> Tensor:
        """The products."""
        ctx.graph = graph
        ctx.save_for_backward(x, matrices, graph.offsets, torch.arange(matrices.size(0)))
        return group_multiply(x, matrices, graph.blocks, x.new_empty(x.size(0), matrices.size(2)))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Their derivatives."""
        if torch.is_grad_enabled():
            return _degree_linear_backward(ctx, grad)[:3]
        x, matrices, *_ = ctx.saved_tensors
        by_x = by_matrices = None
        if ctx.needs_input_grad[0]:
            by_x = group_multiply(grad, matrices.transpose(1, 2), ctx.graph.blocks, torch.empty_like(x))
        if ctx.needs_input_grad[1]:
            out = ctx.graph.buffers.empty(tuple(matrices.shape), x)
            by_matrices = group_outer(x, grad, ctx.graph.blocks, out)
        return by_x, by_matrices, None
