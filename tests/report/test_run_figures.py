from __future__ import annotations

import numpy as np
import pytest

from demonet.report.accuracy import Bin, Share
from demonet.report.figures import interval_bars, learning_curves
from demonet.report.palette import NEUTRAL, colour
from demonet.report.run_figures import accuracy_by_size, confusion, degree_tasks


def test_interval_bars_reach_from_end_to_end():
    figure = interval_bars({"ours": (0.8, 0.5, 0.9), "floor": (0.3, float("nan"), float("nan"))}, highlight=["ours"])
    ours, floor = figure.data
    assert (ours.error_x.array[0], ours.error_x.arrayminus[0]) == (pytest.approx(0.1), pytest.approx(0.3))
    assert ours.hovertext == ("ours<br>0.800 (0.500 to 0.900)",)
    assert floor.hovertext == ("floor<br>0.300",)


def test_the_kept_epoch_is_marked_and_large_losses_get_a_logarithm():
    history = {"train_loss": [1, 1, 1, 1], "val_loss": [1, 1, 500, 1], "val_accuracy": [0.1, 0.9, 0.2, 0.3]}
    figure = learning_curves({"a": history}, kept={"a": 3})
    assert [trace.x[0] for trace in figure.data if trace.mode == "markers"] == [4, 4]
    assert figure.layout.yaxis.type == "log"
    assert learning_curves({"a": {**history, "val_loss": [1, 2, 3, 4]}}).layout.yaxis.type == "linear"


def test_a_history_that_is_not_a_number_is_drawn_as_a_gap():
    figure = learning_curves({"a": dict.fromkeys(("train_loss", "val_loss", "val_accuracy"), [float("nan")] * 3)})
    assert np.isnan(figure.data[0].y).all()
    assert figure.layout.yaxis.type == "linear"


def test_confusion_has_row_shares_for_colour_and_counts_to_read():
    figure = confusion(np.array([[3, 1], [0, 0]]), ["<b>", "y" * 50], title="t")
    (heat,) = figure.data
    np.testing.assert_array_equal(heat.z, [[0.75, 0.25], [np.nan, np.nan]])
    assert heat.text[0][0] == "3<br>75%"
    assert heat.text[1][0] == ""
    assert heat.hovertext[0][1].startswith("true &lt;b&gt;<br>predicted yyyy")
    assert heat.hovertext[0][1].endswith("1 of 4, 25.0%")
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;", "y" * 13 + "…")


def test_confusion_of_many_classes_has_no_room_for_numbers():
    figure = confusion(np.eye(60, dtype=np.int64), [str(i) for i in range(60)], title="t")
    assert figure.data[0].text is None
    assert figure.layout.height <= 900


def test_accuracy_by_size_leaves_out_what_was_not_tested():
    figure = accuracy_by_size(
        [Bin(1, 1), Bin(2, 3), Bin(4, 7)], [Share(1, 2), Share(0, 0), Share(3, 3)], [5, 4, 3], [2, 0, 3],
        overall=0.8, size="degree", noun="nodes",
    )  # fmt: skip
    overall, accuracy, tested, others = figure.data
    assert list(overall.y) == [0.8, 0.8]
    assert list(accuracy.x) == [0, 2]
    assert list(accuracy.y) == [0.5, 1.0]
    assert (list(tested.y), list(others.y)) == ([2, 0, 3], [3, 4, 0])
    assert "1 of 2 right" in accuracy.hovertext[0]
    assert figure.layout.xaxis2.ticktext == ("1", "2–3", "4–7")


def test_degrees_that_share_a_task_look_alike_and_others_do_not():
    figure = degree_tasks(np.array([0, 1, 2, 3, 9]), np.array([4, 3, 2, 1, 1]), np.array([0, 1, 1, 2, 2]))
    alone, first, second = figure.data
    assert (alone.marker.color, list(alone.x)) == (NEUTRAL[0], [0.5])
    assert (first.marker.color, list(first.x)) == (colour(0), [1, 2])
    assert (second.marker.color, list(second.x)) == (colour(1), [3, 9])
    assert second.hovertext[1] == "degree 9<br>1 node<br>task 2, with 1 other degree"


def test_degrees_each_with_a_task_of_its_own_have_one_colour():
    (points,) = degree_tasks(np.array([1, 2]), np.array([4, 3]), np.array([5, 6])).data
    assert points.marker.color == colour(0)
