"""The page of a run that was not a network: its candidates, and whether the degree matters on the user's graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from demonet.report.escape import visible
from demonet.report.figures import finish, interval_bars, plain
from demonet.report.page import Figure, Section, Table, Text
from demonet.report.palette import colour
from demonet.report.table_cells import Cell, Column
from demonet.runs.evaluate import shown
from demonet.runs.floors import FLOOR_NAMES
from demonet.runs.outputs import gain_sentence, signed
from demonet.runs.run import Run

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_CURVES = 5
MATTER = "Does the degree matter on your graph?"


def candidates(run: Run) -> list[Section]:
    """Every candidate with its validation score, weight and time, the weights as bars, and what the average gained."""
    rows = sorted(run.metrics.get("candidates") or [], key=lambda row: -row["weight"])
    if not rows:
        return []
    judged, title = run.metrics["judged"], run.metric.title
    caption = (
        f"Scores on {judged['items']:,} {run.kind}, by {judged['by']}, of candidates that were fitted without them, "
        "with 95 % intervals. The weights were chosen there. Candidates without a weight are grey."
    )
    loss = run.metric.name != "log-loss"
    names = ["candidate", title, "95 % interval", *(["log-loss"] if loss else []), "weight", "seconds"]
    columns = [Column(name, 1) if name == "seconds" else Column(name) for name in names]
    noted = any(row["reason"] for row in rows)
    cells: list[list[Cell]] = [
        [
            visible(row["name"]),
            row["score"],
            _span(row["interval"]),
            *([row["log_loss"]] if loss else []),
            row["weight"],
            round(row["seconds"] + row["refit_seconds"], 1),
            *([visible(_note(row))] if noted else []),
        ]
        for row in rows
    ]
    weights = {row["name"]: row["weight"] for row in rows if row["status"] == "fitted"}
    members = sum(weight > 0 for weight in weights.values())
    alt = "; ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
    return [
        Text(_told(run, rows, members), title="Candidates"),
        Figure(
            _weights(weights),
            f"Weights of the candidates: {alt}",
            "Probabilities are averaged with these weights. A candidate without a weight is not part of the model.",
            title="Weights",
            half=True,
            below=True,
        ),
        _scores(run, rows, caption),
        Table(
            [*columns, *([Column("note")] if noted else [])],
            cells,
            "Time is for both fits together.",
            title="Candidates, in numbers",
            below=True,
        ),
    ]


def _scores(run: Run, rows: list[dict[str, Any]], caption: str) -> Section:
    """The validation scores as bars with intervals; those with a weight in colour."""
    title = run.metric.title
    found = {
        row["name"]: (row["score"], *(row["interval"] or (np.nan, np.nan))) for row in rows if row["score"] is not None
    }
    members = [row["name"] for row in rows if row["weight"] > 0]
    figure = interval_bars(found, highlight=members, title=f"Validation {title}", axis=title)
    if not run.metric.larger_is_better:
        caption += " Smaller is better."
        figure.update_xaxes(range=[0, 1.05 * float(np.nanmax(list(found.values())))])
    figure.update_layout(height=_height(len(found)))
    alt = "; ".join(f"{name} {shown(values[0])}" for name, values in found.items())
    return Figure(figure, f"Validation {title}: {alt}", caption, title="Scores", half=True, below=True)


def _height(rows: int) -> int:
    return max(220, 110 + 26 * rows)


def _span(bounds: list[float] | None) -> str | None:
    return f"{shown(bounds[0])}–{shown(bounds[1])}" if bounds else None


def _note(row: dict[str, Any]) -> str:
    return row["reason"] if row["status"] == "fitted" else f"{row['status']}: {row['reason']}"


def _told(run: Run, rows: list[dict[str, Any]], members: int) -> str:
    fitted = sum(row["status"] == "fitted" for row in rows)
    counts = f"{len(rows)} candidates" if fitted == len(rows) else f"{fitted} of {len(rows)} candidates"
    which = "The one with a weight was" if members == 1 else f"The {members} with a weight were"
    others = sum(row["weight"] == 0 < row["inductive_weight"] for row in rows)
    more = f", and so were {others} that have one for other graphs" if others else ""
    again = f"{which} then fitted again on training and validation {run.kind}{more}."
    return f"{counts} were fitted on the training part. {again} {gain_sentence(run, run.metric.title)}"


def _weights(weights: dict[str, float]) -> go.Figure:
    import plotly.graph_objects as go

    names = list(weights)
    figure = go.Figure()
    figure.add_bar(
        x=[weights[name] for name in names],
        y=list(range(len(names))),
        orientation="h",
        width=0.62,
        marker={"color": colour(0)},
        hoverinfo="text",
        hovertext=[f"{plain(name, 80)}<br>weight {weights[name]:.3f}" for name in names],
    )
    ticks = [plain(name, 26) for name in names]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=ticks, autorange="reversed", showgrid=False)
    figure.update_xaxes(title_text="weight", range=[0, 1.08 * max(weights.values())])
    return finish(figure, "Weights in the average", height=_height(len(names)), showlegend=False)


def degree_matters(run: Run) -> list[Section]:
    """With the degree-specific term, without it, with shuffled degrees; and the learned kernel of degrees."""
    effect = run.metrics.get("degree_effect")
    if not effect:
        return []
    if "skipped" in effect:
        return [Text(f"This was not measured: {visible(effect['skipped'])}.", title=MATTER)]
    told = Text(_effect_told(run, effect), title=MATTER)
    return [told, _gains(effect), _sharing(effect), _arms(run, effect)]


def _effect_told(run: Run, effect: dict[str, Any]) -> str:
    whose = "The kernel machine"
    if run.model == "auto":
        whose += f" among the candidates, whose weight in the ensemble is {effect['weight']:.2f},"
    return (
        f"{effect['verdict']}\n\nThe degree may be an input in any case. The question is whether nodes of different "
        f"degrees need weights of their own, as in DEMO-Net. {whose} was fitted three times on {effect['items']:,} "
        f"{run.kind} of the training and validation parts: with its degree-specific term, without it (all other "
        "settings are searched again), and with degrees shuffled among the nodes. Each item is predicted by a machine "
        "that has not seen it. Settings were chosen on the same items, so a small difference flatters the term. The "
        "test part was not used."
    )


def _arms(run: Run, effect: dict[str, Any]) -> Section:
    first, second = ("R²", "squared error") if effect["regression"] else ("accuracy", "log-loss")
    arms = {"degree": "with the degree", "none": "without it", "shuffled": "shuffled degrees"}
    rows: list[list[Cell]] = []
    for arm, name in arms.items():
        found = [effect["gain"][arm][kind] for kind in ("accuracy", "loss")] if arm != "degree" else []
        gains: list[Cell] = [f"{signed(mean)} ({signed(low)} to {signed(high)})" for mean, low, high in found]
        gains = gains or [None, None]
        rows.append([name, effect["accuracy"][arm], effect["loss"][arm], *gains])
    columns = [Column("machine"), Column(first, best="max"), Column(second, best="min")]
    columns += [Column(f"{kind}, with − this") for kind in (first, second)]
    caption = (
        "Differences are paired, with 95 % intervals: the degree-specific term helps if they are above 0 for "
        f"{first} and below 0 for {second}. "
        f"{effect['items']:,} {run.kind}, each left out in turn."
    )
    return Table(columns, rows, caption, title="The degree-specific term, in numbers", below=True)


def _gains(effect: dict[str, Any]) -> Section:
    """What the degree-specific term gains in both measures against both other machines, with intervals."""
    import plotly.graph_objects as go

    first, second = ("R²", "squared error") if effect["regression"] else ("accuracy", "log-loss")
    rows = {
        f"{measure}, {name}": [sign * value for value in effect["gain"][arm][kind]]
        for measure, kind, sign in ((first, "accuracy", 1), (second, "loss", -1))
        for arm, name in (("none", "against none"), ("shuffled", "against shuffled"))
    }
    figure, place = go.Figure(), list(range(len(rows)))
    mean, one, other = np.array(list(rows.values())).T
    low, high = np.minimum(one, other), np.maximum(one, other)
    figure.add_scatter(
        x=mean,
        y=place,
        mode="markers",
        marker={"color": colour(0), "size": 9},
        error_x={"type": "data", "array": high - mean, "arrayminus": mean - low, "thickness": 1.5, "width": 4},
        hoverinfo="text",
        hovertext=[
            f"{name}<br>{signed(m)} ({signed(a)} to {signed(b)})"
            for name, m, a, b in zip(rows, mean, low, high, strict=True)
        ],
    )
    reach = 1.15 * float(max(np.abs([low, high]).max(), 1e-3))
    figure.update_yaxes(tickvals=place, ticktext=list(rows), range=[len(rows) - 0.5, -0.5], showgrid=False)
    figure.update_xaxes(title_text="gain, right of 0 is better", range=[-reach, reach], zeroline=True)
    finish(figure, "Gain of the degree-specific term", height=380, showlegend=False)
    alt = "; ".join(f"{name} {signed(m)}" for name, m in zip(rows, mean, strict=True))
    caption = (
        f"Gains in {first} and in {second} (its reduction), against the machine without the term and against the one "
        "with shuffled degrees. An interval that includes 0 may be chance."
    )
    return Figure(figure, f"Gains: {alt}", caption, title="What the term gains", below=True, half=True)


def _sharing(effect: dict[str, Any]) -> Section:
    import plotly.graph_objects as go

    degrees, sharing = np.array(effect["degrees"]), np.array(effect["sharing"])
    picked = np.unique(np.linspace(0, len(degrees) - 1, min(MOST_CURVES, len(degrees))).round().astype(int))
    figure = go.Figure()
    place = np.log1p(degrees)
    for turn, i in enumerate(picked):
        figure.add_scatter(
            x=place,
            y=sharing[i],
            mode="lines+markers",
            name=f"degree {degrees[i]:,}",
            line={"color": colour(turn), "width": 2},
            marker={"size": 5},
            hoverinfo="text",
            hovertext=[
                f"degrees {degrees[i]:,} and {d:,}<br>share {v:.2f}" for d, v in zip(degrees, sharing[i], strict=True)
            ],
        )
    ticks = np.unique(np.linspace(0, len(degrees) - 1, min(8, len(degrees))).round().astype(int))
    figure.update_xaxes(
        title_text="degree d′", tickvals=place[ticks], ticktext=[f"{degrees[i]:,}" for i in ticks], zeroline=False
    )
    figure.update_yaxes(title_text="shared", range=[min(0.0, 1.05 * float(sharing.min())), 1.05])
    finish(figure, "What nodes of two degrees share", height=380, showlegend=True)
    least = float(sharing.min())
    told = (
        "Flat lines at 1: the machine treats all degrees alike."
        if least > 0.99
        else ("A curve that falls quickly: only near degrees share; one that stays high: nearly the same for all.")
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
    return Figure(
        figure, alt, caption, numbers=Table(names, rows), title="Learned kernel of degrees", below=True, half=True
    )


def rule_sentence(run: Run) -> str:
    """Under which rule the numbers on top were measured."""
    if run.metrics.get("rule") != "refit" or run.metrics["strict"]["test_metric"] is None:
        return ""
    strict = run.metrics["strict"]
    floors = ", ".join(
        f"{FLOOR_NAMES.get(name, visible(name))} {shown(value)}" for name, value in strict["floors"].items()
    )
    bounds = strict["test_metric_interval"]
    interval = f" ({shown(bounds[0])} to {shown(bounds[1])})" if bounds else ""
    return (
        "Model and simple baselines were fitted again on training and validation items after everything was chosen "
        f"(refit). Fitted on the training part alone (strict), the model has {run.metric.title} "
        f"{shown(strict['test_metric'])}{interval}" + (f", the simple baselines {floors}." if floors else ".")
    )
