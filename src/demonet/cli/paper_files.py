"""What ``demonet reproduce`` writes: a CSV for each part, and all that is made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from demonet.atomic import replacing
from demonet.cli.run_bar import duration
from demonet.experiments import parts as paper
from demonet.experiments.parts.identity import ROLES, distances
from demonet.experiments.rows import write_rows
from demonet.report.paper.identity import Landed, Picture
from demonet.report.paper.page import write_paper
from demonet.report.paper.words import method_name

if TYPE_CHECKING:
    from demonet.experiments.ledger.job import Cell, Result
    from demonet.experiments.ledger.store import Ledger
    from demonet.experiments.ledger.work import Worked
    from demonet.experiments.parts import Part
    from demonet.experiments.parts.part import Entry

Results = Mapping["Cell", Sequence["Result"]]
RUNS, TIME, DEVICE = "runs behind these numbers", "their processor time", "device"


def write_files(
    ledger: Ledger, parts: Sequence[Part], out: Path, *, runs: int | None, quick: bool, worked: Worked | None
) -> list[Path]:
    """Write these parts from what is in the ledger; the page has every other part too of which something was run.

    A cell that has no run is there, and empty. ``runs`` and ``quick`` are for these parts; once there are tables of
    another, it stays whole.
    """
    every = paper.PARTS.values()
    asked = {part.name: (runs, quick) for part in parts}
    ways = {part.name: asked.get(part.name, (None, quick and not _written(out, part))) for part in every}
    found = _found(ledger, ways)
    begun = [part for part in every if part in parts or any(found[part.name].values())]
    rows = {part.name: part.rows(found[part.name], *ways[part.name]) for part in begun}
    tables = []
    for part in (part for part in parts if rows[part.name]):  # of some, nothing is quick
        write_rows(rows[part.name], out / f"{part.name}.csv", without=("values",))
        tables.append(out / f"{part.name}.csv")
    small = ROLES in begun and ways[ROLES.name][1]
    apart = distances(found[ROLES.name], small) if ROLES in begun else []
    if ROLES in parts and apart:
        write_rows(apart, out / "identity_distances.csv")
        tables.append(out / "identity_distances.csv")
    shown = {(r.job, r.stamp): r for results in found.values() for several in results.values() for r in several}
    landed = Landed(pictures(ROLES.entries(small), found[ROLES.name]) if ROLES in begun else {}, apart)
    said = facts(list(shown.values()), worked)
    return [*tables, _write_total(said, out), *write_paper(rows, out, facts=said, landed=landed)]


def _write_total(said: Mapping[str, str], out: Path) -> Path:
    """How many runs stand behind all tables and figures, and how long they took, for documents."""
    path = out / "tables" / "total.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        draft.write_text(
            f"{said[RUNS]} runs, {said[TIME]} of processor time; devices: {said[DEVICE]}.\n",
            encoding="utf-8",
            newline="\n",
        )
    return path


def _written(out: Path, part: Part) -> bool:
    return (out / f"{part.name}.csv").exists()


def _found(ledger: Ledger, ways: Mapping[str, tuple[int | None, bool]]) -> dict[str, dict[Cell, list[Result]]]:
    """What the ledger has of every part, no more runs of a cell than are wanted, by how many runs and whether quick."""
    wanted = {name: paper.PARTS[name].wanted(*way) for name, way in ways.items()}
    enough: dict[Cell, int] = {}  # a cell that several parts show has one stamp in all of them
    for one in (one for several in wanted.values() for one in several):
        enough[one.cell] = max(one.runs, enough.get(one.cell, 0))
    found = {}
    for name, several in wanted.items():
        results = ledger.results((one.cell for one in several), paper.PARTS[name].device, enough)
        found[name] = {one.cell: results[one.cell][: one.runs] for one in several}
    return found


def facts(shown: Sequence[Result], worked: Worked | None) -> dict[str, str]:
    """What the head of the page says about the runs behind it."""
    versions = [json.loads(text) for text in _distinct(result.stamp.libraries for result in shown)]
    found = {
        RUNS: f"{len(shown):,}",
        TIME: duration(sum(result.outcome.seconds for result in shown)),
    }
    if worked:
        found["of these in the last start"] = f"{worked.runs:,} in {duration(worked.seconds)}"
    found[DEVICE] = ", ".join(_distinct(result.stamp.device for result in shown))
    codes = _distinct(result.stamp.code for result in shown)
    found["code"] = ", ".join(codes) if len(codes) < 2 else f"{len(codes)} versions; each cell's in its CSV"
    for library in dict.fromkeys(name for version in versions for name in version):
        found[library] = ", ".join(_distinct(version.get(library, "none") for version in versions))
    return found


def pictures(entries: Iterable[Entry], results: Results) -> dict[str, dict[str, Picture]]:
    """The pictures of the identity part: of every graph and method, where the nodes of the first run landed.

    Networks come with their first weights and then trained, under one name here: the later picture stays.
    """
    found: dict[str, dict[str, Picture]] = {}
    for entry in entries:
        for result in results[entry.cell][:1]:
            features, _, _ = entry.variant.partition(", ")
            name = method_name(entry.cell.method, entry.cell.preset, features)
            extra = result.outcome.extra
            found.setdefault(entry.cell.dataset, {})[name] = {"xy": extra["points"], "roles": extra["roles"]}
    return found


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
