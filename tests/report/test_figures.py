from __future__ import annotations

import html
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demonet.errors import DemonetError
from demonet.report.figures import accuracy_bars, embedding_scatter, learning_curves, plain
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


def test_learning_curves_mark_the_best_epoch_by_accuracy_then_loss():
    figure = learning_curves({"a": HISTORY, "b": HISTORY})
    markers = [(trace.x[0], trace.y[0]) for trace in figure.data if trace.mode == "markers"]
    assert markers == [(3, 0.8), (3, 0.6)] * 2
    assert [trace.name for trace in figure.data if trace.showlegend is not False] == ["a", "b"]
    assert {trace.line.color for trace in figure.data if trace.mode == "lines"} == {colour(0), colour(1)}
    assert figure.layout.title.text
    assert (figure.layout.xaxis2.title.text, figure.layout.yaxis2.title.text) == ("epoch", "validation accuracy")


@pytest.mark.parametrize("broken", [{"val_loss": []}, {"val_loss": [1.0]}, {"val_accuracy": [[0.1] * 4]}])
def test_learning_curves_refuse_missing_or_uneven_lists(broken):
    with pytest.raises(DemonetError, match="'a'"):
        learning_curves({"a": {**HISTORY, **broken}})


def test_embedding_scatter_has_a_trace_for_each_label_and_one_for_all_pairs():
    xy = np.arange(8.0).reshape(4, 2)
    figure = embedding_scatter(xy, [10, 2, 10, 2], list("abcd"), pairs=[(0, 3), (1, 2)], symbols=["circle", "x"] * 2)
    lines, two, ten = figure.data
    np.testing.assert_array_equal(lines.x, [0, 6, np.nan, 2, 4, np.nan])
    assert (two.name, ten.name) == ("2", "10")
    assert list(ten.x) == [0, 4]
    assert ten.hovertext == ("a", "c")
    assert ten.marker.symbol == ("circle", "circle")
    assert two.marker.color != ten.marker.color


def test_more_labels_than_colours_differ_in_shape():
    figure = embedding_scatter(np.zeros((20, 2)), list(range(20)), [""] * 20)
    assert len({(trace.marker.color, trace.marker.symbol) for trace in figure.data}) == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2, 3]], ["a"], ["a"]), r"\[n, 2\].*\[1, 3\]"),
        (([[1, 2]], ["a", "b"], ["a"]), r"\b1\b.*\b2\b.*labels"),
        (([[1, 2]], ["a"], []), r"\b1\b.*\b0\b.*hover"),
    ],
)
def test_embedding_scatter_refuses_what_does_not_fit(arguments, message):
    with pytest.raises(DemonetError, match=message):
        embedding_scatter(*arguments)


@pytest.mark.parametrize("pair", [(0, 1), (-1, 0)])
def test_embedding_scatter_refuses_pairs_of_absent_nodes(pair):
    with pytest.raises(DemonetError, match=r"pair\b.*0\.\.0"):
        embedding_scatter([[1, 2]], ["a"], ["a"], pairs=[pair])


def test_accuracy_bars_keep_the_order_and_colour_what_is_highlighted():
    figure = accuracy_bars({"floor": (0.2, float("nan")), "ours": (0.9, 0.2), "other": (0.5, 0.1)}, highlight=["ours"])
    ours, others = figure.data
    assert (ours.marker.color, others.marker.color) == (colour(0), NEUTRAL[0])
    assert (list(ours.y), list(others.y)) == ([1], [0, 2])
    assert [tick.strip() for tick in figure.layout.yaxis.ticktext] == ["floor", "ours", "other"]
    assert figure.layout.xaxis.range == (0, pytest.approx(1.1))
    assert ours.hovertext == ("ours<br>0.900 ± 0.200",)
    assert others.hovertext[0] == "floor<br>0.200"


def test_figures_carry_no_template_of_their_own():
    figures = [learning_curves({"a": HISTORY}), embedding_scatter([[0, 0]], ["a"], ["a"]), accuracy_bars({"a": (1, 0)})]
    assert [figure.layout.template.to_plotly_json() for figure in figures] == [{}, {}, {}]
