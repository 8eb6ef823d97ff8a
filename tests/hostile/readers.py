"""Readers beside a writer: while a run is replaced again and again, who reads it sees one whole run.

The two runs have other class names and another model. A reader that mixes them gives the names of one to the
predictions of the other.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from tests.runs.files import write_problem

from demonet.atomic import locked
from demonet.runs import Settings, fit_run, predict_run
from demonet.runs.folder import LOCK, MANIFEST, WHOLE, WORK, RunFolder


class Replaced:
    """A run that another process replaces in turn by one of two, until it is closed.

    Args:
        folder: Where the runs are made; it is the folder at hand.
    """

    def __init__(self, folder: Path) -> None:
        write_problem(folder, motifs=4)
        self.known = {}
        for name, mark in (("one", "a-"), ("two", "b-")):
            rows = Path("labels.csv").read_text().splitlines()
            Path(f"{name}.csv").write_text("\n".join([rows[0], *(row.replace(",", f",{mark}") for row in rows[1:])]))
            fit_one(name)
            _, names, outputs = predict_run(name, "edges.csv")
            self.known[tuple(names)] = outputs.tobytes()
        shutil.copytree("one", "run")
        self.writer = os.fork()
        if self.writer == 0:
            while True:
                for name in ("two", "one"):
                    replace("run", name)

    def __call__(self, index: int) -> tuple[str, str, int]:
        """Read the run once, as a case of :func:`~tests.hostile.supervise.supervised`."""
        _, names, outputs = predict_run("run", "edges.csv")
        assert self.known[tuple(names)] == outputs.tobytes(), "the names of one run with the predictions of another"
        return "readers", f"saw {names[0].partition('-')[0]}", 0

    def close(self) -> None:
        """End the writer."""
        os.kill(self.writer, signal.SIGKILL)
        os.waitpid(self.writer, 0)


def fit_one(name: str) -> None:
    """A run with a seed of its own."""
    fit_run("edges.csv", f"{name}.csv", out=name, settings=Settings(epochs=3, seed=ord(name[0])))


def replace(out: str, by: str) -> None:
    """The last step of ``fit --overwrite``, with files that are made already."""
    folder = RunFolder(Path(out))
    with locked(Path(out, LOCK)) as ours:
        assert ours
        folder.work.mkdir()
        folder.remember({})  # what makes it a folder of ours
        shutil.copytree(by, folder.work / WHOLE, ignore=shutil.ignore_patterns(LOCK, WORK, MANIFEST))
        folder.publish()
