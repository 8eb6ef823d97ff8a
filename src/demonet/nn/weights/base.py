"""Degree to matrix: what the nodes of one degree multiply their aggregated neighbourhood with.

A scheme is a subclass of :class:`DegreeWeights` in a file of its own, registered by name::

    @register("mine")
    class MyWeights(DegreeWeights): ...

The layer, the models, the estimators and the command line then accept ``scheme="mine"``. A scheme must have
:meth:`~DegreeWeights.matrices` (its definition), :meth:`~DegreeWeights.by_row` and
:meth:`~DegreeWeights.reset_parameters`. The other methods have defaults that follow from these; override them where
there is a faster way. The steps are in ``docs/extending/scheme.md``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter, is_lazy

from demonet.degree.keep import Memo, lasting
from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.ops import backend
from demonet.ops.backend import is_sparse
from demonet.ops.reference import activate
from demonet.ops.scale import Splines, scale_rows
from demonet.ops.sparse import csr, dense_blocks, sparse_linear

T = TypeVar("T")
SCHEMES: dict[str, type[DegreeWeights]] = {}


def register(name: str) -> Callable[[type[DegreeWeights]], type[DegreeWeights]]:
    """Make a class available as ``scheme=name``."""

    def add(scheme: type[DegreeWeights]) -> type[DegreeWeights]:
        SCHEMES[name] = scheme
        return scheme

    return add


def make_weights(scheme: str, in_channels: int, width: int, tasks: DegreeTasks, **options: Any) -> DegreeWeights:
    """The weights of a scheme. Options that are not arguments of its constructor are left out."""
    if scheme not in SCHEMES:
        raise DemonetError(f"scheme={scheme!r} is not one of {', '.join(map(repr, SCHEMES))}")
    taken = inspect.signature(SCHEMES[scheme]).parameters
    return SCHEMES[scheme](in_channels, width, tasks, **{name: options[name] for name in options if name in taken})


class Removable(nn.Module):
    """A module whose parameters can be replaced by zeros that stay zero.

    A zero is a buffer: it moves and is saved with the module, and is not trained. Drawing parameters again and
    ``to_empty``, which leaves memory uninitialised, write zeros; a ``state_dict`` with another value there is refused.

    Attributes:
        removed: The names of what was replaced.
    """

    removed: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Let ``reset_parameters`` leave at zero what was removed; those who write a scheme need not think of it."""
        super().__init_subclass__(**options)
        draw: Callable[[Any], None] = cls.reset_parameters

        @functools.wraps(draw)
        def reset_parameters(self: Removable) -> None:
            draw(self)
            self._clear()

        cls.reset_parameters = reset_parameters  # type: ignore[method-assign]

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        raise NotImplementedError

    def set_to_zero(self, name: str) -> None:
        """Replace a parameter by zeros for good."""
        if name not in self.removed:
            zero = torch.zeros_like(getattr(self, name), requires_grad=False)
            delattr(self, name)
            self.register_buffer(name, zero)
            self.removed = (*self.removed, name)

    def _clear(self) -> None:
        for zero in map(self.get_buffer, self.removed):
            with torch.inference_mode(zero.is_inference()):
                zero.zero_()

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self._clear()
        return self

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *args: Any) -> None:
        for name in self.removed:
            saved = state.get(f"{prefix}{name}")
            if saved is not None and not is_lazy(saved) and not saved.is_meta and bool(saved.count_nonzero()):
                raise DemonetError(
                    f"the state_dict has values other than zero in {prefix}{name}, a term that was removed here",
                    hint="make the layer without= a term only for a state that was saved without it",
                )
        super()._load_from_state_dict(state, prefix, *args)


class DegreeWeights(Removable):
    """A matrix ``[in_channels, width]`` for every degree.

    Args:
        in_channels: Width of the aggregated neighbourhood, or -1 to take it from the first input.
        width: Width of the neighbourhood half of the layer's output.
        tasks: Which degrees share a task.

    Attributes:
        shared: ``[in_channels, width]``, the part of every matrix that all degrees have in common.
        terms: The terms that have parameters of their own, so that they can be removed: ``"shared"``, ``"degree"``.
        uses_tasks: Whether the number of tasks matters; otherwise only their largest degree does.
    """

    shared: Tensor
    terms: tuple[str, ...] = ("shared", "degree")
    uses_tasks = True

    def __init__(self, in_channels: int, width: int, tasks: DegreeTasks) -> None:
        super().__init__()
        self.in_channels, self.width, self.tasks = in_channels, width, tasks
        self._counts: dict[str, tuple[int, ...]] = {}
        self._cache: dict[str, tuple[Any, ...]] = {}
        self._columns: Memo[Sequence[Tensor]] = Memo()
        self._spread_rows: Memo[Tensor] = Memo()
        self._spread_columns: Memo[Sequence[Tensor]] = Memo()

    def matrices(self, degree: Tensor) -> Tensor:
        """``[len(degree), in_channels, width]``: the matrix that nodes of each degree use.

        Args:
            degree: ``[n]``, or ``[n, 2]`` for tasks by pair.
        """
        raise NotImplementedError

    def by_row(self, a: Tensor, degree: Tensor) -> Tensor:
        """Each row of ``a`` times the matrix of its degree; rows in any order.

        No shape may depend on the values in ``degree``: ``torch.export`` has to record it.
        """
        raise NotImplementedError

    def by_group(self, a: Tensor, layout: DegreeLayout) -> Tensor:
        """:meth:`by_row` for rows in degree order; ``a`` is what :meth:`fold` returned."""
        return self.by_row(a, layout.key)

    def by_sparse(self, a: Tensor, degree: Tensor) -> Tensor:
        """:meth:`by_row` for sparse rows ``a``; with a stack, one sparse product with its matrices below each other."""
        if not self.stack_size:
            return torch.cat([self.by_row(block, degree[place]) for place, block in dense_blocks(a)])
        stack = self.stack().flatten(0, 1)
        if backend.tracing():
            return self.finish(sparse_linear(self._spread(a, degree), stack), degree)
        rows = self._spread_rows.get([a, degree], lambda: self._spread(a, degree), facts=self.tasks.max_degree)
        assert rows is not None
        return self.finish(sparse_linear(rows, stack, self._spread_columns), degree)

    def _spread(self, a: Tensor, degree: Tensor) -> Tensor:
        """Every entry of a row in the columns of the matrices of the stack that the row reads, times their shares."""
        matrix, share = self.reads(degree)
        row = torch.repeat_interleave(a.crow_indices().diff(), output_size=a.values().numel())
        columns = a.col_indices()[:, None] + matrix[row] * self.in_channels
        values = a.values()[:, None] * share[row].to(a.dtype)
        pointer = a.crow_indices() * matrix.size(1)
        return csr(pointer, columns.flatten(), values.flatten(), (a.size(0), self.stack_size * self.in_channels))

    # Few matrices of which every degree mixes some: rows can be multiplied by them before they are summed.

    stack_size = 0
    """Number of matrices in :meth:`stack`; 0 for a scheme that has none: that of every degree can be used then."""

    reads_each = 1
    """How many of them a degree mixes."""

    def stack(self) -> Tensor:
        """``[stack_size, in_channels, width]``: matrices of which the matrix of every degree is a mixture."""
        raise NotImplementedError

    def reads(self, degree: Tensor) -> tuple[Tensor, Tensor]:
        """Which matrices of the stack each degree mixes, ``[n, k]``, and the share of each, ``[n, k]``."""
        raise NotImplementedError

    def finish(
        self,
        y: Tensor,
        degree: Tensor,
        bias: Tensor | None = None,
        own: Tensor | None = None,
        activation: str = "none",
    ) -> Tensor:
        """What remains to be done with the mixed products, then what the layer adds, and its activation."""
        splines = self.splines(degree)
        if splines is not None:
            return scale_rows(y, splines, bias, own, activation)
        y = y if own is None else own + y
        return activate(y if bias is None else y + bias.to(y.dtype), activation)

    def splines(self, degree: Tensor) -> Splines | None:
        """What scales and moves the columns of the products, for schemes that do so."""
        return None

    def by_folded(self, a: Tensor, degree: Tensor) -> Tensor:
        """:meth:`by_row` for what :meth:`fold` returned, dense or sparse, in any order."""
        return self.by_sparse(a, degree) if is_sparse(a) else self.by_row(a, degree)

    def for_groups(self, layout: DegreeLayout) -> Tensor | None:
        """``[groups, in_channels, width]``: the matrix of every group; None where :meth:`by_group` is cheaper."""
        return None

    def fold(self, a: Tensor, degree: Tensor) -> Tensor:
        """The part of the work on ``a`` that needs no parameter; for a constant input it is done once."""
        return a

    def degree_parameters(self) -> list[nn.Parameter]:
        """Parameters that belong to single degrees: training decays them by ``degree_decay``."""
        return [parameter for name, parameter in self.named_parameters(recurse=False) if name in self._own_names()]

    def remove_term(self, term: str) -> None:
        """Set the ``"shared"`` or the ``"degree"`` term to a constant zero."""
        if term not in self.terms:
            raise DemonetError(
                f"{type(self).__name__} has no separate {term!r} term", hint="the same parameters serve both terms"
            )
        for name in ("shared",) if term == "shared" else self._own_names():
            self.set_to_zero(name)

    def materialize(self, in_channels: int) -> None:
        """Fix a width that was left open (-1)."""
        self.in_channels = in_channels
        with lasting():
            for name, parameter in self.named_parameters(recurse=False):
                if isinstance(parameter, UninitializedParameter):
                    parameter.materialize((*self._counts[name], in_channels, self.width))
            if self._counts:
                self.reset_parameters()

    @property
    def is_open(self) -> bool:
        """Whether the width is still to be taken from the first input."""
        return self.in_channels == -1

    def _declare(self, **counts: tuple[int, ...]) -> None:
        """Add parameters ``[*count, in_channels, width]``, uninitialised as long as the width is open."""
        self._counts = counts
        for name, count in counts.items():
            shape = (*count, self.in_channels, self.width)
            setattr(self, name, UninitializedParameter() if self.is_open else nn.Parameter(torch.empty(shape)))

    def _own_names(self) -> list[str]:
        """Names of the declared parameters that are not shared by all degrees."""
        return [name for name in self._counts if name != "shared"]

    def _constant(self, degree: Tensor, make: Callable[[Tensor], T]) -> T:
        """``make(degree)``, which involves no parameter: computed once per layout, device and dtype.

        Batches of small graphs are other layouts with the same few degrees, so there the degrees are compared.
        """
        if backend.tracing():
            return make(degree)
        like, known = next(self.parameters()), self._cache.get(make.__name__)
        state = like.device, like.dtype, self.tasks.max_degree
        if known is None or known[1] != state or not _same(known[0], degree):
            with lasting():
                known = self._cache[make.__name__] = (degree, state, make(degree))
        value: T = known[2]
        return value

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """An open parameter is saved as such: it has no values yet."""
        if not self.is_open or not self._counts:
            super()._save_to_state_dict(destination, prefix, keep_vars)
            return
        for name, parameter in self.named_parameters(recurse=False):
            destination[f"{prefix}{name}"] = parameter if is_lazy(parameter) or keep_vars else parameter.detach()

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *args: Any) -> None:
        """Loading a state fixes a width that is still open."""
        saved = state.get(f"{prefix}shared")
        if self.is_open and saved is not None and not is_lazy(saved):
            self.materialize(saved.size(0))
        super()._load_from_state_dict(state, prefix, *args)

    def extra_repr(self) -> str:
        """Arguments shown by ``print``."""
        return f"{self.in_channels}, {self.width}"


def _same(known: Tensor, degree: Tensor) -> bool:
    """Whether degrees are the same tensor, or a few equal numbers that can be read without waiting."""
    return known is degree or (degree.device.type == "cpu" and degree.numel() < 1024 and torch.equal(known, degree))


def enough_rows(rows_per_degree: int, layout: DegreeLayout) -> bool:
    """Whether degrees have so many rows on average that a matrix per degree pays."""
    return backend.enough_rows(rows_per_degree, layout.degrees.size(0), layout.num_nodes)


def glorot_(matrix: Tensor, scale: float = 1.0) -> None:
    """Glorot's uniform initialisation of matrices ``[..., in, out]``."""
    bound = scale * (6.0 / (matrix.size(-2) + matrix.size(-1))) ** 0.5
    with torch.no_grad():
        matrix.uniform_(-bound, bound)
