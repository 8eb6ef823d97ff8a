"""What a run costs: its processor time, and the most memory that its process had resident."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

_RESET = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


class Meter:
    """Starts to measure when it is made.

    Time is the processor's, so that it does not matter what else the machine is doing. Linux can forget the highest
    mark of memory, so there it is this run's; elsewhere it is the highest since the process began.
    """

    def __init__(self) -> None:
        with suppress(OSError):  # not Linux, or a container that keeps the mark
            _RESET.write_text("5", encoding="ascii")
        self._start = time.process_time()

    @property
    def seconds(self) -> float:
        """Processor seconds until now."""
        return time.process_time() - self._start

    @property
    def peak_memory_mb(self) -> float:
        """The highest mark until now, libraries included, in units of 10^6 bytes."""
        if _STATUS.exists():  # what the other clock says includes the process that started this one
            lines = _STATUS.read_text(encoding="ascii").splitlines()
            return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6
        import resource  # Windows has neither

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
