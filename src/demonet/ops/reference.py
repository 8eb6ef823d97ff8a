"""The primitives in plain PyTorch, for any dtype and device: these functions are the definition."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from demonet.errors import DemonetError


def owner(pointer: Tensor, total: int) -> Tensor:
    """The list (or group) that each of ``total`` entries belongs to."""
    return torch.repeat_interleave(pointer.diff().long(), output_size=total)


def aggregate_scale(pointer: Tensor, aggr: str, dtype: torch.dtype) -> Tensor | None:
    """What the sum over each neighbour list is multiplied by: nothing, 1/d, or 1/sqrt(d); an empty sum stays zero."""
    if aggr == "sum":
        return None
    # A 16-bit number cannot hold every count, but it can hold what the count is the divisor of.
    count = pointer.diff().clamp(min=1).to(torch.promote_types(dtype, torch.float32))
    if aggr == "mean":
        return count.reciprocal().to(dtype)
    if aggr == "sqrt":
        return count.rsqrt().to(dtype)
    raise DemonetError(f"aggr={aggr!r} is not one of 'sum', 'mean', 'sqrt'")


def aggregate(x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str) -> Tensor:
    r""":math:`a_v = s(d_v) \sum_{u \in N(v)} w_{vu} x_u`, with :math:`s(d) = 1, 1/d` or :math:`1/\sqrt d`."""
    message = x[neighbours.long()]
    if weight is not None:
        message = message * weight[:, None]
    out = x.new_zeros(pointer.numel() - 1, x.size(1))
    out.index_add_(0, owner(pointer, neighbours.numel()), message)
    scale = aggregate_scale(pointer, aggr, x.dtype)
    return out if scale is None else out * scale[:, None]


def edge_product(x: Tensor, y: Tensor, pointer: Tensor, neighbours: Tensor) -> Tensor:
    r""":math:`p_{vu} = \langle x_u, y_v \rangle` along every arc: the derivative of ``aggregate`` by its weights."""
    return (x[neighbours.long()] * y[owner(pointer, neighbours.numel())]).sum(1)


def degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    r""":math:`y_v = W_{t(v)}^\top x_v`, where group ``g`` of rows has task ``task[g]``; task -1 is the zero map."""
    out = x.new_zeros(x.size(0), weight.size(2))
    bounds = offsets.tolist()
    for start, end, t in zip(bounds[:-1], bounds[1:], task.tolist(), strict=True):
        if end > start and t >= 0:
            torch.mm(x[start:end], weight[t], out=out[start:end])
    return out


def degree_outer(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    r""":math:`M_t = \sum_{v : t(v) = t} x_v y_v^\top`: the derivative of ``degree_linear`` by its matrices."""
    out = x.new_zeros(num_tasks, x.size(1), y.size(1))
    bounds = offsets.tolist()
    for start, end, t in zip(bounds[:-1], bounds[1:], task.tolist(), strict=True):
        if end > start and t >= 0:
            out[t].addmm_(x[start:end].t(), y[start:end])
    return out


def degree_pool(x: Tensor, cell: Tensor, num_cells: int, mode: str) -> Tensor:
    r""":math:`p_c = \sum_{v : c(v) = c} x_v` (or the mean), a cell being one task of one graph."""
    out = x.new_zeros(num_cells, x.size(1)).index_add_(0, cell, x)
    if mode == "sum":
        return out
    if mode == "mean":
        return out / torch.bincount(cell, minlength=num_cells).clamp(min=1).to(x.dtype)[:, None]
    raise DemonetError(f"mode={mode!r} is not one of 'sum', 'mean'")


def conv(
    x: Tensor,
    a: Tensor,
    seed: Tensor,
    matrices: Tensor,
    offsets: Tensor,
    bias: Tensor | None,
    combine: str,
    activation: str,
) -> Tensor:
    r"""Eq. 5: :math:`h_v = \sigma(W_0^\top x_v \circ W_{g(v)}^\top a_v + b)`, row v being in group :math:`g(v)`."""
    left = x @ seed
    right = torch.cat([rows @ matrices[g] for g, rows in enumerate(a.split(offsets.diff().tolist()))])
    y = left + right if combine == "add" else torch.cat([left, right], 1)
    return activate(y if bias is None else y + bias, activation)


def activate(y: Tensor, activation: str) -> Tensor:
    """``"elu"``, ``"relu"`` or ``"none"``."""
    if activation == "elu":
        return torch.nn.functional.elu(y)
    return torch.relu(y) if activation == "relu" else y


def slope(out: Tensor, activation: str) -> Tensor | None:
    """The derivative of the activation, which follows from its output; None where it is 1."""
    if activation == "elu":
        return torch.where(out > 0, 1.0, out + 1.0)
    return (out > 0).to(out.dtype) if activation == "relu" else None


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
    linear: Callable[..., Tensor] = degree_linear,
    outer: Callable[..., Tensor] = degree_outer,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The derivatives of :func:`conv` by x, a, the seed map, the matrices and the bias, made of other primitives."""
    slopes = slope(out, activation)
    before = grad if slopes is None else grad * slopes
    left, right = (before, before) if combine == "add" else (before[:, : seed.size(1)], before[:, seed.size(1) :])
    group = torch.arange(matrices.size(0), device=x.device)
    by_a = linear(right.contiguous(), matrices.transpose(1, 2).contiguous(), offsets, group)
    by_matrices = outer(a, right.contiguous(), offsets, group, matrices.size(0))
    return left @ seed.t(), by_a, x.t() @ left, by_matrices, before.sum(0)


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
    pointer: Tensor,
    back: Callable[[Tensor], Tensor],
    linear: Callable[..., Tensor] = degree_linear,
    outer: Callable[..., Tensor] = degree_outer,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same where ``a`` are the sums over the lists of x: by x, the seed map, the matrices and the bias.

    ``back`` sums along the reversed lists: what a sum had of a row's derivative is added to the row's own.
    """
    same = (seed, matrices, offsets, combine, activation, linear, outer)
    by_x, by_a, by_seed, by_matrices, by_bias = conv_backward(grad, out, x, a, *same)
    scale = aggregate_scale(pointer, aggr, by_a.dtype)
    return by_x + back(by_a if scale is None else by_a * scale[:, None]), by_seed, by_matrices, by_bias


def linear_cross_entropy(h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
    r""":math:`\sum_v s_v \, \mathrm{CE}(W h_v + b, y_v)`: the loss of a linear head, row v counting by its share."""
    scores = torch.nn.functional.linear(h, weight, bias).to(torch.promote_types(h.dtype, torch.float32))
    return torch.nn.functional.cross_entropy(scores, target, reduction="none") @ share.to(scores.dtype)


def linear_cross_entropy_backward(
    grad: Tensor, h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Its derivatives by the rows, the matrix and the bias."""
    wide = torch.promote_types(h.dtype, torch.float32)
    by_scores = torch.softmax(torch.nn.functional.linear(h, weight, bias).to(wide), 1)
    by_scores[torch.arange(h.size(0), device=h.device), target] -= 1
    by_scores = (by_scores * (share.to(wide) * grad)[:, None]).to(h.dtype)
    return by_scores @ weight, by_scores.t() @ h, by_scores.sum(0)
