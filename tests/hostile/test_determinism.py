"""The same command twice gives the same files, times apart; on a small graph also with another number of threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.hostile.forged import read_raw
from tests.hostile.kills import forked
from tests.hostile.scenes import short_page
from tests.runs.files import write_problem

from demonet.train.checkpoint import digest

FIT = ["fit", "edges.csv", "--labels", "labels.csv", "--out", "run"]
TIMED = ("manifest.json", "MODEL_CARD.md", "report.html")  # checksums, and texts with the time that training took


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if "seconds" not in name}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def content(path: Path) -> object:
    if path.suffix == ".safetensors":
        _, tensors, facts = read_raw(path)
        return digest(sorted(tensors.items())), without_times(facts)
    return without_times(json.loads(path.read_bytes())) if path.suffix == ".json" else path.read_bytes()


def fitted(folder: Path, threads: int, options: list[str]) -> dict[str, object]:
    """What does not depend on time in the files of a run."""

    def setting(folder: Path) -> None:
        short_page(folder)
        torch.set_num_threads(threads)

    folder.mkdir()
    write_problem(folder, motifs=8)
    assert forked(0, [*FIT, *options], folder, setting)[0] == 0
    return contents(folder / "run")


def contents(run: Path) -> dict[str, object]:
    return {path.name: content(path) for path in run.iterdir() if path.name not in TIMED}


@pytest.mark.parametrize("options", [["--epochs", "3"], ["--model", "kernel"]], ids=["network", "kernel"])
def test_the_same_fit_gives_the_same_files(tmp_path, options):
    first, again, two = (fitted(tmp_path / str(i), threads, options) for i, threads in enumerate((1, 1, 2)))
    assert {"config.json", "metrics.json", "model.safetensors", "predictions.csv", "run.safetensors"} < first.keys()
    assert first == again
    assert first == two


LARGE = """
from demonet.runs import plan, Settings, fit_run

plan.SMALL = 0  # as if the graph had 100,000 edges: all threads are used
fit_run("edges.csv", "labels.csv", out="run", settings=Settings(epochs=3))
"""


def test_on_a_large_graph_the_same_number_of_threads_gives_the_same_files(tmp_path):
    found = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        write_problem(folder, motifs=300)
        two = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2")
        subprocess.run([sys.executable, "-c", LARGE], cwd=folder, env={**os.environ, **two}, check=True)
        found.append(contents(folder / "run"))
    assert found[0]["config.json"]["threads"] == 2
    assert found[0] == found[1]
