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
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from demonet.errors import DemonetError, DemonetWarning, warn
from demonet_study.ledger.job import Cell, Job, Outcome, Result, Stamp, Wanted
from demonet_study.ledger.owner import Owner, this_process
from demonet_study.ledger.parquet import RunRow, check_runs, read_parquet, write_parquet
from demonet_study.ledger.schema import (
    JOB,
    RUN,
    SEALED,
    STAMP,
    connect,
    digest_of,
    is_whole,
    job_of,
    job_row,
    key,
    outcome_row,
    plain_errors,
    result_of,
    stamp_of,
    transaction,
)

_CELL = JOB[:-1]
_MINE = "state = 'claimed' AND host = ? AND pid = ? AND started = ?"


class ClaimStatus(Enum):
    """The answer to an attempt to claim a run."""

    OURS = "ours"
    TAKEN = "taken"  # by another process that is alive
    BLOCKED = "blocked"  # by a run in progress, where one of the two must run alone
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Failure:
    """A failed run and its traceback."""

    job: Job
    stamp: Stamp
    error: str


class Ledger:
    """A file of runs.

    Args:
        path: The file; created if it does not exist.
        clock: Returns seconds since 1970; replaced in tests.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path, self.clock = Path(path), clock
        self.owner: Owner = this_process()
        self._connection = connect(self.path)
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

        With ``alone`` the run is claimed only if nothing else runs on this machine, and as long as it runs, no other
        run can be claimed here.
        """
        run, now = key(job, stamp), self.clock()
        with self._writing():
            found = self._rows("SELECT state, host, pid, started, heartbeat FROM runs WHERE key = ?", (run,))
            state, owner = (found[0][0], found[0][1:]) if found else ("waiting", ())
            if state in ("done", "failed"):
                return ClaimStatus(state)
            if state == "claimed" and self._is_others(*owner):
                return ClaimStatus.TAKEN
            if self._is_blocked(alone):
                return ClaimStatus.BLOCKED
            names = ("key", *JOB, *STAMP)
            again = ", ".join(f"{name} = excluded.{name}" for name in names[1:])  # a damaged row may have others
            self._connection.execute(
                f"INSERT INTO runs ({', '.join(names)}, state, alone, host, pid, started, heartbeat, claimed) "
                f"VALUES ({', '.join('?' * len(names))}, 'claimed', ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                f"{again}, state = 'claimed', alone = excluded.alone, host = excluded.host, pid = excluded.pid, "
                "started = excluded.started, heartbeat = excluded.heartbeat, claimed = excluded.claimed",
                (run, *job_row(job), *astuple(stamp), alone, *astuple(self.owner), now, now),
            )
        return ClaimStatus.OURS

    def record(self, job: Job, stamp: Stamp, outcome: Outcome) -> bool:
        """Record the outcome of a run; ``False`` if it was recorded before, which is left as it is."""
        run = key(job, stamp)
        with self._writing():
            changed = self._connection.execute(
                "UPDATE runs SET state = 'done', value = ?, seconds = ?, peak_memory_mb = ?, extra = ?, "
                "error = NULL, ended = ? WHERE key = ? AND state <> 'done'",
                (*outcome_row(outcome), self.clock(), run),
            )
            if changed.rowcount == 1:
                stored = self._connection.execute(f"SELECT {', '.join(RUN)} FROM runs WHERE key = ?", (run,)).fetchone()
                self._connection.execute("UPDATE runs SET digest = ? WHERE key = ?", (digest_of(stored), run))
        return changed.rowcount == 1

    def fail(self, job: Job, stamp: Stamp, error: str) -> None:
        """Record that a run of this process failed. It stays failed until :meth:`retry`."""
        with self._writing():
            self._connection.execute(
                f"UPDATE runs SET state = 'failed', error = ?, ended = ? WHERE key = ? AND {_MINE}",
                (error, self.clock(), key(job, stamp), *astuple(self.owner)),
            )

    def retry(self, runs: Iterable[tuple[Job, Stamp]]) -> None:
        """Make failed runs claimable again; their errors are kept until they succeed."""
        with self._writing():
            self._connection.executemany(
                "UPDATE runs SET state = 'waiting' WHERE key = ? AND state = 'failed'",
                [(key(*run),) for run in runs],
            )

    def release(self) -> None:
        """Give up every unfinished claim of this process."""
        with self._writing():
            self._connection.execute(f"UPDATE runs SET state = 'waiting' WHERE {_MINE}", astuple(self.owner))

    def beat(self) -> None:
        """Update the heartbeat of this process, by which other machines see that it is alive."""
        with self._writing():
            self._connection.execute(
                f"UPDATE runs SET heartbeat = ? WHERE {_MINE}", (self.clock(), *astuple(self.owner))
            )

    def done(self, runs: Sequence[tuple[Job, Stamp]]) -> set[tuple[Job, Stamp]]:
        """Those of the given runs that are finished."""
        there = {row[0] for row in self._finished()}
        return {run for run in runs if key(*run) in there}

    def failures(self, runs: Iterable[tuple[Job, Stamp]]) -> list[Failure]:
        """Those of the given runs that failed the last time they were tried, including those that wait for a retry."""
        names = ", ".join((*JOB, *STAMP, "error"))
        rows = self._rows(f"SELECT {names} FROM runs WHERE error IS NOT NULL AND state <> 'done'")
        why = {(job_of(row), stamp_of(row)): row[-1] for row in rows}
        return [Failure(*run, why[run]) for run in dict.fromkeys(runs) if run in why]

    def incomplete(self, wanted: Sequence[Wanted], device: str = "") -> list[Wanted]:
        """Those of the wanted cells that lack runs.

        A cell is complete once as many runs as are wanted share one stamp, *whichever stamp that is*: changes of the
        code, moved files included, never make a complete cell incomplete.

        Args:
            wanted: Cells and how many runs of each.
            device: Count only runs made on this device; empty for any.
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
            value = RUN.index("value")
            different = sum(row[0] in done and done[row[0]] != row[value] for row in rows)
            if different:
                text = f"{different} runs in {path} have other values than in this ledger, which keeps its own"
                warnings.warn(text, DemonetWarning, stacklevel=2)
            new = [row for row in rows if row[0] not in done]
            self._connection.executemany(
                f"INSERT OR REPLACE INTO runs ({', '.join(SEALED)}, state) "
                f"VALUES ({', '.join('?' * len(SEALED))}, 'done')",
                [(*row, digest_of(row)) for row in new],
            )
        return len(new)

    def export_runs(self, path: str | Path) -> int:
        """Write every finished run to a Parquet file and return how many; the same runs give the same bytes."""
        rows = self._finished()
        write_parquet(rows, Path(path))
        return len(rows)

    def _finished(self) -> list[RunRow]:
        order = ", ".join((*JOB, *STAMP))
        rows = self._rows(f"SELECT {', '.join(SEALED)} FROM runs WHERE state = 'done' ORDER BY {order}")
        return [row[:-1] for row in rows if is_whole(row)]

    def _give_up_damaged(self) -> None:
        """Let runs be made again whose row is not as it was recorded; a warning says how many, and names one."""
        rows = self._rows(f"SELECT {', '.join(SEALED)} FROM runs WHERE state = 'done'")
        wrong = [row for row in rows if not is_whole(row)]
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
        query = f"SELECT {', '.join(SEALED)} FROM runs WHERE {where} AND state = 'done' ORDER BY seed"
        prefixes: dict[Stamp, list[Result]] = {}
        newest: dict[Stamp, float] = {}
        for row in self._rows(query, astuple(cell)):
            if not is_whole(row):
                continue
            result, ended = result_of(row[1:]), row[-2]
            if device not in ("", result.stamp.device):
                continue
            prefix = prefixes.setdefault(result.stamp, [])
            if result.job.seed == len(prefix):
                prefix.append(result)
                newest[result.stamp] = max(newest.get(result.stamp, -math.inf), ended)
        best = max(newest, key=lambda stamp: (min(len(prefixes[stamp]), enough), newest[stamp]), default=None)
        return [] if best is None else prefixes[best]

    def _is_others(self, host: str, pid: int, started: float, heartbeat: float) -> bool:
        owner = Owner(host, pid, started)
        try:
            return owner != self.owner and owner.is_alive(heartbeat, self.clock())
        except (TypeError, ValueError, OverflowError):  # a damaged row names no process
            return False

    def _is_blocked(self, alone: bool) -> bool:
        """Whether a process on this machine does a run that must be alone, or any run if this one must be alone."""
        claims = "FROM runs WHERE state = 'claimed' AND alone >= ?"
        rows = self._rows(f"SELECT DISTINCT host, pid, started, heartbeat {claims}", (0 if alone else 1,))
        return any(Owner(*row[:3]).machine == self.owner.machine and self._is_others(*row) for row in rows)

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with plain_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with plain_errors(self.path), transaction(self._connection):
            yield


def _runs_of(path: Path) -> list[RunRow]:
    """The finished runs of another ledger."""
    if not path.exists():
        raise DemonetError("no such ledger", file=path)
    with Ledger(path) as other:
        return check_runs(other._finished(), path)
