import math

import numpy as np
import pytest

from demonet.report.table_cells import Beside, Column, Estimate, show, show_column, tsv


@pytest.mark.parametrize(
    ("cell", "text", "number"),
    [
        ("GCN", "GCN", False),
        (None, "–", False),
        (True, "True", False),
        (13599, "13,599", True),
        (np.int64(-7), "−7", True),
        (np.float32(0.25), "0.250", True),
        (-0.5, "−0.500", True),
        (float("nan"), "nan", True),
    ],
)
def test_a_cell_reads_as_expected(cell, text, number):
    assert (show(cell).text, show(cell).number) == (text, number)


def test_an_estimate_shows_mean_and_deviation():
    shown = show(Estimate(0.75432, 0.0612), digits=2)
    assert (shown.text, shown.deviation) == ("0.75", "0.06")


def marked(best, cells, digits=3):
    return [i for i, cell in enumerate(show_column(Column("", digits, best), cells)) if cell.best]


def test_the_best_cell_is_marked_by_its_mean():
    cells = [Estimate(0.6, 0.3), 0.7, None, float("nan"), "text", Estimate(0.8, 0.1)]
    assert marked("max", cells) == [5]
    assert marked("min", cells) == [0]
    assert marked(None, cells) == []


def test_cells_that_read_the_same_as_the_best_are_all_marked():
    assert marked("max", [0.7541, 0.7539, 0.75], digits=3) == [0, 1]


def test_a_cell_whose_runs_are_missing_does_not_compete():
    few = Beside(0.9, 0.1, note="3 of 10 runs")
    assert marked("max", [few, 0.7, Beside(0.8, 0.1), 0.9]) == [3]
    assert marked("max", [few, Beside(0.8, 0.1), 0.7]) == [1]
    assert marked("max", [few, None]) == []


def test_an_absent_number_is_aligned_with_the_numbers_and_absent_text_is_not():
    assert [cell.number for cell in show_column(Column("a"), [1.0, None, "x"])] == [True, True, False]
    assert [cell.number for cell in show_column(Column("a"), ["x", None])] == [False, False]


def test_tsv_keeps_every_digit_and_gives_a_deviation_its_own_column():
    columns = [Column("method"), Column("Brazil", digits=1), Column("n")]
    rows = [["GCN", Estimate(0.123456789, 0.05), 10000], ["floor", 0.25, None]]
    assert tsv(columns, rows) == "method\tBrazil\tBrazil ±\tn\nGCN\t0.123456789\t0.05\t10000\nfloor\t0.25\t\t\n"


def test_tsv_text_neither_breaks_cells_nor_runs_as_a_formula():
    lines = tsv([Column("=a")], [["x\ty\nz"], ["=HYPERLINK(1)"], ["@b"], ["\t+c"], [-1.5]]).splitlines()
    assert lines == ["'=a", "x y z", "'=HYPERLINK(1)", "'@b", "'+c", "-1.5"]


def test_a_cell_beside_a_printed_one():
    column = Column("Brazil", best="max", signed=True)
    cells = [Beside(0.61, 0.1, 0.614, 0.069, "same"), Beside(math.nan, math.nan, 0.5, note="not yet run"), None]
    first, second, third = show_column(column, cells)
    assert (first.text, first.deviation, first.printed, first.mark) == ("+0.610", "0.100", "0.614 ± 0.069", "●")
    assert (second.text, second.printed, second.note, second.order) == ("–", "0.500", "not yet run", "")
    assert (first.best, second.best, third.best, third.number) == (True, False, False, True)
    assert tsv([column], [[cell] for cell in cells]) == (
        "Brazil\tBrazil ±\tBrazil printed\tBrazil printed ±\n0.61\t0.1\t0.614\t0.069\n\t\t0.5\t\n\t\t\t\n"
    )


def test_words_stand_for_numbers():
    (shown,) = show_column(Column("order-free", words={1.0: "yes", 0.0: "no"}), [Beside(1.0, math.nan, 0.0)])
    assert (shown.text, shown.printed, shown.order) == ("yes", "no", "1.0")


def test_texts_cannot_reorder_a_page():
    """Names in the reasons of an item came as they are."""
    for text in ("joined to \u202egpj.exe", "\x1b[2J", "a" * 200 + "\u2066"):
        shown = show(text)
        assert (shown.text + shown.whole).isprintable()
