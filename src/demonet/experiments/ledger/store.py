"""The ledger as an object: claim a run, record what came of it, ask for what is there.

Any number of processes may have one file open. A run is claimed in one transaction, so that two never do it at once;
a claim whose owner is dead is free again; what is recorded as done is never written again.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from demonet.experiments.ledger import exchange
from demonet.experiments.ledger.job import Cell, Job, Outcome, Result, Stamp
from demonet.experiments.ledger.owner import Owner, this_process
from demonet.experiments.ledger.record import job_of, job_row, key, outcome_row, result_of, stamp_of
from demonet.experiments.ledger.schema import JOB, OUTCOME, RUN, STAMP, connect, plain_errors, transaction

_CELL = JOB[:-1]
_MINE = "state = 'claimed' AND host = ? AND pid = ? AND started = ?"


class Claim(Enum):
    """What became of asking for a run."""

    OURS = "ours"
    TAKEN = "taken"  # by a living process
    BLOCKED = "blocked"  # by what runs beside it, where one of the two must run alone
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Failure:
    """A run that failed, and why."""

    job: Job
    stamp: Stamp
    error: str


class Ledger:
    """A file of runs.

    Args:
        path: The file; made where there is none.
        clock: Seconds since 1970, for tests.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path, self.clock = Path(path), clock
        self.owner: Owner = this_process()
        self._connection = connect(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def claim(self, job: Job, stamp: Stamp, *, alone: bool = False) -> Claim:
        """Ask for a run: it is ours where it waits, is not there yet, or belongs to a process that is dead.

        One that is to run ``alone`` is ours only while nothing else runs on this machine, and nothing else is
        anybody's while it runs.
        """
        run, now = key(job, stamp), self.clock()
        with self._writing():
            found = self._rows("SELECT state, host, pid, started, heartbeat FROM runs WHERE key = ?", (run,))
            state, owner = (found[0][0], found[0][1:]) if found else ("waiting", ())
            if state in ("done", "failed"):
                return Claim(state)
            if state == "claimed" and self._is_others(*owner):
                return Claim.TAKEN
            if self._is_in_the_way(alone):
                return Claim.BLOCKED
            names = ("key", *JOB, *STAMP)
            self._connection.execute(
                f"INSERT INTO runs ({', '.join(names)}, state, alone, host, pid, started, heartbeat, claimed) "
                f"VALUES ({', '.join('?' * len(names))}, 'claimed', ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "state = 'claimed', alone = excluded.alone, host = excluded.host, pid = excluded.pid, "
                "started = excluded.started, heartbeat = excluded.heartbeat, claimed = excluded.claimed",
                (run, *job_row(job), *astuple(stamp), alone, *astuple(self.owner), now, now),
            )
        return Claim.OURS

    def record(self, job: Job, stamp: Stamp, outcome: Outcome) -> bool:
        """Write what came of a run; ``False`` where it is there already, which stays as it is."""
        with self._writing():
            changed = self._connection.execute(
                "UPDATE runs SET state = 'done', value = ?, seconds = ?, peak_memory_mb = ?, extra = ?, "
                "error = NULL, ended = ? WHERE key = ? AND state <> 'done'",
                (*outcome_row(outcome), self.clock(), key(job, stamp)),
            )
        return changed.rowcount == 1

    def fail(self, job: Job, stamp: Stamp, error: str) -> None:
        """Write why a run of ours failed. It stays failed until :meth:`retry`."""
        with self._writing():
            self._connection.execute(
                f"UPDATE runs SET state = 'failed', error = ?, ended = ? WHERE key = ? AND {_MINE}",
                (error, self.clock(), key(job, stamp), *astuple(self.owner)),
            )

    def retry(self, runs: Iterable[tuple[Job, Stamp]]) -> None:
        """Let failed runs wait again; their errors stay until they are done."""
        with self._writing():
            self._connection.executemany(
                "UPDATE runs SET state = 'waiting' WHERE key = ? AND state = 'failed'",
                [(key(*run),) for run in runs],
            )

    def release(self) -> None:
        """Let others have every run that this process has claimed and not ended."""
        with self._writing():
            self._connection.execute(f"UPDATE runs SET state = 'waiting' WHERE {_MINE}", astuple(self.owner))

    def beat(self) -> None:
        """Say to processes on other machines that this one lives."""
        with self._writing():
            self._connection.execute(
                f"UPDATE runs SET heartbeat = ? WHERE {_MINE}", (self.clock(), *astuple(self.owner))
            )

    def done(self, runs: Sequence[tuple[Job, Stamp]]) -> set[tuple[Job, Stamp]]:
        """Which of these runs have ended well."""
        there = {row[0] for row in self._rows("SELECT key FROM runs WHERE state = 'done'")}
        return {run for run in runs if key(*run) in there}

    def failures(self, runs: Iterable[tuple[Job, Stamp]]) -> list[Failure]:
        """Which of these runs failed the last time that they were tried, also where they wait for the next."""
        names = ", ".join((*JOB, *STAMP, "error"))
        rows = self._rows(f"SELECT {names} FROM runs WHERE error IS NOT NULL AND state <> 'done'")
        why = {(job_of(row), stamp_of(row)): row[-1] for row in rows}
        return [Failure(*run, why[run]) for run in dict.fromkeys(runs) if run in why]

    def results(
        self, cells: Iterable[Cell], device: str = "", enough: Mapping[Cell, int] = MappingProxyType({})
    ) -> dict[Cell, list[Result]]:
        """Finished runs of each cell: seeds 0, 1, ... without a gap, all of one stamp; none where none are there.

        Where runs were made with several stamps, those of the one with the most seeds count, and of the newest where
        several have as many.

        Args:
            cells: Which.
            device: Only those that were made on it; empty for any.
            enough: How many runs of a cell are all that is wanted: stamps that have them are equals.
        """
        return {cell: self._longest(cell, device, enough.get(cell, sys.maxsize)) for cell in cells}

    def seconds(self) -> list[tuple[Cell, int, float]]:
        """Of every cell with finished runs, with whatever stamp: how many there are, and their processor time."""
        names = ", ".join(_CELL)
        rows = self._rows(
            f"SELECT {names}, count(seconds), total(seconds) FROM runs WHERE state = 'done' GROUP BY {names}"
        )
        return [(Cell(*row[:-2]), row[-2], row[-1]) for row in rows]

    def merge(self, other: str | Path) -> int:
        """Take over what another ledger has done and this one has not; how many runs that were."""
        return self._add(exchange.read_ledger(Path(other)), other)

    def take(self, path: str | Path) -> int:
        """As :meth:`merge`, from a Parquet file that :meth:`export` wrote."""
        return self._add(exchange.read_parquet(Path(path)), path)

    def export(self, path: str | Path) -> int:
        """Write every finished run to a Parquet file, and how many there are; the same runs give the same file."""
        order = ", ".join((*JOB, *STAMP))
        rows = self._rows(f"SELECT {', '.join(RUN)} FROM runs WHERE state = 'done' ORDER BY {order}")
        exchange.write_parquet(rows, Path(path))
        return len(rows)

    def _longest(self, cell: Cell, device: str, enough: int) -> list[Result]:
        names = ", ".join((*JOB, *STAMP, *OUTCOME, "ended"))
        where = " AND ".join(f"{name} = ?" for name in _CELL)
        query = f"SELECT {names} FROM runs WHERE {where} AND state = 'done' ORDER BY seed"
        prefixes: dict[Stamp, list[Result]] = {}
        newest: dict[Stamp, float] = {}
        for row in self._rows(query, astuple(cell)):
            result = result_of(row)
            if device not in ("", result.stamp.device):
                continue
            prefix = prefixes.setdefault(result.stamp, [])
            if result.job.seed == len(prefix):
                prefix.append(result)
                newest[result.stamp] = max(newest.get(result.stamp, -math.inf), row[-1])
        best = max(newest, key=lambda stamp: (min(len(prefixes[stamp]), enough), newest[stamp]), default=None)
        return [] if best is None else prefixes[best]

    def _is_others(self, host: str, pid: int, started: float, heartbeat: float) -> bool:
        owner = Owner(host, pid, started)
        return owner != self.owner and owner.is_alive(heartbeat, self.clock())

    def _is_in_the_way(self, alone: bool) -> bool:
        """Whether on this machine a living process does what must run alone, or anything where this must."""
        claims = "FROM runs WHERE state = 'claimed' AND alone >= ?"
        rows = self._rows(f"SELECT DISTINCT host, pid, started, heartbeat {claims}", (0 if alone else 1,))
        return any(Owner(*row[:3]).machine == self.owner.machine and self._is_others(*row) for row in rows)

    def _add(self, rows: Sequence[tuple[Any, ...]], source: str | Path) -> int:
        with self._writing():
            return exchange.add(self._connection, rows, source)

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with plain_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with plain_errors(self.path), transaction(self._connection):
            yield
