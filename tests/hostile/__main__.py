"""The long form: kills at every write and at random times, mutated files, flipped bits. Prints a table of counts.

``python -m tests.hostile --minutes 20 --seed 0`` (or ``make hostile``) from the root of the project. The minutes are
shared out among the kinds of cases; ``--kinds`` chooses some. A failed case is printed and kept in ``--keep``.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch
from tests.hostile.kills import forked, warm
from tests.hostile.mutations import RunFiles, attempt, flip, ledger_file, ledger_rows, mutate, seeds
from tests.hostile.scenes import SCENES, Scene, check, digests, expected_results, has_run, prepare
from tests.runs.files import fit, write_problem

from demonet import DEMONetClassifier
from demonet.errors import DemonetError
from demonet.runs import load_run, predict_run
from demonet.tensorfile import read_tensors

SHARES = {"kill points": 0.45, "random kills": 0.15, "mutated inputs": 0.2, "changed runs": 0.1, "changed bits": 0.1}


class Cases:
    """Cases of one kind: how many, how they ended, and how many failed."""

    def __init__(self, kind: str, seconds: float, folder: Path, keep: Path, generator: random.Random) -> None:
        self.kind, self.folder, self.keep, self.generator = kind, folder, keep, generator
        self.until, self.ended = time.monotonic() + seconds, Counter[str]()
        self.failed = self.slowest = 0.0

    @property
    def over(self) -> bool:
        return time.monotonic() > self.until

    def case(self, name: str, function, *arguments) -> None:
        """One case; whatever it raises is a failure."""
        start = time.monotonic()
        try:
            self.ended[str(function(*arguments))] += 1
        except BaseException:
            if isinstance(sys.exc_info()[1], KeyboardInterrupt):
                raise
            self.failed += 1
            self.ended["failed"] += 1
            place = self.keep / f"{self.kind.replace(' ', '-')}-{int(self.failed)}"
            shutil.copytree(self.folder, place, dirs_exist_ok=True)
            print(f"FAILED {self.kind}: {name} (kept in {place})\n{traceback.format_exc()}", flush=True)
        self.slowest = max(self.slowest, time.monotonic() - start)

    @property
    def row(self) -> str:
        how = ", ".join(f"{count:,} {name}" for name, count in sorted(self.ended.items()))
        return f"| {self.kind} | {sum(self.ended.values()):,} | {int(self.failed):,} | {self.slowest:.1f} | {how} |"


def kill_points(cases: Cases) -> None:
    """Every scene at every point, in random order; then no more."""
    points = []
    for name, scene in SCENES.items():
        start = cases.folder / f"start-{name}"
        prepare(start, scene)
        expected, count = expected_results(start, cases.folder / "whole", scene)
        points += [(name, scene, start, expected, point, count) for point in range(1, count + 1)]
        print(f"{name}: {count} points", flush=True)
    cases.generator.shuffle(points)
    for name, scene, start, expected, point, count in points:
        if cases.over:
            print(f"{len(points)} points in all; the time is over", flush=True)
            return
        folder = cases.folder / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        cases.case(f"{name} at {point} of {count}", lambda *a: ("ended before", "killed")[check(*a)], start, folder,
                   scene, point, expected)  # fmt: skip


def random_kills(cases: Cases) -> None:
    """SIGKILL to a fit, an overwrite and a prediction at a random time."""
    scenes = [SCENES[name] for name in ("fit", "overwrite", "predict")]
    ready = []
    for number, scene in enumerate(scenes):
        start = cases.folder / f"start-{number}"
        prepare(start, scene)
        begun = time.monotonic()
        expected, _ = expected_results(start, cases.folder / "whole", scene)
        ready.append((scene, start, expected, time.monotonic() - begun))
    while not cases.over:
        scene, start, expected, seconds = cases.generator.choice(ready)
        delay = cases.generator.random() * seconds
        folder = cases.folder / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        cases.case(f"{scene.command} after {delay:.3f} s", _random_kill, start, folder, scene, expected, delay)


def _random_kill(start: Path, folder: Path, scene: Scene, expected: dict[str, str], delay: float) -> str:
    shutil.copytree(start, folder)
    os.chdir(folder)
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            warm()(scene.command, standalone_mode=False)
        finally:
            os._exit(0)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if scene.kept:
        try:
            load_run("run")
        except DemonetError as error:
            if "not finished" not in str(error):
                raise
    after = scene.after if has_run(folder) else [part for part in scene.command if part != "--overwrite"]
    assert forked(0, after, str(folder))[0] == 0
    assert digests(folder, scene.results) == expected
    assert not [path for path in folder.rglob("*") if path.name.endswith(".part") or path.name == "unfinished"]
    return "killed" if os.WIFSIGNALED(status) else "ended before"


def mutated_inputs(cases: Cases) -> None:
    """Every reader in turn."""
    formats = list(seeds(cases.folder))
    while not cases.over:
        for name, raw, read in formats:
            path = cases.folder / name
            path.write_bytes(mutate(raw, cases.generator))
            cases.case(name, attempt, read, path)


def changed_runs(cases: Cases) -> None:
    """Mutations of every file of a run that a command reads: none may be accepted."""
    files = _run_files(cases.folder)
    while not cases.over:
        name = cases.generator.choice(files.names)
        cases.case(name, _refused, files, name, mutate(files.raw[name], cases.generator))


def changed_bits(cases: Cases) -> None:
    """One bit of a file of a run, of a checkpoint or of a ledger."""
    files = _run_files(cases.folder)
    checkpoint, whole = _checkpoint(cases.folder)
    ledgers = []
    ledger_file(cases.folder / "ledger.sqlite")
    for suffix in (".sqlite", ".parquet"):
        path = cases.folder / f"ledger{suffix}"
        raw = path.read_bytes()
        ledgers.append((path, raw, set(ledger_rows(path))))
    while not cases.over:
        name = cases.generator.choice(files.names)
        cases.case(name, _refused, files, name, flip(files.raw[name], cases.generator))
        checkpoint.write_bytes(flip(whole, cases.generator))
        cases.case("checkpoint", _never_read, checkpoint)
        path, raw, expected = cases.generator.choice(ledgers)
        path.write_bytes(flip(raw, cases.generator))
        cases.case(path.name, attempt, lambda path, expected=expected: _known_rows(path, expected), path)


def _known_rows(path: Path, expected: set) -> None:
    assert set(ledger_rows(path)) <= expected, "a run has another value"


def _refused(files: RunFiles, name: str, content: bytes) -> str:
    def read() -> None:
        predict_run(files.run, "edges.csv")

    found = files.changed(name, content, read)
    assert found != "read", f"a changed {name} was used"
    return found


def _never_read(path: Path) -> str:
    found = attempt(lambda path: read_tensors(path, "demonet-checkpoint-2"), path)
    assert found == "refused"
    return found


def _run_files(folder: Path) -> RunFiles:
    os.chdir(folder)
    write_problem(folder, motifs=4)
    fit(out=str(folder / "original"))
    return RunFiles(folder / "original", folder / "copies")


def _checkpoint(folder: Path) -> tuple[Path, bytes]:
    """A checkpoint of a network in training."""
    from demonet.data import read_graph
    from demonet.data.splits import fractions
    from demonet.estimators.checked import fit_checked

    data = read_graph(folder / "edges.csv", folder / "labels.csv")
    path, kept = folder / "checkpoint.safetensors", []
    estimator = DEMONetClassifier(model="network", epochs=30, patience=30)
    split = fractions(data.y, (0.6, 0.2, 0.2), 0, stratified=True)

    def keep(epoch) -> None:
        if path.exists():
            kept[:] = [path.read_bytes()]

    fit_checked(estimator, data, split, "classify", data.class_names, on_epoch=keep, checkpoint=path)
    return path, kept[0] if kept else path.read_bytes()


KINDS = {
    "kill points": kill_points,
    "random kills": random_kills,
    "mutated inputs": mutated_inputs,
    "changed runs": changed_runs,
    "changed bits": changed_bits,
}


def rows(options: argparse.Namespace) -> Iterator[Cases]:
    total = sum(SHARES[kind] for kind in options.kinds)
    for number, kind in enumerate(options.kinds):
        with tempfile.TemporaryDirectory() as folder:
            seconds = 60 * options.minutes * SHARES[kind] / total
            cases = Cases(kind, seconds, Path(folder), options.keep, random.Random(options.seed + number))
            KINDS[kind](cases)
            os.chdir("/")
            yield cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "hostile")
    options = parser.parse_args()
    options.keep = options.keep.absolute()
    torch.set_num_threads(1)
    print("| cases | number | failed | slowest, s | how they ended |\n|---|--:|--:|--:|---|", flush=True)
    failed = 0.0
    for cases in rows(options):
        print(cases.row, flush=True)
        failed += cases.failed
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
