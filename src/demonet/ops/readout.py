r"""The readout of graphs (Eq. 11 and 12): the rows of every layer summed by graph and task, side by side.

.. math:: h_G = \mathrm{CONCAT}_k \; \mathrm{CONCAT}_t \sum_{v \in G : t(v) = t} h^k_v

With ``total``, the blocks of a layer have half weight, and the sum over all tasks precedes them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from demonet.ops import backend, library, reference


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


def read_out(given: ReadOut, levels: list[Tensor]) -> Tensor:
    """``[num_graphs, tasks * width of all levels]``: the readout, in one pass over all levels.

    Args:
        given: How rows are summed.
        levels: ``[n, width]`` the rows of each layer.
    """
    h, widths = torch.cat(levels, 1), [level.size(1) for level in levels]
    cell, num_cells = given.batch * given.num_tasks + given.task, given.num_graphs * given.num_tasks
    pool = reference.degree_pool if backend.direct(h) else library.operator("degree_pool")
    blocks = pool(h, cell, num_cells, given.mode).view(given.num_graphs, given.num_tasks, h.size(1))
    if given.total:
        blocks = torch.cat([blocks.sum(1, keepdim=True), blocks / 2], 1)
    return torch.cat([level.flatten(1) for level in blocks.split(widths, 2)], 1)
