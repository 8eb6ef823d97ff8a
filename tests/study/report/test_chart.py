"""Charts in words, and as SVG and plotly figures."""

from xml.etree import ElementTree

import pytest

from demonet.errors import DemonetError
from demonet.report import chart_plotly
from demonet.report.chart import Axis, Chart, Panel, Series, limits
from demonet_study.report import chart_svg

SVG = "{http://www.w3.org/2000/svg}"


def chart(*series, panels=1, **changes):
    axes = {"x": Axis("across"), "y": Axis("up")} | {name: changes.pop(name) for name in ("x", "y") if name in changes}
    return Chart("A chart", [Panel(f"panel {i}", series) for i in range(panels)], **axes, **changes)


LINE = Series("a", [1, 2, 3], [0.1, 0.2, 0.4], [0.0, 0.1, 0.3], [0.2, 0.3, 0.5], colour=0)


def tree(text):
    return ElementTree.fromstring(text)


def test_a_name_is_one_entry_of_the_legend():
    figure = chart_plotly.draw(chart(LINE, panels=3))
    assert [trace.showlegend for trace in figure.data] == [False, True] + [False, False] * 2
    assert (figure.layout.grid.rows, figure.layout.grid.columns) == (1, 3)
    assert figure.layout.meta["panels"] == 3
    names = [text.text for text in tree(chart_svg.draw(chart(LINE, panels=3))).findall(f"{SVG}text")]
    assert names.count("a") == 1


def test_points_that_all_coincide_are_drawn():
    same = Series("p", [0.3, 0.3 + 1e-17], [0.0, 0.0], mark="points")
    assert len(tree(chart_svg.draw(chart(same, square=True))).findall(f"{SVG}circle")) == 3, "two, and the legend's"
    assert limits(Axis(""), [0.0, 0.0]) == (-0.5, 0.5)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3e-5, 7e-5), (0, 12345), (-0.18, 0.02)])
def test_ticks_are_round_inside_and_few(low, high):
    found = chart_svg.ticks(low, high)
    assert 2 <= len(found) <= 7
    assert all(low - 1e-12 <= tick <= high + 1e-12 for tick in found)


def test_bad_charts_are_refused():
    with pytest.raises(DemonetError, match=r"'a'.*number"):
        Series("a", [1.0], [float("nan")])
    with pytest.raises(DemonetError, match=r"'a'.*\[1, 2\]"):
        Series("a", [1.0], [1.0, 2.0])
    with pytest.raises(DemonetError, match="'A chart'"):
        chart(Series("a", [], []))


def test_links_join_points_two_by_two():
    links = Series("l", [0, 1, 2, 3], [0, 1, 2, 3], mark="links")
    dots = Series("d", [0, 3], [0, 3], mark="points", colour=0)
    drawn = tree(chart_svg.draw(chart(links, dots, square=True)))
    assert len([path for path in drawn.findall(f"{SVG}path") if path.get("class") == "link"]) == 2
    trace = chart_plotly.draw(chart(links, dots)).data[0]
    assert list(trace.x) == [0, 1, None, 2, 3, None]
