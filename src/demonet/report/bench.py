"""The bench as a page, and its running-time figure as an image for the documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from demonet.bench.methods import METHODS
from demonet.bench.rows import Row
from demonet.bench.tables import OURS, best, slope
from demonet.report.cells import Cell, Column
from demonet.report.figures import SYMBOLS, finish, plain
from demonet.report.log_chart import log_chart
from demonet.report.page import Facts, Figure, Page, Section, Table, Text
from demonet.report.palette import NEUTRAL, colour

if TYPE_CHECKING:
    from plotly import graph_objects as go

MEASURED = """An epoch is the forward pass, the cross-entropy over all nodes, the backward pass and a step of Adam. \
Every network has two layers of width 64 and a linear head, ReLU, no dropout, and gets its input in the form named \
beside it; what can be done once (sorting, normalising, the constant part of a first layer) is done before and counted \
as setup. All networks take turns, round after round; the table has the median of the rounds, with the quartiles.

The floor is what our networks must move through memory at the least, over the measured speed of a plain copy: once \
with every layer a function of its own, once with nothing stored that only one node needs. On graphs that fit into a \
cache it says little."""


def bench_page(rows: Sequence[Row]) -> Page:
    """Time by size, and a table for each graph and precision."""
    first = rows[0]
    facts: dict[str, Cell] = {
        "device": first.device,
        "threads": first.threads,
        "versions": first.versions,
        "command": first.command,
    }
    figures = [_figure(rows, precision) for precision in dict.fromkeys(row.precision for row in rows)]
    keys = dict.fromkeys((row.graph, row.nodes, row.precision) for row in rows)
    tables = [_table([row for row in rows if (row.graph, row.nodes, row.precision) == key]) for key in keys]
    title = "How long an epoch takes"
    return Page(title, f"DEMO-Net and its peers on {first.device}", [Text(MEASURED), *figures, *tables, Facts(facts)])


def running_time(rows: Sequence[Row], title: str) -> str:
    """The running-time figure of the paper with these rows, as an SVG: the fastest mode of each method, by nodes."""
    lines = times_by_nodes(rows)
    axes = ("number of nodes (twice as many random edges)", "milliseconds per epoch")
    return log_chart(lines, title=title, axes=axes, highlight=OURS)


def times_by_nodes(rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    """For each method the milliseconds of its fastest mode at each number of nodes."""
    lines: dict[str, list[tuple[float, float]]] = {row.method: [] for row in rows}
    for nodes in sorted({row.nodes for row in rows}):
        for method, ms in best(row for row in rows if row.nodes == nodes).items():
            lines[method].append((nodes, ms))
    return lines


def _figure(rows: Sequence[Row], precision: str) -> Section:
    lines = times_by_nodes([row for row in rows if row.precision == precision])
    alt = "; ".join(
        f"{name}: {line[-1][1]:.3g} ms at {line[-1][0]:,.0f} nodes, slope {slope(*zip(*line, strict=True)):.2f}"
        for name, line in lines.items()
        if line
    )
    title = f"Time per epoch, {precision}"
    return Figure(_lines(lines, title), alt=f"{title}. {alt}.", caption="Each method in its fastest mode.", title=title)


def _lines(lines: dict[str, list[tuple[float, float]]], title: str) -> go.Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    for index, (name, line) in enumerate(lines.items()):
        ours = name in OURS
        style = {"color": colour(OURS.index(name)) if ours else NEUTRAL[0], "width": 3 if ours else 1.5}
        figure.add_scatter(
            x=[nodes for nodes, _ in line],
            y=[ms for _, ms in line],
            mode="lines+markers",
            line=style,
            marker={"symbol": SYMBOLS[index % len(SYMBOLS)], "size": 7},
            name=plain(name),
            hovertemplate=f"{plain(name)}<br>%{{y:.3~g}} ms, %{{x:,}} nodes<extra></extra>",
        )
    figure.update_xaxes(type="log", title_text="nodes", dtick=1)
    figure.update_yaxes(type="log", title_text="ms per epoch", dtick=1)
    return finish(figure, title, height=520)


def _table(rows: Sequence[Row]) -> Section:
    fastest = best(rows)
    ours = [name for name in OURS if name in fastest]
    columns = [Column("method"), Column("input"), Column("mode"), Column("ms", best="min"), Column("quartiles")]
    columns += [Column(f"of {name}", digits=2) for name in ours]
    columns += [Column("peak MiB", digits=0, best="min"), Column("setup ms", digits=0)]
    columns += [Column("of floor", digits=2), Column("of one-step floor", digits=2), Column("why not")]
    cells = []
    for row in rows:
        spread = None if row.failed else f"{row.q1:.3g} to {row.q3:.3g}"
        line: list[Cell] = [row.method, METHODS[row.method].form, row.mode, _or_none(row.ms), spread]
        line += [_or_none(row.ms / fastest[name]) for name in ours]
        line += [_or_none(row.memory_mib), _or_none(row.setup_ms)]
        line += [_or_none(row.ms / row.floor_ms), _or_none(row.ms / row.step_floor_ms), row.error]
        cells.append(line)
    first = rows[0]
    title = f"{first.graph}, {first.nodes:,} nodes, {first.arcs:,} arcs, {first.precision}"
    caption = (
        f"{first.degrees:,} distinct degrees, the largest {first.largest:,}. Ratios are to the fastest mode of ours."
    )
    return Table(columns, cells, caption, title=title)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
