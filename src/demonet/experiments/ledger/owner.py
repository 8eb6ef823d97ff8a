"""Who works on a run, and whether that process is still there."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

import psutil

SILENCE = 600.0  # seconds without a heartbeat after which a process on another machine counts as dead
_SAME = 2.0  # seconds by which a start time may move, as the system derives it from a clock that is put right


@dataclass(frozen=True)
class Owner:
    """A process. Numbers of processes are given again, so the time at which it started belongs to its name."""

    host: str
    pid: int
    started: float

    def is_alive(self, heartbeat: float, now: float) -> bool:
        """Whether it still runs: looked up on this machine, judged by its last ``heartbeat`` on another."""
        if self.host != socket.gethostname():
            return now - heartbeat < SILENCE
        try:
            process = psutil.Process(self.pid)
            return self.same_start(process.create_time()) and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def same_start(self, started: float) -> bool:
        """Whether a process of this number is this one."""
        return abs(started - self.started) < _SAME


def this_process() -> Owner:
    """The process that asks."""
    return Owner(socket.gethostname(), os.getpid(), psutil.Process().create_time())
