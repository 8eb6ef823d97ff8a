"""Scheme ``weight`` (Eq. 7): a free matrix for every task."""

from __future__ import annotations

import torch
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.nn.weights.base import DegreeWeights, enough_rows, glorot_, register
from demonet.ops import backend, degree_linear, degree_linear_rows, grouped


@register("weight")
class IndependentWeights(DegreeWeights):
    r"""Eq. 7: :math:`W_g + W_d`, one matrix shared by all degrees and a free one for each task.

    A degree outside the tasks has the shared matrix alone.

    Attributes:
        shared: ``[in_channels, width]``, :math:`W_g`.
        own: ``[tasks, in_channels, width]``, :math:`W_d`. The last of exact tasks is for unseen degrees and has none.
    """

    own: Tensor

    def __init__(self, in_channels: int, width: int, tasks: DegreeTasks, *, degree_scale: float = 1.0) -> None:
        super().__init__(in_channels, width, tasks)
        self.degree_scale = degree_scale
        self._declare(shared=(), own=(tasks.num_tasks - (tasks.kind == "exact"),))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot for each matrix; those of single degrees are scaled by ``degree_scale``."""
        if not self.is_open:
            glorot_(self.shared)
            glorot_(self.own, self.degree_scale)

    def _own_task(self, degree: Tensor) -> Tensor:
        """The index into ``own`` of each degree; -1 for unseen degrees."""
        task = self.tasks(degree)
        return torch.where(task < self.own.size(0), task, -1)

    def matrices(self, degree: Tensor) -> Tensor:
        """:math:`W_g + W_d`."""
        return self.shared + self._chosen(self._own_task(degree))

    def _chosen(self, task: Tensor) -> Tensor:
        if self.tasks.kind != "exact":  # several degrees per task: their derivatives are added in a fixed order
            chosen = torch.nn.functional.one_hot(task, self.own.size(0)).to(self.own.dtype)
            return (chosen @ self.own.flatten(1)).view(-1, *self.shared.shape)
        # Degrees outside the tasks get a matrix of zeros.
        own = torch.cat([self.own, torch.zeros_like(self.shared)[None]])
        return own.index_select(0, torch.where(task < 0, self.own.size(0), task))

    def for_groups(self, layout: DegreeLayout) -> Tensor | None:
        """The sums :math:`W_g + W_d`, where degrees have enough rows, or the matrices fit into the cache."""
        small = self.own.device.type == "cpu" and self._fits_cache() and not backend.exporting()
        if not small and not enough_rows(backend.ROWS_PER_TASK, layout):
            return None
        return self.shared + self._own(layout)

    def _fits_cache(self) -> bool:
        return self.own.numel() <= backend.CACHED_ENTRIES

    def _own(self, layout: DegreeLayout) -> Tensor:
        """The own matrix of every group of rows."""
        task = self._constant(layout.degrees, self._group_tasks)
        return self._chosen(task) if task.numel() or layout.num_nodes == 0 else self.own

    def _group_tasks(self, degree: Tensor) -> Tensor:
        """The task of every degree; empty where task k is degree k, so that the matrices can be used as they are."""
        task = self._own_task(degree)
        if backend.tracing():
            return task
        same = task.numel() == self.own.size(0) and bool((task == torch.arange(task.numel(), device=task.device)).all())
        return task[:0] if same else task

    def by_group(self, a: Tensor, layout: DegreeLayout) -> Tensor:
        """Two products: the shared one, and one grouped by task."""
        if a.device.type == "cpu" and not backend.tracing():
            return a @ self.shared + grouped(a, self._own(layout), layout)
        return a @ self.shared + degree_linear(a, self.own, layout.offsets, self._own_task(layout.degrees))

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        """The shared product and the grouped one."""
        return a @ self.shared + degree_linear_rows(a, self.own, self._own_task(degree))

    @property
    def stack_size(self) -> int:  # type: ignore[override]
        """The matrix of every task, and one more for unseen degrees."""
        return self.own.size(0) + 1

    def stack(self) -> Tensor:
        """:math:`W_g + W_d` of every task, and :math:`W_g`."""
        return torch.cat([self.shared + self.own, self.shared[None]])

    def reads(self, degree: Tensor) -> tuple[Tensor, Tensor]:
        """The matrix of the task."""
        task = self._own_task(degree)
        task = torch.where(task < 0, self.own.size(0), task)[:, None]
        return task, torch.ones(task.shape, dtype=self.shared.dtype, device=task.device)
