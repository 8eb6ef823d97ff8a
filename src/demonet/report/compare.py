"""The page of ``demonet compare``: a leaderboard with intervals, differences from the best, time and memory."""

from __future__ import annotations

from typing import Any

from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.figures import interval_bars
from demonet.report.page import Facts, Figure, Page, Section, Table, Text
from demonet.report.table_cells import Cell, Column
from demonet.runs.compare import Leaderboard, Row

RULE = """Every method was fitted on the same training parts. Settings, epochs and weights were chosen on the same \
validation parts, by the method's own rule. The test parts were used once.

The difference is that from the best method, split by split. Splits of one data set overlap; intervals and p take that \
into account (corrected resampled t-test), and p is corrected for the number of methods (Holm). A p of 0.05 or more \
means: not shown to differ from the best. The best was found on these same splits, so expect a little less from it on \
new data."""


def compare_page(board: Leaderboard) -> Page:
    """The page; its first sentence is the answer."""
    about, shown = board.about, [row for row in board.rows if row.mean is not None]
    metric = about["title"]
    missing = [row for row in board.rows if row.mean is None or row.reason]
    sections: list[Section] = [Text(board.verdict, style="lead")]
    if shown:
        sections += [_table(shown, about), _bars(shown, metric), _by_time(shown, metric)]
    sections.append(Text(RULE, fold="How to read it"))
    if missing:
        rows: list[list[Cell]] = [[row.method, row.group, row.status, row.reason] for row in missing]
        caption = "--all brings methods that were left out by their cost, --methods those that are named."
        sections.append(
            Table(["method", "group", "status", "reason"], rows, caption, fold="Not compared on all splits")
        )
    facts: dict[str, Cell] = {
        **{name: value for name, value in about["sizes"].items() if value},
        "splits": about["splits"],
        **{name: value for name, value in about["settings"].items() if value is not None},
        **{f"{part} file": path for part, path in about["files"].items()},
        "demonet": about["version"],
    }
    sections.append(Facts(facts, fold="Data and settings"))
    done = max((len(row.values) for row in shown), default=0)
    splits = f"{done} of {about['splits']} splits" if done < about["splits"] else f"{about['splits']} splits"
    return Page(f"Which method is best on {about['name']}?", f"{len(shown)} methods, {splits}", sections)


def _table(rows: list[Row], about: dict[str, Any]) -> Section:
    alike = len({len(row.values) for row in rows}) == 1  # means over other splits do not compete for the best
    others = [name for name in about["metrics"] if name != about["metric"]]

    def measured(metric: dict[str, Any]) -> Column:
        return Column(metric["title"], best=("max" if metric["larger_is_better"] else "min") if alike else None)

    columns = [
        Column("method"),
        Column("group"),
        measured(about),
        Column("95 % interval"),
        Column("from the best", signed=True),
        Column("its interval"),
        Column("p"),
        *(measured(about["metrics"][name]) for name in others),
        Column("splits", digits=0),
        Column("seconds", digits=1),
        Column("memory, MB", digits=0),
    ]
    cells: list[list[Cell]] = [
        [
            row.method,
            row.group,
            row.mean,
            _interval(row.low, row.high, ".3f"),
            row.difference,
            _interval(row.difference_low, row.difference_high, "+.3f"),
            row.p,
            *(row.means.get(name) for name in others),
            len(row.values),
            row.seconds,
            row.peak_memory_mb,
        ]
        for row in rows
    ]
    caption = (
        "Interval, difference and p are of the metric that ranks. Seconds are the mean processor time of one fit. "
        "Memory is the largest peak of the worker process, with the libraries and the graph in it."
    )
    return Table(columns, cells, caption, title="Leaderboard", sortable=True)


def _interval(low: float | None, high: float | None, form: str) -> str | None:
    return None if low is None or high is None else f"{low:{form}}\u00a0to\u00a0{high:{form}}"


def _bars(rows: list[Row], metric: str) -> Section:
    nan = float("nan")
    ends = {
        row.method: (row.mean or 0.0, nan if row.low is None else row.low, nan if row.high is None else row.high)
        for row in rows
    }
    ours = [row.method for row in rows if row.group == "DEMO-Net"]
    chart = interval_bars(ends, highlight=ours, title=f"Mean {metric} with 95 % interval", axis=metric)
    return Figure(chart, caption="DEMO-Net is in colour.", title=metric.capitalize())


def _by_time(rows: list[Row], metric: str) -> Section:
    """What the time of a method buys."""
    series = []
    for number, group in enumerate(dict.fromkeys(row.group for row in rows)):
        mine = [row for row in rows if row.group == group]
        x, y = [max(row.seconds or 0.0, 0.01) for row in mine], [row.mean or 0.0 for row in mine]
        hover = [f"{row.method}: {mean:.3f} in {seconds:.2f} s" for row, mean, seconds in zip(mine, y, x, strict=True)]
        series.append(Series(group, x, y, mark="points", colour=number, symbol=number, hover=hover))
    title = f"{metric.capitalize()} by time"
    chart = Chart(title, [Panel("", series)], Axis("processor seconds of a fit", log=True), Axis(metric))
    told = "; ".join(text for one in series for text in one.hover)
    return Figure(chart, f"By time: {told}", title=title)
