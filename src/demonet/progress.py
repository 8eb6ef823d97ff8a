"""Progress on stderr: a live bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from demonet.escape import visible
from demonet.train.metrics import METRICS

if TYPE_CHECKING:
    from demonet.ensemble.candidate import Candidate, Progress
    from demonet.train.loop import Epoch


class Bar:
    """A context manager around a bar.

    Args:
        label: What is being done.
        total: The number of steps, if it is known.
        seconds: The least number of seconds between two lines if there is no terminal.
    """

    counts = True  # steps, whose number stands beside the bar

    def __init__(self, label: str = "", total: int | None = None, seconds: float = 0.0) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Live

        self.label, self.seconds, self.last = label, seconds, time.monotonic()
        self.console = Console(stderr=True)
        self.bar = Live(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            *([MofNCompleteColumn()] if self.counts else []),
            TextColumn("{task.fields[now]}", markup=False),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            expand=True,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task(label, total=total, now="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def show(self, done: int, total: int | None = None, *, label: str | None = None, now: str = "") -> None:
        """Move the bar: so many steps are done, and this is being done now."""
        self.bar.update(self.task, completed=done, total=total, description=label or self.label, now=now)

    def line(self, text: str) -> None:
        """Print a line, above the bar where there is one."""
        self.last = time.monotonic()
        self.console.print(visible(text), markup=False, highlight=False, soft_wrap=True)

    @property
    def due(self) -> bool:
        """Whether the next line is due: there is no terminal, and the last one was long enough ago."""
        return not self.console.is_terminal and time.monotonic() - self.last >= self.seconds


class EpochBar(Bar):
    """An ``on_epoch`` callback of :func:`~demonet.train.fit`; without a terminal, a line every ``every`` epochs.

    The last epoch has a line in any case: there may be fewer than ``every``.
    """

    def __init__(self, label: str, epochs: int, every: int = 100, seconds: float = 0.0) -> None:
        super().__init__(label, epochs, seconds)
        self.every, self.untold = every, ""

    def __call__(self, epoch: Epoch) -> None:
        """Show one finished epoch."""
        done = epoch.number + 1
        shown = f"loss {epoch.train_loss:.3f}  validation {METRICS[epoch.metric].title} {epoch.val_metric:.3f}"
        if epoch.layers is not None:
            shown = f"{epoch.layers} layers  {shown}"
        self.show(done, now=shown)
        self.untold = f"{self.label}: epoch {done}, {shown}"
        if done % self.every == 0 and self.due:
            self._tell()

    def _tell(self) -> None:
        self.line(self.untold)
        self.untold = ""

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self.untold and not self.console.is_terminal:
            self._tell()


class CandidateBar(Bar):
    """An ``on_progress`` callback of :meth:`~demonet.ensemble.Ensemble.fit`: a line about every candidate.

    The bar is about the whole: the share of the seconds that have passed in those that are expected.
    """

    counts = False

    def __call__(self, progress: Progress) -> None:
        """Show that a candidate is begun or finished."""
        done = progress.number + (progress.stage in ("done", "refitted"))
        label = f"{self.label}, fitted again" if progress.stage.startswith("refit") else self.label
        now = f"{progress.candidate.name}, {done}/{progress.total}, about {progress.left:.0f} s left"
        self.show(round(progress.seconds), round(progress.seconds + progress.left), label=label, now=now)
        if progress.stage == "done":
            self.line(f"{self.label}: {done}/{progress.total} {candidate_line(progress.candidate)}")


def candidate_line(row: Candidate) -> str:
    """Name, validation score and time of a candidate.

    >>> from demonet.ensemble import Candidate
    >>> row = Candidate("linear", "linear", "fitted", loss=0.5, metric="accuracy", score=0.8125, seconds=1.23)
    >>> candidate_line(row)
    'linear: accuracy 0.812, loss 0.500, 1.2 s'
    >>> candidate_line(Candidate("network", "network", "skipped", "about 90 s would exceed the time limit"))
    'network: skipped, about 90 s would exceed the time limit'
    """
    if row.loss is None:
        return f"{row.name}: {row.status}, {row.reason}"
    score = "" if row.score is None else f"{row.score:,.0f}" if abs(row.score) >= 1000 else f"{row.score:.3f}"
    told = f"{METRICS[row.metric].title} {score}, " if score else ""
    return f"{row.name}: {told}loss {row.loss:.3f}, {row.seconds:.1f} s"
