"""Progress of ``demonet reproduce``: a bar on a terminal, otherwise a line every half minute."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from demonet_study.ledger.job import Job
    from demonet_study.ledger.work import Progress

SECONDS = 30.0  # between two lines without a terminal


class RunBar:
    """A context manager, and the ``on_progress`` callback of :func:`~demonet_study.ledger.work.work`."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self.console, self.last = Console(stderr=True), 0.0
        self.said = (-1, -1)
        self.bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}", markup=False),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("runs", total=None, shown="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __call__(self, progress: Progress) -> None:
        """Show the progress."""
        failed = f"{progress.failed:,} failed" if progress.failed else ""
        shown = ", ".join(filter(None, (failed, _left(progress))))
        counts = progress.done, progress.failed
        ended = sum(counts) == progress.wanted
        now = run_name(progress.running[0]) if progress.running else "" if ended else "waiting for another process"
        if self.console.is_terminal:
            self.bar.update(self.task, description=now, completed=progress.done, total=progress.wanted, shown=shown)
        elif time.monotonic() - self.last >= SECONDS or (not progress.running and counts != self.said):
            self.last, self.said = time.monotonic(), counts
            line = ", ".join(filter(None, (f"{progress.done:,} of {progress.wanted:,} runs", shown, now)))
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()


def run_name(job: Job) -> str:
    """A run as text: method, preset, options, data set, split and seed."""
    cell = job.cell
    what = " ".join(filter(None, (cell.method, cell.preset, cell.options.strip("{}").replace('"', ""))))
    return f"{what} on {cell.dataset}{f', {cell.split}' if cell.split else ''}, seed {job.seed}"


def _left(progress: Progress) -> str:
    from demonet_study.report.files import duration

    if progress.done + progress.failed == progress.wanted:
        return ""
    return "time left not known yet" if progress.left is None else f"about {duration(progress.left)} left"
