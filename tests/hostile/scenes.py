"""What is killed: commands on a small problem, what must hold after a kill, and what the next command must do."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file
from tests.hostile.kills import KILLED, forked
from tests.runs.files import write_problem

from demonet import DemonetError
from demonet.runs import load_run
from demonet.train.checkpoint import digest

FIT = ["fit", "edges.csv", "--labels", "labels.csv", "--out", "run", "--epochs", "3", "--seed"]
PREDICT = ["predict", "run", "edges.csv", "--out"]


@dataclass(frozen=True)
class Scene:
    """A command to kill.

    Attributes:
        before: Commands that prepare the folder.
        command: The command that is killed.
        after: What a user calls next; it must succeed.
        results: The files that the next command must leave as an undisturbed run does.
        kept: Whether a finished run that was there before must load after the kill, unless a newer one does.
    """

    before: list[list[str]]
    command: list[str]
    after: list[str]
    results: tuple[str, ...]
    kept: bool = False


FILES = ("run/predictions.csv", "run/model.safetensors", "run/split.json")
SCENES: dict[str, Scene] = {
    "fit": Scene([], [*FIT, "0"], [*FIT, "0", "--resume"], FILES),
    "resume": Scene([[*FIT, "0"]], [*FIT, "0", "--resume"], [*FIT, "0", "--resume"], FILES, kept=True),
    "overwrite": Scene([[*FIT, "0"]], [*FIT, "1", "--overwrite"], [*FIT, "1", "--overwrite"], FILES, kept=True),
    "predict": Scene([[*FIT, "0"]], [*PREDICT, "p.csv"], [*PREDICT, "p.csv"], ("p.csv",), kept=True),
    "embed": Scene(
        [[*FIT, "0"]],
        ["embed", "run", "edges.csv", "--out", "e.parquet"],
        ["embed", "run", "edges.csv", "--out", "e.parquet"],
        ("e.parquet",),
        kept=True,
    ),
    "report": Scene([[*FIT, "0"]], ["report", "run"], ["report", "run"], ("run/report.html",), kept=True),
}


def prepare(folder: Path, scene: Scene) -> None:
    """The folder in which a scene begins."""
    folder.mkdir()
    write_problem(folder, motifs=4)
    os.chdir(folder)
    for command in scene.before:
        code, _ = forked(0, command, str(folder))
        assert code == 0, command


def check(start: Path, folder: Path, scene: Scene, kill_at: int, expected: dict[str, str]) -> bool:
    """Kill at one point and check everything; False if the command ended before that point.

    Args:
        start: A folder in which the scene begins; it is copied.
        folder: Where to copy it to.
        scene: What to do.
        kill_at: The number of the call before which the command is killed.
        expected: The checksums of its results where nothing is killed.
    """
    shutil.copytree(start, folder)
    os.chdir(folder)
    code, _ = forked(kill_at, scene.command, str(folder))
    if code == KILLED:
        if scene.kept:
            assert_run_is_whole_or_named()
        after = scene.after if (folder / "run").exists() else scene.command
        code, _ = forked(0, [part for part in after if part != "--resume" or has_run(folder)], str(folder))
        assert code == 0, f"{scene.command} killed at {kill_at}: the next command ends with {code}"
        assert digests(folder, scene.results) == expected, f"{scene.command} killed at {kill_at}: another result"
        litter = [path.name for path in folder.rglob("*") if path.name.endswith(".part") or path.name == "unfinished"]
        assert not litter, f"{scene.command} killed at {kill_at}: {litter} left behind"
        load_run(folder / "run")
        shutil.rmtree(folder)
        return True
    assert code == 0
    shutil.rmtree(folder)
    return False


def has_run(folder: Path) -> bool:
    """Whether there is anything to resume."""
    return any((folder / "run" / name).exists() for name in ("metrics.json", "unfinished/asked.json"))


def assert_run_is_whole_or_named() -> None:
    """A run loads as a whole, or the error says that it is unfinished: nothing half-written is read."""
    try:
        load_run("run")
    except DemonetError as error:
        if "not finished" not in str(error):
            raise AssertionError(f"a damaged run after a kill: {error}") from error


def digests(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """The checksum of each file; of a model that of its tensors, because how long training took is in it, too."""
    return {name: _digest(folder / name) for name in names}


def _digest(path: Path) -> str:
    if path.suffix == ".safetensors":
        return digest(sorted(load_file(path).items()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def expected_results(start: Path, folder: Path, scene: Scene) -> tuple[dict[str, str], int]:
    """The results of an undisturbed scene, and the number of its calls."""
    shutil.copytree(start, folder)
    os.chdir(folder)
    code, count = forked(0, scene.command, str(folder))
    assert code == 0
    found = digests(folder, scene.results)
    shutil.rmtree(folder)
    return found, count
