"""Tables of the bench: ratios, slopes, failures, and the page that shows what the files say."""

import importlib
import math
import pkgutil
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.page import FIGURES, PAGES, degree_term, fill, tuned

from demonet.report.page import Figure, render
from demonet_study.bench.measure import Row, slope
from demonet_study.bench.methods import METHODS, find
from demonet_study.experiments.rows import read_rows
from demonet_study.report.bench import MOST, bench_page, running_time

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


def test_the_gpu_script_names_what_there_is(monkeypatch):
    """A method of a graph and a module were named that were gone, which showed on a GPU alone."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    for part in importlib.import_module("benchmarks.gpu").PARTS.values():
        for spec, names, options in part(1e-3):
            assert spec.nodes >= 10
            assert find(names)
            assert all(callable(pkgutil.resolve_name(name)) for name in options.get("instead", ()))


def test_a_size_that_failed_is_left_out_of_the_slope():
    assert slope([1, 10, 100], [1, math.nan, 10_000]) == pytest.approx(2)
    assert math.isnan(slope([1, 10], [1, math.nan]))


def test_a_table_without_its_file_says_so(tmp_path):
    filled = fill("<!-- epochs from none.csv -->\n<!-- end -->", tmp_path)
    assert "Not measured: there is no `none.csv`." in filled


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_the_committed_numbers(page):
    document = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert fill(document, ROOT / "benchmarks" / "results") == document


def test_differences_are_paired_by_split_and_seed():
    names = ("set", "width", "aggr", "variant", "split", "seed", "test")
    runs = [("default", "0", 0.9), ("default", "1", 0.5), ("without", "1", 0.4), ("without", "0", 0.7)]
    rows = [dict(zip(names, ("cora", "16", "sym", one, "0", seed, test), strict=True)) for one, seed, test in runs]
    rows += [row | {"variant": "shuffled"} for row in rows[:2]]
    # Differences .2 and .1: their standard error is .05, and the quantile of t with one degree of freedom 12.7.
    assert "| .550 | .700 | .700 | +.150 ± .635 | +.000 ± .000 |" in degree_term(rows)


def test_the_better_on_validation_is_chosen_in_every_run():
    names = ("set", "method", "split", "seed", "validation", "test")
    runs = [("ours-gcn", "0", 0.8, 0.6), ("ours-sage", "0", 0.7, 0.9), ("ours-gcn", "1", 0.5, 0.9)]
    runs += [("ours-sage", "1", 0.6, 0.8), ("ours-gcn", "2", 1.0, 1.0)]  # the last has no partner
    runs.append(("gcn", "0", 0.9, 0.5))
    rows = [dict(zip(names, ("cora", method, "0", *run), strict=True)) for method, *run in runs]
    found = tuned(rows)
    assert "| `DEMOConv`, the better of both on validation | 2 | .700 | +.100 |" in found
    assert "| the best peer on validation | 1 | .500 |" in found


@pytest.mark.parametrize("name", FIGURES)
def test_the_figures_of_the_page_show_the_committed_numbers(name):
    results, image = ROOT / "benchmarks" / "results" / f"{name}.csv", ROOT / "docs" / "images" / f"{name}.svg"
    assert image.exists() == results.exists() == (f"(images/{name}.svg)" in DOCUMENT)
    if results.exists():
        assert image.read_text(encoding="utf-8") == running_time(read_rows(Row, results), FIGURES[name])


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
