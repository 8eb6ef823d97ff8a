"""The process that has claimed a run, and whether it is still alive."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

import psutil

SILENCE = 600.0  # seconds without a heartbeat after which a process on another machine counts as dead
_SAME = 2.0  # tolerance in seconds: some systems derive start times from a clock that may be adjusted


@dataclass(frozen=True)
class Owner:
    """A process. Process ids are reused, so its start time identifies it, too.

    Attributes:
        host: The machine and, on Linux, its PID namespace (containers have their own).
        pid: Process id.
        started: Start time in seconds since boot, which no change of the clock affects.
    """

    host: str
    pid: int
    started: float

    @property
    def machine(self) -> str:
        """The machine without the PID namespace."""
        return self.host.partition(" ")[0]

    def is_alive(self, heartbeat: float, now: float) -> bool:
        """Whether it still runs: looked up on the same host, otherwise judged by its last ``heartbeat``."""
        if self.host != here():
            return abs(now - heartbeat) < SILENCE
        try:
            there = psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE
            return there and self.same_start(_started(self.pid))
        except psutil.NoSuchProcess:
            return False

    def same_start(self, started: float) -> bool:
        """Whether a process with this id and the given start time is this one."""
        return abs(started - self.started) < _SAME


def process(pid: int) -> Owner:
    """A process of this machine, by its id."""
    return Owner(here(), pid, _started(pid))


def this_process() -> Owner:
    """The current process."""
    return process(os.getpid())


def here() -> str:
    """This machine and, on Linux, the PID namespace: in another one, the same id is another process."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return socket.gethostname()


def _started(pid: int) -> float:
    """Both times go by the clock, so their difference does not; Linux counts in hundredths of a second."""
    return round(psutil.Process(pid).create_time() - psutil.boot_time(), 2)
