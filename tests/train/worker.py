"""Training runs for processes of their own, two of which kill themselves.

Each trains graphs in batches, with dropout and batch normalisation. The first is killed inside an epoch and the second
inside the writing of a checkpoint; the third goes on from where the first was, and leaves its weights and history.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from safetensors.torch import save_file
from tests.train import problems

from demonet.train import Trained, train_graphs

EPOCHS, KILLED_AT = 55, 36  # checkpoints after epochs 25 and 50


def train(path: Path, on_epoch=None) -> Trained:
    graphs, split = problems.graphs(20)
    chosen = problems.quick("default", "graphs", epochs=EPOCHS, patience=EPOCHS, batch_size=3, model={"hidden": 8})
    return train_graphs(graphs, split, chosen, on_epoch=on_epoch, checkpoint=path)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_in_an_epoch(folder: Path) -> None:
    train(folder / "epoch.safetensors", lambda epoch: die() if epoch.number == KILLED_AT else None)


def killed_in_the_second_write(folder: Path) -> None:
    """Half of the second checkpoint is on disk when the process dies."""
    original, calls = Path.write_bytes, []

    def dying(path, raw):
        calls.append(path)
        original(path, raw if len(calls) < 2 else raw[: len(raw) // 2])
        if len(calls) == 2:
            die()

    Path.write_bytes = dying
    train(folder / "write.safetensors")


def resumed(folder: Path) -> None:
    trained = train(folder / "epoch.safetensors")
    save_file(trained.model.state_dict(), folder / "weights.safetensors")
    history = {name: value for name, value in vars(trained.history).items() if name != "seconds"}
    (folder / "history.json").write_text(json.dumps(history))
