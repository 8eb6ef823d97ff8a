"""What benchmarks share: CSV tables, their commands, and steps that take turns while they are timed."""

from __future__ import annotations

import csv
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a table; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Write a table with these columns, by default those of the last row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns or list(rows[-1]), lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def command(folder: Path | None = None, **places: Path | None) -> str:
    """The command of this process without options that say where files are; a ``folder`` by itself becomes FOLDER."""
    hidden = {*(f"--{name}" for name in ("folder", *places)), *map(str, places.values())}
    if folder is not None and "--folder" in sys.argv:
        hidden.add(str(folder))
    words = ["FOLDER" if word == str(folder) else word for word in sys.argv if word not in hidden]
    return shlex.join(["python", *words])


def take_turns(
    steps: Mapping[str, Callable[[], object]], repeats: int, *, cpu_time: bool = False
) -> dict[str, list[float]]:
    """Milliseconds of each step: round after round, so that changes of the machine's speed affect all of them alike.

    The first round warms up.
    """
    clock = time.process_time if cpu_time else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(1 + repeats):
        for name, step in steps.items():
            start = clock()
            step()
            if turn:
                times[name].append(1e3 * (clock() - start))
    return times


def say(what: str) -> None:
    """Progress, on the error stream."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
