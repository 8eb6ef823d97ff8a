"""Three primitives, each one sentence long: aggregate over neighbours, multiply by degree, pool by degree."""

from __future__ import annotations

import torch
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.ops.dispatch import ops

__all__ = ["aggregate", "degree_linear", "degree_linear_rows", "degree_pool", "neighbour_lists"]

Lists = tuple[Tensor, Tensor, Tensor]


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
        return ops.aggregate(x, lists.pointer, lists.neighbours, weight, aggr, *back)
    return ops.aggregate(x, *lists, weight, aggr, None, None, None)


def degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    r"""Multiply each row by the matrix of its task: :math:`y_v = W_{t(v)}^\top x_v`.

    Args:
        x: ``[n, F]`` rows that stand in groups.
        weight: ``[tasks, F, F']`` one matrix per task.
        offsets: ``[groups + 1]`` where each group begins and ends.
        task: ``[groups]`` the task of each group; -1 maps to zero.
    """
    device = x.device.type
    if torch.is_autocast_enabled(device) and x.dtype != torch.float64:
        dtype = torch.get_autocast_dtype(device)
        x, weight = x.to(dtype), weight.to(dtype)
    return ops.degree_linear(x, weight, offsets, task)


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
