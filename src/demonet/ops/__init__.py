"""Operators on graphs whose rows are sorted by degree: sum over neighbours, multiply by degree, pool by degree.

The functions here are what :mod:`demonet.nn` calls. What they compute is defined in :mod:`~demonet.ops.reference`;
:mod:`~demonet.ops.cpu` and ``demonet.ops.triton`` compute the same faster; :mod:`~demonet.ops.backend`
chooses between them. :mod:`~demonet.ops.library` registers them as ``torch.ops.demonet``, or calls them without that
detour. The loss of a whole model on a GPU is in :mod:`~demonet.ops.stack`, deep layers in :mod:`~demonet.ops.deep`.

A *group* is all rows of one degree; a layout has one slice of rows for each. A *task* may contain several groups.
"""

from __future__ import annotations

import torch
from torch import Tensor

from demonet.degree.layout import DegreeLayout, select_by
from demonet.ops import backend, library, reference
from demonet.ops.graph import Graph, Options, Weights, tensors_of, tiles_for
from demonet.ops.library import Conv, Grouped, LinearCrossEntropy, operator, ops
from demonet.ops.noise import Noise
from demonet.ops.readout import ReadOut, read_out

__all__ = [
    "Noise",
    "Options",
    "ReadOut",
    "Weights",
    "aggregate",
    "backend",
    "conv",
    "degree_linear",
    "degree_linear_rows",
    "degree_pool",
    "grouped",
    "linear_cross_entropy",
    "neighbour_lists",
    "read_out",
]


def _select_rows(x: Tensor, index: Tensor) -> Tensor:
    if x.dim() != 2 or x.layout != torch.strided or backend.family(x) != "triton":
        return x.index_select(0, index)
    from demonet.ops.triton import rows

    return rows.select_rows(x, index)


select_by(_select_rows)  # layouts put rows into degree order and back

Lists = tuple[Tensor, Tensor, Tensor]
_PLAIN = Options()


def neighbour_lists(edge_index: Tensor, num_sources: int, num_targets: int) -> Lists:
    """Edges sorted by target, then source: ``pointer [targets + 1]``, ``neighbours [m]``, ``edge [m]``.

    Raises:
        DemonetError: When an id is out of range.
    """
    return ops.neighbour_lists(edge_index, num_sources, num_targets)


def aggregate(
    x: Tensor, lists: DegreeLayout | tuple[Tensor, ...], weight: Tensor | None = None, *, aggr: str = "sum"
) -> Tensor:
    r"""Sum the rows of each node's neighbours.

    .. math:: a_v = s(d_v) \sum_{u \in N(v)} w_{vu} x_u

    Args:
        x: ``[sources, F]``; with a layout, in degree order.
        lists: A layout, or ``(pointer, neighbours)`` of :func:`neighbour_lists`. Where the lists of the reversed edges
            are known, these follow: pointer, targets, and the entry of ``neighbours`` of each.
        weight: ``[m]`` weights in the order of the lists, not of the ``edge_index``.
        aggr: ``"sum"`` (:math:`s = 1`), ``"mean"`` (:math:`1/d`) or ``"sqrt"`` (:math:`1/\sqrt d`).
    """
    if isinstance(lists, DegreeLayout):
        back = [lists.back_pointer, lists.back_neighbours, lists.back_entry]
        return library.aggregate(x, lists.pointer, lists.neighbours, weight, aggr, back, tiles_for(lists, x))
    return library.aggregate(x, *lists[:2], weight, aggr, [*lists[2:]], [])


def degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    r"""Multiply each row by the matrix of its task: :math:`y_v = W_{t(v)}^\top x_v`.

    Args:
        x: ``[n, F]`` rows in groups.
        weight: ``[tasks, F, F']`` one matrix per task.
        offsets: ``[groups + 1]`` where each group begins and ends.
        task: ``[groups]`` the task of each group; with -1, its rows of the result are zero.
    """
    x, weight = _cast(x, weight)
    found: Tensor = operator("degree_linear")(x, weight, offsets, task)
    return found


def grouped(x: Tensor, matrices: Tensor, layout: DegreeLayout) -> Tensor:
    r"""Multiply each row by the matrix of its group: :func:`degree_linear` where every group is a task of its own.

    .. math:: y_v = W_{g(v)}^\top x_v

    Args:
        x: ``[n, F]`` rows in degree order.
        matrices: ``[groups, F, F']`` the matrix of every group of the layout.
        layout: The graph.
    """
    x, matrices = _cast(x, matrices)
    if backend.direct(x, matrices):
        out: Tensor = Grouped.apply(x, matrices, Graph.of(layout))
        return out
    return degree_linear(x, matrices, layout.offsets, torch.arange(matrices.size(0), device=x.device))


def conv(
    x: Tensor,
    a: Tensor | None,
    weights: Weights,
    layout: DegreeLayout,
    options: Options = _PLAIN,
    noise: Noise | None = None,
) -> Tensor:
    r"""A convolution of rows in degree order with dropout and its activation (Eq. 5).

    .. math:: h_v = \sigma(\epsilon_v W_0^\top x_v \circ \epsilon'_v W_{g(v)}^\top a_v + b)

    Args:
        x: ``[n, F]`` rows in degree order.
        a: ``[n, F]`` the scaled sums over their neighbours, or None to compute them.
        weights: The map of the seed, the matrix of every group of the layout, and the bias.
        layout: The graph.
        options: How to aggregate, combine and activate.
        noise: :math:`\epsilon` and :math:`\epsilon'`, what dropout multiplies both halves by, or None.
    """
    x, seed, matrices = _cast(x, weights.seed, weights.matrices)
    a, bias = (None if tensor is None else tensor.to(x.dtype) for tensor in (a, weights.bias))
    if backend.eager(x, seed, matrices):
        out: Tensor = Conv.apply(x, a, seed, matrices, bias, Graph.of(layout), options, noise)
        return out
    if backend.mapped():
        return reference.conv(x, a, Weights(seed, matrices, bias), Graph.of(layout), options, noise)[0]
    values, p = (None, 0.0) if noise is None else noise[:2]
    out, _ = ops.conv(x, a, seed, matrices, bias, tensors_of(layout, x), values, p, *options)
    return out


def linear_cross_entropy(h: Tensor, weight: Tensor, bias: Tensor, target: Tensor, share: Tensor) -> Tensor:
    r"""The loss of a linear head, :math:`\sum_v s_v \, \mathrm{CE}(W h_v + b, y_v)`, without storing the scores.

    Args:
        h: ``[n, F]``.
        weight: ``[classes, F]``, as in ``nn.Linear``.
        bias: ``[classes]``.
        target: ``[n]`` the class of every row; any class where the share is zero.
        share: ``[n]`` float32, the weight of each row; zero leaves it out.
    """
    h, weight, bias = _cast(h, weight, bias)
    if backend.family(h) != "triton" or backend.mapped():
        return reference.linear_cross_entropy(h, weight, bias, target, share)
    if backend.eager(h, weight, bias):
        loss: Tensor = LinearCrossEntropy.apply(h, weight, bias, target, share)
        return loss
    return ops.linear_cross_entropy(h, weight, bias, target, share)


def _cast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Cast all to the dtype of autocast, where it is on; nothing is cast if the first is float64."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device) or tensors[0].dtype == torch.float64:
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype(device)) for tensor in tensors)


def degree_linear_rows(x: Tensor, weight: Tensor, task: Tensor) -> Tensor:
    """:func:`degree_linear` for rows in any order, each with its task: sorted, multiplied, and put back."""
    num_tasks = weight.size(0)
    if backend.onnx():  # it has no grouped product: a matrix for every row
        return torch.bmm(x[:, None], weight[task.clamp(min=0)])[:, 0] * (task >= 0).to(x.dtype)[:, None]
    task = torch.where(task < 0, num_tasks, task)  # rows without a task go last; their result is zero
    order = torch.argsort(task, stable=True)
    count = torch.zeros(num_tasks + 1, dtype=torch.long, device=x.device).index_add(0, task, torch.ones_like(task))
    offsets = torch.nn.functional.pad(count.cumsum(0), (1, 0))
    groups = torch.arange(num_tasks + 1, device=x.device)
    groups = torch.where(groups == num_tasks, -1, groups)
    grouped = degree_linear(x.index_select(0, order), weight, offsets, groups)
    return torch.zeros_like(grouped).index_copy(0, order, grouped)


def degree_pool(x: Tensor, task: Tensor, batch: Tensor, num_tasks: int, num_graphs: int, mode: str = "sum") -> Tensor:
    r"""Sum (``mode="sum"``) or average (``"mean"``) the rows of each task in each graph (Eq. 11).

    Returns:
        ``[num_graphs, num_tasks * width]``.
    """
    return read_out(ReadOut(batch, task, num_graphs, num_tasks, mode), [x])
