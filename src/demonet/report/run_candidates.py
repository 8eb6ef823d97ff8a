"""The page of a run that was not a network: its candidates, and whether the degree matters on the user's graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from demonet.escape import visible
from demonet.report.bins import decimals
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.page import Figure, Section, Table, Text
from demonet.report.table_cells import Cell, Column
from demonet.runs.evaluate import shown
from demonet.runs.facts import RunFacts, signed
from demonet.runs.run import Run

MOST_CURVES = 5


def candidates(run: Run, facts: RunFacts) -> list[Section]:
    """Every candidate with its validation score, weight and time, and what the average gained."""
    rows = facts.candidates
    if not rows:
        return []
    members = [row["name"] for row in rows if row["weight"] > 0]
    return [Text(_told(run, facts, len(members))), _numbers(run, rows)]


def _numbers(run: Run, rows: list[dict[str, Any]]) -> Section:
    loss, noted = run.metric.name not in ("log-loss", "rmse"), any(row["note"] for row in rows)
    title = "squared error" if run.task == "regress" else "log-loss"
    names = ["candidate", run.metric.title, "95 % interval", *([title] if loss else []), "weight", "seconds"]
    digits = {"seconds": 1}
    if run.task == "regress":  # in the units of the target
        digits[run.metric.title] = decimals(min((abs(row["score"]) for row in rows if row["score"]), default=0.0))
    columns = [Column(name, digits.get(name, 3)) for name in names]
    cells: list[list[Cell]] = [
        [
            visible(row["name"]),
            row["score"],
            "–".join(map(shown, row["interval"])) if row["interval"] else None,
            *([row["loss"]] if loss else []),
            row["weight"],
            round(row["cost"], 1),
            *([visible(row["note"])] if noted else []),
        ]
        for row in rows
    ]
    columns += [Column("note")] if noted else []
    judged = run.metrics["judged"]
    caption = (
        f"Scores on {judged['items']:,} {run.kind}, by {judged['by']}, of candidates that were fitted without them, "
        "with 95 % intervals. The weights were chosen there. Seconds are those of both fits."
    )
    return Table(columns, cells, caption, sortable=True)


def _told(run: Run, facts: RunFacts, members: int) -> str:
    rows = facts.candidates
    fitted = sum(row["status"] == "fitted" for row in rows)
    counts = f"{len(rows)} candidates" if fitted == len(rows) else f"{fitted} of {len(rows)} candidates"
    which = "The one with a weight was" if members == 1 else f"The {members} with a weight were"
    others = sum(row["weight"] == 0 < row["inductive_weight"] for row in rows)
    more = f", and so were {others} that have one for other graphs" if others else ""
    again = f"{which} then fitted again on training and validation {run.kind}{more}."
    return f"{counts} were fitted on the training part. {again} {facts.gain}"


def degree_matters(run: Run, facts: RunFacts) -> list[Section]:
    """With the degree-specific term, without it, with shuffled degrees; and the learned kernel of degrees."""
    effect = run.metrics.get("degree_effect")
    if not effect or not facts.degree:
        return []
    if "skipped" in effect:
        return [Text(visible(facts.degree))]
    whose = "The kernel machine"
    if run.model == "auto":
        whose += f" among the candidates, whose weight in the ensemble is {effect['weight']:.2f},"
    told = (
        f"{facts.degree}\n\nThe degree may be an input in any case. The question is whether nodes of different "
        f"degrees need weights of their own, as in DEMO-Net. {whose} was fitted three times on {effect['items']:,} "
        f"{run.kind} of the training and validation parts: with its degree-specific term, without it (all other "
        "settings are searched again), and with degrees shuffled among the nodes. Each item is predicted by a machine "
        "that has not seen it. Settings were chosen on the same items, so a small difference flatters the term. The "
        "test part was not used."
    )
    return [Text(told), _gains(run, effect), _sharing(effect)]


def _gains(run: Run, effect: dict[str, Any]) -> Section:
    """What the degree-specific term gains against both other machines, in the loss that decides, with intervals."""
    measure = "squared error" if effect["regression"] else "log-loss"
    arms = {"none": "without the term", "shuffled": "with shuffled degrees"}
    rows = {name: sorted(-value for value in effect["gain"][arm]["loss"]) for arm, name in arms.items()}
    low, mean, high = np.array(list(rows.values())).T
    hover = [
        f"{name}\n{signed(m)} ({signed(a)} to {signed(b)})" for name, m, a, b in zip(rows, mean, low, high, strict=True)
    ]
    reach = 1.15 * float(max(np.abs([low, high]).max(), 1e-3))
    series = Series("gain", mean, range(len(rows)), low, high, mark="intervals", colour=0, hover=hover)
    across = Axis("gain, right of 0 is better", ends=(-reach, reach))
    up = Axis("", names={float(i): name for i, name in enumerate(rows)})
    chart = Chart("Gain of the degree-specific term", [Panel("", [series])], across, up, origin=0.0, legend=False)
    alt = "Gains: " + "; ".join(f"{name} {signed(m)}" for name, m in zip(rows, mean, strict=True))
    caption = (
        f"By how much {measure} is smaller with the term than in the machine without it, and than in the one with "
        "shuffled degrees, with paired 95 % intervals. An interval that includes 0 may be chance."
    )
    cells: list[list[Cell]] = [["with the term", effect["loss"]["degree"], None, None, None]]
    cells += [
        [name, effect["loss"][arm], m, a, b] for (arm, name), m, a, b in zip(arms.items(), mean, low, high, strict=True)
    ]
    numbers = Table(["machine", measure, "gain of the term", "from", "to"], cells)
    return Figure(chart, alt, caption, numbers=numbers, title="What the term gains", half=True)


def _sharing(effect: dict[str, Any]) -> Section:
    degrees, sharing = np.array(effect["degrees"]), np.array(effect["sharing"])
    picked = np.unique(np.linspace(0, len(degrees) - 1, min(MOST_CURVES, len(degrees))).round().astype(int))
    place = np.log1p(degrees)
    series = [
        Series(
            f"degree {degrees[i]:,}",
            place,
            sharing[i],
            colour=turn,
            hover=[
                f"degrees {degrees[i]:,} and {d:,}\nshare {v:.2f}" for d, v in zip(degrees, sharing[i], strict=True)
            ],
        )
        for turn, i in enumerate(picked)
    ]
    ticks = np.unique(np.linspace(0, len(degrees) - 1, min(8, len(degrees))).round().astype(int))
    least = float(sharing.min())
    chart = Chart(
        "What nodes of two degrees share",
        [Panel("", series)],
        Axis("degree d′", names={float(place[i]): f"{degrees[i]:,}" for i in ticks}),
        Axis("shared", ends=(min(0.0, 1.05 * least), 1.05)),
    )
    told = (
        "Flat lines at 1: the machine treats all degrees alike."
        if least > 0.99
        else "A curve that falls quickly: only near degrees share; one that stays high: nearly the same for all."
    )
    caption = (
        "The learned kernel of degrees: how much of the map of their neighbourhoods nodes of degree d (one curve each) "
        f"and d′ (across) have in common, from 0 to 1. {told}"
    )
    names = ["degree", *(f"{degrees[i]:,}" for i in picked)]
    rows: list[list[Cell]] = [
        [int(degree), *(float(sharing[i, j]) for i in picked)] for j, degree in enumerate(degrees)
    ]
    alt = f"What degrees share: between {least:.2f} and 1 over {len(degrees)} degrees up to {degrees[-1]:,}."
    numbers = Table(names, rows)
    return Figure(chart, alt, caption, numbers=numbers, title="Learned kernel of degrees", half=True)
