"""Training progress: a live bar on a terminal, a line every so often elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from demonet.train.loop import Epoch
from demonet.train.metrics import METRICS


class Progress:
    """A context manager that is also an ``on_epoch`` callback of :func:`~demonet.train.fit`.

    Args:
        label: What is being trained.
        epochs: The maximum number of epochs.
        every: Epochs between two lines if there is no terminal.
        seconds: The least number of seconds between two lines.
    """

    def __init__(self, label: str, epochs: int, every: int = 100, seconds: float = 0.0) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self.label, self.every, self.seconds, self.last = label, every, seconds, time.monotonic()
        self.console = Console(stderr=True)
        self.bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}", markup=False),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            expand=True,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task(label, total=epochs, shown="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __call__(self, epoch: Epoch) -> None:
        """Show one finished epoch."""
        metric = METRICS[epoch.metric].title
        shown = f"loss {epoch.train_loss:.3f}  validation {metric} {epoch.val_metric:.3f}"
        if self.console.is_terminal:
            self.bar.update(self.task, completed=epoch.number + 1, shown=shown)
        elif (epoch.number + 1) % self.every == 0 and time.monotonic() - self.last >= self.seconds:
            self.last = time.monotonic()
            line = f"{self.label}: epoch {epoch.number + 1}, {shown}"
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()
