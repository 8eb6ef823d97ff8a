"""Products by degree on a CPU: every row times the matrix of its group, in few calls."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from demonet.ops import backend, reference
from demonet.ops.schedule.cpu import Blocks

# Dtypes that torch multiplies group by group in one call; before torch 2.10 there is no such call.
GROUPED_DTYPES = (torch.float32, torch.bfloat16, torch.float16) if hasattr(F, "grouped_mm") else ()


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
    """Whether to use one grouped product: torch has it for the dtype, and padding does not cost too much."""
    if x.dtype not in GROUPED_DTYPES or x.numel() == 0 or other.numel() == 0:
        return False
    step = 16 // x.element_size()
    return sum(tensor.numel() for tensor in (x, other) if tensor.size(-1) % step) <= backend.current().padded_entries


def _outer_one_by_one(x: Tensor, y: Tensor, offsets: Tensor, task: Tensor, num_tasks: int) -> Tensor:
    """Group by group, straight into the output."""
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
    """Rows that begin at whole multiples of 16 bytes, as the grouped product requires; a padded copy where they do not.

    Transposed matrices are accepted too.
    """
    step = 16 // x.element_size()
    for row, column in ((-2, -1), (-1, -2)) if x.dim() == 3 else ((-2, -1),):
        if x.stride(column) == 1 and x.stride(row) % step == 0 and x.stride(row) >= x.size(column):
            return x
    missing = -x.size(-1) % step
    if missing:
        return F.pad(x, (0, missing))[..., : x.size(-1)]
    return x.clone(memory_format=torch.contiguous_format)  # contiguous() would leave a dimension of 1 as it is


def group_multiply(a: Tensor, matrices: Tensor, blocks: Blocks, out: Tensor, *, add: bool = False) -> Tensor:
    """Every row times the matrix of its group.

    Args:
        a: ``[n, F]``.
        matrices: ``[groups, F, W]``.
        blocks: The groups.
        out: ``[n, W]``, overwritten; it may be a slice of columns.
        add: Whether to add to it instead.
    """
    blocks = _blocks_for(matrices, blocks)
    if blocks.height:
        batch = torch.bmm(_padded(a, blocks), matrices).flatten(0, 1).index_select(0, blocks.place)
        if blocks.rows is None:
            out = out.add_(batch) if add else out.copy_(batch)
        elif add:
            out.index_add_(0, blocks.rows, batch)
        else:
            out.index_copy_(0, blocks.rows, batch)
    for matrix, part, result in zip(_own(matrices, blocks), _rows(a, blocks), _rows(out, blocks), strict=True):
        if add:
            result.addmm_(part, matrix)
        else:
            torch.mm(part, matrix, out=result)
    return out


def group_outer(a: Tensor, b: Tensor, blocks: Blocks, out: Tensor, *, add: bool = False) -> Tensor:
    r""":math:`\sum_v a_v b_v^\top` over the rows of each group.

    Args:
        a: ``[n, F]``.
        b: ``[n, W]``.
        blocks: The groups.
        out: ``[groups, F, W]``, overwritten.
        add: Whether to add to it instead.
    """
    blocks = _without_batch(blocks) if add else _blocks_for(out, blocks)
    if blocks.height:
        filled = blocks.filled.view(blocks.num_groups, blocks.height, 1)
        once = _padded(b, blocks).mul_(filled)  # count repeated rows once
        torch.bmm(_padded(a, blocks).transpose(1, 2), once, out=out)
    elif not add and len(blocks.rest) < blocks.num_groups:
        out.zero_()  # groups without rows
    for result, left, right in zip(_own(out, blocks), _rows(a, blocks), _rows(b, blocks), strict=True):
        if add:
            result.addmm_(left.t(), right)
        else:
            torch.mm(left.t(), right, out=result)
    return out


def _own(matrices: Tensor, blocks: Blocks) -> Sequence[Tensor]:
    """The matrices of the groups in the rest."""
    if len(blocks.rest) == blocks.num_groups:
        return matrices.unbind()
    return [matrices[group] for group, _, _ in blocks.rest]


def _rows(x: Tensor, blocks: Blocks) -> Sequence[Tensor]:
    """The rows of the groups in the rest; where that is all rows, they are cut in one call."""
    if blocks.rest is blocks.whole:
        return x.split_with_sizes(blocks.sizes)
    return [x[start:end] for _, start, end in blocks.rest]


def _blocks_for(matrices: Tensor, blocks: Blocks) -> Blocks:
    """Without a batch where the matrices are large: padding would cost more than a call."""
    large = matrices.size(1) * matrices.size(2) >= backend.current().block_matrix_size
    return _without_batch(blocks) if large else blocks


def _without_batch(blocks: Blocks) -> Blocks:
    return blocks._replace(height=0, rest=blocks.whole) if blocks.height else blocks


def _padded(a: Tensor, blocks: Blocks) -> Tensor:
    """``[groups, height, F]``: the rows in the batch, the last of each group repeated."""
    return a.index_select(0, blocks.gather).view(blocks.num_groups, blocks.height, a.size(1))
