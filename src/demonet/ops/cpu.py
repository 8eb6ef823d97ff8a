"""The primitives on CPU, on what torch has for bags of rows and for grouped products."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.ops import reference

# What torch multiplies group by group in one call; for the rest, and in a torch that has no such call yet, there is the
# reference.
GROUPED_DTYPES = (torch.float32, torch.bfloat16, torch.float16) if hasattr(F, "grouped_mm") else ()


def aggregate(x: Tensor, pointer: Tensor, neighbours: Tensor, weight: Tensor | None, aggr: str) -> Tensor:
    """``embedding_bag`` walks the lists without ever holding a message per arc."""
    scale = reference.aggregate_scale(pointer, aggr, x.dtype)
    if x.size(1) == 0 or neighbours.numel() == 0:
        return x.new_zeros(pointer.numel() - 1, x.size(1))
    weights = None if weight is None else weight.to(x.dtype)
    out = F.embedding_bag(
        neighbours, x.contiguous(), pointer, mode="sum", per_sample_weights=weights, include_last_offset=True
    )
    return out if scale is None else out.mul_(scale[:, None])


def degree_linear(x: Tensor, weight: Tensor, offsets: Tensor, task: Tensor) -> Tensor:
    """One grouped product; the matrices are copied only when the groups do not use them in order."""
    if x.dtype not in GROUPED_DTYPES or x.numel() == 0 or weight.numel() == 0:
        return reference.degree_linear(x, weight, offsets, task)
    columns = weight.size(2)
    used = int((task >= 0).nonzero()[-1]) + 1 if bool((task >= 0).any()) else 0
    if used == 0:
        return x.new_zeros(x.size(0), columns)
    matrices = _in_group_order(weight, task[:used])
    out = F.grouped_mm(_aligned(x), _aligned(_aligned(matrices), 1), offs=offsets[1 : used + 1].int())
    out[int(offsets[used]) :] = 0  # groups of task -1 at the end, which the product left unwritten
    return out if out.size(1) == columns else out[:, :columns].contiguous()


def degree_outer(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    """One grouped product of the transposed rows, then a sum where several groups share a task."""
    if x.dtype not in GROUPED_DTYPES or x.numel() == 0 or y.numel() == 0:
        return reference.degree_outer(x, y, offsets, task, num_tasks)
    per_group = F.grouped_mm(_aligned(x).t(), _aligned(y), offs=offsets[1:].int())[:, : x.size(1), : y.size(1)]
    if task.numel() == num_tasks and _is_range(task):
        return per_group.contiguous()
    used = task >= 0
    out = x.new_zeros(num_tasks, x.size(1), y.size(1))
    return out.index_add_(0, task[used], per_group[used])


def _is_range(task: Tensor) -> bool:
    return torch.equal(task, torch.arange(task.numel()))


def _in_group_order(weight: Tensor, task: Tensor) -> Tensor:
    """The matrix of every group, in the order of the groups; zero for task -1."""
    if _is_range(task):
        return weight[: task.numel()]
    if bool((task < 0).any()):
        return weight[task.clamp(min=0)] * (task >= 0)[:, None, None]
    return weight[task]


def _aligned(x: Tensor, dim: int = -1) -> Tensor:
    """Rows of a whole number of 16 bytes, as the grouped product asks; padded with zeros where they are not."""
    step = 16 // x.element_size()
    missing = -x.size(dim) % step
    if missing:
        pad = (0, missing) if dim == -1 else (0, 0, 0, missing)
        return F.pad(x, pad)
    return x.contiguous()
