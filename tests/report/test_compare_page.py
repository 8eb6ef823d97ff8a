"""The page of a comparison: its sentence, its tables, and how it opens in Chromium."""

import pytest
from tests.report.browsing import opened, overflow, violations

from demonet.report.compare import compare_page
from demonet.report.page import Table, render, write
from demonet.runs.compare import Leaderboard, Row

BEST = Row(
    "demonet-auto",
    "DEMO-Net",
    "compared",
    "",
    {0: 0.9, 1: 0.8},
    0.85,
    0.07,
    0.7,
    1.0,
    seconds=9.0,
    means={"accuracy": 0.85, "log-loss": 0.4},
)
LEVEL = Row("gcn", "network", "compared", "", {0: 0.8, 1: 0.8}, 0.8, 0.0, 0.8, 0.8, -0.05, -0.3, 0.2, 0.6, 1.5, 700.0)
FLOOR = Row(
    "majority",
    "simple baseline",
    "incomplete",
    "time limit",
    {0: 0.5},
    0.5,
    seconds=0.0,
    p=0.01,
    means={"log-loss": 0.6},
)
GONE = Row("pna", "network", "left out", "about 90 s for each split")


def board(*rows):
    sizes = {"nodes": 10, "edges": 20, "attributes": 0}
    about = {"name": "<b>x</b>", "kind": "nodes", "sizes": sizes, "metric": "accuracy", "splits": 2, "version": "1"}
    metrics = {"accuracy": {"title": "accuracy", "larger_is_better": True}}
    metrics["log-loss"] = {"title": "log loss", "larger_is_better": False}
    about |= {**metrics["accuracy"], "metrics": metrics}
    return Leaderboard(list(rows), about | {"settings": {"seed": 0}, "files": {"edges": "e.csv"}})


def test_the_sentence_names_the_best_those_level_with_it_and_the_best_simple_one():
    whole = board(BEST, LEVEL, FLOOR, GONE)
    assert whole.level == ["gcn"]
    assert [name for name in ("demonet-auto", "gcn", "majority", "pna") if f"`{name}`" in whole.verdict] == [
        *("demonet-auto", "gcn", "majority")
    ]


def test_the_page_has_every_row_and_every_reason():
    page = compare_page(board(BEST, LEVEL, FLOOR, GONE))
    leaders, missing = [section for section in page.sections if isinstance(section, Table)]
    assert [row[0] for row in leaders.rows] == ["demonet-auto", "gcn", "majority"]
    assert [row[7] for row in leaders.rows] == [0.4, None, 0.6]
    assert leaders.sortable
    assert {row[0]: row[3] for row in missing.rows} == {row.method: row.reason for row in (FLOOR, GONE)}
    html = render(page)
    assert "<b>x</b>" not in html
    assert "nan" not in html.split("<main", 1)[1].split("<script", 1)[0].lower()


def test_a_page_without_results_has_the_reasons():
    page = compare_page(board(GONE))
    assert [len(section.rows) for section in page.sections if isinstance(section, Table)] == [1]
    assert "90 s" in render(page)


@pytest.mark.browser
def test_the_page_opens_quietly_and_fits_a_phone(browser, tmp_path, axe):
    path = tmp_path / "report.html"
    write(compare_page(board(BEST, LEVEL, FLOOR, GONE)), path)
    with opened(browser, path, viewport={"width": 390, "height": 800}, bypass_csp=True) as view:
        plots = view.page.locator(".plot").all()
        assert [plot.locator(".bars .point").count() for plot in plots] == [3, 0]
        assert plots[1].locator(".scatterlayer .point").count() == 3
        assert overflow(view.page) <= 0
        assert violations(view.page, axe) == []
        assert view.heard == [f"request: {path.as_uri()}"]


def test_means_over_fewer_splits_do_not_compete_for_the_best():
    def marked(*rows):
        leaders = next(part for part in compare_page(board(*rows)).sections if isinstance(part, Table))
        return [column.best for column in leaders.columns if column.name in ("accuracy", "log loss")]

    assert marked(BEST, LEVEL) == ["max", "min"]
    assert marked(BEST, FLOOR) == [None, None]
