"""Degree to matrix: what the nodes of one degree multiply their aggregated neighbourhood with.

Every scheme is a rule that gives each degree a matrix, :meth:`DegreeWeights.matrices`: that is its definition. It is
carried out on rows grouped by degree (a :class:`~demonet.DegreeLayout`) or on rows in any order (a plain
``edge_index``), by whichever equal way costs least.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter, is_lazy

from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks

# Adding a shared matrix to every task's costs memory traffic; a second product costs arithmetic. Measured on CPU, the
# first is cheaper once a task has this many rows.
ROWS_PER_TASK = 32
TELLS_APART = torch.__version__ >= "2.13"  # older versions say of what they compile that it is exported, too
IN_CACHE = 2**20  # numbers: to add a matrix to so many costs a layer on a CPU less than a second product


class DegreeWeights(nn.Module):
    """A matrix ``[in_channels, width]`` for every degree.

    Args:
        in_channels: Width of the aggregated neighbourhood, or -1 to take it from the first input.
        width: Width of the neighbourhood half of the layer's output.
        tasks: Which degrees share a task.
    """

    shared: Tensor

    def __init__(self, in_channels: int, width: int, tasks: DegreeTasks) -> None:
        super().__init__()
        self.in_channels, self.width, self.tasks = in_channels, width, tasks
        self._counts: dict[str, tuple[int, ...]] = {}
        self._kept: tuple[Tensor, Tensor] | None = None

    def _constant(self, degree: Tensor, make: Callable[[Tensor], Tensor]) -> Tensor:
        """``make(degree)``, in which no parameter takes part: made once for a layout, not once an epoch."""
        like = next(self.parameters())
        if torch.compiler.is_compiling():
            return make(degree)
        if self._kept is None or self._kept[0] is not degree or self._kept[1].device != like.device:
            self._kept = (degree, make(degree))
        return self._kept[1]

    def matrices(self, degree: Tensor) -> Tensor:
        """``[len(degree), in_channels, width]``: the matrix that nodes of each degree use."""
        raise NotImplementedError

    def for_groups(self, layout: DegreeLayout) -> Tensor | None:
        """``[groups, in_channels, width]``: the matrix of every group of rows, or None where another way costs less."""
        raise NotImplementedError

    def terms(self, layout: DegreeLayout) -> tuple[Tensor | None, Tensor] | None:
        """A matrix that all groups share, if there is one, and one for every group to add to it; None as above."""
        matrices = self.for_groups(layout)
        return None if matrices is None else (None, matrices)

    def fold(self, a: Tensor, layout: DegreeLayout) -> Tensor:
        """The part of the work that no parameter takes part in; for a constant input it is done once."""
        return a

    def by_group(self, a: Tensor, layout: DegreeLayout) -> Tensor:
        """Each row of ``fold(a, layout)`` times its degree's matrix; rows stand in degree order."""
        raise NotImplementedError

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        """Each row of ``a`` times the matrix of its own degree; rows in any order, no size read from the data."""
        raise NotImplementedError

    def materialize(self, in_channels: int) -> None:
        """Fix a width that was left open (-1)."""
        self.in_channels = in_channels
        for name, parameter in self.named_parameters(recurse=False):
            if isinstance(parameter, UninitializedParameter):
                parameter.materialize((*self._counts[name], in_channels, self.width))
        if self._counts:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        raise NotImplementedError

    def _declare(self, **counts: tuple[int, ...]) -> None:
        """Parameters ``[*count, in_channels, width]``, without storage as long as the width is open."""
        self._counts = counts
        for name, count in counts.items():
            shape = (*count, self.in_channels, self.width)
            setattr(self, name, UninitializedParameter() if self.is_open else nn.Parameter(torch.empty(shape)))

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """An open parameter is saved as such: it has nothing to detach yet."""
        if self.is_open and self._counts:
            destination.update({f"{prefix}{name}": getattr(self, name) for name in self._counts})
        else:
            super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *args: Any) -> None:
        """Loading a state into weights whose width is still open fixes the width."""
        saved = state.get(f"{prefix}shared")
        if self.is_open and saved is not None and not is_lazy(saved):
            self.materialize(saved.size(0))
        super()._load_from_state_dict(state, prefix, *args)

    @property
    def is_open(self) -> bool:
        """Whether the width is still to be taken from the first input."""
        return self.in_channels == -1

    def extra_repr(self) -> str:
        """What print shows."""
        return f"{self.in_channels}, {self.width}"


def pays(rows_per_degree: int, layout: DegreeLayout) -> bool:
    """Whether degrees have so many rows on average that a matrix for each of them pays.

    An exported program serves graphs of every size: there the sizes at hand decide nothing.
    """
    return not exporting() and layout.degrees.size(0) * rows_per_degree <= layout.num_nodes


def exporting() -> bool:
    """Whether a program is being made for graphs of every size, not for the one at hand."""
    return torch.compiler.is_exporting() and (TELLS_APART or not torch.compiler.is_dynamo_compiling())


def glorot_(matrix: Tensor, scale: float = 1.0) -> None:
    """Glorot's uniform draw for matrices ``[..., in, out]``, each on its own."""
    bound = scale * (6.0 / (matrix.size(-2) + matrix.size(-1))) ** 0.5
    with torch.no_grad():
        matrix.uniform_(-bound, bound)
