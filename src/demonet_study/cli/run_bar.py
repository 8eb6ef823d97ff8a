"""Progress of ``demonet reproduce``: a bar on a terminal, otherwise a line every half minute."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from demonet.progress import Bar

if TYPE_CHECKING:
    from demonet_study.ledger.job import Job
    from demonet_study.ledger.work import Progress

SECONDS = 30.0  # between two lines without a terminal


class RunBar(Bar):
    """The ``on_progress`` callback of :func:`~demonet_study.ledger.work.work`."""

    def __init__(self) -> None:
        super().__init__("runs", seconds=SECONDS)
        self.last, self.said = -math.inf, (-1, -1)

    def __call__(self, progress: Progress) -> None:
        """Show the progress."""
        failed = f"{progress.failed:,} failed" if progress.failed else ""
        shown = ", ".join(filter(None, (failed, _left(progress))))
        counts = progress.done, progress.failed
        ended = sum(counts) == progress.wanted
        now = run_name(progress.running[0]) if progress.running else "" if ended else "waiting for another process"
        self.show(progress.done, progress.wanted, label=now, now=shown)
        if self.due or (not self.console.is_terminal and not progress.running and counts != self.said):
            self.said = counts
            self.line(", ".join(filter(None, (f"{progress.done:,} of {progress.wanted:,} runs", shown, now))))


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
