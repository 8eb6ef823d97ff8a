"""Tables of the bench: ratios, slopes, failures, and the page that shows what the files say."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.page import FIGURES, MARKED, TABLES, by_graph, by_size, epochs, fill, of_sets

from demonet.errors import DemonetError
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.page import Figure, render
from demonet_study.bench.methods import METHODS
from demonet_study.bench.rows import Row, best, read_rows, slope
from demonet_study.experiments.rows import write_rows
from demonet_study.report.bench import MOST, bench_page, running_time, times_by_nodes
from demonet_study.report.chart_svg import draw

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
NAN = math.nan
ROW = Row(
    **{"graph": "uniform", "nodes": 25_000, "arcs": 100_000, "degrees": 12, "largest": 14, "method": "weight"},
    **{"precision": "float32", "mode": "eager", "ms": 4.0, "q1": 3.5, "q3": 4.5, "samples": 9, "setup_ms": 10.0},
    **{"memory_mib": 80.0, "floor_ms": 2.0, "step_floor_ms": 1.6, "error": "", "device": "A processor", "threads": 2},
    **{"versions": "torch 2", "command": "bench"},
)
GCN = replace(ROW, method="gcn", ms=20.0, memory_mib=NAN, floor_ms=NAN, step_floor_ms=NAN)


def cells(table, name):
    (line,) = [line for line in table.splitlines() if line.startswith(f"| {name} ")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_ratios_are_those_of_the_fastest_modes():
    rows = [ROW, replace(ROW, mode="graphed", ms=2.0), GCN, replace(GCN, mode="graphed", ms=NAN, error="it waits")]
    assert best(rows) == {"weight": 2.0, "gcn": 20.0}
    table = epochs(rows)
    assert "uniform, 25,000 nodes, 100,000 arcs, float32, 2 threads:" in table
    assert cells(table, "weight")[2:] == ["4.00 (3.50 to 4.50)", "2.00 (3.50 to 4.50)", "1.00", "80", "1.00 / 1.25"]
    assert cells(table, "gcn")[1:] == ["edge_index", "20.0 (3.50 to 4.50)", "failed", "10.00", "–", ""]
    assert "Failed: gcn (graphed): it waits" in table


def test_precisions_and_threads_have_tables_of_their_own():
    table = epochs([ROW, replace(ROW, threads=1), replace(ROW, precision="bfloat16")])
    assert table.count("| method |") == 3


def test_the_slope_is_that_from_100_000_arcs_on():
    sizes = {1_000: 4.0, 100_000: 4.0, 1_000_000: 40.0, 10_000_000: 400.0}
    rows = [replace(ROW, arcs=arcs, ms=ms) for arcs, ms in sizes.items()]
    assert cells(by_size(rows), "weight") == ["weight", "4.00", "4.00", "40.0", "400", "1.00"]


def test_a_size_that_failed_is_left_out_of_the_slope():
    assert slope([1, 10, 100], [1, math.nan, 10_000]) == pytest.approx(2)
    assert math.isnan(slope([1, 10], [1, math.nan]))


def test_graphs_stand_side_by_side():
    rows = [ROW, replace(ROW, graph="power-law", ms=5.0), GCN, replace(GCN, graph="power-law", ms=NAN, error="no")]
    table = by_graph(rows)
    assert cells(table, "weight") == ["weight", "4.00", "5.00", "1.25"]
    assert cells(table, "gcn") == ["gcn", "20.0", "–", "–"]


def test_sets_have_a_column_for_each_number_of_threads():
    rows = [replace(ROW, graph="brazil", method="paper, hash", threads=threads, ms=threads) for threads in (1, 2)]
    head, _, line = of_sets(rows).splitlines()
    assert "| 1 thread, ms | 2 threads, ms |" in head
    assert line.startswith("| brazil | paper, hash | 1.00 (3.50 to 4.50) | 2.00 (3.50 to 4.50) |")


def test_a_marked_table_is_made_anew_and_stays_marked(tmp_path):
    write_rows([ROW], tmp_path / "one.csv")
    document = "# A\n\n<!-- epochs from one.csv -->\nold\n<!-- end -->\n\nB\n"
    filled = fill(document, tmp_path)
    assert "old" not in filled
    assert epochs([ROW]) in filled
    assert "A processor; torch 2; `bench`." in filled
    assert filled.startswith("# A\n")
    assert filled.endswith("\n\nB\n")
    assert fill(filled, tmp_path) == filled


def test_a_table_without_its_file_says_so(tmp_path):
    filled = fill("<!-- epochs from none.csv -->\n<!-- end -->", tmp_path)
    assert "Not measured: there is no `none.csv`." in filled


def test_the_performance_page_shows_the_committed_numbers():
    assert fill(DOCUMENT, ROOT / "benchmarks" / "results") == DOCUMENT


def test_every_table_of_the_page_is_known():
    marked = list(MARKED.finditer(DOCUMENT))
    assert len(marked) == DOCUMENT.count(".csv -->") == DOCUMENT.count("<!-- end -->") >= 8
    assert {match["kind"] for match in marked} == {*TABLES, "figure"}
    assert {match["file"] for match in marked if match["kind"] == "figure"} == set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_of_the_page_show_the_committed_numbers(name):
    results, image = ROOT / "benchmarks" / "results" / f"{name}.csv", ROOT / "docs" / "images" / f"{name}.svg"
    assert image.exists() == results.exists() == (f"(images/{name}.svg)" in DOCUMENT)
    if results.exists():
        assert image.read_text(encoding="utf-8") == running_time(read_rows(results), FIGURES[name])


def test_the_running_time_figure_has_a_line_for_each_method():
    rows = [replace(row, nodes=nodes, ms=nodes / 1000) for row in (ROW, GCN) for nodes in (1_000, 10_000)]
    assert times_by_nodes(rows) == {name: [(1_000, 1.0), (10_000, 10.0)] for name in ("weight", "gcn")}
    tree = ElementTree.fromstring(running_time(rows, "A <title> & more"))
    names = [text.text for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"A <title> & more", "weight", "gcn"} <= set(names)
    assert len(list(tree.iter("{http://www.w3.org/2000/svg}polyline"))) == 2


def log_chart(lines):
    """An SVG of lines on logarithmic axes, with their names at the ends."""
    series = [Series(name, [x for x, _ in line], [y for _, y in line]) for name, line in lines.items()]
    return draw(Chart("", [Panel("", series)], Axis("x", log=True), Axis("y", log=True), end_labels=True))


def test_a_point_ten_times_higher_is_one_decade_up():
    tree = ElementTree.fromstring(log_chart({"a": [(1, 1), (10, 10), (100, 100)]}))
    circles = list(tree.iter("{http://www.w3.org/2000/svg}circle"))
    x, y = ([float(circle.get(name)) for circle in circles] for name in ("cx", "cy"))
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    assert y[0] - y[1] == pytest.approx(y[1] - y[2], abs=0.2)
    assert y[0] > y[1]


def test_names_of_near_lines_do_not_cover_each_other():
    lines = {f"line {i}": [(1, 1), (10, 10 + i / 100)] for i in range(8)}
    tree = ElementTree.fromstring(log_chart(lines))
    texts = tree.iter("{http://www.w3.org/2000/svg}text")
    heights = sorted(float(text.get("y")) for text in texts if (text.text or "").startswith("line"))
    assert min(high - low for low, high in pairwise(heights)) >= 14.9


@pytest.mark.parametrize("series", [{}, {"a": []}, {"a": [(1, 0)]}, {"a": [(-1, 1)]}])
def test_a_logarithmic_chart_refuses_what_has_no_logarithm(series):
    with pytest.raises(DemonetError):
        log_chart(series)


def test_the_page_has_a_figure_and_a_table_for_each_graph():
    rows = [ROW, GCN, replace(GCN, mode="compiled", ms=NAN, error="<no> & never"), replace(ROW, nodes=50_000)]
    html = render(bench_page(rows))
    assert "uniform, 25,000 nodes, 100,000 edges, float32" in html
    assert "uniform, 50,000 nodes" in html
    assert "&lt;no&gt; &amp; never" in html
    assert "A processor" in html


@pytest.mark.parametrize("count", [5, len(METHODS)])
def test_lines_of_the_page_can_be_told_apart_and_are_named_at_their_ends(count):
    rows = [replace(ROW, method=name, nodes=n, ms=n / 100) for name in list(METHODS)[:count] for n in (1000, 9000)]
    (figure,) = [section for section in bench_page(rows).sections if isinstance(section, Figure)]
    drawn = figure.figure
    by_panel = {}
    for trace in drawn.data:
        by_panel.setdefault(trace.yaxis, []).append((trace.line.color, trace.line.dash))
    assert sum(map(len, by_panel.values())) == count
    assert all(len(set(looks)) == len(looks) <= MOST for looks in by_panel.values())
    labels = {note.text: note for note in drawn.layout.annotations}
    for trace in drawn.data:
        assert labels[trace.name].font.color == trace.line.color
        assert labels[trace.name].yref == trace.yaxis
    assert not drawn.layout.showlegend
