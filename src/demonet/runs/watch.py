"""Who is told what a run is doing: nobody unless asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from demonet.train.loop import Epoch


class Watch:
    """Told of every step; this one keeps quiet, and the command line has one that does not."""

    def say(self, text: str) -> None:
        """A step is done, or about to take a while."""

    def training(self, label: str, epochs: int) -> AbstractContextManager[Callable[[Epoch], None]]:
        """Something to tell about every epoch of at most so many."""
        return nullcontext(lambda epoch: None)
