"""DEMO-Net with its settings changed: what each part brings, the number of layers, and reasons for other numbers.

Ablation: the same runs without a component or with another in its place. A change is compared run by run with the full
model, on each data set and over all sets of a kind. Its p is corrected by Holm for all changes of a model and all kinds
of sets, and needs every wanted run; until then a change has its difference and interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.page import Section, Table
from demonet.report.table_cells import Cell as TableCell
from demonet.runs.statistics import Difference, paired
from demonet.train.presets import Family
from demonet_study.experiments.accuracy import family_in_catalog
from demonet_study.experiments.statistics import LEVEL, Comparison, ratio_of, with_holm
from demonet_study.report.compare import accuracy_lines
from demonet_study.report.grid import Layout, ResultRow, cross, difference_cell, p_text
from demonet_study.report.names import kind_of, set_name, slug
from demonet_study.report.parts.part import Entry, Part, Rows, Shown, accuracy_cell
from demonet_study.report.parts.tables import GRAPH_SETS, NODE_SETS, PAPER_RUNS, printed

Options = dict[str, Any]
FULL = "full"
WITHOUT: dict[str, Options] = {
    f"without the {term} part": {"model": {"without": term}} for term in ("seed", "shared", "degree")
}
# The scheme weight has a matrix per task; the tasks determine which degrees share one.
TASKS: dict[str, Options] = {
    "exact tasks": {"model": {"scheme": "weight"}, "tasks": "exact"},
    "tasks by 8 quantiles": {"model": {"scheme": "weight"}, "tasks": "quantiles:8"},
    "tasks by powers of two": {"model": {"scheme": "weight"}, "tasks": "log2"},
}
POOLING: dict[str, Options] = {
    f"{pooling} pooling": {"model": {"pooling": pooling}} for pooling in ("mean", "sum", "degree")
}
# The degree as a feature: removed if the preset has it, added if it does not.
ENCODING: dict[tuple[str, Family], dict[str, Options]] = {
    ("paper", "nodes"): {"without degree encoding": {"features": "constant"}},
    ("paper", "attributes"): {"with degree encoding": {"features": "attributes+degree-onehot"}},
    ("paper", "graphs"): {"with degree encoding": {"features": "attributes+degree-onehot"}},
    ("default", "nodes"): {"without degree encoding": {"features": "constant"}},
    ("default", "attributes"): {"with degree encoding": {"features": "tfidf+degree-rbf"}},
    ("default", "graphs"): {"without degree encoding": {"features": "attributes"}},
}


# These changes of DEMO-Net (weight) are methods of Tables 4 and 5, so their runs are used here, too.
SMOOTH, MEAN = "smooth tasks", "mean pooling"
KNOWN = {SMOOTH: "demonet-smooth", MEAN: "demonet-m-weight"}


def from_paper(family: Family) -> dict[str, Options]:
    """The changes to DEMO-Net (weight) with the preset ``paper``."""
    buckets = {words: {"tasks": options["tasks"]} for words, options in TASKS.items() if words != "exact tasks"}
    found: dict[str, Options] = {FULL: {}, **WITHOUT, SMOOTH: {}, **buckets}
    if family == "graphs":
        found |= {MEAN: {}, "sum pooling": POOLING["sum pooling"]}
    return found | ENCODING["paper", family]


def from_default(family: Family) -> dict[str, Options]:
    """The changes to the default."""
    found: dict[str, Options] = {FULL: {}, **WITHOUT, **TASKS}
    if family == "graphs":
        found |= POOLING
    return found | ENCODING["default", family]


def _changes(sets: Sequence[str], runs: int) -> list[Entry]:
    found = []
    for dataset in sets:
        family = family_in_catalog(dataset)
        for words, options in from_paper(family).items():
            cell = accuracy_cell(dataset, KNOWN.get(words, "demonet-weight"), "paper", options)
            found.append(Entry(cell, runs, words, method="demonet-weight"))
        for words, options in from_default(family).items():
            found.append(Entry(accuracy_cell(dataset, "demonet-default", "default", options), runs, words))
    return found


def on_sets(rows: Rows) -> dict[tuple[str, str], Difference]:
    """The difference of each change from the full model, by (change, data set), where both have at least two runs."""
    full = {row.dataset: row.values for row in rows if row.variant == FULL}
    return {
        (row.variant, row.dataset): paired(row.values, full[row.dataset], ratio_of(row.split))
        for row in rows
        if row.variant != FULL and min(len(row.values), len(full.get(row.dataset, ()))) > 1
    }


def over_kinds(rows: Rows) -> list[Comparison]:
    """Every change of one model against the full model, over every kind of data sets to which it applies."""
    found = on_sets(rows)
    lacking = {(row.variant, row.dataset) for row in rows if not row.whole}
    changes = []
    for variant in dict.fromkeys(row.variant for row in rows if row.variant != FULL):
        sets = [row.dataset for row in rows if row.variant == variant]
        for kind in dict.fromkeys(map(kind_of, sets)):
            compared = {
                name: (found.get((variant, name)), lacking.isdisjoint({(variant, name), (FULL, name)}))
                for name in sets
                if kind_of(name) == kind
            }
            changes.append(Comparison.over_sets(variant, FULL, kind, compared))
    return with_holm(changes)


def changes_table(rows: Rows, *, anchor: str) -> Section | None:
    """The effect of each change of one model over the data sets of a kind."""
    found = {(one.subject, one.over): one for one in over_kinds(rows)}
    if not found:
        return None
    columns, cells = cross("what is changed", {key: _brings(one) for key, one in found.items()})
    kinds = dict.fromkeys(kind for _, kind in found)
    members = {kind: list(dict.fromkeys(row.dataset for row in rows if kind_of(row.dataset) == kind)) for kind in kinds}
    caption = (
        "Mean difference in test accuracy from the full model, paired by split, with equal weight for each data set, "
        "± half its 95 % interval by the corrected resampled t-test. p is corrected by Holm over the whole table. "
        f"▲ and ▼: p below {LEVEL}. "
        + " ".join(f"{kind.capitalize()}: {', '.join(map(set_name, sets))}." for kind, sets in members.items())
    )
    title = f"Over the sets of a kind: {rows[0].name}"
    return Table(columns, cells, caption, sortable=True, title=title, anchor=anchor, below=True)


def _brings(found: Comparison) -> TableCell:
    note = f"p {p_text(found.corrected)}"
    if found.missing:
        note = f"{', '.join(map(set_name, found.missing))}: runs missing" if found.difference else ""
    return difference_cell(found, note)


def _chart(rows: Rows) -> Chart | None:
    """Paired differences of every change of one model from the full model, with intervals; a panel per data set."""
    found = on_sets(rows)
    if not found:
        return None
    variants = list(dict.fromkeys(row.variant for row in rows if row.variant != FULL))
    panels = []
    for dataset in dict.fromkeys(dataset for _, dataset in found):
        points = [(float(i), found[name, dataset]) for i, name in enumerate(variants) if (name, dataset) in found]
        panels.append(Panel(set_name(dataset), [_differences(points, variants)]))
    x = Axis("difference of accuracy from the full model, run by run")
    y = Axis("", names={float(i): name for i, name in enumerate(variants)})
    title = f"What each part brings: {rows[0].name}"
    return Chart(title, panels, x, y, columns=4, origin=0.0, legend=False)


def _differences(points: Sequence[tuple[float, Difference]], variants: Sequence[str]) -> Series:
    return Series(
        "difference from the full model",
        [found.mean for _, found in points],
        [place for place, _ in points],
        [found.low for _, found in points],
        [found.high for _, found in points],
        mark="intervals",
        colour=0,
        hover=[
            f"{variants[int(place)]}\n{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f}), {found.runs} runs"
            for place, found in points
        ],
    )


def _by_preset(rows: Rows) -> dict[str, list[ResultRow]]:
    presets = dict.fromkeys(row.preset for row in rows)
    return {preset: [row for row in rows if row.preset == preset] for preset in presets}


def _sections(shown: Shown) -> list[Section | None]:
    kinds = [
        changes_table(rows, anchor=f"ablation-{slug(name)}-kinds") for name, rows in _by_preset(shown.rows).items()
    ]
    return [*kinds, *shown.figures, *shown.tables]


ABLATION = Part(
    "ablation",
    "What each part brings",
    "One change at a time to DEMO-Net (weight) with the preset `paper`, and to the default, on the paper's splits. A "
    "part that is left out is set to zero and not learned; widths stay the same.",
    lambda: _changes((*NODE_SETS, *GRAPH_SETS), PAPER_RUNS),
    lambda: _changes(("brazil", "MUTAG"), 2),
    layout=Layout(
        lambda row: row.name, lambda row: set_name(row.dataset), lambda row: row.variant, head="what is changed"
    ),
    charts=lambda rows, _: {slug(f"ablation {preset}"): _chart(some) for preset, some in _by_preset(rows).items()},
    sections=_sections,
)


COUNTS = (1, 2, 3, 4, 5, 6)
PRESETS_HAVE = 2  # so the runs of Tables 4 and 5 are used here, too
LAYERED = (("demonet-hash", "paper"), ("demonet-weight", "paper"), ("demonet-default", "default"))


def _layers(sets: Sequence[str], layers: Sequence[int], runs: int) -> list[Entry]:
    return [_with_layers(dataset, *method, count, runs) for dataset in sets for method in LAYERED for count in layers]


def _with_layers(dataset: str, method: str, preset: str, layers: int, runs: int) -> Entry:
    options: Options = {} if layers == PRESETS_HAVE else {"model": {"layers": layers}}
    return Entry(accuracy_cell(dataset, method, preset, options), runs, f"layers={layers}")


def _count(row: ResultRow) -> str:
    return row.variant.removeprefix("layers=")


LAYERS = Part(
    "layers",
    "Number of hidden layers",
    "One to six hidden layers, with all other settings as in the preset, on the paper's splits. The published paper "
    "has no such study. Its source has one, commented out: on Facebook more layers help up to four, on MUTAG two are "
    "best.",
    lambda: _layers(("facebook", "MUTAG"), COUNTS, PAPER_RUNS),
    lambda: _layers(("MUTAG",), (1, 2, 4), 2),
    layout=Layout(lambda row: set_name(row.dataset), _count),
    charts=lambda rows, _: {
        "layers": accuracy_lines(
            rows,
            lambda row: float(_count(row)),
            "Accuracy by the number of hidden layers",
            Axis("hidden layers"),
            columns=2,
        )
    },
)


AS_PUBLISHED = "as published"
MEANS, NO_LABELS, TEN_EPOCHS = "means over neighbours", "nodes without labels", "ten epochs"
# Data sets, methods, and the changes to the preset `paper`.
CHANGED: tuple[tuple[tuple[str, ...], tuple[str, ...], dict[str, dict[str, Any]]], ...] = (
    (("blogcatalog", "flickr"), ("demonet-hash",), {AS_PUBLISHED: {}, MEANS: {"model": {"aggr": "mean"}}}),
    (
        ("PROTEINS",),
        ("demonet-m-hash", "demonet-m-weight"),
        {AS_PUBLISHED: {}, NO_LABELS: {"features": "constant"}, TEN_EPOCHS: {"train": {"epochs": 10}}},
    ),
)


def _reasons() -> list[Entry]:
    return [
        Entry(accuracy_cell(dataset, method, "paper", options), PAPER_RUNS, words, *printed(dataset, method))
        for sets, methods, changes in CHANGED
        for method in methods
        for words, options in changes.items()
        for dataset in sets
    ]


REASONS = Part(
    "reasons",
    "What the reasons were measured by",
    "Cells of the preset `paper` that do not match the paper: as in Tables 4 and 5, and with one setting changed that "
    "the paper may have chosen otherwise, on the same splits. The next section gives the reasons.",
    _reasons,
    list,
    layout=Layout(line=lambda row: row.full_name, best=None),
)
