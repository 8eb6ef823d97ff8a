"""The cost of a run: processor time and peak resident memory."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

_RESET = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


class Meter:
    """Starts measuring when it is created.

    Processor time does not depend on what else the machine is doing. On Linux the peak memory is reset first, so it is
    that of this run; elsewhere it is that of the process since its start.
    """

    def __init__(self) -> None:
        with suppress(OSError):  # not Linux, or a container without the permission
            _RESET.write_text("5", encoding="ascii")
        self._start = time.process_time()

    @property
    def seconds(self) -> float:
        """Processor seconds so far."""
        return time.process_time() - self._start

    @property
    def peak_memory_mb(self) -> float:
        """Peak resident memory so far, libraries included, in 10^6 bytes."""
        if _STATUS.exists():  # ru_maxrss would include the parent process
            lines = _STATUS.read_text(encoding="ascii").splitlines()
            return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6
        import resource  # not on Windows

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
