"""Three primitives, each one sentence long: aggregate over neighbours, multiply by degree, pool by degree."""

from __future__ import annotations

import torch
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.ops import reference
from demonet.ops.convolution import ops
from demonet.ops.eager import Conv, Grouped, is_eager

__all__ = [
    "aggregate",
    "conv",
    "degree_linear",
    "degree_linear_rows",
    "degree_pool",
    "grouped",
    "linear_cross_entropy",
    "neighbour_lists",
]

Lists = tuple[Tensor, Tensor, Tensor]
FEW_ROWS = 4096  # below, scores cost less than calling an operator


def neighbour_lists(edge_index: Tensor, num_sources: int, num_targets: int) -> Lists:
    """Arcs sorted by target, then source: ``pointer [targets + 1]``, ``neighbours [m]``, ``arc [m]``.

    Raises:
        DemonetError: When an id is out of range.
    """
    return ops.neighbour_lists(edge_index, num_sources, num_targets)


def aggregate(
    x: Tensor, lists: DegreeLayout | tuple[Tensor, Tensor], weight: Tensor | None = None, *, aggr: str = "sum"
) -> Tensor:
    r"""Sum the rows of each node's neighbours.

    .. math:: a_v = s(d_v) \sum_{u \in N(v)} w_{vu} x_u

    Args:
        x: ``[sources, F]``; with a layout, in degree order.
        lists: A layout, or ``(pointer, neighbours)`` of :func:`neighbour_lists`.
        weight: ``[m]`` weights in the order of the lists.
        aggr: ``"sum"`` (:math:`s = 1`), ``"mean"`` (:math:`1/d`) or ``"sqrt"`` (:math:`1/\sqrt d`).
    """
    if isinstance(lists, DegreeLayout):
        back = (lists.back_pointer, lists.back_neighbours, lists.back_entry)
        tiles = [*(lists.tiles or ())], [*(lists.back_tiles or ())]
        return ops.aggregate(x, lists.pointer, lists.neighbours, weight, aggr, *back, *tiles)
    return ops.aggregate(x, *lists, weight, aggr, None, None, None, [], [])


def degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    r"""Multiply each row by the matrix of its task: :math:`y_v = W_{t(v)}^\top x_v`.

    Args:
        x: ``[n, F]`` rows that stand in groups.
        weight: ``[tasks, F, F']`` one matrix per task.
        offsets: ``[groups + 1]`` where each group begins and ends.
        task: ``[groups]`` the task of each group; -1 maps to zero.
    """
    x, weight = _cast(x, weight)
    return ops.degree_linear(x, weight, offsets, task)


def grouped(x: Tensor, matrices: Tensor, layout: DegreeLayout) -> Tensor:
    r"""Multiply each row by the matrix of its group, :math:`y_v = W_{g(v)}^\top x_v`.

    Args:
        x: ``[n, F]`` rows in degree order.
        matrices: ``[groups, F, F']`` the matrix of every group of the layout.
        layout: The graph.
    """
    x, matrices = _cast(x, matrices)
    if is_eager(x, matrices):
        out: Tensor = Grouped.apply(x, matrices, layout)
        return out
    return ops.degree_linear(x, matrices, layout.offsets, torch.arange(matrices.size(0), device=x.device))


def conv(
    x: Tensor,
    a: Tensor | None,
    seed: Tensor,
    matrices: Tensor,
    layout: DegreeLayout,
    bias: Tensor | None = None,
    *,
    aggr: str = "sum",
    combine: str = "concat",
    activation: str = "none",
    keep: bool = True,
) -> Tensor:
    r"""A whole convolution of rows in degree order (Eq. 5), with its activation.

    .. math:: h_v = \sigma(W_0^\top x_v \circ W_{g(v)}^\top a_v + b)

    Args:
        x: ``[n, F]`` rows in degree order.
        a: ``[n, F]`` the sums over their neighbours, if they are known already; otherwise they are taken here.
        seed: ``[F, S]``, the map :math:`W_0`.
        matrices: ``[groups, F, W]`` the matrix of every group of the layout.
        layout: The graph.
        bias: ``[S + W]``, or ``[W]`` when the halves are added.
        aggr: How sums are scaled, as in :func:`aggregate`.
        combine: ``"concat"`` or ``"add"``.
        activation: ``"none"``, ``"elu"`` or ``"relu"``.
        keep: Whether the sums are kept for the derivatives, or taken once more: less memory, more time.
    """
    x, seed, matrices = _cast(x, seed, matrices)
    a, bias = (None if tensor is None else tensor.to(x.dtype) for tensor in (a, bias))
    if is_eager(x, seed, matrices):
        out: Tensor = Conv.apply(x, a, seed, matrices, bias, layout, (aggr, combine, activation), keep)
        return out
    groups = [*(layout.groups or ())]
    if a is not None:
        return ops.conv(x, a, seed, matrices, layout.offsets, bias, combine, activation, groups)
    lists = (layout.pointer, layout.neighbours, [*(layout.tiles or ())], groups)
    back = (layout.back_pointer, layout.back_neighbours, [*(layout.back_tiles or ())])
    options = (aggr, combine, activation, keep)
    out, _ = ops.gather_conv(x, seed, matrices, layout.offsets, bias, *options, *lists, *back)
    return out


def linear_cross_entropy(h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
    r"""The loss of a linear head, :math:`\sum_v s_v \, \mathrm{CE}(W h_v + b, y_v)`, without keeping the scores.

    Args:
        h: ``[n, F]``.
        weight: ``[classes, F]``, as in ``nn.Linear``.
        bias: ``[classes]``.
        target: ``[n]`` the class of every row; any class where the share is zero.
        share: ``[n]`` float32, how much each row counts; zero leaves it out.
    """
    h, weight, bias = _cast(h, weight, bias)
    if h.size(0) < FEW_ROWS and is_eager(h, weight):
        return reference.linear_cross_entropy(h, weight, bias, target, share)
    return ops.linear_cross_entropy(h, weight, bias, target, share)


def _cast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """In the number type that autocast wants, where it is on; double precision stays."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device) or tensors[0].dtype == torch.float64:
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype(device)) for tensor in tensors)


def degree_linear_rows(x: Tensor, weight: Tensor, task: Tensor) -> Tensor:
    """:func:`degree_linear` for rows in any order, each with its task: sorted, multiplied, put back."""
    num_tasks = weight.size(0)
    task = torch.where(task < 0, num_tasks, task)  # the zero map goes last, where it costs nothing
    order = torch.argsort(task, stable=True)
    count = torch.zeros(num_tasks + 1, dtype=torch.long, device=x.device).index_add(0, task, torch.ones_like(task))
    offsets = torch.nn.functional.pad(count.cumsum(0), (1, 0))
    groups = torch.arange(num_tasks + 1, device=x.device)
    groups = torch.where(groups == num_tasks, -1, groups)
    grouped = degree_linear(x.index_select(0, order), weight, offsets, groups)
    return torch.zeros_like(grouped).index_copy(0, order, grouped)


def degree_pool(x: Tensor, task: Tensor, batch: Tensor, num_tasks: int, num_graphs: int, mode: str = "sum") -> Tensor:
    r"""Sum (or average) the rows of each task in each graph (Eq. 11): ``[num_graphs, num_tasks * width]``."""
    cells = ops.degree_pool(x, batch * num_tasks + task, num_graphs * num_tasks, mode)
    return cells.view(num_graphs, num_tasks * x.size(1))
