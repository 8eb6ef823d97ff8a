"""The page as people meet it: opened from disk in Chromium, in both themes, on a desk and on a phone."""

import pytest
from tests.report.browsing import opened, overflow

from demonet.report.chart_plotly import plain
from demonet.report.page import write

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def path(hostile_page, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write(hostile_page, path)
    return path


@pytest.fixture(scope="module")
def light(browser, path):
    with opened(browser, path, color_scheme="light") as view:
        yield view


def looks(page):
    """Ground of the page, ground of each plot, and the colours of the first plot's bars."""
    return page.evaluate("""() => ({
        scheme: getComputedStyle(document.documentElement).colorScheme,
        ground: getComputedStyle(document.body).backgroundColor,
        plots: [...document.querySelectorAll('.plot .main-svg')].map(svg => svg.style.background).filter(Boolean),
        bars: [...document.querySelectorAll('.bars .point path')].map(bar => getComputedStyle(bar).fill),
    })""")


def test_the_page_is_quiet_and_asks_for_nothing_else(light, path):
    assert light.heard == [f"request: {path.as_uri()}"]


def test_every_plot_is_drawn(light):
    plots = light.page.locator(".plot").all()
    assert len(plots) == 3
    marks = [(".bars .point", 5), (".scatterlayer .trace .js-line", 15), (".scatterlayer .point", 10)]
    for plot, (mark, count) in zip(plots, marks, strict=True):
        assert plot.locator("svg.main-svg").count() >= 1
        assert plot.locator(mark).count() == count


def test_hostile_names_are_drawn_as_they_are_written(light, hostile):
    legend = light.page.locator(".plot").nth(2).locator(".legendtext").all_text_contents()
    assert {name[:25] for name in hostile[:4]} <= {name[:25] for name in legend}
    assert light.page.locator(".plot a[href], .plot text a, .plot [style*='font-weight: bold']").count() == 0


def test_a_tooltip_shows_the_text_of_its_node(light, hostile):
    plot = light.page.locator(".plot").nth(2)
    curve = plot.evaluate("(plot, name) => plot.data.findIndex(trace => trace.name === name)", plain(hostile[3], 40))
    plot.evaluate("(plot, curve) => Plotly.Fx.hover(plot, [{curveNumber: curve, pointNumber: 0}])", curve)
    assert plot.locator(".hovertext").text_content() == hostile[3]
    plot.evaluate("plot => Plotly.Fx.unhover(plot)")


def toggle(page):
    """Press the button and wait for the last plot, which is drawn last, to have another ground."""
    ground = "[...document.querySelectorAll('.plot')].at(-1).querySelector('.main-svg').style.background"
    before = page.evaluate(ground)
    page.click("#theme")
    page.wait_for_function(f"before => {ground} !== before", arg=before)
    return looks(page)


def test_the_toggle_changes_page_and_plots_and_back(light):
    before = looks(light.page)
    after = toggle(light.page)
    assert after["scheme"] == "dark"
    assert before["ground"] != after["ground"]
    assert len(after["plots"]) == len(before["plots"]) == 3
    assert not set(before["plots"]) & set(after["plots"])
    assert not set(before["bars"]) & set(after["bars"])
    assert toggle(light.page) == {**before, "scheme": "light"}


def test_the_button_copies_the_table(light, hostile_page):
    button = light.page.locator("button.copy")
    button.click()
    light.page.get_by_text("Copied").wait_for()
    assert light.page.evaluate("navigator.clipboard.readText()") == hostile_page.sections[2].tsv.replace(
        "\ud800", "\ufffd"
    )


def test_a_plot_is_saved_as_svg_and_never_sent_anywhere(light):
    plot = light.page.locator(".plot").nth(1)
    titles = [button.get_attribute("data-title") for button in plot.locator(".modebar-btn").all()]
    assert len(titles) == 4
    assert not [title for title in titles if "hare" in title or "loud" in title]
    with light.page.expect_download() as download:
        plot.locator(".modebar-btn").last.click()
    assert download.value.suggested_filename.endswith(".svg")
    assert download.value.path().read_text(encoding="utf-8").startswith("<svg")


def test_dark_is_the_default_where_the_system_is_dark(browser, path, light):
    with opened(browser, path, color_scheme="dark") as dark:
        assert dark.heard == [f"request: {path.as_uri()}"]
        assert looks(dark.page)["ground"] == "rgb(18, 21, 25)"
        assert not set(looks(dark.page)["plots"]) & {"rgb(255, 255, 255)"}


def test_a_phone_scrolls_down_only(browser, path):
    with opened(browser, path, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True) as phone:
        assert overflow(phone.page) == 0
        assert phone.page.locator(".plot .modebar-btn").count() == 3, "saving only: a dragged finger scrolls"
        widths = phone.page.evaluate("[...document.querySelectorAll('.plot .main-svg')].map(s => s.clientWidth)")
        assert max(widths) <= 360


def test_a_browser_that_cannot_unpack_says_so(browser, path):
    with opened(browser, path, script="delete window.DecompressionStream") as old:
        notices = old.page.locator(".plot .notice").all_text_contents()
        assert len(notices) == 3
        assert all("DecompressionStream" in notice and "a newer one can" in notice for notice in notices)


def test_a_plot_that_fails_says_so(browser, path):
    with opened(browser, path) as view:
        view.page.evaluate("() => { Plotly.react = () => { throw new Error('no room') } }")
        view.page.click("#theme")
        view.page.locator(".notice").nth(2).wait_for()
        assert view.page.locator(".notice").count() == 3
        assert "could not be drawn: no room" in view.page.locator(".notice").first.text_content()


def test_the_policy_stops_what_an_escape_would_miss(browser, path):
    with opened(browser, path, script="delete window.DecompressionStream") as view:
        view.page.evaluate("""() => {
            document.body.insertAdjacentHTML('beforeend', '<img src="data:," onerror="alert(1)">');
            document.body.append(Object.assign(document.createElement('script'), {textContent: 'alert(2)'}));
        }""")
        view.page.wait_for_timeout(200)
        assert not [word for word in view.heard if word.startswith("dialog")]
        assert len([word for word in view.heard if "Content Security Policy" in word]) == 2


def test_without_scripts_the_page_says_what_the_plots_show(browser, path, hostile):
    with opened(browser, path, java_script_enabled=False) as bare:
        assert hostile[2] in bare.page.locator(".plot").nth(1).inner_text()
        assert bare.page.locator("tbody tr").count() == 5
