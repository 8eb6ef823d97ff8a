"""The folder of a run: saving, loading and publishing.

While a run is in progress, everything is in ``unfinished/``: the request, the checkpoint, the results of finished
splits. At the end, all files are written to ``unfinished/whole``, their manifest last, and then moved to their place,
the manifest last again. As long as a manifest is in ``unfinished/whole``, a run that was killed can be completed by
moving the rest. Until the first file is moved, the earlier run is the one that is read. Its files are first moved to
``unfinished/replaced``; if a move fails, all of them are moved back. The run is finished once ``unfinished`` has
another name, under which it is removed; what a killed process has left of it is removed by the next.

Only files that a manifest of the folder lists are replaced or removed, and no link is followed. The manifest has the
SHA-256 of every other file and of itself, so that no damaged or swapped file is used in silence.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from demonet.atomic import Member, folder_locked, locked, part_of, replacing, whole_of
from demonet.data.splits import Split
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.estimators import estimator_class
from demonet.estimators.base import DEMONetEstimator
from demonet.options import Reading
from demonet.runs.outputs import model_card, write_predictions
from demonet.runs.run import Run
from demonet.schema import Array, check_arrays, from_json, values_of
from demonet.sealed import member, move, opened, read_sealed, remove, sha256_of, to_json, write_sealed
from demonet.tensorfile import is_ours, pack_texts, read_tensors, unpack_texts, write_tensors
from demonet.train.metrics import METRICS as METRICS_BY_NAME

MANIFEST, _MANIFEST = "manifest.json", "demonet-manifest-1"  # and its format
MODEL, CONFIG, METRICS, SPLIT = "model.safetensors", "config.json", "metrics.json", "split.json"
OPTIONS = "run.toml"
PREDICTIONS, PAGE, CARD, ARRAYS = "predictions.csv", "report.html", "MODEL_CARD.md", "run.safetensors"
LOGS = "tensorboard"
FILES = (MODEL, CONFIG, METRICS, SPLIT, OPTIONS, PREDICTIONS, PAGE, CARD, ARRAYS)
WORK, WHOLE, REQUEST, LOCK = "unfinished", "whole", "asked.json", ".lock"
REPLACED = "replaced"  # in WORK: the files of the run before, until they are removed
_DONE = part_of(WORK)  # WORK, while it is removed
_OURS = "|".join(map(re.escape, (*FILES, MANIFEST)))
_TEMPORARY = re.compile(  # what is in WORK, by its path; of a file that is written, without the checksum in its name
    rf"({REQUEST}|{MODEL}|split-\d+\.json|checkpoint-\d+\.safetensors)"
    rf"|checkpoint-\d+\.safetensors/[^/]+\.safetensors|({WHOLE}|{REPLACED})(/({_OURS})|/{LOGS}(/.+)?)?",
    re.DOTALL,
)
FORMAT = "demonet-run-3"
_SCHEMA = {  # of the arrays of a run; that of the targets depends on the task
    "part": Array("i", ("items",), -1, 3),
    "outputs": Array("f", ("items", "outputs")),
    "degree": Array("i", ("items",), 0),
    "place": Array("f", ("items", 2)),
    "degrees": Array("i", ("degrees",), 0),
    "degree_counts": Array("i", ("degrees",), 0),
    "edge_count": Array("i", ("items",), 0, optional=True),
    "edges": Array("i", (2, "edges"), 0, "items", optional=True),
    "degree_task": Array("i", ("degrees",), 0, optional=True),
}
_FACTS = ("kind", "history", "class_names", "columns")
_IDS = ("bytes", "offsets")

_READ = (ARRAYS, CONFIG, METRICS)  # by every command
_USES = {"report": _READ, "predict": (*_READ, MODEL), "embed": (*_READ, MODEL), "export": (*_READ, MODEL)}
_MOVE_AWAY = "use a new folder, or move it away"
# What files have, whoever has written them and their manifest.
_CONFIG_KEYS: dict[str, Any] = {"name": str, "task": str, "metric": str, "sizes": dict, "seed": int, "versions": dict}
_CONFIG_KEYS |= {"reading": dict, "asked": dict, "estimator": dict}
_METRICS_KEYS: dict[str, Any] = {"model": str, "split": dict, "floors": dict, "seconds": float | int}
_METRICS_KEYS |= dict.fromkeys(("test_metric", "val_metric"), float | int | None)

State = Literal["new", "finished", "interrupted"]
Loaded = TypeVar("Loaded")


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
    if any(entry.name not in (WORK, LOCK, _DONE) for entry in out.iterdir()):
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
    if state != "finished" or overwrite:
        _check_ours(out)
    return state


def _check_ours(out: Path) -> None:
    """Refuse a folder in which a run would replace or remove what no run has written."""
    _check_temporary(out / WORK)
    whole, moved = out / WORK / WHOLE, {}
    if _is_whole(whole):  # what was moved before a kill
        moved = {name: known for name, known in _listed(whole).items() if not (whole / name).exists()}
    check_listed(out, FILES, _listed(out), moved)


def check_listed(out: Path, names: Iterable[str], *manifests: dict[str, str]) -> None:
    """Refuse to replace or remove links, and files that differ from all manifests.

    Args:
        out: The folder.
        names: The files that may be written; those of the manifests may be removed.
        manifests: The checksum of each file, as it was written last and before.
    """
    for name in dict.fromkeys((*names, *(name for manifest in manifests for name in manifest))):
        path, known = member(out, name), [manifest[name] for manifest in manifests if name in manifest]
        if path.exists() and not (path.is_file() and sha256_of(path) in known):
            problem = "changed since it was written" if known else "no manifest of this folder lists this file"
            raise DemonetError(f"{problem}, so it is not replaced", file=path, hint=_MOVE_AWAY)


def _check_temporary(work: Path) -> None:
    """Refuse a folder of temporary files if there is a link in it, or anything that a run does not put there."""
    if not member(work.parent, work.name).exists():
        return
    paths = [member(Path(root), name) for root, *names in os.walk(work) for name in (*names[0], *names[1])]
    names = {path: path.with_name(whole_of(path.name)).relative_to(work).as_posix() for path in paths}
    strange = [path for path, name in names.items() if not _TEMPORARY.fullmatch(name)]
    if work.name == WORK and work / REQUEST not in paths:  # the first file that is written
        strange += [path for path in paths if path.name != part_of(REQUEST)]
    if strange or not work.is_dir():
        problem = "not written by a run, so it is not removed"
        raise DemonetError(problem, file=min(strange, default=work), hint=_MOVE_AWAY)
    for path in paths:
        if path.suffix == ".json" and path.parent == work:
            read_sealed(path, _MOVE_AWAY)
        elif path.suffix == ".safetensors" and path.is_file() and not is_ours(path):
            raise DemonetError("not written by demonet, so it is not removed", file=path, hint=_MOVE_AWAY)


def _listed(folder: Path) -> dict[str, str]:
    """The checksum of each file that the manifest of a folder lists, if it has one; each is a file of a run."""
    files = read_manifest(folder) or {}
    for name in files:
        if name not in FILES and not name.startswith(f"{LOGS}/"):
            raise DemonetError(f"{name!r} is not a file of a run", file=folder / MANIFEST)
    return files


def files_of(out: Path, file: Path) -> list[Path]:
    """What ``file`` must not replace: the files of the run ``out``, there or not, and of a run in its own folder."""
    return [*(out / name for name in (*FILES, MANIFEST, LOCK, LOGS, WORK)), *listed_beside(file)]


def listed_beside(file: Path) -> list[Path]:
    """The files of a run in the folder of a file, if there is one."""
    # Only for a link: the absolute path of another file may lead through folders that are closed to us.
    beside = (Path(os.path.realpath(file)) if file.is_symlink() else file).parent
    return [beside / name for name in (*_listed(beside), MANIFEST, LOCK)] if _is_whole(beside) else []


class RunFolder:
    """The folder of a run that is in progress; only one process has it open."""

    def __init__(self, out: Path) -> None:
        self.out, self.work = out, out / WORK

    def path(self, name: str) -> Path:
        """A temporary file of the run."""
        return member(self.out, f"{WORK}/{name}")

    def final(self, name: str) -> Path:
        """A file of the finished run, before it is moved to its place."""
        member(self.work, WHOLE).mkdir(exist_ok=True)
        return member(self.out, f"{WORK}/{WHOLE}/{name}")

    @property
    def ready(self) -> bool:
        """Whether all files of the run are written, and some perhaps moved."""
        return (self.work / WHOLE / MANIFEST).exists()

    def remember(self, request: dict[str, Any]) -> None:
        """Save the request of the run, or check that it is the saved one."""
        file = self.path(REQUEST)
        if not file.exists():
            write_sealed(file, request)
        else:
            check_same(read_sealed(file, _MOVE_AWAY), request, self.out)

    def split_result(self, number: int) -> dict[str, Any] | None:
        """The saved result of a split, if it is finished."""
        file = self.path(f"split-{number:03}.json")
        return read_sealed(file, _MOVE_AWAY) if file.exists() else None

    def save_split_result(self, number: int, result: dict[str, Any]) -> None:
        """Save the result of a finished split."""
        write_sealed(self.path(f"split-{number:03}.json"), result)

    def forget(self, name: str) -> None:
        """Remove a temporary file or folder, if there is one."""
        _remove(self.path(name))

    def save(self, run: Run, split: Split) -> None:
        """Write all files of the finished run except the model and the page."""
        arrays = {name: getattr(run, name) for name in ("y", *_SCHEMA)}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items() if a is not None}
        tensors |= {f"ids.{part}": tensor for part, tensor in pack_texts(run.ids).items()}
        facts = {name: getattr(run, name) for name in _FACTS}
        write_tensors(self.final(ARRAYS), FORMAT, tensors, facts)
        noun = run.kind.removesuffix("s")
        path, names = self.final(PREDICTIONS), run.class_names
        write_predictions(path, noun, run.ids, names, run.outputs, run.task, run.y, run.part, decision=run.decision)
        split.save(self.final(SPLIT))
        write_json(self.final(CONFIG), run.config)
        write_json(self.final(METRICS), run.metrics)
        with replacing(self.final(CARD)) as temporary:
            temporary.write_text(model_card(run), encoding="utf-8", errors="replace")

    def publish(self) -> None:
        """Move every file to its place; files that only the manifest of an earlier run lists are removed."""
        if not self.ready:
            write_manifest(self.work / WHOLE)
        with folder_locked(self.out, WORK, shared=False):
            self._move()

    def _move(self) -> None:
        whole = self.work / WHOLE
        files, before = _listed(whole), _listed(self.out)
        _check_ours(self.out)  # again: training took its time
        pairs = [(name, f"{WORK}/{REPLACED}/{name}") for name in ((*sorted(before), MANIFEST) if before else ())]
        pairs += [(f"{WORK}/{WHOLE}/{name}", name) for name in (*sorted(files), MANIFEST)]
        done: list[tuple[Member, Member]] = []
        try:
            for old, new in ((member(self.out, name), member(self.out, target)) for name, target in pairs):
                if old.exists():  # otherwise it was moved before a kill
                    move(old, new)
                    done.append((old, new))
        except BaseException:  # all have their names again
            for old, new in reversed(done):
                move(new, old)
            raise
        self.discard()
        _remove_empty(self.out, before.keys() - files)

    def discard(self) -> None:
        """Remove all temporary files: at once by another name, then one by one."""
        if self.work.exists():
            move(member(self.out, WORK), member(self.out, _DONE))
            _remove(self.out / _DONE)


@contextmanager
def open_folder(out: Path, state: State, *, overwrite: bool = False) -> Iterator[RunFolder]:
    """Open or create the folder of a run, which must still be in this state, and lock it for this process."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemonetError(f"cannot create the folder: {error.strerror}", file=out) from None
    with lock_folder(out):
        _check_ours(out)
        if not overwrite and state_of(out) != state:
            hint = Hint("use a new folder, or {overwrite} to replace it", overwrite=True)
            raise DemonetError("another process has written a run to this folder meanwhile", file=out, hint=hint)
        folder = RunFolder(out)
        if overwrite:
            if folder.ready and _is_whole(folder.work / WHOLE):
                folder.publish()  # some of its files may be in their place: the others follow
            folder.discard()
        folder.work.mkdir(exist_ok=True)
        yield folder


@contextmanager
def lock_folder(out: Path) -> Iterator[None]:
    """Lock the folder of a run for this process, and remove what killed processes have left in it."""
    _check_there(out)
    state_of(out)  # no lock in a folder of something else
    with locked(member(out, LOCK)) as ours:
        if not ours:
            raise DemonetError("another process is using this folder", file=out)
        remove_listed(out, map(part_of, (PAGE, MANIFEST)))
        _check_temporary(out / _DONE)
        _remove(out / _DONE)
        yield


def _is_whole(folder: Path) -> bool:
    try:
        return bool(_listed(folder))
    except DemonetError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_listed(out: Path, names: Iterable[str]) -> None:
    """Remove files below a folder, and the folders between that are empty then."""
    names = list(names)
    for name in names:
        remove(member(out, name))
    _remove_empty(out, names)


def _remove_empty(out: Path, names: Iterable[str]) -> None:
    """Remove the folders that files of these names were in, where they are empty."""
    for name in names:
        while (name := name.rpartition("/")[0]) and (folder := member(out, name)).is_dir():
            if any(folder.iterdir()):
                break
            remove(folder)


def load_run(out: str | Path) -> Run:
    """Load a finished run from its folder, if its files are those of the manifest. The graph itself is not in it."""
    return _of_one_run(Path(out), _READ, _load_run)


def load_model_of(out: str | Path) -> tuple[Run, DEMONetEstimator]:
    """Load a finished run and its model."""

    def load(out: Path) -> tuple[Run, DEMONetEstimator]:
        run = _load_run(out)
        return run, estimator_class(run.kind, run.task).load(member(out, MODEL))

    return _of_one_run(Path(out), (*_READ, MODEL), load)


def _of_one_run(out: Path, names: Iterable[str], load: Callable[[Path], Loaded]) -> Loaded:
    """What is loaded from these files, all of them of one run: nobody replaces them meanwhile."""
    _check_there(out)
    with folder_locked(out, WORK, shared=True):
        _check_finished(out)
        check_files(out, names)
        with values_of(out):
            return load(out)


def _check_there(out: Path) -> None:
    if not out.is_dir():
        raise DemonetError("no such folder", file=out, hint="fit creates the folder of a run")


def _check_finished(out: Path) -> None:
    """Refuse a folder without a finished run."""
    unfinished = state_of(out) == "interrupted"
    if not (out / ARRAYS).is_file() or (unfinished and _is_moving(out / WORK)):
        problem = "the run in this folder is not finished" if unfinished else "there is no run in this folder"
        raise DemonetError(problem, file=out, hint="continue it with fit and resume" if unfinished else None)


def _is_moving(work: Path) -> bool:
    """Whether some files of a run are in their place or out of it, and others are not yet."""
    whole = work / WHOLE
    if not (whole / MANIFEST).exists():  # not begun, or at its end
        return False
    replaced = any(path.is_file() for path in (work / REPLACED).rglob("*"))
    return replaced or not all((whole / name).exists() for name in _listed(whole))


def _load_run(out: Path) -> Run:
    config, metrics = (
        _object(member(out, name), keys) for name, keys in ((CONFIG, _CONFIG_KEYS), (METRICS, _METRICS_KEYS))
    )
    with values_of(out / CONFIG):
        from_json(Reading, config["reading"])
        if not isinstance(attributes := config["sizes"].get("attributes"), int):
            raise DemonetError(f"{attributes!r} for 'attributes'")
    tensors, facts, _ = read_tensors(member(out, ARRAYS), FORMAT)
    with values_of(out / ARRAYS):
        ids = unpack_texts({part: tensors[f"ids.{part}"] for part in _IDS})
        facts = {name: facts[name] for name in _FACTS} | {"ids": ids}
        sizes = {"items": len(ids), "outputs": len(facts["class_names"])}
        y = Array("i", ("items",), -1, "outputs") if config["task"] == "classify" else Array("f", ("items", "outputs"))
        check_arrays(tensors, _SCHEMA | {"y": y}, sizes)
        arrays = {name: tensor.numpy() for name, tensor in tensors.items() if name in _SCHEMA | {"y": y}}
        texts = [*facts["class_names"], *(facts["columns"] or ())]
        if not all(isinstance(text, str) for text in texts):
            raise DemonetError("a class or column has a name that is not a text")
        if facts["kind"] not in ("nodes", "graphs") or config["metric"] not in METRICS_BY_NAME:
            raise DemonetError(f"kind {facts['kind']!r}, metric {config['metric']!r}")
    return Run(config=config, metrics=metrics, **{"edge_count": None} | facts | arrays)


def check_files(out: Path, names: Iterable[str]) -> dict[str, str]:
    """Refuse files of a run that differ from its manifest, and say what can still be used; the checksums of all."""
    files = read_manifest(out)
    if files is None:
        raise DemonetError("no such file, so the run cannot be checked", file=out / MANIFEST, hint="fit it again")
    wrong = damaged(out, files, names)
    if not wrong:
        return files
    all_wrong = damaged(out, files, files)
    works = [command for command, read in _USES.items() if not set(read) & set(all_wrong)]
    whole = ", ".join(name for name in files if name not in all_wrong) or "nothing"
    hint = f"still whole: {whole}" + (f"; still works: {', '.join(works)}" if works else "")
    problem = "missing" if not (out / wrong[0]).exists() else "not the file of this run: damaged or replaced"
    raise DemonetError(problem, file=out / wrong[0], hint=hint)


def warn_of_damage(out: Path) -> None:
    """Warn of files that differ from the manifest, whether a command reads them or not."""
    files = read_manifest(out) or {}
    if wrong := damaged(out, files, files):
        warn(DemonetWarning(f"changed since the run was written: {', '.join(wrong)}", file=out))


def check_same(before: dict[str, Any], now: dict[str, Any], out: Path) -> None:
    """Refuse to continue a run with another request."""
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
        temporary.write_bytes(to_json(value))


def _object(path: Path, keys: dict[str, Any]) -> dict[str, Any]:
    """Read a JSON object that has these keys, with values of these types."""
    try:
        with opened(path) as stream:
            value = json.loads(stream.read())
    except FileNotFoundError:
        raise DemonetError("no such file", file=path, hint="is this the folder of a finished run?") from None
    except OSError as error:
        raise DemonetError(f"cannot be read: {error.strerror}", file=path) from None
    except (ValueError, RecursionError) as error:
        raise DemonetError(f"not JSON: {error}", file=path) from None
    if not isinstance(value, dict):
        raise DemonetError(f"{json.dumps(value)[:40]}, not a JSON object", file=path)
    for key, kind in keys.items():
        if key not in value or not isinstance(value[key], kind):
            problem = f"{json.dumps(value[key])[:40]} for {key!r}" if key in value else f"{key!r} is missing"
            raise DemonetError(problem, file=path)
    return value


def write_manifest(folder: Path) -> None:
    """Write the manifest of all files in a folder; temporary files that a killed process has left are removed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    for path in files:
        if whole_of(path.name) != path.name:
            path.unlink()
    names = [path.relative_to(folder).as_posix() for path in files if whole_of(path.name) == path.name]
    checksums = {name: sha256_of(member(folder, name)) for name in names}
    write_sealed(member(folder, MANIFEST), {"format": _MANIFEST, "files": checksums})


def read_manifest(folder: Path) -> dict[str, str] | None:
    """The checksum of each file of a run, by its name; None if there is no manifest.

    A name that leads out of the folder is refused, and so is a link.
    """
    path = member(folder, MANIFEST)
    if not path.exists():
        return None
    content = read_sealed(path, hint="the run cannot be checked: fit it again, in a new folder")
    files = content.get("files")
    if content.get("format") != _MANIFEST or not isinstance(files, dict):
        raise DemonetError(f"not a manifest of format {_MANIFEST}", file=path)
    for name in files:
        member(folder, name)
    return files


def update_manifest(folder: Path, name: str) -> None:
    """Note that a file of a run has been written again."""
    files = (read_manifest(folder) or {}) | {name: sha256_of(member(folder, name))}
    write_sealed(member(folder, MANIFEST), {"format": _MANIFEST, "files": dict(sorted(files.items()))})


def damaged(folder: Path, files: dict[str, str], names: Iterable[str]) -> list[str]:
    """Those of the named files that are missing or differ from the manifest ``files``."""
    paths = {name: member(folder, name) for name in names}
    return [name for name, path in paths.items() if not path.is_file() or sha256_of(path) != files.get(name)]
