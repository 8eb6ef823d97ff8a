"""The page of ``demonet bench``, and its running-time figure as an image for the docs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from demonet.report import chart_plotly
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.page import Facts, Figure, Page, Section, Table, Text
from demonet.report.palette import CATEGORICAL
from demonet.report.table_cells import Cell, Column
from demonet_study.bench.measure import Row, best, slope
from demonet_study.bench.methods import METHODS, OURS
from demonet_study.report import chart_svg

MEASURED = """An epoch is the forward pass, the cross-entropy over all nodes, the backward pass and a step of Adam. \
Every network has two layers of width 64 and a linear head, ReLU, no dropout, and gets its input in the format listed. \
Work that is needed only once (sorting, normalising, the constant part of a first layer) is done before and counted as \
setup. The networks take turns, round after round; the table has the median of the rounds, with the quartiles.

The lower bound is the least amount of data that our networks must move through memory, divided by the measured \
bandwidth of a plain copy: once with every layer as a separate function, once (one-step) without storing anything that \
only one node needs. On graphs that fit into a cache it says little."""

MOST = 17
"""Lines in one panel; more are divided by their kind."""
_KINDS = {
    "ours": "DEMO-Net and others",
    "peer": "DEMO-Net and others",
    "no messages": "DEMO-Net and others",
    "module": "DEMOConv in a module of your own",
    "preset": "Presets, as the package trains them",
}
_SHAPES = {"drop": "With dropout", "norm": "With normalisation and dropout"}


def bench_page(rows: Sequence[Row]) -> Page:
    """Time by number of nodes, and a table for each graph and precision."""
    first = rows[0]
    facts: dict[str, Cell] = {
        "device": first.device,
        "threads": first.threads,
        "versions": first.versions,
        "command": first.command,
    }
    figures = [_figure(rows, precision) for precision in dict.fromkeys(row.precision for row in rows)]
    keys = dict.fromkeys((row.graph, row.nodes, row.precision) for row in rows)
    tables = [epochs_table([row for row in rows if (row.graph, row.nodes, row.precision) == key]) for key in keys]
    title = "Time per epoch"
    return Page(title, f"DEMO-Net and its peers on {first.device}", [Text(MEASURED), *figures, *tables, Facts(facts)])


def running_time(rows: Sequence[Row], title: str) -> str:
    """The running-time figure of the paper from these rows, as an SVG."""
    return chart_svg.draw(_chart(rows, title))


def times_by_nodes(rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    """For each method the milliseconds of its fastest mode, by the number of nodes."""
    lines: dict[str, list[tuple[float, float]]] = {row.method: [] for row in rows}
    for nodes in sorted({row.nodes for row in rows}):
        for method, ms in best(row for row in rows if row.nodes == nodes).items():
            lines[method].append((nodes, ms))
    return lines


def _figure(rows: Sequence[Row], precision: str) -> Section:
    title = f"Time per epoch, {precision}"
    chart = _chart([row for row in rows if row.precision == precision], title)
    alt = "; ".join(
        f"{line.name}: {line.y[-1]:.3g} ms at {line.x[-1]:,.0f} nodes, slope {slope(line.x, line.y):.2f}"
        for panel in chart.panels
        for line in panel.series
    )
    caption = "Each method in its fastest mode. Solid lines are DEMO-Net, dashed lines are others."
    return Figure(chart_plotly.draw(chart), alt=f"{title}. {alt}.", caption=caption, title=title)


def _chart(rows: Sequence[Row], title: str) -> Chart:
    """The fastest mode of each method by the number of nodes; many methods are divided by their kind."""
    lines = {name: line for name, line in times_by_nodes(rows).items() if line}
    groups: dict[str, list[str]] = {}
    for name in lines:
        groups.setdefault(_group(name) if len(lines) > MOST else "", []).append(name)
    panels = [Panel(group, _series({name: lines[name] for name in names})) for group, names in groups.items()]
    x = Axis("number of nodes (twice as many random edges)", log=True)
    return Chart(title, panels, x, Axis("milliseconds per epoch", log=True), columns=1, end_labels=True)


def _group(name: str) -> str:
    """The panel of a method."""
    _, _, more = name.partition("+")
    return _SHAPES[more] if more in _SHAPES else _KINDS[METHODS[name].kind]


def _series(lines: Mapping[str, Sequence[tuple[float, float]]]) -> list[Series]:
    """A line for each method; no two have the same colour and dash pattern."""
    ours = [name for name in lines if METHODS[name].kind in ("ours", "module", "preset")]
    others = [name for name in lines if name not in ours]
    dashes = {name: 3 * (place // len(CATEGORICAL)) for place, name in enumerate(ours)}
    dashes |= {name: 1 + place // len(CATEGORICAL) for place, name in enumerate(others)}
    return [
        Series(
            name,
            [nodes for nodes, _ in lines[name]],
            [ms for _, ms in lines[name]],
            colour=place,
            symbol=place,
            dash=dashes[name],
            hover=[f"{name}\n{ms:.3g} ms, {nodes:,.0f} nodes" for nodes, ms in lines[name]],
        )
        for place, name in enumerate((*ours, *others))
    ]


def epochs_table(rows: Sequence[Row]) -> Table:
    """The rows of one graph and precision: times, their ratios to ours, memory, and lower bounds."""
    fastest = best(rows)
    ours = [name for name in OURS if name in fastest]
    columns = [Column("method"), Column("input"), Column("mode"), Column("ms", best="min"), Column("quartiles")]
    columns += [Column(f"of {name}", digits=2) for name in ours]
    columns += [Column("peak MiB", digits=0, best="min"), Column("setup ms", digits=0)]
    columns += [Column("of lower bound", digits=2), Column("of one-step bound", digits=2), Column("error")]
    cells = []
    for row in rows:
        spread = None if row.failed else f"{row.q1:.3g} to {row.q3:.3g}"
        line: list[Cell] = [row.method, METHODS[row.method].form, row.mode, _or_none(row.ms), spread]
        line += [_or_none(row.ms / fastest[name]) for name in ours]
        line += [_or_none(row.memory_mib), _or_none(row.setup_ms)]
        line += [_or_none(row.ms / row.floor_ms), _or_none(row.ms / row.step_floor_ms), row.error]
        cells.append(line)
    first = rows[0]
    title = f"{first.graph}, {first.nodes:,} nodes, {first.arcs:,} edges, {first.precision}"
    caption = f"{first.degrees:,} distinct degrees, maximum {first.largest:,}. Ratios are to the fastest mode of ours."
    return Table(columns, cells, caption, title=title)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
