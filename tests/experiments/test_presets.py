"""The presets on the paper's sets: the statistics of a cell, and the README's table."""

import math
from pathlib import Path

import pytest
import torch

from demonet.experiments import presets

ROOT = Path(__file__).parent.parent.parent


def test_a_cell_has_mean_deviation_and_interval():
    row = presets._row("brazil", "made up", "", 3, 0.5, lambda name, seed: [0.5, 0.6, 0.7][seed])
    assert (row.mean, row.std) == (pytest.approx(0.6), pytest.approx(0.1))
    assert row.ci95 == pytest.approx(4.302652729911275 * 0.1 / math.sqrt(3))  # Student's t with 2 degrees of freedom


@pytest.mark.parametrize(("name", "parts"), [("flickr", (100, 200, 700)), ("usa", (333, 333, 334))])
def test_splits_follow_the_papers_protocol(name, parts):
    split = presets.split_of(name, torch.arange(1000) % 4, seed=1)
    sizes = [part.numel() for part in (split.train, split.val, split.test)]
    assert sum(sizes) == 1000
    assert all(abs(size - part) <= 1 for size, part in zip(sizes, parts, strict=True))


def test_the_readme_shows_the_committed_numbers():
    assert presets.table(ROOT / "results" / "presets.csv") in (ROOT / "README.md").read_text(encoding="utf-8")
