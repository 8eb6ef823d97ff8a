"""Comparisons that several parts show: differences from the best baseline, average ranks, accuracy along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from demonet.data.catalog import CATALOG
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.page import Section, Table
from demonet.report.table_cells import Cell
from demonet_study.experiments.statistics import LEVEL, Ranks, against_best, average_ranks, ratio_of
from demonet_study.report.grid import ResultRow, cross, difference_cell, p_text
from demonet_study.report.names import BY_DEGREE, OURS, colour_of, group_of, kind_of, set_name


def under_paper_splits(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows under the paper's own protocol, without nested folds."""
    return [row for row in rows if not row.split.startswith("nested:")]


def against_best_table(rows: Sequence[ResultRow], *, anchor: str) -> Section | None:
    """Each of our methods against the best baseline of each data set, floors included, on the same splits."""
    cells: dict[tuple[str, str], Cell] = {}
    for dataset in dict.fromkeys(row.dataset for row in rows):
        here = [row for row in rows if row.dataset == dataset]
        ours = [row for row in here if group_of(row.method) == OURS]
        rivals = [row for row in here if row not in ours and row.whole]
        values = {row.name: row.values for row in (*ours, *rivals)}
        for one in against_best(values, [row.name for row in rivals], ratio_of(here[0].split)):
            note = f"p {p_text(one.corrected)}, {one.rival}"
            cells[one.subject, set_name(dataset)] = difference_cell(one, note)
    if not cells:
        return None
    columns, lines = cross("method", cells, difference_cell(None))
    caption = (
        "Mean difference in test accuracy from the best baseline of each data set, floors included, paired by split, "
        "± half its 95 % interval by the corrected resampled t-test. p is corrected by Holm over all comparisons on a "
        f"data set. ▲ and ▼: p below {LEVEL}."
    )
    title = "Against the best baseline"
    return Table(columns, lines, caption, sortable=True, title=title, anchor=anchor, below=True)


def ranked(rows: Sequence[ResultRow]) -> Ranks:
    """Average ranks over the data sets, of the methods that apply to all of them."""
    sets = list(dict.fromkeys(row.dataset for row in rows))
    means = {
        name: {row.name: row.mean if row.whole else math.nan for row in rows if row.dataset == name} for name in sets
    }
    methods = [name for name in dict.fromkeys(row.name for row in rows) if all(name in means[each] for each in sets)]
    return average_ranks({set_name(name): means[name] for name in sets}, methods)


def rank_chart(rows: Sequence[ResultRow]) -> Chart | None:
    """Average ranks of the methods under the paper's splits, best first."""
    rows = under_paper_splits(rows)
    found = ranked(rows)
    ours = {row.name for row in rows if group_of(row.method) == OURS}
    known = sorted((rank, name) for name, rank in found.ranks.items() if not math.isnan(rank))
    if len(found.sets) < 2:  # on one data set, ranks say less than the table
        return None
    names = {float(index): name for index, (_, name) in enumerate(known)}
    kinds = [
        (name, [index for index, (_, method) in enumerate(known) if (method in ours) is mine], mine)
        for name, mine in (("DEMO-Net", True), ("others", False))
    ]
    series = [
        Series(
            name,
            [known[index][0] for index in places],
            [float(index) for index in places],
            mark="intervals",
            colour=0 if mine else None,
            symbol=0 if mine else 1,
            hover=[f"{known[index][1]}\naverage rank {known[index][0]:.2f}" for index in places],
        )
        for name, places, mine in kinds
        if places
    ]
    title = f"Average rank over {', '.join(found.sets)}; 1 is best"
    y = Axis("", names=names)
    return Chart(title, [Panel("", series)], Axis("average rank"), y, columns=1, note=_rank_note(rows, found))


def _rank_note(rows: Sequence[ResultRow], found: Ranks) -> str:
    """Which methods are not ranked, which data sets say little, and the result of Friedman's test."""
    aside = [name for name in dict.fromkeys(row.name for row in rows) if name not in found.ranks]
    sets = {row.dataset for row in rows}
    checks = [set_name(name) for name in CATALOG if name in sets and kind_of(name) == BY_DEGREE]
    sentences = {
        f"Not ranked, because they do not apply to all of these data sets: {', '.join(aside)}.": aside,
        f"{' and '.join(checks)}: a sanity check, not evidence.": checks,
        f"Friedman's test of no difference: p {p_text(found.friedman)}.": not math.isnan(found.friedman),
    }
    return " ".join(sentence for sentence, holds in sentences.items() if holds)


def accuracy_lines(
    rows: Sequence[ResultRow], x_of: Callable[[ResultRow], float], title: str, x: Axis, columns: int = 3
) -> Chart | None:
    """Test accuracy of each method along an axis, with 95 % bands; a panel per data set."""
    done = [row for row in rows if not math.isnan(row.mean)]
    if not done:
        return None
    panels = []
    methods = list(dict.fromkeys((row.method, row.preset) for row in done))
    for dataset in dict.fromkeys(row.dataset for row in done):
        here = [[row for row in done if (row.dataset, row.method, row.preset) == (dataset, *one)] for one in methods]
        series = [_accuracy_series(members, x_of, symbol) for symbol, members in enumerate(here) if members]
        panels.append(Panel(set_name(dataset), series))
    return Chart(title, panels, x, Axis("test accuracy"), columns)


def _accuracy_series(rows: Sequence[ResultRow], x_of: Callable[[ResultRow], float], symbol: int) -> Series:
    """One method. With fewer than three runs the interval would be wider than the axis, so it is not drawn."""
    line = sorted(rows, key=x_of)
    half = [row.ci95 if row.runs > 2 else 0.0 for row in line]
    return Series(
        line[0].name,
        [x_of(row) for row in line],
        [row.mean for row in line],
        [max(row.mean - width, 0.0) for row, width in zip(line, half, strict=True)],
        [min(row.mean + width, 1.0) for row, width in zip(line, half, strict=True)],
        colour=colour_of(line[0].method),
        symbol=symbol,
        hover=[f"{row.name}\n{row.mean:.3f} ± {row.ci95:.3f} (95 %), {row.runs} runs" for row in line],
    )
