"""Products grouped by degree on CPU: a batch of the first rows of every group, and the rest group by group."""

from __future__ import annotations

import torch
from torch import Tensor

from demonet.degree.blocks import Blocks
from demonet.degree.buffers import Buffers

LARGE = 2**14  # numbers of a matrix from which on a call costs little beside the product, and padding much


def multiply(a: Tensor, matrices: Tensor, blocks: Blocks, out: Tensor, *, add: bool = False) -> Tensor:
    """Every row times the matrix of its group.

    Args:
        a: ``[n, F]``.
        matrices: ``[groups, F, W]``.
        blocks: The groups.
        out: ``[n, W]``, written; rows may stand apart.
        add: Whether to add to what is there.
    """
    blocks = _for(matrices, blocks)
    if blocks.height:
        batch = torch.bmm(_padded(a, blocks), matrices).flatten(0, 1).index_select(0, blocks.place)
        if blocks.rows is None:
            out = out.add_(batch) if add else out.copy_(batch)
        elif add:
            out.index_add_(0, blocks.rows, batch)
        else:
            out.index_copy_(0, blocks.rows, batch)
    for group, start, end in blocks.rest:
        if add:
            out[start:end].addmm_(a[start:end], matrices[group])
        else:
            torch.mm(a[start:end], matrices[group], out=out[start:end])
    return out


def outer(a: Tensor, b: Tensor, blocks: Blocks, buffers: Buffers | None = None) -> Tensor:
    r"""``[groups, F, W]``: :math:`\sum_v a_v b_v^\top` over the rows of each group, in memory of the buffers."""
    shape = (blocks.num_groups, a.size(1), b.size(1))
    out = a.new_empty(shape) if buffers is None else buffers.empty(shape, a)
    blocks = _for(out, blocks)
    if blocks.height:
        once = _padded(b, blocks).mul_(blocks.filled.view(blocks.num_groups, blocks.height, 1))  # repeated rows: zero
        torch.bmm(_padded(a, blocks).transpose(1, 2), once, out=out)
    elif len(blocks.rest) < blocks.num_groups:
        out.zero_()  # groups without rows
    for group, start, end in blocks.rest:
        torch.mm(a[start:end].t(), b[start:end], out=out[group])
    return out


def _for(matrices: Tensor, blocks: Blocks) -> Blocks:
    """Without a batch where the matrices are large."""
    large = matrices.size(1) * matrices.size(2) >= LARGE
    return blocks._replace(height=0, rest=blocks.whole) if large and blocks.height else blocks


def _padded(a: Tensor, blocks: Blocks) -> Tensor:
    """``[groups, height, F]``: the rows in the batch, the last of each group repeated."""
    return a.index_select(0, blocks.gather).view(blocks.num_groups, blocks.height, a.size(1))
