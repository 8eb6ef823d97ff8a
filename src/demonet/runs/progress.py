"""Progress callbacks of a run, silent by default, and the TensorBoard log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from demonet.ensemble import Progress
from demonet.train.loop import Epoch


class RunProgress:
    """Callbacks of :func:`~demonet.runs.fit_run` and ``compare_run``. It does nothing; subclasses show progress."""

    def message(self, text: str) -> None:
        """Called when a step is finished."""

    def step(self, what: str, done: int = 0, total: int = 0) -> None:
        """Called when a step begins that may take long, with what is being done; and when a part of it is done."""

    def cell(self, method: str, split: int, done: int, total: int, result: str) -> None:
        """Called when a cell of a comparison has ended, ``done`` of ``total``."""

    def training(self, label: str, epochs: int) -> AbstractContextManager[Callable[[Epoch], None]]:
        """Called before training with the largest number of epochs; returns a callback for every epoch."""
        return nullcontext(lambda epoch: None)

    def candidates(self, label: str) -> AbstractContextManager[Callable[[Progress], None]]:
        """Called before the candidates of an ensemble are fitted; returns a callback for every one of them."""
        return nullcontext(lambda candidate: None)


@contextmanager
def tensorboard_log(folder: Path | None, callback: Callable[[Epoch], None]) -> Iterator[Callable[[Epoch], None]]:
    """A callback that also writes losses and the validation metric to a folder; with None, only ``callback``.

    Networks of several depths have a subfolder each. When an interrupted run continues, repeated epochs replace the
    earlier ones.
    """
    if folder is None:
        yield callback
        return
    from torch.utils.tensorboard import SummaryWriter

    writers: dict[int | None, SummaryWriter] = {}

    def on_epoch(epoch: Epoch) -> None:
        if epoch.layers not in writers:
            own = folder if epoch.layers is None else folder / f"layers-{epoch.layers}"
            writers[epoch.layers] = SummaryWriter(str(own), purge_step=epoch.number)
        values = {"train_loss": epoch.train_loss, "val_loss": epoch.val_loss, f"val_{epoch.metric}": epoch.val_metric}
        for name, value in values.items():
            writers[epoch.layers].add_scalar(name, value, epoch.number)
        callback(epoch)

    try:
        yield on_epoch
    finally:
        for writer in writers.values():
            writer.close()
