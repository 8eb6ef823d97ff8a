r"""The readout of graphs (Eq. 11 and 12): the rows of every layer summed by graph and task, side by side.

.. math:: h_G = \mathrm{CONCAT}_k \; \mathrm{CONCAT}_t \sum_{v \in G : t(v) = t} h^k_v

With ``total``, the blocks of a layer have half weight, and the sum over all tasks precedes them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from demonet.ops import backend, library


class ReadOut(NamedTuple):
    """How rows are summed.

    Attributes:
        batch: ``[n]`` the graph of each row.
        task: ``[n]`` its task.
        num_graphs, num_tasks: How many there are.
        mode: ``"sum"`` or ``"mean"`` of the rows of a task in a graph.
        total: Whether the sum over all tasks is there too.
    """

    batch: Tensor
    task: Tensor
    num_graphs: int
    num_tasks: int
    mode: str = "sum"
    total: bool = False


def definition(given: ReadOut, levels: list[Tensor]) -> Tensor:
    """The readout made of operators that can be traced."""
    h, widths = torch.cat(levels, 1), [level.size(1) for level in levels]
    cell, num_cells = given.batch * given.num_tasks + given.task, given.num_graphs * given.num_tasks
    shape = (given.num_graphs, given.num_tasks, h.size(1))
    blocks = library.ops.degree_pool(h, cell, num_cells, given.mode).view(shape)
    if given.total:
        blocks = torch.cat([blocks.sum(1, keepdim=True), blocks / 2], 1)
    return torch.cat([level.flatten(1) for level in blocks.split(widths, 2)], 1)


def read_out(given: ReadOut, levels: list[Tensor]) -> Tensor:
    """``[num_graphs, tasks * width of all levels]``: :func:`definition`.

    Args:
        given: How rows are summed.
        levels: ``[n, width]`` the rows of each layer.
    """
    if not backend.eager(*levels):
        return definition(given, levels)
    out: Tensor = _ReadOut.apply(given, *levels)
    return out


class _ReadOut(torch.autograd.Function):
    """Its derivative is made of torch's operators, which have derivatives."""

    @staticmethod
    def forward(ctx: Any, given: ReadOut, *levels: Tensor) -> Tensor:
        graphs, first = given.num_graphs, int(given.total)
        blocks = given.num_tasks + first
        cell = given.batch * blocks + given.task
        h, cell = torch.cat(levels, 1), cell + 1 if first else cell
        widths = [level.size(1) for level in levels]
        sums = library.kernel_of("degree_pool", h)(h, cell, graphs * blocks, given.mode)
        sums = sums.view(graphs, blocks, h.size(1))
        if given.total:
            torch.sum(sums[:, 1:], 1, out=sums[:, 0])
            sums[:, 1:].mul_(0.5)
        ctx.given, ctx.cell, ctx.blocks, ctx.widths = given, cell, blocks, widths
        return torch.cat([level.flatten(1) for level in sums.split_with_sizes(widths, 2)], 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        graphs, blocks, cell = ctx.given.num_graphs, ctx.blocks, ctx.cell
        parts = grad.split_with_sizes([blocks * width for width in ctx.widths], 1)
        count = None
        if ctx.given.mode == "mean":
            count = torch.bincount(cell, minlength=graphs * blocks).clamp(min=1).to(grad.dtype)[:, None]
        found: list[Tensor | None] = []
        for part, width, need in zip(parts, ctx.widths, ctx.needs_input_grad[1:], strict=True):
            if not need:
                found.append(None)
                continue
            by = part.reshape(graphs, blocks, width)
            if ctx.given.total:
                by = torch.add(by[:, :1], by, alpha=0.5)
            by = by.reshape(graphs * blocks, width)
            found.append((by if count is None else by / count).index_select(0, cell))
        return None, *found
