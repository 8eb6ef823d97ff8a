"""The folder of a run: what is at work in it, what is finished, and how one becomes the other.

While a run is at work, all it has is in ``unfinished/``: what it was asked for, the checkpoint, the results of finished
splits. At the end every file is written there first, then moved to its place; a mark says that the moving has begun,
so that a run that is killed in the middle of it can be brought to its end.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from demonet.atomic import replacing
from demonet.errors import DemonetError

MODEL, CONFIG, METRICS, SPLIT = "model.safetensors", "config.json", "metrics.json", "split.json"
PREDICTIONS, PAGE, CARD, ARRAYS = "predictions.csv", "report.html", "MODEL_CARD.md", "run.safetensors"
WORK, WHOLE, READY, ASKED = "unfinished", "whole", "ready", "asked.json"
AGAIN = "--resume goes on with it, --overwrite starts afresh"

State = Literal["new", "finished", "interrupted"]


def state_of(out: Path) -> State:
    """What is in the folder; anything but a run is refused."""
    if not out.exists():
        return "new"
    if not out.is_dir():
        raise DemonetError("this is a file, where the folder of a run belongs", file=out)
    if (out / WORK / ASKED).is_file():
        return "interrupted"
    if (out / METRICS).is_file() and (out / ARRAYS).is_file():
        return "finished"
    if any(entry.name not in (WORK, ".lock") for entry in out.iterdir()):
        raise DemonetError("not empty, and not the folder of a run", file=out, hint="name a new folder")
    return "new"


def check_out(out: Path, *, resume: bool, overwrite: bool) -> State:
    """The state of the folder, if a run may be written there as things stand."""
    if resume and overwrite:
        raise DemonetError("--resume and --overwrite", hint="one goes on, the other starts afresh")
    state = state_of(out)
    if state == "interrupted" and not (resume or overwrite):
        raise DemonetError("there is an unfinished run in this folder", file=out, hint=AGAIN)
    if state == "finished" and not (resume or overwrite):
        raise DemonetError("there is a finished run in this folder", file=out, hint="--overwrite replaces it")
    return state


class Workshop:
    """``unfinished/`` of one run, while this process has it to itself."""

    def __init__(self, out: Path) -> None:
        self.out, self.work = out, out / WORK

    def path(self, name: str) -> Path:
        """A file of the work."""
        return self.work / name

    def draft(self, name: str) -> Path:
        """A file of the finished run, before it is in its place."""
        (self.work / WHOLE).mkdir(exist_ok=True)
        return self.work / WHOLE / name

    def remember(self, asked: dict[str, Any]) -> None:
        """Note what the run was asked for, or check that it is asked for the same again."""
        file = self.path(ASKED)
        if not file.exists():
            write_json(file, asked)
        else:
            check_same(read_json(file), asked, self.out)

    def publish(self) -> None:
        """Move every file to its place; what an earlier run has and this one has not goes away."""
        (self.work / READY).touch()
        whole = self.work / WHOLE
        if not (whole / "tensorboard").exists() and (whole / CONFIG).exists():
            shutil.rmtree(self.out / "tensorboard", ignore_errors=True)
        for file in sorted(whole.iterdir(), key=lambda file: file.name == METRICS):  # the last one makes it finished
            place = self.out / file.name
            if place.is_dir():
                shutil.rmtree(place)
            file.replace(place)
        self.path(ASKED).unlink()  # from here on it is finished, and the rest is litter
        shutil.rmtree(self.work)


@contextmanager
def workshop(out: Path, *, overwrite: bool) -> Iterator[Workshop]:
    """The work folder of a run, made if need be; two processes never share one."""
    import filelock

    try:
        (out / WORK).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemonetError(f"the folder cannot be made: {error.strerror}", file=out) from None
    lock = filelock.FileLock(out / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise DemonetError("another process is at work in this folder", file=out) from None
    try:
        shop = Workshop(out)
        if overwrite:
            if shop.path(READY).exists():  # half of the files of a run are in their place: bring the rest
                shop.publish()
            shutil.rmtree(shop.work, ignore_errors=True)
            shop.work.mkdir()
        yield shop
    finally:
        lock.release()
        (out / ".lock").unlink(missing_ok=True)


def check_same(before: dict[str, Any], now: dict[str, Any], out: Path) -> None:
    """Refuse to go on with a run that was asked for something else."""
    for name in before | now:
        if before.get(name) != now.get(name):
            if name.endswith(" file"):
                problem = f"the {name} is not the one that this run was started with"
            else:
                problem = f"this run was started with {name} {_said(before.get(name))}, not {_said(now.get(name))}"
            raise DemonetError(problem, file=out, hint="give the same again, or --overwrite to start afresh")


def write_json(path: Path, value: Any) -> None:
    """JSON for people and machines, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """What :func:`write_json` wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DemonetError("no such file", file=path, hint="is this the folder of a finished run?") from None
    except (OSError, ValueError) as error:
        raise DemonetError(f"cannot be read: {error}", file=path) from None


def _said(value: Any) -> str:
    return "unset" if value is None else str(value)
