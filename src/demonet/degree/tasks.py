"""DegreeTasks: which degrees share a task, and which task an unseen degree gets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, Self, get_args

import torch
import torch.distributed as dist
import torch.onnx
from torch import Tensor, nn
from torch.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX

from demonet.degree.count import By, check_by
from demonet.errors import DemonetError

Kind = Literal["exact", "buckets"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_SIDES: tuple[By, ...] = get_args(By)
PAIR_BASE = 2**31  # a pair (in, out) is one number, in * PAIR_BASE + out


class DegreeTasks(nn.Module):
    """A map from any degree, seen or not, to a task.

    Made by one of :meth:`exact` (the paper: a task for each degree value), :meth:`buckets`, :meth:`quantiles` and
    :meth:`log2` (near degrees share a task: the paper's future work). It is a module so that it moves with its layer to
    another device and is saved with it; it has no parameters. A ``state_dict`` of other tasks is refused, one without
    tasks is taken. :class:`OpenTasks` take their largest degree from the first graph that a layer sees.

    Attributes:
        kind: ``"exact"`` or ``"buckets"``.
        by: Which degree it reads: of incoming edges (``"in"``), of outgoing ones (``"out"``), or the ``"pair"``.
        num_tasks: Number of tasks. Exact tasks have one more slot, the last, for degrees never seen.
        max_degree: The largest degree in the data that the tasks were made from.
        is_open: Whether ``max_degree`` is still to be taken from the first graph; only :class:`OpenTasks` can be.

    >>> tasks = DegreeTasks.exact(torch.tensor([1, 1, 2, 5]))
    >>> tasks(torch.tensor([5, 2, 4])), tasks.num_tasks
    (tensor([2, 1, 3]), 4)
    >>> DegreeTasks.buckets([1, 2, 4])(torch.tensor([0, 1, 3, 4, 900]))
    tensor([0, 1, 2, 3, 3])
    """

    boundaries: Tensor
    is_open = False

    def __init__(self, kind: Kind, boundaries: Sequence[int] | Tensor, *, by: By = "in", max_degree: int) -> None:
        super().__init__()
        check_by(by)
        self.kind: Kind = kind
        self.by: By = by
        self.max_degree = max_degree
        self._values: list[int] = boundaries.tolist() if isinstance(boundaries, Tensor) else list(boundaries)
        self.register_buffer("boundaries", torch.as_tensor(boundaries, dtype=torch.long), persistent=False)
        per_side = len(self._values) + 1
        self.num_tasks = per_side**2 if kind == "buckets" and by == "pair" else per_side

    @classmethod
    def exact(cls, degree: Tensor, *, by: By | None = None) -> DegreeTasks:
        """A task for each distinct degree (pairs are rows ``[n, 2]``), and a last slot for every other degree."""
        by = check_degree(degree, by)
        boundaries = torch.unique(_code(degree) if by == "pair" else degree.long())
        return cls("exact", boundaries, by=by, max_degree=_largest(degree))

    @classmethod
    def buckets(
        cls, boundaries: Sequence[int] | Tensor, *, by: By = "in", max_degree: int | None = None
    ) -> DegreeTasks:
        """Tasks ``[0, b1), [b1, b2), ..., [bk, infinity)``: every degree has its bucket."""
        with torch.device("cpu"):
            given = torch.as_tensor(boundaries).flatten()
        edges = given.long()
        if edges.numel() and (edges[0] < 1 or (edges.diff() <= 0).any() or (edges != given).any()):
            raise DemonetError(
                f"bucket boundaries must be integers that ascend from at least 1, not {given.tolist()}",
                hint="for example [1, 2, 4, 8]",
            )
        if max_degree is None:
            max_degree = int(edges[-1]) if edges.numel() else 0
        return cls("buckets", edges if isinstance(boundaries, Tensor) else edges.tolist(), by=by, max_degree=max_degree)

    @classmethod
    def quantiles(cls, degree: Tensor, k: int, *, by: By | None = None) -> DegreeTasks:
        """At most ``k`` buckets that hold about equally many nodes; equal degrees stay together."""
        if k < 1:
            raise DemonetError(f"k={k} quantiles: at least 1 is needed")
        by = check_degree(degree, by)
        ordered = degree.flatten().long().sort().values
        # The degree of the first node of each of the k equal shares; a share inside one degree merges into it.
        cuts = torch.div(torch.arange(1, k, device=ordered.device) * ordered.numel(), k, rounding_mode="floor")
        edges = torch.unique(ordered[cuts]) if ordered.numel() else ordered
        edges = edges[edges > ordered[0]] if edges.numel() else edges
        return cls.buckets(edges, by=by, max_degree=_largest(degree))

    @classmethod
    def log2(cls, max_degree: int, *, by: By = "in") -> DegreeTasks:
        """Buckets ``0, 1, 2-3, 4-7, ...`` up to the one that holds ``max_degree``."""
        if max_degree < 0:
            raise DemonetError(f"max_degree={max_degree} is negative")
        return cls.buckets([2**i for i in range(int(max_degree).bit_length())], by=by, max_degree=int(max_degree))

    def forward(self, degree: Tensor) -> Tensor:
        """The task of each degree: ``[n]`` (``[n, 2]`` for pairs) to ``[n]``."""
        if self.kind == "buckets":
            bucket = torch.bucketize(degree, self.boundaries, right=True)
            if self.by == "pair":
                return bucket[:, 0] * (self.boundaries.numel() + 1) + bucket[:, 1]
            return bucket
        code = _code(degree) if self.by == "pair" else degree
        seen = self.boundaries.numel()
        if seen == 0:
            return torch.zeros_like(code)
        if torch.onnx.is_in_onnx_export():  # it has no binary search
            place = (code[:, None] > self.boundaries).sum(1).clamp(max=seen - 1)
        else:
            place = torch.searchsorted(self.boundaries, code.contiguous()).clamp(max=seen - 1)
        return torch.where(self.boundaries[place] == code, place, seen)

    def see(self, degree: Tensor) -> None:
        """The degrees of a graph that a layer was called with; only :class:`OpenTasks` take something from them."""

    def key(self, degree: Tensor) -> Tensor:
        """What a hash function is keyed on: the degree itself for exact tasks, seen or not, else the bucket."""
        if self.kind == "buckets":
            return self(degree)
        return _code(degree) if self.by == "pair" else degree.long()

    def names(self) -> list[str]:
        """A readable name for each task, in order."""
        if self.kind == "exact":
            pair = self.by == "pair"
            return [*(f"{c // PAIR_BASE}/{c % PAIR_BASE}" if pair else str(c) for c in self._values), "unseen"]
        bounds: list[Any] = [0, *self._values, None]
        side = [
            f"{low}+" if high is None else str(low) if high == low + 1 else f"{low}-{high - 1}"
            for low, high in pairwise(bounds)
        ]
        return [f"{a}/{b}" for a in side for b in side] if self.by == "pair" else side

    def state(self) -> dict[str, Any]:
        """Everything as plain values, for a file; :meth:`from_state` reads it back."""
        return {"kind": self.kind, "by": self.by, "max_degree": self.max_degree, "boundaries": list(self._values)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> DegreeTasks:
        """The tasks that :meth:`state` described."""
        return cls(state["kind"], state["boundaries"], by=state["by"], max_degree=int(state["max_degree"]))

    def reset_parameters(self) -> None:
        """Forget what was taken from a graph; only :class:`OpenTasks` take something."""

    def get_extra_state(self) -> Tensor:
        """:meth:`state` as numbers, for a ``state_dict``."""
        facts = [_KINDS.index(self.kind), _SIDES.index(self.by), self.max_degree, *self._values]
        return torch.tensor(facts, device=self.boundaries.device)

    def set_extra_state(self, state: Tensor) -> None:
        """Compare the tasks of a ``state_dict`` with these.

        Raises:
            DemonetError: When they differ: parameters would serve other degrees than those they were trained for.
        """
        kind, side, max_degree, *boundaries = state.tolist()
        saved = DegreeTasks(_KINDS[kind], boundaries, by=_SIDES[side], max_degree=max_degree)
        if saved.state() != self.state():
            raise DemonetError(
                f"the tasks of the state_dict are {saved._described()}; those of the layer are {self._described()}",
                hint="make the layer with the tasks that were saved",
            )
        if self.boundaries.is_meta:
            self._fill(state.device)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if f"{prefix}{_EXTRA_STATE_KEY_SUFFIX}" in state_dict:  # otherwise it is a state without tasks
            super()._load_from_state_dict(state_dict, prefix, *rest)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self._fill(self.boundaries.device)  # ``to_empty`` leaves memory uninitialised
        return self

    def _fill(self, device: torch.device) -> None:
        self.boundaries = torch.tensor(self._values, dtype=torch.long, device=device)

    def _described(self) -> str:
        names = self.names()
        shown = ", ".join(names if len(names) < 10 else [*names[:4], "...", *names[-3:]])
        return f"{self.kind} ({shown}), by={self.by!r}, max_degree={self.max_degree}"

    def extra_repr(self) -> str:
        """Arguments shown by ``print``."""
        return f"{self.kind}, {self.num_tasks} tasks, by={self.by!r}, max_degree={self.max_degree}"


class OpenTasks(DegreeTasks):
    """Buckets ``0, 1, 2-3, 4-7, ..., 64-127, 128+``; ``max_degree`` is that of the first graph with an edge.

    What a layer without ``tasks`` uses. The number of tasks does not depend on the graph, so that a layer has its
    parameters from the start. Only schemes with splines read ``max_degree``: it is saved in a ``state_dict``, and
    ``reset_parameters`` forgets it. Where ``torch.distributed`` is initialised, the first call is made by all ranks,
    and the largest degree of all their graphs counts. A deep copy made before the first call, as for an average of the
    weights while they are trained, takes what the original took meanwhile.
    """

    is_open = True
    _original: tuple[OpenTasks, ...] = ()  # in a tuple, it is no submodule

    def __init__(self) -> None:
        super().__init__("buckets", [2**i for i in range(8)], max_degree=0)

    def __deepcopy__(self, memo: dict[int, Any]) -> OpenTasks:
        copied = OpenTasks().to(self.boundaries.device).train(self.training)
        copied._close(self.max_degree)
        copied._original = (self, *self._original) if self.is_open else ()
        return copied

    def see(self, degree: Tensor) -> None:
        """Take ``max_degree`` from these degrees, unless it is known."""
        for original in self._original:
            if self.is_open:
                self._close(original.max_degree)
        if not self.is_open:
            return
        if torch.compiler.is_compiling():
            raise DemonetError("the degree tasks are still open", hint="call the layer once before it is compiled")
        self._close(_largest_of_ranks(_largest(degree), degree.device))

    def _close(self, max_degree: int) -> None:
        self.max_degree, self.is_open = max_degree, max_degree == 0

    def reset_parameters(self) -> None:
        """Take ``max_degree`` from the next graph."""
        self._original = ()
        self._close(0)

    def set_extra_state(self, state: Tensor) -> None:
        """Take the largest degree from a ``state_dict``."""
        self._close(int(state[2]))
        super().set_extra_state(state)


def _largest_of_ranks(largest: int, device: torch.device) -> int:
    """The largest degree that a rank sees: with one of its own, each would train another function."""
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return largest
    found = torch.tensor(largest, device=device)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return int(found)


def _code(degree: Tensor) -> Tensor:
    return degree[..., 0].long() * PAIR_BASE + degree[..., 1].long()


def check_degree(degree: Tensor, by: By | None = None) -> By:
    """Raise for anything but whole numbers of at least 0; ``by`` as given, or as their shape says."""
    if not isinstance(degree, Tensor):
        raise DemonetError(f"degrees are a {type(degree).__name__}, not a tensor")
    wrong = (degree != degree.long()) | (degree < 0)  # floats are allowed: PyG's ``degree`` returns them
    if bool(wrong.any()):
        raise DemonetError(f"a degree of {degree[wrong][0].item()}", hint="degrees are whole numbers of at least 0")
    if by is None:
        by = "pair" if degree.dim() == 2 else "in"
    if degree.dim() != (2 if by == "pair" else 1) or (by == "pair" and degree.size(1) != 2):
        raise DemonetError(
            f"by={by!r} does not fit degrees of shape {list(degree.shape)}", hint="one number a node; two for pairs"
        )
    return by


def _largest(degree: Tensor) -> int:
    return int(degree.max()) if degree.numel() else 0
