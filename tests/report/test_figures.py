"""Charts of pages as plotly draws them, bins and shares, and the confusion matrix."""

import html
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from demonet import DegreeTasks, DEMOConv
from demonet.errors import DemonetError
from demonet.report.bins import MOST_BINS, bin_of, ranges, share, size_bins
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.chart_plotly import draw, plain
from demonet.report.figures import confusion, degree_effect, interval_bars, learning_curves
from demonet.report.palette import NEUTRAL, colour

HISTORY = {"train_loss": [1.0, 0.6, 0.5, 0.4], "val_loss": [1.1, 0.9, 0.8, 0.9], "val_accuracy": [0.3, 0.6, 0.6, 0.5]}


@given(st.text())
def test_plain_leaves_plotly_nothing_to_interpret_and_loses_nothing(text):
    written = plain(text)
    assert not re.search(r"[<>$%]", written.replace("<br>", ""))
    assert html.unescape(written.replace("<br>", "\n")) == html.unescape(html.escape(text.replace("\r", "")))


def test_plain_cuts_before_it_escapes():
    assert plain("<<<<<<", 4) == "&lt;&lt;&lt;…"
    assert plain("abcd", 4) == "abcd"


def dots(figure):
    return [(trace.x[0], trace.y[0]) for trace in figure.data if trace.mode == "markers"]


def test_learning_curves_mark_the_best_epoch_by_accuracy_then_loss():
    figure = draw(learning_curves({"a": HISTORY, "b": HISTORY}))
    assert dots(figure) == [(3, 0.8)] * 2 + [(3, 0.6)] * 2
    assert {trace.line.color for trace in figure.data if trace.mode == "lines"} == {colour(0), colour(1)}
    assert figure.layout.yaxis.type != "log"
    assert figure.layout.template.to_plotly_json() == {}, "the page has its own style"


def test_the_kept_epoch_is_marked_large_losses_get_a_logarithm_and_gaps_are_left_out():
    history = {"train_loss": [1, 1, 1, 1], "val_loss": [1, 1, 500, 1], "val_accuracy": [0.1, 0.9, np.nan, 0.3]}
    figure = draw(learning_curves({"a": history}, kept={"a": 3}))
    assert [x for x, _ in dots(figure)] == [4, 4]
    assert figure.layout.yaxis.type == "log"
    assert [len(trace.x) for trace in figure.data if trace.mode == "lines"] == [4, 4, 3]


@pytest.mark.parametrize("broken", [{"val_loss": []}, {"val_loss": [1.0]}, {"val_accuracy": [[0.1] * 4]}])
def test_learning_curves_refuse_missing_or_uneven_lists(broken):
    with pytest.raises(DemonetError, match="'a'"):
        learning_curves({"a": {**HISTORY, **broken}})


def test_bars_keep_the_order_and_reach_from_end_to_end():
    nan = float("nan")
    rows = {"floor": (0.2, nan, nan), "ours": (0.8, 0.5, 1.1), "other": (0.5, 0.4, 0.6)}
    chart = interval_bars(rows, highlight=["ours"], title="t", line=0.95)
    figure = draw(chart)
    ours, others, line = figure.data
    assert (ours.marker.color, others.marker.color) == (colour(0), NEUTRAL[0])
    assert (list(ours.y), list(others.y)) == ([1], [0, 2])
    assert [tick.strip() for tick in figure.layout.yaxis.ticktext] == ["floor", "ours", "other"]
    assert (ours.error_x.array[0], ours.error_x.arrayminus[0]) == (pytest.approx(0.3), pytest.approx(0.3))
    assert figure.layout.xaxis.range == (0, pytest.approx(1.1))
    assert ours.hovertext == ("ours<br>0.8 (0.5 to 1.1)",)
    assert others.hovertext[0] == "floor<br>0.2"
    assert list(line.x) == [0.95, 0.95]
    assert all(text in chart.alt for text in ("floor 0.2", "ours 0.8", "other 0.5"))


def test_columns_are_stacked_and_points_have_vertical_intervals():
    panels = [
        Panel("a", [Series("p", [0, 2], [0.5, 1.0], [0.1, 0.8], [0.9, 1.0], mark="points", colour=0)], Axis("share")),
        Panel("b", [Series(name, [0, 1, 2], [1, 2, 3], mark="columns") for name in "xy"], Axis("count")),
    ]
    figure = draw(Chart("t", panels, Axis("size", names={0: "0", 1: "1–3"}), Axis(""), columns=1))
    points, first, second = figure.data
    assert list(points.error_y.array) == [pytest.approx(0.4), 0]
    assert (first.orientation, second.yaxis, figure.layout.barmode) == ("v", "y2", "stack")
    assert [figure.layout[axis].title.text for axis in ("yaxis", "yaxis2")] == ["share", "count"]


def test_confusion_has_row_shares_for_colour_and_counts_to_read():
    figure = confusion(np.array([[3, 1], [0, 0]]), ["<b>", "y" * 50])
    (heat,) = figure.data
    np.testing.assert_array_equal(heat.z, [[0.75, 0.25], [np.nan, np.nan]])
    assert (heat.text[0][0], heat.text[1][0]) == ("3<br>75%", "")
    assert heat.hovertext[0][1].startswith("true &lt;b&gt;<br>predicted yyyy")
    assert heat.hovertext[0][1].endswith("1 of 4, 25.0%")
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;", "y" * 13 + "…")
    many = confusion(np.eye(60, dtype=np.int64), [str(i) for i in range(60)])
    assert many.data[0].text is None, "no room for numbers"
    assert many.layout.height <= 900


@given(st.integers(1, 500).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_an_interval_holds_its_value_and_stays_between_0_and_1(counts):
    value, low, high = share(*counts)
    assert 0 <= low <= value + 1e-12
    assert value - 1e-12 <= high <= 1
    assert high - low > 0


def test_nothing_counted_is_nothing_known():
    assert np.isnan(share(0, 0)).all()


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=80))
def test_every_size_falls_into_exactly_one_bin_and_no_bin_is_empty(sizes):
    sizes = np.array(sizes)
    bins = size_bins(sizes)
    places = bin_of(sizes, bins)
    assert all(bins[place].low <= size <= bins[place].high for place, size in zip(places, sizes, strict=True))
    assert set(places) == set(range(len(bins)))
    assert len(bins) <= max(MOST_BINS, 15)


def test_numbers_in_words():
    assert ranges([]) == ""
    assert ranges([0, 1, 1000]) == "0–1, 1,000"


def test_the_degree_of_a_layer_is_its_splines():
    conv = DEMOConv(3, 5, DegreeTasks.exact(torch.tensor([0, 2, 40])))
    with torch.no_grad():
        for coefficients in conv.weights.degree_parameters():
            coefficients.normal_()
    chart = degree_effect(conv)
    factor, bias = (panel.series[0] for panel in chart.panels)
    assert (factor.x[0], factor.x[-1]) == (1, 40)
    ratio = conv.degree_weight(torch.tensor(factor.x)) / conv.weights.shared
    torch.testing.assert_close(torch.tensor(factor.y), ratio.median(-1).values[:, 0].detach(), rtol=1e-4, atol=1e-5)
    assert all(
        low <= y <= high for one in (factor, bias) for low, y, high in zip(one.low, one.y, one.high, strict=True)
    )
    assert len(draw(chart).data) >= 2


@pytest.mark.parametrize(
    ("conv", "problem"),
    [
        (DEMOConv(3, 5, DegreeTasks.exact(torch.tensor([1])), scheme="smooth"), "scheme='smooth'"),
        (DEMOConv(3, 5, DegreeTasks.log2(4, by="pair")), "'pair'"),
        (DEMOConv(3, 5), "open"),
    ],
)
def test_layers_without_such_curves(conv, problem):
    with pytest.raises(DemonetError, match=problem):
        degree_effect(conv)
