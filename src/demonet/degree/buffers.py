"""Buffers: memory for large results that is written again in the next epoch, instead of asked for anew.

Fresh memory is handed out page by page, each of which is cleared at the first touch. For the derivative by ten million
parameters that takes as long as the whole rest of an epoch. So memory is kept here, and lent again as soon as nobody
else holds it: no tensor, no view of one, no array of NumPy's.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

LEAST = 2**18  # bytes from which on it pays


class Buffers:
    """Memory that outlives what is written into it."""

    def __init__(self) -> None:
        self._kept: dict[int, list[torch.UntypedStorage]] = {}
        self._lock = threading.Lock()

    def empty(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """A tensor with arbitrary numbers in it, of the type of ``like``, in main memory."""
        size = torch.Size(shape).numel() * like.element_size()
        if size < LEAST:
            return like.new_empty(shape)
        with self._lock:
            kept = self._kept.setdefault(size, [])
            free = next((storage for storage in kept if _holders(storage) == 1), None)
            if free is None:
                free = torch.UntypedStorage(size)
                kept.append(free)
            return like.new_empty(0).set_(free, 0, shape)  # type: ignore[call-overload]

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffers:
        return Buffers()

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        return Buffers, ()


def _holders(storage: torch.UntypedStorage) -> int:
    """How many hold the memory, its place in the list here included."""
    return int(torch._C._storage_Use_Count(storage._cdata))
