"""The page of a run as people meet it: searched, sorted, saved, dragged; on a desk, on a phone, by night."""

import csv
import io
import zipfile
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.report.browsing import opened, overflow, violations

from demonet.escape import visible
from demonet.report.page import write
from demonet.report.run import run_page

pytestmark = pytest.mark.browser
NAMES = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)> $x^2$ %{x} &lt; <!-- \u202e" + "long " * 60,
)
IDS = (*NAMES, "<a href='javascript:alert(3)'>", "-->'\"`\x00\x1b\n\u2028", '=HYPERLINK("x"), a', "007")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "color_scheme": "dark"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(make_run):
    """A small graph with hostile names, two classes, nodes without a label, and reasons for some."""
    ids = [*IDS, *(f"node {i}" for i in range(90 - len(IDS)))]
    edges = np.random.default_rng(1).integers(0, 90, (2, 120))
    run = make_run(90, 2, ids=ids, class_names=list(NAMES), edges=edges[:, edges[0] != edges[1]], seed=3)
    run.y[::2], run.part[::2] = -1, -1
    rows = [{"name": NAMES[0], "value": 0.1, "interval": [0.05, 0.2]}]
    run.metrics.update(importance=rows, reasons={str(item): [f"why {item}", NAMES[0]] for item in range(90)})
    return run


@pytest.fixture(scope="module")
def desk(browser, folder, run):
    write(run_page(run), folder / "nodes.html")
    with opened(browser, folder / "nodes.html", silent=("data:", "blob:"), bypass_csp=True) as view:
        yield view


def ranked(run):
    """The items without a label, the most probable of the rarer class first, as the page must have them."""
    counts = np.bincount(run.y[run.y >= 0], minlength=2)
    positive, items = int(counts[1] <= counts[0]), np.flatnonzero(run.part == -1)
    return items[np.argsort(-run.outputs[items, positive], kind="stable")], positive


def column(page, number=0):
    return page.locator(f".items tbody tr > :nth-child({number + 1})").all_text_contents()


def shown(run, items):
    return [visible(run.ids[i]) if len(visible(run.ids[i])) <= 60 else visible(run.ids[i])[:59] + "…" for i in items]


def download(page, button):
    with page.expect_download() as waiting:
        page.click(button)
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def test_the_list_is_ranked_searched_and_sorted(desk, run):
    page, (order, _) = desk.page, ranked(run)
    assert column(page) == shown(run, order[:10])
    assert column(page, 5)[0] == f"why {order[0]}; {NAMES[0]}"
    page.fill(".items [name=find]", "NODE 1")
    found = [i for i in order if run.ids[i].startswith("node 1")]
    assert column(page) == shown(run, found[:10])
    page.fill(".items [name=find]", "")
    page.select_option(".items [name=part]", "2")
    page.locator(".items .sort", has_text="degree").click()
    degrees = [int(text.replace(",", "")) for text in column(page, 4)]
    assert degrees == sorted(run.degree[run.part == 2], reverse=True)[:10]
    assert page.locator(".items th[aria-sort=descending]").inner_text().startswith("degree")
    page.select_option(".items [name=list]", "0")
    page.select_option(".items [name=part]", "-1")
    page.click(".items .more")
    assert len(column(page)) == 40


def test_the_list_is_saved_as_csv_and_for_excel(desk, run):
    order, positive = ranked(run)
    desk.page.reload()
    desk.page.wait_for_selector("html[data-drawn]")
    name, data = download(desk.page, ".csv")
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert name == "list.csv"
    assert [row[1] for row in rows[1:]] == [run.ids[i] for i in order]
    assert np.float32([row[2] for row in rows[1:]]).tolist() == run.outputs[order, positive].tolist()
    name, data = download(desk.page, ".xlsx")
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        assert book.testzip() is None
        for part in book.namelist():
            ElementTree.fromstring(book.read(part))
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    cells = [list(row.iter(f"{space}c")) for row in sheet.iter(f"{space}row")]
    texts = [row[1].find(f"{space}is/{space}t").text for row in cells[1:]]
    assert name == "list.xlsx"
    assert texts[:5] == [run.ids[i].replace("\x00", "\ufffd").replace("\x1b", "\ufffd") for i in order[:5]]
    assert [float(row[2].find(f"{space}v").text) for row in cells[1:]] == pytest.approx(run.outputs[order, positive])


def test_a_node_is_chosen_and_shown_with_its_neighbours_and_reasons(desk, run):
    page, item = desk.page, 8
    page.fill(".around input", run.ids[item])
    page.click(".around button")
    page.wait_for_function(
        "id => document.querySelector('.around .found').textContent.startsWith(id)", arg=run.ids[item]
    )
    assert f"why {item}" in page.locator(".around .why").inner_text()
    near = {b for a, b in np.concatenate([run.edges.T, run.edges.T[:, ::-1]]).tolist() if a == item}
    drawn = page.evaluate("document.querySelector('.around .plot').data[1].x.length")
    assert drawn >= 1 + len(near)
    page.fill(".around input", "nobody")
    page.click(".around button")
    assert "nobody" in page.locator(".around .found").inner_text()
    page.locator(".items .pick").nth(1).click()
    first = shown(run, ranked(run)[0][1:2])[0]
    page.wait_for_function("id => document.querySelector('.around .found').textContent.includes(id)", arg=first[:40])


def test_the_threshold_counts_and_costs(desk, run):
    page, (_, positive) = desk.page, ranked(run)
    test = run.part == 2
    y, score = run.y[test] == positive, run.outputs[test, positive]
    page.fill("[name=miss]", "5")
    page.fill("[name=alarm]", "2")
    page.click(".cheapest")
    costs = [5 * int(y.sum())]
    costs += [5 * int((y & (score < at)).sum()) + 2 * int((~y & (score >= at)).sum()) for at in score]
    facts = page.eval_on_selector_all(
        ".counts div", "rows => Object.fromEntries(rows.map(row => [...row.children].map(cell => cell.textContent)))"
    )
    assert float(facts["cost"].replace(",", "")) == min(costs)
    page.locator("[name=at]").press("End")
    assert page.locator(".counts dd").nth(3).inner_text() == "0", "nothing is missed at the last threshold"
    assert page.locator("[name=at]").get_attribute("aria-valuetext").endswith(f"{y.size} nodes")


def test_folds_open_and_everything_is_drawn_quietly_in_both_themes_and_sizes(desk, axe):
    page = desk.page
    assert violations(page, axe) == []
    assert page.locator(".notice").count() == 0
    for width in (1200, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert overflow(page) == 0
    assert [line for line in desk.heard if not line.startswith("request: file:")] == []


@pytest.mark.parametrize("kind", ["graphs", "labels", "numbers"])
def test_other_kinds_on_a_phone(browser, folder, make_run, make_labels, make_numbers, kind, axe):
    run = {"graphs": lambda: make_run(200, 60, kind="graphs"), "labels": make_labels, "numbers": make_numbers}[kind]()
    write(run_page(run), folder / f"{kind}.html")
    with opened(browser, folder / f"{kind}.html", silent=("data:",), bypass_csp=True, **PHONE) as view:
        assert overflow(view.page) == 0
        assert view.page.locator(".items tbody tr").count() == 10
        assert view.page.locator(".plot .main-svg").count() > 0
        if kind == "labels":
            view.page.select_option("[name=class]", "1")
            assert view.page.locator(".counts dd").first.inner_text().startswith("0.")
        assert violations(view.page, axe) == []
        assert view.heard == [f"request: {view.path.as_uri()}"]
