"""The runs in progress: each has a locked file, and the system unlocks it when its process ends, however it ends."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from pathlib import Path

from filelock import FileLock, Timeout

_SUFFIXES = {False: ".lock", True: ".alone"}


class ClaimStatus(Enum):
    """The answer to an attempt to claim a run."""

    OURS = "ours"
    TAKEN = "taken"  # by another process
    BLOCKED = "blocked"  # by a run in progress, where one of the two must run alone
    DONE = "done"
    FAILED = "failed"


class Claims:
    """The claims of all processes that share a ledger.

    Every method must be called inside a transaction of the ledger, so that processes look at the files one by one.

    Args:
        folder: Has a locked file for each run in progress; exists only as long as there are any.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: dict[str, FileLock] = {}

    def __contains__(self, run: str) -> bool:
        return run in self._held

    def take(self, run: str, *, alone: bool) -> ClaimStatus:
        """Claim a run for this process; with ``alone``, only if no other process has one."""
        if run in self._held:
            return ClaimStatus.OURS
        others = self._others()
        if run in others:
            return ClaimStatus.TAKEN
        if any(others.values()) or (alone and others):
            return ClaimStatus.BLOCKED
        self.folder.mkdir(exist_ok=True)
        lock = FileLock(self.folder / f"{run}{_SUFFIXES[alone]}")
        lock.acquire(blocking=False)
        self._held[run] = lock
        return ClaimStatus.OURS

    def drop(self, run: str) -> None:
        """Give up a claim of this process, if it has it."""
        if lock := self._held.pop(run, None):
            _remove(lock)

    def drop_all(self) -> None:
        """Give up every claim of this process."""
        for run in list(self._held):
            self.drop(run)
        with suppress(OSError):  # another process has claims
            self.folder.rmdir()

    def _others(self) -> dict[str, bool]:
        """The runs of other processes, and whether each is alone. Files of processes that have died are removed."""
        found = {}
        for path in self.folder.glob("*"):
            if path.stem in self._held:
                continue
            lock = FileLock(path)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                found[path.stem] = path.suffix == _SUFFIXES[True]
            else:
                _remove(lock)
        return found


def _remove(lock: FileLock) -> None:
    lock.release()
    Path(lock.lock_file).unlink(missing_ok=True)
