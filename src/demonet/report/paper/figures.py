"""The figures of the paper's Section 5 and ours, as charts: each from the rows of its part, none where none has run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from demonet.experiments.changes import on_sets
from demonet.experiments.parts.ablation import FULL
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.paper.grid import nodes_of
from demonet.report.paper.words import colour_of, method_name, set_name

if TYPE_CHECKING:
    from demonet.experiments.parts.row import Row
    from demonet.experiments.statistics import Difference


def splits(rows: Sequence[Row]) -> Chart | None:
    """Accuracy by the share of training nodes, a panel for each set, with 95 % bands."""
    return _lines(
        rows,
        lambda row: row.train_fraction,
        "Accuracy by the share of training nodes",
        Axis("training nodes", share=True),
        Axis("test accuracy"),
    )


def layers(rows: Sequence[Row]) -> Chart | None:
    """Accuracy by the number of hidden layers, a panel for each set."""
    return _lines(
        rows,
        lambda row: float(row.variant.removeprefix("layers=")),
        "Accuracy by the number of hidden layers",
        Axis("hidden layers"),
        Axis("test accuracy"),
        columns=2,
    )


def _lines(
    rows: Sequence[Row], across: Callable[[Row], float], title: str, x: Axis, y: Axis, columns: int = 3
) -> Chart | None:
    done = [row for row in rows if not math.isnan(row.mean)]
    if not done:
        return None
    panels = []
    walks = list(dict.fromkeys((row.method, row.preset) for row in done))
    for dataset in dict.fromkeys(row.dataset for row in done):
        here = [[row for row in done if (row.dataset, row.method, row.preset) == (dataset, *walk)] for walk in walks]
        series = [_walk(members, across, symbol) for symbol, members in enumerate(here) if members]
        panels.append(Panel(set_name(dataset), series))
    return Chart(title, panels, x, y, columns)


def _walk(rows: Sequence[Row], across: Callable[[Row], float], symbol: int) -> Series:
    """A method over an axis; an interval that is not known yet, or of two runs, wider than the axis, is a point."""
    walk = sorted(rows, key=across)
    half = [row.ci95 if row.runs > 2 else 0.0 for row in walk]
    first = walk[0]
    return Series(
        method_name(first.method, first.preset),
        [across(row) for row in walk],
        [row.mean for row in walk],
        [max(row.mean - width, 0.0) for row, width in zip(walk, half, strict=True)],
        [min(row.mean + width, 1.0) for row, width in zip(walk, half, strict=True)],
        colour=colour_of(first),
        symbol=symbol,
        hover=[
            f"{method_name(row.method, row.preset)}\n{row.mean:.3f} ± {row.ci95:.3f} (95 %), {row.runs} runs"
            for row in walk
        ],
    )


def ablation(rows: Sequence[Row]) -> Chart | None:
    """What each part of one model brings: paired differences of every variant from the full one, with intervals."""
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
    title = f"What each part brings: {method_name(rows[0].method, rows[0].preset)}"
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


def ranks(average: Mapping[str, float], ours: Sequence[str], sets: Sequence[str], note: str = "") -> Chart | None:
    """Average ranks of methods, best first."""
    known = sorted((rank, name) for name, rank in average.items() if not math.isnan(rank))
    if len(sets) < 2:  # on one set a rank says less than the table does
        return None
    names = {float(index): name for index, (_, name) in enumerate(known)}
    kinds = [
        (name, [index for index, (_, who) in enumerate(known) if (who in ours) is mine], mine)
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
    title = f"Average rank over {', '.join(sets)}; 1 is best"
    return Chart(title, [Panel("", series)], Axis("average rank"), Axis("", names=names), columns=1, note=note)


def speed(rows: Sequence[Row]) -> Chart | None:
    """Milliseconds of an epoch by the number of nodes, both logarithmic; one colour a method, one shape a form."""
    done = [row for row in rows if row.mean > 0]
    if not done:
        return None
    walks: dict[str, list[Row]] = {}
    for row in done:
        walks.setdefault(method_name(row.method, row.preset, row.variant), []).append(row)
    forms = list(dict.fromkeys(row.variant for row in done))
    series = [
        Series(
            name,
            [nodes_of(row) for row in walk],
            [row.mean for row in walk],
            colour=colour_of(walk[0]),
            symbol=forms.index(walk[0].variant),
            hover=[f"{name}\n{row.mean:.3g} ms at {nodes_of(row):,.0f} nodes" for row in walk],
        )
        for name, walk in walks.items()
    ]
    x = Axis("number of nodes (twice as many random edges)", log=True)
    return Chart("Time of an epoch", [Panel("", series)], x, Axis("milliseconds", log=True), columns=1)
