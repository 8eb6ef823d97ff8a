"""A page is bounded in the number of classes: it shows the largest and the most often confused."""

from __future__ import annotations

import numpy as np
import pytest

from demonet.report.page import render
from demonet.report.run import run_page
from demonet.report.run_accuracy import MOST_CLASSES, classes, shown_classes


def many(make_run, size):
    """Two items a class; class 7 has fifty, and 900 is always taken for 901."""
    y = np.concatenate([np.repeat(np.arange(size), 2), np.full(48, 7)])
    taken = np.where(y == 900, 901, y)
    count = len(y)
    outputs = np.zeros((count, size), np.float32)
    outputs[np.arange(count), taken] = 1
    changes = {"y": y, "outputs": outputs, "part": np.full(count, 2, np.int8), "ids": [f"n{i}" for i in range(count)]}
    changes |= {"class_names": [f"class {i}" for i in range(size)], "degree": np.full(count, 3)}
    return make_run(**changes, place=np.zeros((count, 2), np.float32), edges=None, drawing=None)


def test_the_page_does_not_grow_with_the_square_of_the_classes(make_run):
    """Before, a thousand classes made 77 MiB, and five thousand no page at all."""
    sizes = [len(render(run_page(many(make_run, size)))) for size in (1000, 2000)]
    assert sizes[1] - sizes[0] < 200_000


def test_the_largest_and_the_most_confused_are_shown(make_run):
    run = many(make_run, 1000)
    shown = shown_classes(run.y, run.prediction, 1000)
    assert len(shown) == MOST_CLASSES
    assert {7, 900, 901} <= set(shown.tolist())
    figure, table = classes(run)
    assert len(table.rows) == MOST_CLASSES
    numbers = np.array([row[1:] for row in figure.numbers.rows])
    assert numbers.shape == (MOST_CLASSES + 1, MOST_CLASSES + 1)
    assert numbers.sum() == len(run.y)
    assert figure.numbers.rows[-1][0] == "960 others"


@pytest.mark.parametrize("size", [2, MOST_CLASSES])
def test_few_classes_are_all_shown(size):
    assert shown_classes(np.zeros(3, np.int64), np.ones(3, np.int64), size).tolist() == list(range(size))
