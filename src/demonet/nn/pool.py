"""DegreePooling (Eq. 11): a graph read out degree by degree."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.nn.edges import check_degrees, check_length
from demonet.nn.prepared import check_batch
from demonet.ops import backend, degree_pool


class DegreePooling(nn.Module):
    r"""Sum the nodes of each degree on their own, and put the sums side by side.

    .. math:: h_G = \mathrm{CONCAT}_d \sum_{v : \deg(v) = d} h_v

    The tasks are fixed, so graphs with different sets of degrees get vectors of one length. Exact tasks keep a block
    for unseen degrees: no node is dropped.

    Args:
        tasks: Which degrees share a block.
        mode: ``"sum"`` (Eq. 11) or ``"mean"`` inside a block; an empty block is zero in both.

    Shapes:
        ``h [n, width]``, ``degree [n]``, ``batch [n]`` to ``[graphs, tasks * width]``.

    >>> pool = DegreePooling(DegreeTasks.exact(torch.tensor([1, 2])))
    >>> pool(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1, 2, 1]), None)
    tensor([[5., 2., 0.]])
    """

    def __init__(self, tasks: DegreeTasks, mode: str = "sum") -> None:
        super().__init__()
        if mode not in ("sum", "mean"):
            raise DemonetError(f"mode={mode!r} is not one of 'sum', 'mean'")
        self.tasks, self.mode = tasks, mode

    def forward(self, h: Tensor, degree: Tensor, batch: Tensor | None, num_graphs: int | None = None) -> Tensor:
        """Read every graph out.

        The batch has no default, so that ``pool(h, batch)``, the call of PyG's pooling, is refused.

        Args:
            h: ``[n, width]`` node representations.
            degree: ``[n]`` the degree of each node (``[n, 2]`` for pairs).
            batch: ``[n]`` the graph of each node; None for one graph.
            num_graphs: Number of graphs; read from ``batch`` if not given.
        """
        if batch is None:
            batch, num_graphs = torch.zeros(h.size(0), dtype=torch.long, device=h.device), num_graphs or 1
        check_length("representations", "node", h, h.size(0), dim=2)
        check_degrees(degree, h.size(0), self.tasks.by)
        check_length("batch entries", "node", batch, h.size(0))
        if batch.is_cpu and not backend.tracing():  # nothing waits for a GPU
            check_batch(batch, h.size(0), num_graphs)
        if num_graphs is None:
            num_graphs = int(batch.max()) + 1 if batch.numel() else 0
        return degree_pool(h, self.tasks(degree), batch, self.tasks.num_tasks, num_graphs, self.mode)
