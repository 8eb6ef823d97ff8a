"""The folder of a run: saving, loading and publishing.

While a run is in progress, everything is in ``unfinished/``: the request, the checkpoint, the results of finished
splits. At the end, all files are written to ``unfinished/whole`` and then moved to their place. The marker ``ready``
says that moving has begun, so that a run killed during the move can be completed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from demonet.atomic import replacing
from demonet.data.splits import Split
from demonet.errors import DemonetError, Hint
from demonet.runs.outputs import model_card, write_predictions
from demonet.runs.run import Run
from demonet.tensorfile import pack_texts, read_tensors, unpack_texts, write_tensors

MODEL, CONFIG, METRICS, SPLIT = "model.safetensors", "config.json", "metrics.json", "split.json"
OPTIONS = "run.toml"
PREDICTIONS, PAGE, CARD, ARRAYS = "predictions.csv", "report.html", "MODEL_CARD.md", "run.safetensors"
WORK, WHOLE, READY, REQUEST = "unfinished", "whole", "ready", "asked.json"
FORMAT = "demonet-run-3"
FORMAT_2 = "demonet-run-2"  # with the ids in the header
FORMAT_1 = "demonet-run-1"  # written without a checksum
_ARRAYS = ("y", "part", "outputs", "degree", "place", "degrees", "degree_counts")
_OPTIONAL = ("edge_count", "edges", "drawing", "degree_task")
_FACTS = ("kind", "history", "class_names", "columns")
_IDS = ("bytes", "offsets")

_ACCURACIES = ("test_accuracy", "val_accuracy")

State = Literal["new", "finished", "interrupted"]


def state_of(out: Path) -> State:
    """What is in the folder; anything but a run is an error."""
    if not out.exists():
        return "new"
    if not out.is_dir():
        raise DemonetError("this is a file, not the folder of a run", file=out)
    if (out / WORK / REQUEST).is_file():
        return "interrupted"
    if (out / METRICS).is_file() and (out / ARRAYS).is_file():
        return "finished"
    if any(entry.name not in (WORK, ".lock") for entry in out.iterdir()):
        raise DemonetError("the folder is not empty and has no run", file=out, hint="use a new folder")
    return "new"


def check_out(out: Path, *, resume: bool, overwrite: bool) -> State:
    """The state of the folder, if a run may be written to it."""
    if resume and overwrite:
        hint = Hint("choose {resume} to continue a run or {overwrite} to start again", resume=True, overwrite=True)
        raise DemonetError("resume and overwrite exclude each other", hint=hint)
    state = state_of(out)
    if state == "interrupted" and not (resume or overwrite):
        hint = Hint("{resume} continues it, {overwrite} starts again", resume=True, overwrite=True)
        raise DemonetError("the folder has an unfinished run", file=out, hint=hint)
    if state == "finished" and not (resume or overwrite):
        hint = Hint("{overwrite} replaces it", overwrite=True)
        raise DemonetError("the folder has a finished run", file=out, hint=hint)
    return state


class RunFolder:
    """The folder of a run that is in progress; only one process has it open."""

    def __init__(self, out: Path) -> None:
        self.out, self.work = out, out / WORK

    def path(self, name: str) -> Path:
        """A temporary file of the run."""
        return self.work / name

    def final(self, name: str) -> Path:
        """A file of the finished run, before it is moved to its place."""
        (self.work / WHOLE).mkdir(exist_ok=True)
        return self.work / WHOLE / name

    def remember(self, request: dict[str, Any]) -> None:
        """Save the request of the run, or check that it is the saved one."""
        file = self.path(REQUEST)
        if not file.exists():
            write_json(file, request)
        else:
            check_same(read_json(file), request, self.out)

    def split_result(self, number: int) -> dict[str, Any] | None:
        """The saved result of a split, if it is finished."""
        file = self.path(f"split-{number:03}.json")
        result = read_json(file) if file.exists() else None
        return result if result is not None and "task" in result else None  # an earlier version had no tasks

    def save_split_result(self, number: int, result: dict[str, Any]) -> None:
        """Save the result of a finished split."""
        write_json(self.path(f"split-{number:03}.json"), result)

    def forget(self, name: str) -> None:
        """Remove a temporary file or folder, if there is one."""
        path = self.path(name)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def save(self, run: Run, split: Split) -> None:
        """Write all files of the finished run except the model and the page."""
        arrays = {name: getattr(run, name) for name in (*_ARRAYS, *_OPTIONAL)}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items() if a is not None}
        tensors |= {f"ids.{part}": tensor for part, tensor in pack_texts(run.ids).items()}
        write_tensors(self.final(ARRAYS), FORMAT, tensors, {name: getattr(run, name) for name in _FACTS})
        noun = run.kind.removesuffix("s")
        path, names = self.final(PREDICTIONS), run.class_names
        write_predictions(path, noun, run.ids, names, run.outputs, run.task, run.y, run.part)
        split.save(self.final(SPLIT))
        write_json(self.final(CONFIG), run.config)
        write_json(self.final(METRICS), run.metrics)
        self.final(CARD).write_text(model_card(run), encoding="utf-8", errors="replace")

    def publish(self) -> None:
        """Move every file to its place; files that only an earlier run had are removed."""
        (self.work / READY).touch()
        whole = self.work / WHOLE
        if not (whole / "tensorboard").exists() and (whole / CONFIG).exists():
            shutil.rmtree(self.out / "tensorboard", ignore_errors=True)
        for file in sorted(whole.iterdir(), key=lambda file: file.name == METRICS):  # the last one makes it finished
            place = self.out / file.name
            if place.is_dir():
                shutil.rmtree(place)
            file.replace(place)
        self.path(REQUEST).unlink()  # now it is finished, and the rest can be deleted
        shutil.rmtree(self.work)


@contextmanager
def open_folder(out: Path, *, overwrite: bool) -> Iterator[RunFolder]:
    """Open or create the folder of a run and lock it for this process."""
    import filelock

    try:
        (out / WORK).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemonetError(f"cannot create the folder: {error.strerror}", file=out) from None
    lock = filelock.FileLock(out / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise DemonetError("another process is using this folder", file=out) from None
    try:
        folder = RunFolder(out)
        if overwrite:
            if folder.path(READY).exists():  # some files of a run are in their place: move the others, too
                folder.publish()
            shutil.rmtree(folder.work, ignore_errors=True)
            folder.work.mkdir()
        yield folder
    finally:
        lock.release()
        (out / ".lock").unlink(missing_ok=True)


def load_run(out: str | Path) -> Run:
    """Load a finished run from its folder. The graph itself is not in it."""
    out = Path(out)
    if not out.is_dir():
        raise DemonetError("no such folder", file=out, hint="fit creates the folder of a run")
    unfinished = state_of(out) == "interrupted"
    if not (out / ARRAYS).is_file() or (unfinished and (out / WORK / READY).exists()):
        problem = "the run in this folder is not finished" if unfinished else "there is no run in this folder"
        raise DemonetError(problem, file=out, hint="continue it with fit and resume" if unfinished else None)
    tensors, facts, found = read_tensors(out / ARRAYS, FORMAT, FORMAT_2, unchecked=(FORMAT_1,))
    if "probabilities" in tensors:  # of an earlier version
        tensors["outputs"] = tensors.pop("probabilities")
    try:
        arrays: dict[str, Any] = {name: tensors[name].numpy() for name in _ARRAYS}
        arrays |= {name: tensors[name].numpy() for name in _OPTIONAL if name in tensors}
        ids = unpack_texts({part: tensors[f"ids.{part}"] for part in _IDS}) if found == FORMAT else facts["ids"]
        facts = {name: facts[name] for name in _FACTS} | {"ids": ids}
    except KeyError as error:
        raise DemonetError(f"{error.args[0]} is missing", file=out / ARRAYS) from None
    config, metrics = read_json(out / CONFIG), read_json(out / METRICS)
    if "metric" not in metrics:  # of an earlier version
        metrics |= {"task": "classify", "metric": "accuracy", "test_metric_interval": metrics.get("test_interval")}
        for values in (metrics, metrics.get("cv", {}), facts["history"]):
            values |= {key.replace("accuracy", "metric"): values[key] for key in _ACCURACIES if key in values}
    return Run(config=config, metrics=metrics, **{"edge_count": None} | facts | arrays)


def check_same(before: dict[str, Any], now: dict[str, Any], out: Path) -> None:
    """Refuse to continue a run with another request."""
    if "items" not in before:  # an earlier version: ``task`` said what the items are
        before = {**before, "items": before.get("task"), "task": "auto"}
    if "model" not in before:  # an earlier version: there were networks alone
        before = {**before, "model": "network"}
    for name in before | now:
        if before.get(name) != now.get(name):
            hint = Hint("repeat the first call, or use {overwrite} to start again", overwrite=True)
            if name.endswith(" file"):
                raise DemonetError(f"the {name} has changed since this run was started", file=out, hint=hint)
            old, new = ("the default" if value is None else value for value in (before.get(name), now.get(name)))
            raise DemonetError(f"this run was started with {old}, not {new}", argument=name, file=out, hint=hint)


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read what :func:`write_json` wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DemonetError("no such file", file=path, hint="is this the folder of a finished run?") from None
    except (OSError, ValueError) as error:
        raise DemonetError(f"cannot be read: {error}", file=path) from None
