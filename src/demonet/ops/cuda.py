"""The primitives on CUDA devices: Triton kernels where they apply, the reference for float64 and without Triton."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import torch
from torch import Tensor

from demonet.degree.tiles import Groups, Tiles, cut_groups, cut_lists
from demonet.ops import reference

HAS_TRITON = find_spec("triton") is not None
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
WIDEST_INPUT, WIDEST_HALF = 256, 128  # columns that one program of the fused convolution holds
# Bytes of both halves' matrices in one program: float32 products keep three copies of them.
LARGEST_MATRICES = {torch.float32: 2**16, torch.bfloat16: 2**17, torch.float16: 2**17}
MOST_CLASSES = 128


def applies(x: Tensor) -> bool:
    """Whether there are kernels for such numbers here."""
    return HAS_TRITON and x.dtype in DTYPES


def fuses(x: Tensor, seed: Tensor, matrices: Tensor) -> bool:
    """Whether a whole convolution fits into one kernel."""
    return x.size(0) > 0 and applies(x) and fits(seed, matrices)


def fits(seed: Tensor, matrices: Tensor) -> bool:
    """Whether both halves' matrices fit into one program."""
    columns, widths = seed.size(0), (seed.size(1), matrices.size(2))
    if columns > WIDEST_INPUT or max(widths) > WIDEST_HALF:
        return False
    from demonet.ops.triton.blocks import block

    held = block(columns, WIDEST_INPUT) * sum(block(width, WIDEST_HALF) for width in widths)
    return held * seed.element_size() <= LARGEST_MATRICES[seed.dtype]


def aggregate(
    x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str, tiles: Sequence[Tensor]
) -> Tensor:
    """Sums over lists; without tiles, the lists are cut for this once."""
    if not applies(x) or neighbours.numel() == 0:
        return reference.aggregate(x, pointer, neighbours, weight, aggr)
    from demonet.ops.triton import gather

    cut = Tiles(*tiles) if tiles else cut_lists(pointer)
    return gather.aggregate(x, pointer, neighbours, weight, aggr, cut)


def degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    """Products grouped by degree."""
    if not applies(x) or weight.numel() == 0:
        return reference.degree_linear(x, weight, offsets, task)
    from demonet.ops.triton import linear

    return linear.degree_linear(x, weight, offsets, task)


def degree_outer(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    """Their derivative by the matrices."""
    if not applies(x):
        return reference.degree_outer(x, y, offsets, task, num_tasks)
    from demonet.ops.triton import linear

    return linear.degree_outer(x, y, offsets, task, num_tasks)


def degree_pool(x: Tensor, cell: Tensor, num_cells: int, mode: str) -> Tensor:
    """Pooling by degree."""
    if not applies(x):
        return reference.degree_pool(x, cell, num_cells, mode)
    from demonet.ops.triton import pool

    return pool.degree_pool(x, cell, num_cells, mode)


def conv(
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    bias: Tensor | None,
    combine: str,
    activation: str,
    groups: Sequence[Tensor],
) -> Tensor:
    """A convolution whose sums are known."""
    if not fuses(x, seed, matrices):
        return reference.conv(x, a, seed, matrices, offsets, bias, combine, activation)
    from demonet.ops.triton import conv as fused

    return fused.rows_conv(x, a, seed, matrices, bias, combine, activation, _groups(offsets, x, groups))


def conv_backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    combine: str,
    activation: str,
    needs: Sequence[bool],
    groups: Sequence[Tensor],
) -> list[Tensor]:
    """Its derivatives by x, a, the seed map, the matrices, the bias; empty where they are not needed."""
    if not fuses(x, seed, matrices):
        same = (combine, activation, degree_linear, degree_outer)
        return list(reference.conv_backward(grad, out, x, a, seed, matrices, offsets, *same))
    from demonet.ops.triton import by_input, by_weights

    cut, nothing = _groups(offsets, x, groups), x.new_empty(0)
    begin = 0 if combine == "add" else seed.size(1)
    by_x = by_input.half_backward(grad, out, seed, cut, 0, activation) if needs[0] else nothing
    by_a = by_input.half_backward(grad, out, matrices, cut, begin, activation) if needs[1] else nothing
    weights = by_weights.weights_backward(grad, out, x, a, seed, matrices, cut, combine, activation, bias=needs[4])
    return [by_x, by_a, *weights]


def gather_conv(
    x: Tensor,
    seed: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    bias: Tensor | None,
    aggr: str,
    combine: str,
    activation: str,
    keep: bool,
    pointer: Tensor,
    neighbours: Tensor,
    tiles: Sequence[Tensor],
    groups: Sequence[Tensor],
    *_back: Tensor | Sequence[Tensor],
) -> tuple[Tensor, Tensor]:
    """A convolution, sums included; they are returned too where ``keep`` asks for them."""
    if not fuses(x, seed, matrices):
        a = aggregate(x, pointer, neighbours, None, aggr, tiles)
        out = conv(x, a, seed, matrices, offsets, bias, combine, activation, groups)
        return out, a if keep else x.new_empty(0, x.size(1))
    from demonet.ops.triton import conv as fused

    cut = Tiles(*tiles) if tiles else cut_lists(pointer, offsets)
    return fused.gather_conv(x, seed, matrices, bias, aggr, combine, activation, pointer, neighbours, cut, keep=keep)


def gather_conv_backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    aggr: str,
    combine: str,
    activation: str,
    needs: Sequence[bool],
    pointer: Tensor,
    neighbours: Tensor,
    tiles: Sequence[Tensor],
    groups: Sequence[Tensor],
    back_pointer: Tensor,
    back_neighbours: Tensor,
    back_tiles: Sequence[Tensor],
) -> list[Tensor]:
    """Its derivatives by x, the seed map, the matrices, the bias; sums that were not kept are taken once more."""
    if a.size(0) != x.size(0):
        a = aggregate(x, pointer, neighbours, None, aggr, tiles)
    if not fuses(x, seed, matrices):

        def back(z: Tensor) -> Tensor:
            return aggregate(z, back_pointer, back_neighbours, None, "sum", back_tiles)

        same = (aggr, combine, activation, pointer, back, degree_linear, degree_outer)
        return list(reference.gather_conv_backward(grad, out, x, a, seed, matrices, offsets, *same))
    from demonet.ops.triton import by_input, by_weights

    cut = _groups(offsets, x, groups)
    own = by_weights.weights_backward(grad, out, x, a, seed, matrices, cut, combine, activation, bias=needs[3])
    del a  # the derivatives by the sums may take its place
    if not needs[0]:
        return [x.new_empty(0), *own]
    begin = 0 if combine == "add" else seed.size(1)
    z = by_input.half_backward(grad, out, matrices, cut, begin, activation, pointer, aggr)
    cuts = Tiles(*back_tiles) if back_tiles else cut_lists(back_pointer)
    return [by_input.input_backward(grad, out, z, seed, activation, back_pointer, back_neighbours, cuts), *own]


def linear_cross_entropy(h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
    """A linear head and its loss."""
    if not _fuses_head(h, weight):
        return reference.linear_cross_entropy(h, weight, bias, target, share)
    from demonet.ops.triton import cross_entropy

    return cross_entropy.loss(h, weight, bias, target, share)


def linear_cross_entropy_backward(
    grad: Tensor, h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Its derivatives by the rows, the matrix and the bias."""
    if not _fuses_head(h, weight):
        return reference.linear_cross_entropy_backward(grad, h, weight, bias, target, share)
    from demonet.ops.triton import cross_entropy

    return cross_entropy.gradient(grad, h, weight, bias, target, share)


def fits_head(weight: Tensor) -> bool:
    """Whether a head fits into one program."""
    return weight.size(1) <= WIDEST_INPUT and weight.size(0) <= MOST_CLASSES


def _fuses_head(h: Tensor, weight: Tensor) -> bool:
    return h.size(0) > 0 and applies(h) and fits_head(weight)


def _groups(offsets: Tensor, x: Tensor, groups: Sequence[Tensor]) -> Groups:
    return Groups(*groups) if groups else cut_groups(offsets, x.size(0))
