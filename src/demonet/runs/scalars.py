"""TensorBoard: the losses and accuracies of every epoch, where the user wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from demonet.errors import DemonetError
from demonet.train.loop import Epoch


def check_tensorboard() -> None:
    """Refuse early where TensorBoard is not installed."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        raise DemonetError("TensorBoard is not installed", hint="pip install 'demonet[tensorboard]'") from None


@contextmanager
def scalars(folder: Path | None, told: Callable[[Epoch], None]) -> Iterator[Callable[[Epoch], None]]:
    """What to tell of every epoch, so that it is also written to a folder; None writes nothing.

    After an interruption the epochs that are done again replace those of the first time.
    """
    if folder is None:
        yield told
        return
    from torch.utils.tensorboard import SummaryWriter

    writers: list[SummaryWriter] = []

    def on_epoch(epoch: Epoch) -> None:
        if not writers:
            writers.append(SummaryWriter(str(folder), purge_step=epoch.number))
        for name in ("train_loss", "val_loss", "val_accuracy"):
            writers[0].add_scalar(name, getattr(epoch, name), epoch.number)
        told(epoch)

    try:
        yield on_epoch
    finally:
        for writer in writers:
            writer.close()
