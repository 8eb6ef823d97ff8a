"""The page of a run as people meet it: pointed at, searched, recoloured; on a desk, on a phone, by night."""

from __future__ import annotations

import numpy as np
import pytest
from tests.report.browsing import opened, overflow

from demonet.report.escape import visible
from demonet.report.page import Table, write
from demonet.report.run import run_page

pytestmark = pytest.mark.browser
NAMES = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "$x^2$ %{x} &lt; <!-- \u202e" + "long " * 60,
)
IDS = (*NAMES, "<a href='javascript:alert(3)'>", "-->'\"`\x00\x1b\n\u2028", "plain")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(make_run):
    """A small graph with hostile names, its edges and a drawing."""
    ids = [*IDS, *(f"node {i}" for i in range(60 - len(IDS)))]
    random = np.random.default_rng(1)
    edges, drawing = random.integers(0, 60, (2, 90)), random.normal(size=(60, 2)).astype(np.float32)
    return make_run(60, 3, ids=ids, class_names=list(NAMES), edges=edges, drawing=drawing, seed=3)


@pytest.fixture(scope="module")
def report(run):
    return run_page(run)


@pytest.fixture(scope="module")
def desk(browser, folder, report):
    write(report, folder / "nodes.html")
    with opened(browser, folder / "nodes.html", silent=("data:",), color_scheme="light") as view:
        yield view


@pytest.fixture(scope="module")
def large(make_run):
    return make_run(100_000, 5)


@pytest.fixture(scope="module")
def crowd(browser, folder, large):
    write(run_page(large), folder / "large.html")
    with opened(browser, folder / "large.html", silent=("data:",), color_scheme="dark") as view:
        yield view


def titles(page):
    return page.locator(".explorer .gtitle").all_text_contents()


def switch(page, value, name):
    """Press the switch and wait until the last view is coloured so."""
    page.check(f".switch input[value={value}]", force=True)
    last = "[...document.querySelectorAll('.explorer .gtitle')].at(-1).textContent"
    page.wait_for_function(f"name => {last}.endsWith(` by ${{name}}`)", arg=name)


def find(page, text):
    page.fill("#find", text)
    page.click(".find button")
    page.wait_for_function("() => document.querySelector('.found').textContent")
    return page.locator(".found").text_content()


def rings(page):
    """Where the ring of the found item stands in each view, in units of the data."""
    return page.evaluate("""() => [...document.querySelectorAll('.explorer .plot')].map(plot =>
        plot.data.filter(trace => trace.name === 'found').map(trace => [trace.x[0], trace.y[0]]).flat())""")


def point_at(page, view, place):
    """Move the mouse to a place in the plane of a view, and give what the tooltip says."""
    plot = page.locator(f"figure[data-view={view}] .plot")
    plot.scroll_into_view_if_needed()
    x, y = plot.evaluate(
        """(plot, [x, y]) => {
            const area = plot.querySelector('.nsewdrag').getBoundingClientRect();
            const [across, up] = [plot.layout.xaxis.range, plot.layout.yaxis.range];
            return [area.left + (x - across[0]) / (across[1] - across[0]) * area.width,
                    area.bottom - (y - up[0]) / (up[1] - up[0]) * area.height];
        }""",
        [float(value) for value in place],
    )
    page.mouse.move(x, y)
    tip = page.locator(f"figure[data-view={view}] .tip")
    tip.wait_for()
    return tip.inner_text()


def described(run, item):
    return [
        visible(run.ids[item])[:59],
        f"true class: {visible(run.class_names[run.y[item]])[:59]}",
        f"prediction: {visible(run.class_names[run.prediction[item]])[:59]}",
        f"confidence: {run.confidence[item]:.3f}",
        f"degree: {run.degree[item]:,}",
        f"part: {('training', 'validation', 'test')[run.part[item]]}",
    ]


def test_the_page_is_quiet_and_hostile_names_do_nothing(desk):
    assert desk.heard == [f"request: {desk.path.as_uri()}"]
    assert desk.page.locator("main img, main a, text a").count() == 0


def test_every_plot_is_drawn(desk, report):
    plots = desk.page.locator(".plot").all()
    assert len(plots) == 7  # floors, confusion, degrees, curves, embedding, graph, tasks
    marks = [".bars .point", ".heatmaplayer image", ".scatterlayer .point", ".scatterlayer .js-line"]
    marks += [".scatterlayer .point"] * 3
    for plot, mark in zip(plots, marks, strict=True):
        assert plot.locator(mark).count() > 0, plot.get_attribute("aria-label")
    assert desk.page.locator(".notice").count() == 0
    assert plots[4].locator(".scatterlayer .point").count() == 60
    assert plots[5].locator(".js-line").count() == 90, "a line for each edge"


@pytest.mark.parametrize("item", [0, 4])
def test_the_tooltip_says_what_is_known_of_a_node(desk, run, item):
    place = {"place": run.place, "drawing": run.drawing}
    for view, places in place.items():
        assert all(text in point_at(desk.page, view, places[item]) for text in described(run, item))


def test_the_switch_recolours_both_views(desk):
    colours = "[...document.querySelectorAll('.explorer .point')].map(point => getComputedStyle(point).fill)"
    seen = []
    for value, name in (("prediction", "prediction"), ("size", "degree"), ("y", "class")):
        switch(desk.page, value, name)
        assert titles(desk.page) == [f"Embedding by {name}", f"The graph by {name}"]
        seen.append(desk.page.evaluate(colours))
    assert all(len(colours) == 120 for colours in seen)
    assert seen[0] != seen[1] != seen[2] != seen[0]


@pytest.mark.parametrize("item", [2, 4, 40])
def test_every_id_is_found_and_ringed(desk, run, item):
    shown = visible(run.ids[item])
    answer = find(desk.page, shown)
    assert answer.startswith(f"Found node {shown[:59]}")
    desk.page.wait_for_function(
        "text => document.querySelector('.item dd')?.textContent.startsWith(text)", arg=shown[:50]
    )
    desk.page.wait_for_function(
        "x => Math.abs([...document.querySelectorAll('.explorer .plot')].at(-1).data.at(-1).x[0] - x) < 1e-3",
        arg=float(run.drawing[item, 0]),
    )
    np.testing.assert_allclose(rings(desk.page), [run.place[item], run.drawing[item]], atol=1e-3)


def test_what_is_not_there_is_said_and_what_begins_so_is_offered(desk):
    assert find(desk.page, "NODE 1") == "No node is called NODE 1. There is node 1, node 10, node 11."
    assert find(desk.page, "no such node") == "No node is called no such node."
    desk.page.fill("#find", "node 1")
    desk.page.wait_for_function("() => document.querySelectorAll('datalist option').length === 8")
    options = desk.page.evaluate("[...document.querySelectorAll('datalist option')].map(option => option.value)")
    assert options[:3] == ["node 1", "node 10", "node 11"]


def test_pressing_a_point_keeps_it(desk, run):
    point_at(desk.page, "place", run.place[50])
    desk.page.mouse.down()
    desk.page.mouse.up()
    desk.page.wait_for_function("id => document.querySelector('.item dd').textContent === id", arg=run.ids[50])


def test_tables_and_plots_are_copied_as_numbers(desk, report):
    copied = [part.tsv if isinstance(part, Table) else part.numbers.tsv for part in report.sections
              if isinstance(part, Table) or getattr(part, "numbers", None)]  # fmt: skip
    buttons = desk.page.locator("button.copy").all()
    assert len(buttons) == len(copied) == 10
    for button, text in zip(buttons, copied, strict=True):
        button.click()
        button.page.wait_for_function("button => button.textContent === 'Copied'", arg=button.element_handle())
        assert desk.page.evaluate("navigator.clipboard.readText()") == text


def test_the_embedding_is_saved_as_svg(desk):
    with desk.page.expect_download() as download:
        desk.page.locator("figure[data-view=place] .modebar-btn").last.click()
    assert download.value.suggested_filename == "every-node.svg"
    assert download.value.path().read_text(encoding="utf-8").startswith("<svg")


def test_by_night_plots_and_points_change_too(desk):
    last = "[...document.querySelectorAll('.plot')].at(-1).querySelector('.main-svg').style.background"
    points = (
        "[...new Set([...document.querySelectorAll('.explorer .point')].map(p => getComputedStyle(p).fill))].sort()"
    )
    day = desk.page.evaluate(points)
    desk.page.click("#theme")
    desk.page.wait_for_function(f"() => {last} === 'rgb(27, 31, 38)'")
    assert set(day) & set(desk.page.evaluate(points)) <= {"none"}, "the ring is hollow"
    desk.page.click("#theme")
    desk.page.wait_for_function(f"() => {last} === 'rgb(255, 255, 255)'")


def test_a_narrow_window_does_not_overflow(desk):
    widest = "Math.max(...[...document.querySelectorAll('.plot .main-svg')].map(svg => svg.clientWidth))"
    desk.page.set_viewport_size({"width": 360, "height": 740})
    desk.page.wait_for_function(f"() => {widest} <= 360")
    assert overflow(desk.page) == 0
    desk.page.set_viewport_size({"width": 1200, "height": 800})
    desk.page.wait_for_function(f"() => {widest} > 500")
    assert desk.heard == [f"request: {desk.path.as_uri()}"], "quiet to the end"


def test_a_hundred_thousand_nodes_are_drawn_as_one_picture(crowd):
    assert crowd.heard == [f"request: {crowd.path.as_uri()}"]
    assert crowd.page.locator("figure[data-view=place] image").count() == 1
    assert crowd.page.locator("figure[data-view=place] .legendtext").count() == 5


def test_any_of_a_hundred_thousand_nodes_is_pointed_at_and_found(crowd, large):
    alone = int(np.abs(large.place).sum(1).argmax())
    assert all(text in point_at(crowd.page, "place", large.place[alone]) for text in described(large, alone))
    assert find(crowd.page, large.ids[77_777]).startswith(f"Found node {large.ids[77_777]}")
    crowd.page.wait_for_selector(".item:not([hidden])")
    crowd.page.wait_for_function("() => document.querySelector('.explorer .plot').data.at(-1).name === 'found'")
    np.testing.assert_allclose(rings(crowd.page), [large.place[77_777]], atol=1e-3)


def test_a_crowd_is_painted_anew_for_every_zoom_and_colour(crowd):
    source = "document.querySelector('.explorer .plot').layout.images[0].source"
    wide = crowd.page.evaluate(source)
    area = crowd.page.locator("figure[data-view=place] .nsewdrag")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    crowd.page.mouse.move(x, y)
    crowd.page.mouse.down()
    crowd.page.mouse.move(x + 90, y + 80, steps=4)
    crowd.page.mouse.up()
    crowd.page.wait_for_function(f"before => {source} !== before", arg=wide)
    left, right = crowd.page.evaluate("document.querySelector('.explorer .plot').layout.xaxis.range")
    assert 0 < right - left < 4, "the window stays where it was drawn"
    crowd.page.locator("figure[data-view=place] [data-attr=zoom][data-val=reset]").click()
    crowd.page.wait_for_function("() => document.querySelector('.explorer .plot').layout.xaxis.range[1] > 4")
    near = crowd.page.evaluate(source)
    switch(crowd.page, "size", "degree")
    crowd.page.wait_for_function(f"before => {source} !== before", arg=near)
    assert overflow(crowd.page) == 0


def test_graphs_on_a_phone(browser, folder, make_run):
    write(run_page(make_run(200, 2, kind="graphs")), folder / "graphs.html")
    phone = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True, "color_scheme": "dark"}
    with opened(browser, folder / "graphs.html", silent=("data:",), **phone) as view:
        assert view.heard == [f"request: {view.path.as_uri()}"]
        assert overflow(view.page) == 0
        assert view.page.locator(".plot .main-svg").count() > 0
        switch(view.page, "size", "number of nodes")
        assert "edges" in view.page.locator(".explorer script.packed").text_content()
        assert overflow(view.page) == 0


def test_long_names_ids_and_lists_fit_a_phone_and_the_file_is_saved(browser, folder, make_run):
    """Long ids were broken in the middle, and lists were cut at 32 lines' height."""
    names = [f"{index} " + "very long " * 40 for index in range(60)]
    run = make_run(600, 60, class_names=names, ids=[f"customer-{10**9 + i}" for i in range(600)])
    run.y[::2], run.part[::2] = -1, -1
    page = run_page(run)
    write(page, folder / "sixty.html")
    phone = {"width": 390, "height": 844}
    with opened(browser, folder / "sixty.html", silent=("data:", "blob:"), viewport=phone) as view:
        assert view.page.locator(".explorer .legendtext").count() == 12, "the most frequent"
        with view.page.expect_download() as waiting:
            view.page.click("button.save")
        table = next(s for s in page.sections if isinstance(s, Table) and s.file)
        saved = waiting.value
        assert (saved.suggested_filename, saved.path().read_text(encoding="utf-8")) == table.file
        assert overflow(view.page) == 0
        lines = """all => all.map((cell) => {
            const text = document.createRange();
            text.selectNodeContents(cell);
            return new Set([...text.getClientRects()].map((box) => box.top)).size;
        })"""
        assert set(view.page.eval_on_selector_all("tbody th.id", lines)) == {1}
        assert [line for line in view.heard if not line.startswith("request: file:")] == []


def test_a_regression_is_drawn_pointed_at_and_coloured(browser, folder, make_numbers):
    run = make_numbers()
    write(run_page(run), folder / "numbers.html")
    with opened(browser, folder / "numbers.html", silent=("data:",)) as view:
        page = view.page
        scatter, by_degree = (page.locator(f".plot[aria-label^='{start}']") for start in ("Predicted", "Residuals"))
        assert scatter.locator(".scatterlayer .point").count() == ((run.part == 2) & ~np.isnan(run.y[:, 0])).sum()
        assert by_degree.locator(".errorbar").count() > 0
        assert titles(page) == ["Embedding by residual"]
        item = int((np.abs(run.place).sum(1) * ~np.isnan(run.y[:, 0])).argmax())
        text = point_at(page, "place", run.place[item])
        assert f"true value: {number(run.y[item, 0])}" in text
        assert f"residual: {number(run.y[item, 0] - run.outputs[item, 0])}" in text
        for value, name in (("true value-0", "true value"), ("prediction-0", "prediction"), ("size", "degree")):
            switch(page, f"'{value}'", name)
        page.set_viewport_size({"width": 390, "height": 800})
        assert overflow(page) == 0
        page.click("#theme")
        assert view.heard == [f"request: {view.path.as_uri()}"]


def number(value):
    text = f"{np.float32(value):.4g}".replace("-", "−")
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


@pytest.mark.parametrize("labels", [3, 40])
def test_a_multi_label_page_colours_by_wrong_labels_or_by_any_label(browser, folder, make_labels, labels):
    run = make_labels(labels)
    write(run_page(run), folder / f"labels-{labels}.html")
    with opened(browser, folder / f"labels-{labels}.html", silent=("data:",), color_scheme="dark") as view:
        page = view.page
        assert titles(page) == ["Embedding by number of wrong labels"]
        item = int(np.abs(run.place).sum(1).argmax())
        wrong = int(((run.prediction[item] != run.y[item]) & ~np.isnan(run.y[item])).sum())
        assert f"wrong labels: {wrong}" in point_at(page, "place", run.place[item])
        if labels == 3:
            switch(page, "label-1", run.class_names[1])
        else:
            page.select_option(".switch select", "label-1")
            page.wait_for_function("() => document.querySelector('.explorer .gtitle').textContent.endsWith('label 1')")
        names = set(page.locator(".explorer .legendtext").all_text_contents())
        assert names <= {"1, found", "1, missed", "0, right", "0, wrong", "unknown"}
        assert len(names) > 2
        page.set_viewport_size({"width": 390, "height": 800})
        assert overflow(page) == 0
        assert view.heard == [f"request: {view.path.as_uri()}"]
