"""The operators in plain PyTorch, for any dtype and device: these functions are the definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from demonet.errors import DemonetError
from demonet.ops import backend
from demonet.ops.graph import Graph, Options, Weights
from demonet.ops.noise import Noise


class Kernels(NamedTuple):
    """The operators that the derivatives of a convolution are made of, with the signatures of this module."""

    aggregate: Callable[..., Tensor]
    linear: Callable[..., Tensor]
    outer: Callable[..., Tensor]


def owner(pointer: Tensor, total: int) -> Tensor:
    """The list (or group) that each of ``total`` entries belongs to."""
    return torch.repeat_interleave(pointer.diff().long(), output_size=total)


def aggregate_scale(pointer: Tensor, aggr: str, dtype: torch.dtype) -> Tensor | None:
    """What the sum over each neighbour list is multiplied by: 1 (None), 1/d, or 1/sqrt(d); an empty sum stays zero."""
    if aggr == "sum":
        return None
    # 16-bit floats cannot represent every count, but they can represent the quotient.
    count = pointer.diff().clamp(min=1).to(torch.promote_types(dtype, torch.float32))
    if aggr == "mean":
        return count.reciprocal().to(dtype)
    if aggr == "sqrt":
        return count.rsqrt().to(dtype)
    raise DemonetError(f"aggr={aggr!r} is not one of 'sum', 'mean', 'sqrt'")


def aggregate(
    x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str, *_schedules: Sequence[Tensor]
) -> Tensor:
    r""":math:`a_v = s(d_v) \sum_{u \in N(v)} w_{vu} x_u`, with :math:`s(d) = 1, 1/d` or :math:`1/\sqrt d`."""
    message = x[neighbours.long()]
    if weight is not None:
        message = message * weight[:, None]
    out = x.new_zeros(pointer.numel() - 1, x.size(1)).index_add(0, owner(pointer, neighbours.numel()), message)
    scale = aggregate_scale(pointer, aggr, x.dtype)
    return out if scale is None else out * scale[:, None]


def edge_product(x: Tensor, y: Tensor, pointer: Tensor, neighbours: Tensor) -> Tensor:
    r""":math:`p_{vu} = \langle x_u, y_v \rangle` along every edge: the derivative of ``aggregate`` by its weights."""
    return (x[neighbours.long()] * y[owner(pointer, neighbours.numel())]).sum(1)


def degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    r""":math:`y_v = W_{t(v)}^\top x_v`, where group ``g`` of rows has task ``task[g]``; task -1 is the zero map."""
    rows, none = x.split(offsets.diff().tolist()), x.new_zeros(x.size(1), weight.size(2))
    return torch.cat([part @ (weight[t] if t >= 0 else none) for part, t in zip(rows, task.tolist(), strict=True)])


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
    out = x.new_zeros(num_cells, x.size(1)).index_add(0, cell, x)
    if mode == "sum":
        return out
    if mode == "mean":
        return out / torch.bincount(cell, minlength=num_cells).clamp(min=1).to(x.dtype)[:, None]
    raise DemonetError(f"mode={mode!r} is not one of 'sum', 'mean'")


def conv(
    x: Tensor, a: Tensor | None, weights: Weights, graph: Graph, options: Options, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    r"""Eq. 5 with dropout: :math:`h_v = \sigma(\epsilon_v W_0^\top x_v \circ \epsilon'_v W_{g(v)}^\top a_v + b)`.

    Row v is in group :math:`g(v)`.

    Args:
        x: ``[n, F]`` rows in groups.
        a: ``[n, F]`` the scaled sums over their neighbours, or None to compute them.
        weights, graph, options: See :mod:`demonet.ops.graph`.
        noise: :math:`\epsilon` and :math:`\epsilon'`, what dropout multiplies the halves by, or None.

    Returns:
        The output ``[n, width]`` and the sums.
    """
    if a is None:
        a = aggregate(x, *graph.lists, None, options.aggr)
    group = torch.arange(weights.matrices.size(0), device=x.device)
    left, right = x @ weights.seed, degree_linear(a, weights.matrices, graph.offsets, group)
    left, right = dropped(left, right, noise)
    y = left + right if options.combine == "add" else torch.cat([left, right], 1)
    return activate(y if weights.bias is None else y + weights.bias, options.activation), a


def dropped(left: Tensor, right: Tensor, noise: Noise | None) -> tuple[Tensor, Tensor]:
    """Both halves, or their derivatives, times the factors of dropout."""
    if noise is None:
        return left, right
    factors = noise.halves(left.size(0), left.size(1), right.size(1), left.dtype)
    return left * factors[0], right * factors[1]


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
    weights: Weights,
    graph: Graph,
    options: Options,
    *,
    known: bool,
    kernels: Kernels | None = None,
    noise: Noise | None = None,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]:
    """The derivatives of :func:`conv` by x, a, the seed map, the matrices and the bias, made of other operators.

    Args:
        grad: The derivative by the output ``out``.
        out, x, a, weights, graph, options: Output and input of :func:`conv`.
        known: Whether ``a`` was given. Otherwise it depends on x: there is no derivative by it, and the one by x has
            a second term, summed along the reversed edges.
        kernels: The operators to use; those of this module by default.
        noise: As :func:`conv` was given it.
    """
    kernels = kernels or Kernels(aggregate, degree_linear, degree_outer)
    slopes = slope(out, options.activation)
    before = grad if slopes is None else grad * slopes
    by_bias = before.sum(0)
    left, right = dropped(*weights.halves(before, options.combine), noise)
    right, group = right.contiguous(), torch.arange(weights.matrices.size(0), device=x.device)
    by_x, by_seed = left @ weights.seed.t(), x.t() @ left
    by_a = kernels.linear(right, weights.matrices.transpose(1, 2).contiguous(), graph.offsets, group)
    by_matrices = kernels.outer(a, right, graph.offsets, group, weights.matrices.size(0))
    if known:
        return by_x, by_a, by_seed, by_matrices, by_bias
    scale = aggregate_scale(graph.pointer, options.aggr, by_a.dtype)
    back = kernels.aggregate(by_a if scale is None else by_a * scale[:, None], *graph.back, None, "sum")
    return by_x + back, None, by_seed, by_matrices, by_bias


def linear_cross_entropy(h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
    r""":math:`\sum_v s_v \, \mathrm{CE}(W h_v + b, y_v)`: the loss of a linear head, row v counting by its share."""
    wide = torch.promote_types(h.dtype, torch.float32)
    if by_class(h.size(0), weight.size(0), h.device):
        columns = torch.addmm(bias[:, None], weight, h.t()).to(wide)
        return torch.nn.functional.cross_entropy(columns[None], target[None], reduction="none")[0] @ share.to(wide)
    scores = torch.nn.functional.linear(h, weight, bias).to(wide)
    return torch.nn.functional.cross_entropy(scores, target, reduction="none") @ share.to(wide)


def by_class(rows: int, classes: int, device: torch.device) -> bool:
    """Whether a loss on a CPU reads scores with one row per class.

    Torch's softmax along a row of few scores is not vectorised; along columns of many nodes it is.
    """
    return device.type == "cpu" and classes < 16 and rows >= 4096 and not backend.tracing()


def linear_cross_entropy_backward(
    grad: Tensor, h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Its derivatives by the rows, the matrix and the bias."""
    wide = torch.promote_types(h.dtype, torch.float32)
    by_scores = torch.softmax(torch.nn.functional.linear(h, weight, bias).to(wide), 1)
    by_scores[torch.arange(h.size(0), device=h.device), target] -= 1
    by_scores = (by_scores * (share.to(wide) * grad)[:, None]).to(h.dtype)
    return by_scores @ weight, by_scores.t() @ h, by_scores.sum(0)


def derivatives(
    outputs: Sequence[Tensor], given: Sequence[Tensor | None], grads: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """The derivatives by what is given of outputs made of operators: they have derivatives of their own.

    None for what needs none; an output whose derivative is None is not read.
    """
    read = [(out, grad) for out, grad in zip(outputs, grads, strict=True) if grad is not None]
    wanted = [tensor for tensor in given if tensor is not None and tensor.requires_grad]
    by = torch.autograd.grad(
        [out for out, _ in read], wanted, [grad for _, grad in read], create_graph=True, allow_unused=True
    )
    found = iter(by)
    return [next(found) if tensor is not None and tensor.requires_grad else None for tensor in given]
