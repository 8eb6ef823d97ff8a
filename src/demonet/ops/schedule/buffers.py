"""Buffers: memory for large results that is reused in the next epoch.

The system clears fresh memory page by page at the first touch. For the derivative by ten million parameters that takes
as long as the rest of an epoch. So memory is kept here, and handed out again once no tensor, view or NumPy array uses
it.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

from demonet.ops import backend


class Buffers:
    """Storages by size, each used by at most one result at a time."""

    def __init__(self) -> None:
        self._kept: dict[int, list[torch.UntypedStorage]] = {}
        self._lock = threading.Lock()

    def empty(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """An uninitialised CPU tensor with the dtype of ``like``."""
        size = torch.Size(shape).numel() * like.element_size()
        if size < backend.current().buffer_bytes:
            return like.new_empty(shape)
        with self._lock:
            kept = self._kept.setdefault(size, [])
            free = next((storage for storage in kept if _references(storage) == 1), None)
            if free is None:
                free = torch.UntypedStorage(size)
                kept.append(free)
            return like.new_empty(0).set_(free, 0, shape)  # type: ignore[call-overload]

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffers:
        return Buffers()

    def __reduce__(self) -> tuple[type[Buffers], tuple[()]]:
        return Buffers, ()


def _references(storage: torch.UntypedStorage) -> int:
    """Number of references to the memory, including the one here."""
    return int(torch._C._storage_Use_Count(storage._cdata))
