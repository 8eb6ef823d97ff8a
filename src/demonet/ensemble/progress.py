"""Progress of an ensemble: a line about every finished candidate and, on a terminal, a bar with those to come."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from demonet.ensemble.ensemble import Candidate, Progress


class CandidateBar:
    """A context manager that is also an ``on_progress`` callback of :meth:`~demonet.ensemble.Ensemble.fit`.

    Args:
        label: What is being fitted.
    """

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self.label, self.console = label, Console(stderr=True)
        self.bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[now]}", markup=False),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            expand=True,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task(label, total=None, now="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __call__(self, progress: Progress) -> None:
        """Show that a candidate is begun or finished."""
        done = progress.number + (progress.stage in ("done", "refitted"))
        again = progress.stage.startswith("refit")
        label = f"{self.label}, fitted again" if again else self.label
        self.bar.update(self.task, description=label, completed=done, total=progress.total, now=progress.candidate.name)
        if progress.stage == "done":
            line = f"{self.label}: {done}/{progress.total} {candidate_line(progress.candidate)}"
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()


def candidate_line(row: Candidate) -> str:
    """Name, validation score and time of a candidate.

    >>> from demonet.ensemble import Candidate
    >>> candidate_line(Candidate("linear", "linear", "fitted", log_loss=0.5, accuracy=0.8125, seconds=1.23))
    'linear: accuracy 0.812, log-loss 0.500, 1.2 s'
    >>> candidate_line(Candidate("network", "network", "skipped", "about 90 s would exceed the time limit"))
    'network: skipped, about 90 s would exceed the time limit'
    """
    if row.accuracy is None or row.log_loss is None:
        return f"{row.name}: {row.status}, {row.reason}"
    return f"{row.name}: accuracy {row.accuracy:.3f}, log-loss {row.log_loss:.3f}, {row.seconds:.1f} s"
