"""The ledger: claim a run, record its outcome, query what is there.

Any number of processes may use one file at once. A run is claimed in a single transaction, so no two processes do the
same run. A claim of a process that has died is free again. A finished run is never overwritten.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from filelock import FileLock, Timeout

from demonet.errors import DemonetError, DemonetWarning, warn
from demonet_study.ledger import schema
from demonet_study.ledger.job import Cell, Job, Outcome, Result, Stamp, Wanted
from demonet_study.ledger.parquet import RunRow, check_runs, read_parquet, write_parquet

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

    Every method must be called inside a transaction of the ledger, so that processes look at the files one by one. The
    folder has a locked file for each run in progress, which the system unlocks when its process ends, however it ends;
    it exists only as long as there are any.
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


_CELL = schema.JOB[:-1]


@dataclass(frozen=True)
class Failure:
    """A failed run and its traceback."""

    job: Job
    stamp: Stamp
    error: str


class Ledger:
    """A file of runs, created if it does not exist; ``clock`` returns seconds since 1970."""

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path, self.clock = Path(path), clock
        self._claims = Claims(self.path.with_name(f"{self.path.name}-claims"))
        self._connection = schema.connect(self.path)
        try:
            self._give_up_damaged()
        except BaseException:
            self.close()  # an open connection would keep others waiting
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def claim(self, job: Job, stamp: Stamp, *, alone: bool = False) -> ClaimStatus:
        """Claim a run that is new, waiting, or claimed by a process that has died.

        With ``alone`` the run is claimed only if no other process has one, and as long as it runs, none can claim one.
        """
        run = schema.key(job, stamp)
        with self._writing():
            ((state,),) = self._connection.execute("SELECT state FROM runs WHERE key = ?", (run,)).fetchall() or [("",)]
            return ClaimStatus(state) if state in ("done", "failed") else self._claims.take(run, alone=alone)

    def record(self, job: Job, stamp: Stamp, outcome: Outcome) -> bool:
        """Record the outcome of a run; ``False`` if it was recorded before, which is left as it is."""
        run = schema.key(job, stamp)
        row = (run, *schema.job_row(job), *astuple(stamp), *schema.outcome_row(outcome), float(self.clock()))
        with self._writing():
            self._claims.drop(run)
            return self._put("done", schema.SEALED, [(*row, schema.digest_of(row))]) == 1

    def fail(self, job: Job, stamp: Stamp, error: str) -> None:
        """Record that a run of this process failed. It stays failed until :meth:`retry`."""
        run = schema.key(job, stamp)
        with self._writing():
            if run in self._claims:
                self._claims.drop(run)
                row = (run, *schema.job_row(job), *astuple(stamp), error, self.clock())
                self._put("failed", ("key", *schema.JOB, *schema.STAMP, "error", "ended"), [row])

    def retry(self, runs: Iterable[tuple[Job, Stamp]]) -> None:
        """Make failed runs claimable again; their errors are kept until they succeed."""
        with self._writing():
            statement = "UPDATE runs SET state = 'waiting' WHERE key = ? AND state = 'failed'"
            self._connection.executemany(statement, [(schema.key(*run),) for run in runs])

    def release(self) -> None:
        """Give up every unfinished claim of this process."""
        with self._writing():
            self._claims.drop_all()

    def done(self, runs: Sequence[tuple[Job, Stamp]]) -> set[tuple[Job, Stamp]]:
        """Those of the given runs that are finished."""
        there = {row[0] for row in self._finished()}
        return {run for run in runs if schema.key(*run) in there}

    def failures(self, runs: Iterable[tuple[Job, Stamp]]) -> list[Failure]:
        """Those of the given runs that failed the last time they were tried, including those that wait for a retry."""
        names = ", ".join((*schema.JOB, *schema.STAMP, "error"))
        rows = self._rows(f"SELECT {names} FROM runs WHERE error IS NOT NULL AND state <> 'done'")
        why = {(schema.job_of(row), schema.stamp_of(row)): row[-1] for row in rows}
        return [Failure(*run, why[run]) for run in dict.fromkeys(runs) if run in why]

    def incomplete(self, wanted: Sequence[Wanted], device: str = "") -> list[Wanted]:
        """Those of the wanted cells that lack runs.

        A cell is complete once as many runs as are wanted share one stamp, *whichever stamp that is*: changes of the
        code, moved files included, never make a complete cell incomplete. With ``device``, only runs made there count.
        """
        have = self.results((one.cell for one in wanted), device)
        return [one for one in wanted if len(have[one.cell]) < one.runs]

    def results(
        self, cells: Iterable[Cell], device: str = "", enough: Mapping[Cell, int] = MappingProxyType({})
    ) -> dict[Cell, list[Result]]:
        """The finished runs of each cell: seeds 0, 1, ... without a gap, all with one stamp; may be empty.

        Of several stamps, the one with the most seeds is chosen; of several with as many, the newest.

        Args:
            cells: The cells.
            device: Count only runs made on this device; empty for any.
            enough: The number of wanted runs of a cell: stamps that have at least that many are equals.
        """
        return {cell: self._longest(cell, device, enough.get(cell, sys.maxsize)) for cell in cells}

    def seconds(self) -> list[tuple[Cell, int, float]]:
        """For every cell with finished runs of any stamp: how many, and their processor time in total."""
        names = ", ".join(_CELL)
        rows = self._rows(
            f"SELECT {names}, count(seconds), total(seconds) FROM runs WHERE state = 'done' GROUP BY {names}"
        )
        return [(Cell(*row[:-2]), row[-2], row[-1]) for row in rows]

    def import_runs(self, path: str | Path) -> int:
        """Add the runs of a Parquet file or of another ledger that are not finished here; return how many."""
        rows = read_parquet(Path(path)) if Path(path).suffix == ".parquet" else _runs_of(Path(path))
        with self._writing():
            done = dict(self._connection.execute("SELECT key, value FROM runs WHERE state = 'done'").fetchall())
            value = schema.RUN.index("value")
            different = sum(row[0] in done and done[row[0]] != row[value] for row in rows)
            if different:
                text = f"{different} runs in {path} have other values than in this ledger, which keeps its own"
                warnings.warn(text, DemonetWarning, stacklevel=2)
            return self._put("done", schema.SEALED, [(*row, schema.digest_of(row)) for row in rows])

    def export_runs(self, path: str | Path) -> int:
        """Write every finished run to a Parquet file and return how many; the same runs give the same bytes."""
        rows = self._finished()
        write_parquet(rows, Path(path))
        return len(rows)

    def _put(self, state: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> int:
        """Store runs in a state, key first, except those that are finished here; return how many are new."""
        self._connection.executemany("DELETE FROM runs WHERE key = ? AND state <> 'done'", [(run,) for run, *_ in rows])
        statement = f"INSERT OR IGNORE INTO runs ({', '.join(names)}, state) VALUES ({'?, ' * len(names)}'{state}')"
        return self._connection.executemany(statement, rows).rowcount

    def _finished(self) -> list[RunRow]:
        order = ", ".join((*schema.JOB, *schema.STAMP))
        rows = self._rows(f"SELECT {', '.join(schema.SEALED)} FROM runs WHERE state = 'done' ORDER BY {order}")
        return [row[:-1] for row in rows if schema.is_whole(row)]

    def _give_up_damaged(self) -> None:
        """Let runs be made again whose row is not as it was recorded; a warning says how many, and names one."""
        rows = self._rows(f"SELECT {', '.join(schema.SEALED)} FROM runs WHERE state = 'done'")
        wrong = [row for row in rows if not schema.is_whole(row)]
        if not wrong:
            return
        dataset, method = (str(name) for name in wrong[0][2:4])
        problem = (
            f"{len(wrong):,} of {len(rows):,} runs do not match their digest, such as one of {method} on {dataset}"
        )
        hint = "they are left out and can be made again; the others are whole"
        warn(DemonetWarning(problem, file=self.path, hint=hint))
        keys = [(str(row[0]).encode("utf-8", "surrogateescape"),) for row in wrong]
        with self._writing():
            self._connection.executemany("UPDATE runs SET state = 'waiting' WHERE key = CAST(? AS TEXT)", keys)

    def _longest(self, cell: Cell, device: str, enough: int) -> list[Result]:
        where = " AND ".join(f"{name} = ?" for name in _CELL)
        query = f"SELECT {', '.join(schema.SEALED)} FROM runs WHERE {where} AND state = 'done' ORDER BY seed"
        prefixes: dict[Stamp, list[Result]] = {}
        newest: dict[Stamp, float] = {}
        for row in self._rows(query, astuple(cell)):
            if not schema.is_whole(row):
                continue
            result, ended = schema.result_of(row[1:]), row[-2]
            if device not in ("", result.stamp.device):
                continue
            prefix = prefixes.setdefault(result.stamp, [])
            if result.job.seed == len(prefix):
                prefix.append(result)
                newest[result.stamp] = max(newest.get(result.stamp, -math.inf), ended)
        best = max(newest, key=lambda stamp: (min(len(prefixes[stamp]), enough), newest[stamp]), default=None)
        return [] if best is None else prefixes[best]

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with schema.plain_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with schema.plain_errors(self.path), schema.transaction(self._connection):
            yield


def _runs_of(path: Path) -> list[RunRow]:
    """The finished runs of another ledger."""
    if not path.exists():
        raise DemonetError("no such ledger", file=path)
    with Ledger(path) as other:
        return check_runs(other._finished(), path)
