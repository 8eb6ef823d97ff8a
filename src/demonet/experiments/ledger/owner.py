"""Who works on a run, and whether that process is still there."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

import psutil

SILENCE = 600.0  # seconds without a heartbeat after which a process that cannot be looked up counts as dead
_SAME = 2.0  # seconds by which a start time may move, where the system derives it from a clock that is put right


@dataclass(frozen=True)
class Owner:
    """A process. Numbers of processes are given again, so the time at which it started belongs to its name.

    Attributes:
        host: The machine and, in a container, which numbering of processes there.
        pid: Its number.
        started: Seconds after the machine's start, which no change of the clock moves; where the system does not tell
            them, seconds since 1970.
    """

    host: str
    pid: int
    started: float

    @property
    def machine(self) -> str:
        """The machine alone."""
        return self.host.partition(" ")[0]

    def is_alive(self, heartbeat: float, now: float) -> bool:
        """Whether it still runs: looked up where its number means something, else judged by its last ``heartbeat``."""
        if self.host != here():
            return abs(now - heartbeat) < SILENCE
        try:
            there = psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE
            return there and self.same_start(_started(self.pid))
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            return False

    def same_start(self, started: float) -> bool:
        """Whether a process of this number is this one."""
        return abs(started - self.started) < _SAME


def process(pid: int) -> Owner:
    """A process of this machine."""
    return Owner(here(), pid, _started(pid))


def this_process() -> Owner:
    """The process that asks."""
    return process(os.getpid())


def here() -> str:
    """This machine; in a container also which one, as another has other processes under the same numbers."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return socket.gethostname()


def _started(pid: int) -> float:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            raise
        return psutil.Process(pid).create_time()
    after_name = stat.rpartition(")")[2].split()  # a name may have spaces and brackets
    return int(after_name[19]) / os.sysconf("SC_CLK_TCK")
