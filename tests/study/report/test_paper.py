"""The paper's page and files: every cell beside the printed one, whatever is missing or hostile."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from tests.report.conftest import HOSTILE
from tests.study.report.paper_rows import FACTS, paper_rows, points, row

from demonet.errors import DemonetError
from demonet.report.page import Figure, Legend, Table, Text, render
from demonet_study.report.files import write_paper
from demonet_study.report.grid import verdict
from demonet_study.report.hypotheses import CLAIMS
from demonet_study.report.page import paper_page, part_charts, printed_rows
from demonet_study.report.parts import PARTS
from demonet_study.report.parts.identity import Embedded, identity_charts
from demonet_study.report.reasons import Reason, counts, misses


@pytest.fixture(scope="module")
def rows():
    return paper_rows(quick=True)


@pytest.fixture(scope="module")
def page(rows):
    return paper_page(rows, facts=FACTS, extras={"identity": Embedded(points())})


def titled(page, title):
    return next(section for section in page.sections if section.title.startswith(title))


def test_every_part_has_its_section_tables_and_files(rows, page, tmp_path):
    written = write_paper({"nodes": rows["nodes"], "splits": rows["splits"]}, tmp_path, facts=FACTS)
    names = {str(path.relative_to(tmp_path)) for path in written}
    assert {f"tables/{part}.{kind}" for part in ("nodes", "splits") for kind in ("md", "tex")} < names
    assert {"figures/splits.svg", "paper.html"} < names
    assert all(path.stat().st_size for path in written)
    anchors = [section.anchor for section in page.sections]
    assert [name for name in anchors if name in PARTS] == list(PARTS)
    assert {"reading", "summary", "claims", "misses", "nodes-best", "graphs-table-2"} < set(anchors)


def test_protocols_and_the_legend_are_on_the_page(page):
    told = [section.text for section in page.sections if isinstance(section, Text)]
    assert all(part.protocol in told for part in PARTS.values())
    (legend,) = [section for section in page.sections if isinstance(section, Legend)]
    assert [mark for _, mark, _ in legend.entries] == ["●", "○", "▲", "▼"]


def test_the_legend_shows_a_cell_of_the_page():
    (legend,) = (section for section in paper_page({}, facts={}).sections if isinstance(section, Legend))
    assert legend.shown is None
    some = {"nodes": [row(values=[0.5, 0.6]), row(method="gat", values=[0.5, 0.7], paper=0.4)]}
    (legend,) = (section for section in paper_page(some, facts={}).sections if isinstance(section, Legend))
    assert (legend.shown.text, legend.shown.deviation, legend.shown.printed) == ("0.600", "0.141", "0.400")


def test_one_run_can_be_off_too():
    one = row(method="demonet-hash", preset="paper", values=[0.9], paper=0.5, paper_std=0.1)
    assert [miss.deviations for miss in misses([one])] == [pytest.approx(4.0)]


def test_misses_are_those_beyond_two_deviations_each_with_its_reason():
    tight = [0.59, 0.6, 0.61] * 10
    off = row(method="demonet-hash", preset="paper", values=tight, paper=0.7)
    other = replace(off, dataset="usa", preset="authors")
    near = replace(off, dataset="europe", paper=0.615)
    baseline = replace(off, method="gcn", preset="")
    found = misses([off, other, near, baseline], [Reason("Loops", "measured", datasets=("usa",), presets=("authors",))])
    assert [miss.name for miss in found] == ["Brazil, DEMO-Net (hash), paper", "USA, DEMO-Net (hash), authors"]
    assert [miss.reason.title for miss in found] == ["Not yet explained", "Loops"]
    assert found[0].deviations == pytest.approx(0.1 / off.std)
    still = row(method="demonet-hash", preset="paper", values=[0.6] * 10, paper=0.7)  # no run differs from another
    assert misses([replace(still, paper_std=0.0)])[0].deviations == float("inf")
    assert counts([off, near, row(paper=0.5), row(values=[0.4])]) == {
        **{"same": 0, "near": 1, "above": 0, "below": 1, "not yet run": 1}
    }


def test_the_account_for_documents(tmp_path):
    off = row(method="demonet-m-hash", preset="paper", values=[0.59, 0.6, 0.61] * 10, paper=0.7)
    rows = {"nodes": [row(values=[0.5, 0.6])], "graphs": [replace(off, part="graphs", dataset="PTC")]}
    write_paper(rows, tmp_path, facts={})
    account = (tmp_path / "tables" / "account.md").read_text(encoding="utf-8")
    assert account.startswith("### Not yet explained\n")
    assert r"| PTC, DEMO-Net\_m (hash), paper | 0.600 ± 0.008 | 0.700 | 12.0 |" in account
    assert "| Brazil |" in (tmp_path / "tables" / "readme.md").read_text(encoding="utf-8")
    write_paper(rows | {"graphs": [row("graphs", "PTC")]}, tmp_path, facts={})
    assert (tmp_path / "tables" / "account.md").read_text(encoding="utf-8").startswith("Every cell that has been run")


def test_without_a_miss_the_page_says_so():
    page = paper_page({"nodes": [row(values=[0.5, 0.6], paper=0.55)]}, facts={})
    assert titled(page, "Where we do not match").text.startswith("Every cell that has been run is within two")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_without_a_run_is_shown_empty(part, tmp_path):
    empty = {part: PARTS[part].rows({})}
    written = write_paper(empty, tmp_path, facts={})
    assert not list(tmp_path.glob("figures/*"))
    assert "not yet run" in (tmp_path / "paper.html").read_text(encoding="utf-8")
    assert "not yet run" in written[0].read_text(encoding="utf-8")


def test_nothing_at_all_is_still_a_page(tmp_path):
    assert write_paper({"nodes": []}, tmp_path, facts={}) == [tmp_path / "paper.html"]


@pytest.mark.parametrize("part", PARTS)
def test_one_run_draws_what_it_can(part, tmp_path):
    once = [replace(one, mean=0.5, runs=1, values=(0.5,)) for one in PARTS[part].rows({}, quick=True)]
    write_paper({part: once}, tmp_path, facts={})
    text = (tmp_path / "paper.html").read_text(encoding="utf-8")
    assert "± nan" not in text
    assert ">nan" not in text


def test_hostile_names_reach_no_markup(tmp_path):
    hostile = [text.encode("utf-8", "replace").decode() for text in HOSTILE]
    rows = [
        row(dataset=name, method=method, variant=name, values=[0.5, 0.6, 0.7], paper=0.4, preset="paper")
        for name in hostile
        for method in ("demonet-hash", name)
    ]
    splits = [replace(one, part="splits", train_fraction=0.5, split="train:0.5") for one in rows]
    facts = {name: name for name in hostile}
    embedded = Embedded({name: {name: {"xy": [[0.0, 1.0], [1.0, 0.0]], "roles": [0, 0]}} for name in hostile[:1]})
    identity = [replace(one, part="identity") for one in rows]
    parts = {"nodes": rows, "splits": splits, "identity": identity}
    for path in write_paper(parts, tmp_path, facts=facts, extras={"identity": embedded}):
        text = path.read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert "<img" not in text
        if path.suffix == ".svg":
            assert {element.tag.split("}")[1] for element in ElementTree.fromstring(text).iter()} <= {
                *("svg", "style", "rect", "text", "path", "polyline", "polygon", "circle")
            }
        if path.suffix == ".tex":
            assert "$x^2$" not in text


def test_every_figure_is_in_the_page_and_drawable(rows, page):
    drawn = {name for charts in part_charts(rows, {"identity": Embedded(points())}).values() for name in charts}
    figures = [section for section in page.sections if isinstance(section, Figure)]
    assert len(figures) == len(drawn)
    assert {"splits", "speed", "layers", "ablation-paper", "ablation-default", "identity-cycle"} <= drawn
    assert all(len(figure.alt) > 30 for figure in figures)


def test_equal_nodes_are_joined():
    (chart,) = identity_charts({"barbell": {"GCN": {"xy": [[0, 0], [2, 0], [5, 5]], "roles": [0, 0, 1]}}}).values()
    links, *roles = chart.panels[0].series
    assert list(zip(links.x, links.y, strict=True)) == [(1, 0), (0, 0), (1, 0), (2, 0), (5, 5), (5, 5)]
    assert [series.name for series in roles] == ["role 0", "role 1"]


def test_claims_are_answered_for_each_of_our_methods(page):
    table = titled(page, "Claim 1")
    assert isinstance(table, Table)
    assert [line[0].text for line in table.shown][-1] == "DEMO-Net, default"
    assert {line[1].text for line in table.shown} <= {"holds", "does not hold", "undecided", "not yet run"}
    assert [column.name for column in table.head][2:4] == ["GraphSAGE", "GCN"]
    single = page.sections[page.sections.index(table) + 1]
    assert (single.title, [column.name for column in single.head][:2]) == ("On each set", ["against", "Facebook"])
    assert [name for name, _ in single.groups] == [line[0].text for line in table.shown]
    assert len(single.shown) == 6 * len(table.shown)


def test_links_are_refused_where_they_could_not_lead():
    with pytest.raises(DemonetError, match="'a b'"):
        render(replace(paper_page({}, facts={}), sections=[Text("", anchor="a b")]))


def test_bands_stay_within_what_an_accuracy_can_be():
    shares = [
        row("splits", values=values, split=f"train:{share}", train_fraction=share)
        for share, values in ((0.1, (0.4, 0.9)), (0.5, (0.1, 0.9, 1.0)), (0.9, (0.6, 0.61, 0.62)))
    ]
    (series,) = PARTS["splits"].charts(shares, None)["splits"].panels[0].series
    assert series.low[0] == series.y[0] == series.high[0]  # of two runs
    assert (series.low[1], series.high[1]) == (0.0, 1.0)
    assert series.low[2] == pytest.approx(shares[2].mean - shares[2].ci95)


def test_the_page_opens_with_the_verdict_and_ends_with_the_versions(rows, page):
    first, told, *_, last = page.sections
    assert (first.anchor, last.anchor) == ("verdict", "versions")
    assert last.facts == FACTS
    ours = [row for row in printed_rows(rows) if row.preset and not math.isnan(row.paper)]
    counts = Counter(verdict(row) for row in ours)
    assert first.facts["like the printed number"] == counts["same"] + counts["near"]
    assert (first.facts["above it"], first.facts["below it"]) == (counts["above"], counts["below"])
    assert sum(first.facts.values()) == len(ours)
    assert all(claim.statement in told.text for claim in CLAIMS)
