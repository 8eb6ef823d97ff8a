"""The paper's page in Chromium: quiet, every figure drawn, tables sorted by click and by key; dark and narrow too."""

import pytest
from tests.report.browsing import opened, overflow, violations
from tests.study.report.paper_rows import FACTS, paper_rows, points

from demonet_study.report.files import write_paper
from demonet_study.report.parts.identity import Embedded

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    return write_paper(paper_rows(quick=True), out, facts=FACTS, extras={"identity": Embedded(points())})[-1]


@pytest.fixture(scope="module")
def light(browser, path):
    with opened(browser, path, color_scheme="light") as view:
        yield view


def test_axe_finds_nothing(browser, path, axe):
    with opened(browser, path, bypass_csp=True) as view:
        assert violations(view.page, axe) == []


NODES = "section:has(#nodes) + section table"


def column(page, index):
    """The first numbers of a column, by group; NaN where a cell has none."""
    return page.locator(NODES).first.evaluate(
        """(table, index) => [...table.tBodies].map(body => [...body.rows]
            .filter(row => !row.classList.contains('group'))
            .map(row => Number(row.cells[index].dataset.order)))""",  # of undefined it is NaN
        index,
    )


def known(group):
    return [value for value in group if value == value]


def test_the_page_is_quiet_and_asks_for_nothing_else(light, path):
    assert light.heard == [f"request: {path.as_uri()}"]


def test_every_figure_is_drawn(light):
    plots = light.page.locator(".plot").all()
    assert len(plots) >= 8
    for plot in plots:
        assert plot.locator("svg.main-svg").count() >= 1
        assert plot.locator(".scatterlayer .point").count() >= 2
    assert light.page.locator(".notice").count() == 0


def test_a_click_sorts_each_group_and_a_third_restores(light):
    before = column(light.page, 1)
    assert len(before) == 3
    head = light.page.locator(NODES).first.locator("thead th").nth(1)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    down = column(light.page, 1)
    assert [known(group) for group in down] == [sorted(known(group), reverse=True) for group in before]
    assert all(group[: len(known(group))] == known(group) for group in down), "what has no number stays below"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert [known(group) for group in column(light.page, 1)] == [sorted(known(group)) for group in before]
    head.locator("button").click()
    assert head.get_attribute("aria-sort") is None
    assert str(column(light.page, 1)) == str(before)


def test_a_phone_stacks_the_panels_and_scrolls_down_only(browser, path, light):
    with opened(browser, path, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True) as phone:
        assert phone.heard == [f"request: {path.as_uri()}"]
        assert overflow(phone.page) == 0
        second = "document.querySelector('section:has(#ablation-paper-figure) .plot')._fullLayout.xaxis2.domain[0]"
        assert phone.page.evaluate(second) == 0
        assert light.page.evaluate(second) > 0.4
        widths = phone.page.evaluate("[...document.querySelectorAll('.plot .main-svg')].map(svg => svg.clientWidth)")
        assert max(widths) <= 360
