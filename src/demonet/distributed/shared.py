"""Rows that the processes of one machine read from each other's memory, instead of sending them through a socket.

A socket copies every row four times, which takes as long as a layer. Here a process writes its rows once, and the
others read what they need. Between machines, and on GPUs, rows are sent (:mod:`demonet.distributed.group`).
"""

from __future__ import annotations

import os
import platform
import uuid
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

_FOLDER = Path("/dev/shm")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class SharedRows:
    """Memory that all processes of a group map: each of them writes to its own part and reads those of the others."""

    def __init__(self, parts: list[Tensor]) -> None:
        self._parts = parts

    @classmethod
    def open(cls, size: int) -> SharedRows | None:
        """Memory with so many bytes for this process, opened by all together; None if they cannot share memory.

        They cannot on several machines, and where the system has no room for it: containers often have 64 MB.
        """
        size = max(size, 1)
        path = _FOLDER / f"demonet-{uuid.uuid4().hex}"
        found: list[tuple[str, int, str | None]] = [("", 0, None)] * dist.get_world_size()
        dist.all_gather_object(found, (_machine(), size, _reserve(path, size)))
        try:
            if len({machine for machine, _, _ in found}) > 1:
                return None
            parts = [
                torch.from_file(name, shared=True, size=count, dtype=torch.uint8)
                for _, count, name in found
                if name is not None
            ]
            dist.barrier()  # all have opened all files: they may lose their names, and vanish with the processes
        finally:
            path.unlink(missing_ok=True)
        return cls(parts) if len(parts) == len(found) else None

    def part(self, rank: int, rows: int, like: Tensor) -> Tensor:
        """``[rows, width]`` at the beginning of the part of a process, with the width and dtype of ``like``."""
        size = rows * like.size(1)
        return self._parts[rank][: size * like.element_size()].view(like.dtype).view(rows, like.size(1))


def _reserve(path: Path, size: int) -> str | None:
    """Create a file in memory; None where there is no room. Reserved at once: later a write would kill the process."""
    if not hasattr(os, "posix_fallocate") or not _FOLDER.is_dir():
        return None
    try:
        with path.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, size)
    except OSError:
        return None
    return str(path)


def _machine() -> str:
    """What is the same for all processes of one running machine, and differs between machines."""
    return f"{platform.node()} {_BOOT.read_text() if _BOOT.exists() else ''}"
