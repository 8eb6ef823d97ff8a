"""The paper's page and files: every cell beside the printed one, whatever is missing or hostile."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from tests.report.conftest import HOSTILE
from tests.study.report.paper_rows import FACTS, paper_rows, points, row

from demonet_study.report.files import write_paper
from demonet_study.report.page import paper_page
from demonet_study.report.parts import PARTS
from demonet_study.report.parts.identity import Embedded
from demonet_study.report.reasons import Reason, counts, misses


@pytest.fixture(scope="module")
def rows():
    return paper_rows(quick=True)


@pytest.fixture(scope="module")
def page(rows):
    return paper_page(rows, facts=FACTS, extras={"identity": Embedded(points())})


def test_every_part_has_its_section_tables_and_files(rows, page, tmp_path):
    written = write_paper({"nodes": rows["nodes"], "splits": rows["splits"]}, tmp_path, facts=FACTS)
    names = {str(path.relative_to(tmp_path)) for path in written}
    assert {f"tables/{part}.{kind}" for part in ("nodes", "splits") for kind in ("md", "tex")} < names
    assert {"figures/splits.svg", "paper.html"} < names
    assert all(path.stat().st_size for path in written)
    anchors = [section.anchor for section in page.sections]
    assert [name for name in anchors if name in PARTS] == list(PARTS)
    assert {"reading", "summary", "claims", "misses", "nodes-best", "graphs-table-2"} < set(anchors)


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


@pytest.mark.parametrize("part", PARTS)
def test_a_part_without_a_run_is_shown_empty(part, tmp_path):
    empty = {part: PARTS[part].rows({})}
    written = write_paper(empty, tmp_path, facts={})
    assert not list(tmp_path.glob("figures/*"))
    assert "not yet run" in (tmp_path / "paper.html").read_text(encoding="utf-8")
    assert "not yet run" in written[0].read_text(encoding="utf-8")


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


def test_bands_stay_within_what_an_accuracy_can_be():
    shares = [
        row("splits", values=values, split=f"train:{share}", train_fraction=share)
        for share, values in ((0.1, (0.4, 0.9)), (0.5, (0.1, 0.9, 1.0)), (0.9, (0.6, 0.61, 0.62)))
    ]
    (series,) = PARTS["splits"].charts(shares, None)["splits"].panels[0].series
    assert series.low[0] == series.y[0] == series.high[0]  # of two runs
    assert (series.low[1], series.high[1]) == (0.0, 1.0)
    assert series.low[2] == pytest.approx(shares[2].mean - shares[2].ci95)
