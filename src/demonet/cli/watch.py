"""How a run is watched from a terminal, or from the file that stands in for one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import typer

from demonet.runs.watch import Watch
from demonet.train.loop import Epoch
from demonet.train.progress import Progress

SECONDS = 5.0  # between two lines of progress where there is no terminal


class ConsoleWatch(Watch):
    """Says every step on stderr, and shows a bar while a network trains."""

    def say(self, text: str) -> None:
        """One line."""
        typer.echo(text, err=True)

    def training(self, label: str, epochs: int) -> AbstractContextManager[Callable[[Epoch], None]]:
        """A live bar on a terminal, a line now and then elsewhere."""
        return Progress(label, epochs, every=1, seconds=SECONDS)
