"""The demo's page, opened in Chromium."""

import pytest
from tests.report.browsing import opened, violations
from tests.runs.files import small_demo

from demonet.report.demo import demo_page
from demonet.report.page import Table, render, write
from demonet.runs import demo


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch:
        small_demo(patch)
        return demo_page(demo.run(splits=1))


def test_the_table_has_a_row_for_every_method(page):
    table, flip = [section for section in page.sections if isinstance(section, Table)]
    assert [row[0] for row in table.rows] == list(demo.METHODS)
    assert [row[0] for row in flip.rows] == list(demo.FLIP_METHODS)
    assert "0.950" in flip.caption
    assert all("one split" in each.caption for each in (table, flip))


def test_no_number_is_missing(page):
    assert ">nan" not in render(page).split("<main", 1)[1].split("<script", 1)[0].lower()


@pytest.mark.browser
def test_the_page_opens_without_a_word_and_draws_every_plot(page, browser, tmp_path, axe):
    path = tmp_path / "report.html"
    write(page, path)
    with opened(browser, path) as shown:
        check(shown.page)
        assert violations(shown.page, axe) == []
        assert shown.heard == [f"request: {path.as_uri()}"]


def check(view):
    view.click("summary")
    view.wait_for_function(
        "() => [...document.querySelectorAll('.plot')].every(plot => plot.querySelector('.main-svg'))"
    )
    plots = view.locator(".plot").all()
    assert len(plots) == 7  # bars of two problems, bars and lines of the third, the embedding, and two of curves
    assert view.locator(".notice").count() == 0
    assert [plot.locator(".bars .point").count() for plot in plots[:2]] == [5, 5]
    assert all(plot.locator(".scatterlayer .trace .js-line").count() == 3 * 4 for plot in plots[5:])
    assert plots[2].locator(".bars .point").count() == 9
    assert plots[3].locator(".scatterlayer .trace").count() == 2 * 4 + 2  # a band and a line each, ceiling, threshold
    assert plots[4].locator(".scatterlayer .point").count() == 68
    assert view.locator("tbody tr th").count() == 5 + 9
    text = view.locator("body").inner_text()
    assert "NaN" not in text
    assert "nan" not in text.split()
