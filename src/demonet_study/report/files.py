"""The files that ``demonet reproduce`` writes from a ledger: CSV files, tables, figures and the page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from demonet.atomic import replacing
from demonet.report.page import write
from demonet_study.experiments.rows import write_rows
from demonet_study.ledger.job import Cell, Result, Wanted
from demonet_study.ledger.store import Ledger
from demonet_study.ledger.work import WorkSummary
from demonet_study.report import chart_svg, markup
from demonet_study.report import parts as registry
from demonet_study.report.page import Extras, Rows, paper_page, part_charts, printed_rows
from demonet_study.report.parts.part import Part
from demonet_study.report.reasons import account, misses

RUNS, TIME, DEVICE = "runs behind these numbers", "their processor time", "device"


def write_files(
    ledger: Ledger, parts: Sequence[Part], out: Path, *, runs: int | None, quick: bool, summary: WorkSummary | None
) -> list[Path]:
    """Write the given parts from the runs in the ledger, and a page with these and every other part that has runs.

    Cells without runs are shown empty. ``runs`` and ``quick`` apply to the given parts; a part whose files exist
    already stays in full.
    """
    every = registry.PARTS.values()
    asked = {part.name: (runs, quick) for part in parts}
    ways = {
        part.name: asked.get(part.name, (None, quick and not (out / f"{part.name}.csv").exists())) for part in every
    }
    found = _results(ledger, ways)
    begun = [part for part in every if part in parts or any(found[part.name][one.cell] for one in _own(part, ways))]
    rows = {part.name: part.rows(found[part.name], *ways[part.name]) for part in begun}
    extras = {part.name: part.extra(part.entries(ways[part.name][1]), found[part.name]) for part in begun}
    tables: dict[str, Sequence[Any]] = {f"{part.name}.csv": rows[part.name] for part in parts}
    tables |= {name: some for part in parts for name, some in part.files(extras[part.name]).items()}
    written = []
    for name, some in tables.items():
        if some:  # some parts have no quick version
            unused = () if any(getattr(row, "rule", "") for row in some) else ("rule",)
            write_rows(some, out / name, without=("values", *unused))
            written.append(out / name)
    shown = {(r.job, r.stamp): r for results in found.values() for several in results.values() for r in several}
    facts = run_facts(list(shown.values()), summary)
    total = out / "tables" / "total.md"
    _write(total, f"{facts[RUNS]} runs, {facts[TIME]} of processor time; devices: {facts[DEVICE]}.\n")
    return [*written, total, *write_paper(rows, out, facts=facts, extras=extras)]


def write_paper(rows: Rows, out: Path, *, facts: Mapping[str, Any], extras: Extras | None = None) -> list[Path]:
    """Write ``tables/<part>.md`` and ``.tex``, ``figures/<name>.svg`` and ``paper.html`` into the folder ``out``.

    With both Tables 4 and 5 there are also ``tables/readme.md``, the short table of results, and
    ``tables/account.md``, which lists where the presets do not match the paper, and why.

    ``rows`` are in the order of the page, ``facts`` are names with a text or number each. Returns the files, the page
    last.
    """
    rows, extras = {name: list(members) for name, members in rows.items() if members}, extras or {}
    files = {}
    for name, members in rows.items():
        part = registry.PARTS[name]
        files[out / "tables" / f"{name}.md"] = markup.markdown(part.layout, members, part.title)
        files[out / "tables" / f"{name}.tex"] = markup.latex(name, part.layout, members, part.title)
    if "nodes" in rows and "graphs" in rows:
        files[out / "tables" / "readme.md"] = markup.readme(rows["nodes"], rows["graphs"], rows.get("default", ()))
        files[out / "tables" / "account.md"] = account(misses(printed_rows(rows)))
    for charts in part_charts(rows, extras).values():
        files |= {out / "figures" / f"{name}.svg": chart_svg.draw(chart) for name, chart in charts.items()}
    for path, content in files.items():
        _write(path, content)
    write(paper_page(rows, facts=facts, extras=extras), out / "paper.html")
    return [*files, out / "paper.html"]


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        draft.write_text(content, encoding="utf-8", newline="\n")


def _own(part: Part, ways: Mapping[str, tuple[int | None, bool]]) -> list[Wanted]:
    """What a part runs itself: cells that it borrows from others do not begin it."""
    return part.wanted(*ways[part.name], own=True)


def _results(ledger: Ledger, ways: Mapping[str, tuple[int | None, bool]]) -> dict[str, dict[Cell, list[Result]]]:
    """The runs of every part, no more of a cell than are wanted; ``ways`` has (runs, quick) for each part."""
    wanted = {name: registry.PARTS[name].wanted(*way) for name, way in ways.items()}
    enough: dict[Cell, int] = {}  # a cell has the same stamp in all parts that show it
    for one in (one for several in wanted.values() for one in several):
        enough[one.cell] = max(one.runs, enough.get(one.cell, 0))
    found = {}
    for name, several in wanted.items():
        results = ledger.results((one.cell for one in several), registry.PARTS[name].device, enough)
        found[name] = {one.cell: results[one.cell][: one.runs] for one in several}
    return found


def run_facts(shown: Sequence[Result], summary: WorkSummary | None) -> dict[str, str]:
    """What the top of the page says about the runs."""
    versions = [json.loads(text) for text in _distinct(result.stamp.libraries for result in shown)]
    found = {RUNS: f"{len(shown):,}", TIME: duration(sum(result.outcome.seconds for result in shown))}
    if summary:
        found["made by the last command"] = f"{summary.runs:,} in {duration(summary.seconds)}"
    found[DEVICE] = ", ".join(_distinct(result.stamp.device for result in shown))
    codes = _distinct(result.stamp.code for result in shown)
    found["code"] = ", ".join(codes) if len(codes) < 2 else f"{len(codes)} versions; each cell's in its CSV"
    for library in dict.fromkeys(name for version in versions for name in version):
        found[library] = ", ".join(_distinct(version.get(library, "none") for version in versions))
    return found


def duration(seconds: float) -> str:
    """A duration in its two largest units.

    >>> duration(0.4), duration(75), duration(8000), duration(200000)
    ('0 s', '1 min 15 s', '2 h 13 min', '2 d 7 h')
    """
    whole = round(seconds)
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    for (name, size), (below, part) in pairwise(units):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {name}" + (f" {rest} {below}" if rest else "")
    return f"{whole} s"


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
