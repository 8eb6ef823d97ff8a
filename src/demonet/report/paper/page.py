"""The paper's experiments as a reader meets them: one page, and the same tables and figures as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demonet.atomic import replacing
from demonet.experiments.hypotheses import answers, verdicts
from demonet.experiments.parts import PARTS
from demonet.report import chart_plotly, chart_svg
from demonet.report.cells import Beside, Verdict
from demonet.report.chart import Chart
from demonet.report.page import Facts, Figure, Legend, Page, Section, Text, write
from demonet.report.paper import account, figures, markup
from demonet.report.paper.account import misses
from demonet.report.paper.claims import claim_sections
from demonet.report.paper.grid import beside, verdict
from demonet.report.paper.identity import NOWHERE, Landed, distances_table, identity_charts
from demonet.report.paper.tables import (
    against_best_table,
    changes_table,
    count_table,
    miss_sections,
    part_tables,
    rank_note,
    ranked,
)
from demonet.report.paper.words import OURS, group_of, row_name, slug

if TYPE_CHECKING:
    from demonet.experiments.parts.row import Row

TITLE = "DEMO-Net, reproduced"
SUBTITLE = "The experiments of Wu, He and Xu (KDD'19), every cell beside the printed one, with floors"
READING = """Every number is a mean over runs. Run i of every method has split i and seed i, so that methods are \
compared run by run. What is chosen (an epoch, a setting) is chosen on the validation part; the test part is looked at \
once. Floors are simple models without a network: some know the degree, some local structure or the attributes \
alone, some add the neighbours' attributes or count Weisfeiler-Lehman colours. A network that is below them has not \
shown that it is needed.

A cell is tinted and marked by how our mean lies to the number that the paper prints. Two deviations are those of the \
runs, ours or the printed ones, whichever is larger; what rounding to three digits could have made counts as equal. A \
cell that was not run is empty and says so; one with fewer runs than wanted says how many it has. A click on the head \
of a column sorts it, and a second click turns it round."""
SAMPLE = "ours, mean ± standard deviation; below it, what the paper prints"
MEANING: dict[Verdict, str] = {
    "same": "the printed mean is inside our 95\u00a0% interval",
    "near": "less than two standard deviations away",
    "above": "we are above by more than that",
    "below": "we are below by more than that",
}


def write_paper(
    rows: Mapping[str, Sequence[Row]], out: Path, *, facts: Mapping[str, Any], landed: Landed = NOWHERE
) -> list[Path]:
    """Write ``tables/<part>.md`` and ``.tex``, ``figures/<name>.svg`` and ``paper.html`` below ``out``.

    With both Tables 4 and 5 there is also ``tables/readme.md``, the short table of results, and ``tables/account.md``,
    which says where the presets do not match the paper, and why.

    Args:
        rows: The rows of each part, in the order of the page.
        out: A folder.
        facts: What the head of the page says: names with a text or number each.
        landed: What the identity part shows beside its rows.

    Returns:
        What was written, the page last.
    """
    told = {part: list(members) for part, members in rows.items() if members}
    files = {}
    for part, members in told.items():
        title = part_title(part)
        files[out / "tables" / f"{part}.md"] = markup.markdown(part, members, title)
        files[out / "tables" / f"{part}.tex"] = markup.latex(part, members, title)
    if "nodes" in told and "graphs" in told:
        files[out / "tables" / "readme.md"] = markup.readme(told["nodes"], told["graphs"])
        files[out / "tables" / "account.md"] = account.markdown(misses(printed_tables(told)))
    for name, chart in charts(told, landed).items():
        files[out / "figures" / f"{name}.svg"] = chart_svg.draw(chart)
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            draft.write_text(content, encoding="utf-8", newline="\n")
    write(paper_page(told, facts=facts, landed=landed), out / "paper.html")
    return [*files, out / "paper.html"]


def charts(rows: Mapping[str, Sequence[Row]], landed: Landed = NOWHERE) -> dict[str, Chart]:
    """The figures that can be drawn, by name."""
    found: dict[str, Chart | None] = {}
    for part, members in rows.items():
        if part == "splits":
            found[part] = figures.splits(members)
        elif part == "layers":
            found[part] = figures.layers(members)
        elif part == "ablation":
            for preset, changed in _by_preset(members).items():
                found[slug(f"{part} {preset}")] = figures.ablation(changed)
        elif part == "speed":
            found[part] = figures.speed(members)
        elif part == "identity":
            found |= {slug(f"{part} {graph}"): chart for graph, chart in identity_charts(landed.pictures).items()}
        elif part in ("nodes", "graphs"):
            compared = _paper_splits(members)
            average = ranked(compared)
            ours = [row_name(row) for row in compared if group_of(row.method) == OURS]
            found[f"{part}-ranks"] = figures.ranks(average.ranks, ours, average.sets, rank_note(compared, average))
    return {name: chart for name, chart in found.items() if chart is not None}


def paper_page(rows: Mapping[str, Sequence[Row]], *, facts: Mapping[str, Any], landed: Landed = NOWHERE) -> Page:
    """The page."""
    drawn = charts(rows, landed)
    found = answers([row for members in rows.values() for row in members])
    sections: list[Section] = [
        Facts(facts),
        Text(READING, title="How to read this page", anchor="reading"),
        Legend(SAMPLE, MEANING, _example(printed_tables(rows))),
        _summary(rows),
        *claim_sections(verdicts(found), found),
    ]
    for part, members in rows.items():
        sections += _part(part, members, drawn, landed)
    sections += miss_sections(misses(printed_tables(rows)))
    return Page(TITLE, SUBTITLE, sections, contents=True)


def _part(part: str, rows: Sequence[Row], drawn: Mapping[str, Chart], landed: Landed) -> list[Section]:
    protocol = PARTS[part].protocol if part in PARTS else ""
    pictures = [_figure(name, chart) for name, chart in drawn.items() if name.partition("-")[0] == part]
    tables = part_tables(part, rows)
    if part in ("nodes", "graphs"):  # a table in the paper
        shown = [*tables, against_best_table(_paper_splits(rows), anchor=f"{part}-best"), *pictures]
    elif part == "ablation":
        kinds = [changes_table(some, anchor=f"{part}-{slug(name)}-kinds") for name, some in _by_preset(rows).items()]
        shown = [*kinds, *pictures, *tables]
    elif part == "identity":
        shown = [*pictures, *tables, distances_table(landed.distances, anchor=f"{part}-distances")]
    else:
        shown = [*pictures, *tables]
    return [Text(protocol, title=part_title(part), anchor=part), *(section for section in shown if section)]


def _by_preset(rows: Sequence[Row]) -> dict[str, list[Row]]:
    presets = dict.fromkeys(row.preset for row in rows)
    return {preset: [row for row in rows if row.preset == preset] for preset in presets}


def _figure(name: str, chart: Chart) -> Section:
    drawn = chart_plotly.draw(chart)
    return Figure(drawn, chart.alt, chart.note, title=chart.title, anchor=f"{name}-figure", below=True)


def printed_tables(rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The rows of Tables 4 and 5, which are those with printed numbers; other parts show some of them again."""
    return [row for part in ("nodes", "graphs") for row in rows.get(part, ())]


def _example(rows: Sequence[Row]) -> Beside | None:
    """The first cell that has both our runs and a printed number."""
    return next((beside(row) for row in rows if verdict(row)), None)


def _summary(rows: Mapping[str, Sequence[Row]]) -> Section:
    every = printed_tables(rows)
    kinds = {
        "DEMO-Net, preset paper": [row for row in every if row.preset == "paper"],
        "DEMO-Net, preset authors": [row for row in every if row.preset == "authors"],
        "baselines": [row for row in every if not row.preset],
    }
    return count_table(kinds, anchor="summary", title="How many cells agree")


def _paper_splits(rows: Sequence[Row]) -> list[Row]:
    """The rows under the paper's own protocol; folds are a second table, of fewer methods."""
    return [row for row in rows if not row.split.startswith("nested:")]


def part_title(part: str) -> str:
    """What stands above a part."""
    return PARTS[part].title if part in PARTS else part.capitalize()
