"""Memo: a result that is kept as long as the tensors that it follows from are the same.

And a tape: what a computation has to find again when it is repeated for its derivatives.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


@contextmanager
def lasting() -> Iterator[None]:
    """Make tensors that any later call may use: not in inference mode, and without a graph of derivatives.

    A first call may be an evaluation under ``torch.inference_mode``. Training cannot save the tensors of that mode.
    """
    with torch.inference_mode(False), torch.no_grad():
        yield


_TAPE = threading.local()


def taped(make: Callable[[], T]) -> T:
    """``make()``, for what differs from call to call: where a computation is repeated, what it was the first time."""
    tape: Callable[[Callable[[], T]], T] | None = getattr(_TAPE, "now", None)
    return make() if tape is None else tape(make)


@contextmanager
def on_tape(tape: Callable[[Callable[[], Any]], Any]) -> Iterator[None]:
    """Let a function note or replace what :func:`taped` gives, in this thread."""
    before, _TAPE.now = getattr(_TAPE, "now", None), tape
    try:
        yield
    finally:
        _TAPE.now = before


def changes(tensor: Tensor) -> tuple[int, int] | None:
    """What changes when a tensor is changed in place: torch's count of changes, and the address.

    Torch does not count changes through ``tensor.data`` or a NumPy array that shares the memory. Tensors made in
    inference mode, and those that ``torch.func`` maps over, have no count: None.
    """
    if tensor.is_inference() or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return None
    return tensor._version, tensor.data_ptr() if tensor.layout == torch.strided else 0


class Memo(Generic[T]):
    """One result and the tensors that it was computed from, which are not kept alive.

    A tensor is the same if it is the same object, and :func:`changes` says so. Nothing is kept of tensors that were
    made in inference mode. Copies and files of a memo are empty. What is kept is replaced as a whole: several threads
    may use a memo.
    """

    def __init__(self) -> None:
        self._kept: tuple[list[weakref.ref[Tensor]], list[Any], T | None] | None = None

    @property
    def value(self) -> T | None:
        """What is kept now."""
        return None if self._kept is None else self._kept[2]

    def get(
        self, given: list[Tensor | None], make: Callable[[], T], *, facts: Any = None, at_once: bool = True
    ) -> T | None:
        """The kept result, or a new one if a tensor is another one or has changed.

        A repeated computation gets None where it got None: the graph of its derivatives is the same.

        Args:
            given: The tensors that the result follows from.
            make: Computes it.
            facts: What else it follows from.
            at_once: Whether to compute it when the tensors come for the first time; otherwise the result is None then,
                so that nothing is kept of tensors that never come again.
        """
        return self._get(given, make, facts) if at_once else taped(lambda: self._get(given, make, facts, at_once=False))

    def _get(self, given: list[Tensor | None], make: Callable[[], T], facts: Any, *, at_once: bool = True) -> T | None:
        there = [tensor for tensor in given if tensor is not None]
        counts = [changes(tensor) for tensor in there]
        if None in counts:
            return make() if at_once else None
        marks, kept = [facts, [tensor is None for tensor in given], counts], self._kept
        if kept is None or kept[1] != marks or any(ref() is not one for ref, one in zip(kept[0], there, strict=True)):
            self._kept = kept = [weakref.ref(tensor) for tensor in there], marks, None
            if not at_once:
                return None
        refs, marks, value = kept
        if value is None:
            with lasting():
                value = make()
            self._kept = refs, marks, value
        return value

    def __deepcopy__(self, memo: dict[int, object]) -> Memo[T]:
        return Memo()

    def __reduce__(self) -> tuple[type[Memo[T]], tuple[()]]:
        return Memo, ()
