"""What is killed: commands on a small problem, what must hold after a kill, and what the next command must do."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from safetensors.torch import load_file
from tests.hostile.kills import FIT, KILLED, Child, forked
from tests.runs.files import write_problem

from demonet import DemonetError
from demonet.runs import load_run
from demonet.train.checkpoint import digest
from demonet_study.ledger.store import Ledger

AIRPORTS = {"brazil-airports.edgelist": b"1 2\n2 3\n3 1\n3 4\n", "labels-brazil-airports.txt": b"1 0\n2 1\n3 2\n4 3\n"}
Tree = dict[str, str]


def forked_workers(folder: Path) -> None:
    """Workers are real processes, but forked: a spawned one imports PyTorch for seconds."""
    from demonet import workers

    workers.CONTEXT = multiprocessing.get_context("fork")


def downloads(folder: Path) -> None:
    """An empty cache, and a server that sends one line after the other."""
    import pooch

    from demonet.data import catalog

    os.environ.pop("DEMONET_DATA", None)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    brazil = catalog.CATALOG["brazil"]
    files = (replace(file, sha256=hashlib.sha256(AIRPORTS[file.name]).hexdigest()) for file in brazil.files)
    catalog._SETS = (replace(brazil, files=tuple(files)),)

    class Server:
        def __init__(self, **options: object) -> None:
            pass

        def __call__(self, url: str, path: str, _: object) -> None:
            for line in AIRPORTS[Path(url).name].splitlines(keepends=True):
                with open(path, "ab") as stream:
                    stream.write(line)

    pooch.HTTPDownloader = Server


def quick_tables(folder: Path) -> None:
    """Both of the above and below."""
    forked_workers(folder)
    short_page(folder)


def short_page(folder: Path) -> None:
    """The page of a fit is a line: most of the time would go into figures, and ``report`` writes the real one."""
    from demonet.report import page

    page.render = lambda content: f"<!doctype html><title>{content.title}</title>"


@dataclass(frozen=True)
class Scene:
    """A command to kill.

    Attributes:
        before: Commands that prepare the folder.
        command: The command that is killed.
        after: What a user calls next; it must succeed.
        results: The files that the next command must leave as an undisturbed run does.
        kept: Whether a finished run that was there before must load after the kill, unless a newer one does.
        setting: Called in the process of each command.
    """

    before: list[list[str]]
    command: list[str]
    after: list[str]
    results: tuple[str, ...]
    kept: bool = False
    setting: Callable[[Path], None] | None = None


def again(
    command: list[str], *results: str, before: bool = True, setting: Callable[[Path], None] | None = None
) -> Scene:
    """A scene where the same command goes on."""
    return Scene([[*FIT, "0"]] if before else [], command, command, results, kept=before, setting=setting)


TABLES = ("results/ledger.sqlite", "results/identity.csv", "results/tables", "results/figures")
FILES = ("run/predictions.csv", "run/model.safetensors", "run/split.json")
SPLITS = [*FIT, "0", "--cv", "2"]
ENSEMBLE = ["fit", "edges.csv", "--labels", "labels.csv", "--out", "run", "--effort", "quick"]
COMPARE = ["compare", "edges.csv", "--labels", "labels.csv", "--out", "board", "--splits", "2"]
COMPARE += ["--methods", "majority,degree-knn"]
REPRODUCE = ["reproduce", "identity", "--quick", "--runs", "1", "--sets", "cycle", "--methods", "gcn,graphwave"]
MAKE_RUNS = [*REPRODUCE, "--no-render"]
WRITE_TABLES = ["reproduce", "identity", "--quick", "--runs", "1", "--render-only"]
SCENES: dict[str, Scene] = {
    "fit": Scene([], [*FIT, "0"], [*FIT, "0", "--resume"], FILES),
    "fit on two splits": Scene([], SPLITS, [*SPLITS, "--resume"], FILES, setting=short_page),
    "fit an ensemble": Scene([], ENSEMBLE, [*ENSEMBLE, "--resume"], FILES, setting=short_page),
    "resume": Scene([[*FIT, "0"]], [*FIT, "0", "--resume"], [*FIT, "0", "--resume"], FILES, kept=True),
    "overwrite": Scene([[*FIT, "0"]], [*FIT, "1", "--overwrite"], [*FIT, "1", "--overwrite"], FILES, kept=True),
    "predict": again(["predict", "run", "edges.csv", "--out", "p.csv"], "p.csv"),
    "embed": again(["embed", "run", "edges.csv", "--out", "e.parquet"], "e.parquet"),
    "report": again(["report", "run"], "run/report.html"),
    "compare": again(COMPARE, "board/cells", before=False, setting=forked_workers),
    "datasets": again(["datasets", "brazil"], "cache/demonet", before=False, setting=downloads),
    "reproduce, the runs": again(MAKE_RUNS, "results/ledger.sqlite", before=False, setting=forked_workers),
    "reproduce, the tables": Scene([MAKE_RUNS], WRITE_TABLES, WRITE_TABLES, TABLES, setting=quick_tables),
}

RANDOM: dict[str, Scene] = {  # at random times; most kills should hit a fit, and little time should go into figures
    "fit": replace(SCENES["fit"], setting=short_page),
    "fit on two splits": SCENES["fit on two splits"],
    "overwrite": replace(SCENES["overwrite"], setting=short_page),
    "predict": SCENES["predict"],
    "embed": SCENES["embed"],
    "compare": SCENES["compare"],
    "datasets": SCENES["datasets"],
}


def prepare(folder: Path, scene: Scene) -> None:
    """The folder in which a scene begins."""
    folder.mkdir()
    write_problem(folder, motifs=4)
    for command in scene.before:
        code, _ = forked(0, command, folder, scene.setting)
        assert code == 0, command


def undisturbed(start: Path, folder: Path, scene: Scene) -> tuple[Tree, int]:
    """What a scene leaves where nothing is killed, and the number of its calls."""
    shutil.copytree(start, folder)
    code, count = forked(0, scene.command, folder, scene.setting)
    assert code == 0
    found = tree(folder, scene.results)
    shutil.rmtree(folder)
    return found, count


def check(start: Path, folder: Path, scene: Scene, kill: Callable[[Child], None], point: int, expected: Tree) -> bool:
    """Kill a command and check everything; False if it ended before.

    Args:
        start: A folder in which the scene begins; it is copied.
        folder: Where to copy it to.
        scene: What to do.
        kill: Called with the process, to kill it from outside.
        point: The number of the call before which it kills itself; 0 for none.
        expected: What an undisturbed scene leaves.
    """
    shutil.copytree(start, folder)
    child = Child(scene.command, folder, point, scene.setting)
    kill(child)
    code, _ = child.wait()
    assert code in (0, KILLED)
    if code == KILLED:
        if scene.kept:
            assert_run_is_whole_or_named(folder / "run")
        after = scene.after if has_run(folder) else [part for part in scene.command if part != "--overwrite"]
        code, _ = forked(0, after, folder, scene.setting)
        assert code == 0, f"the next command ends with {code}"
        code = KILLED
    found = tree(folder, scene.results)
    assert found == expected, f"other files or results: {sorted(found.items() ^ expected.items())}"
    shutil.rmtree(folder)
    return code == KILLED


def has_run(folder: Path) -> bool:
    """Whether there is anything to resume or to overwrite."""
    return any((folder / "run" / name).exists() for name in ("metrics.json", "unfinished/asked.json"))


def assert_run_is_whole_or_named(run: Path) -> None:
    """A run loads as a whole, or the error says that it is unfinished: nothing half-written is read."""
    try:
        load_run(run)
    except DemonetError as error:
        if "not finished" not in str(error):
            raise AssertionError(f"a damaged run after a kill: {error}") from error


def tree(folder: Path, results: tuple[str, ...]) -> Tree:
    """All names below a folder, and the content of the results: nothing is missing, and nothing is left over."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        known = any(name == result or name.startswith(f"{result}/") for result in results)
        found[name] = content(path) if known and path.is_file() else ""
    return found


def content(path: Path) -> str:
    """A checksum of what does not depend on time: of a model its tensors, of a ledger and of a cell its values."""
    if path.suffix == ".safetensors":
        return digest(sorted(load_file(path).items()))
    if path.suffix == ".sqlite":
        with Ledger(path) as ledger:
            return repr([row[:13] for row in ledger._finished()])
    if path.parent.name == "cells":
        return repr(json.loads(path.read_bytes())["metrics"])
    return hashlib.sha256(path.read_bytes()).hexdigest()
