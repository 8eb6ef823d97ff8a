"""The long form: kills, mutated files, flipped bits, the same graphs in other files. Prints a table of counts.

``python -m tests.hostile --seed 0`` (or ``make hostile``) from the root of the project takes some hours of one core.
``--kinds`` chooses some kinds, ``--scale 0.1`` a tenth of the numbers, ``--only INDEX`` one case of one kind again. A
failed case is printed with its index.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch
from tests.hostile.forged import Forgeries
from tests.hostile.formats import Mutations
from tests.hostile.kills import Child
from tests.hostile.metamorphic import answers, cases, pairs
from tests.hostile.mutations import flip, mutate
from tests.hostile.readers import Replaced
from tests.hostile.scenes import RANDOM, SCENES, Scene, Tree, check, prepare, undisturbed
from tests.hostile.sealed import Changes, sealed_files
from tests.hostile.supervise import Done, supervised

NUMBERS = {"kill points": None, "random kills": 1_000, "mutated inputs": 97_000, "changed files": 3_000,
           "flipped bits": 1_000, "forged files": 100_000, "readers beside a writer": 1_000,
           "same graphs": None}  # fmt: skip

Stage = tuple[Path, Tree, int, float]


class Stages:
    """The scenes, each made ready at its first use.

    Args:
        folder: Where to make them ready.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.known = folder, dict[str, Stage]()

    def get(self, name: str, scene: Scene) -> Stage:
        """The folder in which a scene begins, what it leaves undisturbed, its number of calls and its seconds."""
        if name not in self.known:
            start = self.folder / f"start-{len(self.known)}"
            prepare(start, scene)
            began = time.monotonic()
            expected, count = undisturbed(start, self.folder / "whole", scene)
            self.known[name] = start, expected, count, time.monotonic() - began
        return self.known[name]


def kill_points(folder: Path, options: argparse.Namespace, number: float) -> Iterator[Done]:
    """Every scene at every point; ``number`` is the share of them."""
    stages = Stages(folder)
    scenes = {name: SCENES[name] for name in options.scenes or SCENES}
    points = [(name, point) for name, scene in scenes.items() for point in range(1, stages.get(name, scene)[2] + 1)]
    for name, count in Counter(name for name, _ in points).items():
        print(f"{name}: {count} points", flush=True)
    chosen = random.Random(options.seed).sample(range(len(points)), round(number * len(points)))
    for index in sorted(chosen) if options.only is None else [options.only]:
        name, point = points[index]
        yield _killed(index, f"{name} at {point}", SCENES[name], stages.get(name, SCENES[name]), point, 0.0)


def random_kills(folder: Path, options: argparse.Namespace, number: int) -> Iterator[Done]:
    """SIGKILL at a random time of a command."""
    stages = Stages(folder)
    for index in _range(number, options.only):
        generator = random.Random(f"{options.seed} {index}")
        name = generator.choice(list(RANDOM))
        stage = stages.get(name, RANDOM[name])
        delay = generator.random() * stage[3]
        yield _killed(index, f"{name} after {delay:.3f} s", RANDOM[name], stage, 0, delay)


def _killed(index: int, name: str, scene: Scene, stage: Stage, point: int, delay: float) -> Done:
    start, expected, *_ = stage
    folder, began, failure = start.with_name("killed"), time.monotonic(), ""

    def kill(child: Child) -> None:
        if delay:
            time.sleep(delay)
            child.kill()

    shutil.rmtree(folder, ignore_errors=True)
    try:
        how = "killed" if check(start, folder, scene, kill, point, expected) else "ended before"
    except Exception:
        how, failure = "failed", traceback.format_exc()
    return Done(index, name, how, time.monotonic() - began, 0.0, failure)


def mutated_inputs(folder: Path, options: argparse.Namespace, number: int) -> Iterator[Done]:
    """Files of every format."""
    return supervised(Mutations(folder, options.seed), _range(number, options.only))


def changed_files(folder: Path, options: argparse.Namespace, number: int) -> Iterator[Done]:
    """Mutations of every file with a checksum."""
    return supervised(Changes(sealed_files(folder), options.seed, mutate), _range(number, options.only))


def flipped_bits(folder: Path, options: argparse.Namespace, number: int) -> Iterator[Done]:
    """One bit of every file with a checksum."""
    return supervised(Changes(sealed_files(folder), options.seed, flip), _range(number, options.only))


def forged_files(folder: Path, options: argparse.Namespace, number: int) -> Iterator[Done]:
    """Files of our own formats with checksums that are right, and values that are not."""
    return supervised(Forgeries(folder, options.seed), _range(number, options.only))


def readers(folder: Path, options: argparse.Namespace, number: int) -> Iterator[Done]:
    """Predictions of a run that another process replaces all the time."""
    replaced = Replaced(folder)
    try:
        yield from supervised(replaced, _range(number, options.only))
    finally:
        replaced.close()


def same_graphs(folder: Path, options: argparse.Namespace, number: float) -> Iterator[Done]:
    """The same problems in other files; ``number`` is the share of problems with models: a seventh has them all."""
    every = pairs()
    if options.only is not None:
        return answers(folder, [(options.only, cases(every)[options.only])], options.seed)
    return answers(folder, enumerate(cases(every[: round(number * len(every))])), options.seed)


def _range(number: int, only: int | None) -> range:
    return range(number) if only is None else range(only, only + 1)


KINDS = {
    "kill points": kill_points,
    "random kills": random_kills,
    "mutated inputs": mutated_inputs,
    "changed files": changed_files,
    "flipped bits": flipped_bits,
    "forged files": forged_files,
    "readers beside a writer": readers,
    "same graphs": same_graphs,
}


class Counts:
    """How cases of one kind ended."""

    def __init__(self, kind: str) -> None:
        self.kind, self.ended, self.slowest, self.most, self.began = kind, Counter[str](), 0.0, 0.0, time.monotonic()

    def add(self, done: Done) -> None:
        self.ended[done.how] += 1
        self.slowest, self.most = max(self.slowest, done.seconds), max(self.most, done.memory)
        if done.failure:
            print(
                f"FAILED {self.kind}: {done.name} (--kinds '{self.kind}' --only {done.index})\n{done.failure}",
                flush=True,
            )
        if (total := sum(self.ended.values())) % 1000 == 0 or ("kill" in self.kind and total % 20 == 0):
            print(f"{self.kind}: {total:,} in {time.monotonic() - self.began:.0f} s", flush=True)

    @property
    def row(self) -> str:
        how = ", ".join(f"{count:,} {name}" for name, count in sorted(self.ended.items()))
        times = f"{self.slowest:.1f} | {self.most:,.0f} | {time.monotonic() - self.began:,.0f}"
        return f"| {self.kind} | {sum(self.ended.values()):,} | {self.ended['failed']:,} | {how} | {times} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--scenes", nargs="+", choices=list(SCENES), default=None, help="of kill points")
    parser.add_argument("--only", type=int, default=None)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, failed = [], 0
    for kind in options.kinds:
        counts, number = Counts(kind), NUMBERS[kind]
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            scaled = options.scale if number is None else round(options.scale * number)
            for done in KINDS[kind](Path(folder), options, scaled):
                counts.add(done)
            os.chdir("/")
        rows.append(counts.row)
        failed += counts.ended["failed"]
        print(counts.row, flush=True)
    heads = ("cases", "number", "failed", "how they ended", "slowest, s", "most, MiB", "seconds in all")
    print(f"\n| {' | '.join(heads)} |\n|---|--:|--:|---|--:|--:|--:|", *rows, sep="\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
