"""Memo: a result that is kept as long as the tensors that it follows from are the same."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from demonet.degree.keep import lasting

T = TypeVar("T")
_Mark = tuple[Any, ...] | None


class Memo(Generic[T]):
    """One result and the tensors that it was computed from.

    A tensor is the same if it is the same object at the same address and torch has counted no in-place change of it.
    The tensors are not kept alive. Torch does not count changes through ``tensor.data`` or a NumPy array that shares
    the memory, so these are not noticed. Tensors made in inference mode have no counter: their results are not kept.
    """

    def __init__(self) -> None:
        self._marks: list[_Mark] | None = None
        self._value: T | None = None

    def get(self, given: list[Tensor | None], make: Callable[[], T], *, at_once: bool = True) -> T | None:
        """The kept result, or a new one if a tensor is another one or has changed.

        Args:
            given: The tensors that the result follows from.
            make: Computes it.
            at_once: Whether to compute it when the tensors come for the first time; otherwise the result is None then,
                so that nothing is kept of tensors that never come again.
        """
        if any(tensor is not None and tensor.is_inference() for tensor in given):
            return make() if at_once else None
        if self._marks is None or not all(map(_same, self._marks, given)):
            self._marks, self._value = [_mark(tensor) for tensor in given], None
            if not at_once:
                return None
        if self._value is None:
            with lasting():
                self._value = make()
        return self._value

    def __deepcopy__(self, memo: dict[int, object]) -> Memo[T]:
        return Memo()

    def __reduce__(self) -> tuple[type[Memo[T]], tuple[()]]:
        return Memo, ()


def _mark(tensor: Tensor | None) -> _Mark:
    return None if tensor is None else (weakref.ref(tensor), tensor._version, _address(tensor))


def _same(mark: _Mark, tensor: Tensor | None) -> bool:
    if mark is None or tensor is None:
        return mark is None and tensor is None
    return mark[0]() is tensor and mark[1:] == (tensor._version, _address(tensor))


def _address(tensor: Tensor) -> int:
    return tensor.data_ptr() if tensor.layout == torch.strided else 0
