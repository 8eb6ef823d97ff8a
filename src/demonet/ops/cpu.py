"""The primitives on CPU, on what torch has for bags of rows and for grouped products."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.ops import reference

# What torch multiplies group by group in one call; for the rest, and in a torch that has no such call yet, there is the
# reference.
GROUPED_DTYPES = (torch.float32, torch.bfloat16, torch.float16) if hasattr(F, "grouped_mm") else ()
PADDED = 2**22  # numbers that may be copied to pad rows for that call; beyond, one call a group costs less


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
    if not _grouped(x, weight):
        return reference.degree_linear(x, weight, offsets, task)
    tasks = task.tolist()
    used = next((place + 1 for place in range(len(tasks) - 1, -1, -1) if tasks[place] >= 0), 0)
    if used == 0:
        return x.new_zeros(x.size(0), weight.size(2))
    matrices = weight[:used] if tasks[:used] == list(range(used)) else _in_group_order(weight, task[:used])
    out = F.grouped_mm(_aligned(x), _aligned(matrices), offs=offsets[1 : used + 1].int())
    if used < len(tasks):
        out[int(offsets[used]) :] = 0  # groups of task -1 at the end, which the product left unwritten
    return out.contiguous()


def degree_outer(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    """One grouped product of the transposed rows, then a sum where several groups share a task."""
    if not _grouped(x, y):
        return _outer_one_by_one(x, y, offsets, task, num_tasks)
    per_group = F.grouped_mm(_aligned(x).t(), _aligned(y), offs=offsets[1:].int())
    if task.tolist() == list(range(num_tasks)):
        return per_group.contiguous()
    used = task >= 0
    out = x.new_zeros(num_tasks, x.size(1), y.size(1))
    return out.index_add_(0, task[used], per_group[used])


def _grouped(x: Tensor, other: Tensor) -> bool:
    """Whether one grouped product is the way: torch has it for such numbers, and padding does not cost too much."""
    if x.dtype not in GROUPED_DTYPES or x.numel() == 0 or other.numel() == 0:
        return False
    step = 16 // x.element_size()
    return sum(tensor.numel() for tensor in (x, other) if tensor.size(-1) % step) <= PADDED


def _outer_one_by_one(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    """Group by group, straight to where it belongs."""
    out = x.new_empty(num_tasks, x.size(1), y.size(1))
    bounds, written = offsets.tolist(), set()
    for start, end, t in zip(bounds[:-1], bounds[1:], task.tolist(), strict=True):
        if end > start and t >= 0:
            beta = 1 if t in written else 0
            torch.addmm(out[t], x[start:end].t(), y[start:end], beta=beta, out=out[t])
            written.add(t)
    for t in set(range(num_tasks)) - written:
        out[t] = 0
    return out


def _in_group_order(weight: Tensor, task: Tensor) -> Tensor:
    """The matrix of every group, in the order of the groups; zero for task -1."""
    if bool((task < 0).any()):
        return weight[task.clamp(min=0)] * (task >= 0)[:, None, None]
    return weight[task]


def _aligned(x: Tensor) -> Tensor:
    """Rows that begin at whole multiples of 16 bytes, as the grouped product asks; a copy with gaps where they do not.

    Of matrices, it reads the transposed as well.
    """
    step = 16 // x.element_size()
    for row, column in ((-2, -1), (-1, -2)) if x.dim() == 3 else ((-2, -1),):
        if x.stride(column) == 1 and x.stride(row) % step == 0 and x.stride(row) >= x.size(column):
            return x
    missing = -x.size(-1) % step
    if missing:
        return F.pad(x, (0, missing))[..., : x.size(-1)]
    return x.clone(memory_format=torch.contiguous_format)  # contiguous() would leave a dimension of 1 as it is
