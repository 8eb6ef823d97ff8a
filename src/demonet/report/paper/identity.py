"""The identity part: where the nodes of a graph land, equal ones joined by a line; and who tells others apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from demonet.report.cells import Cell, Column
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.page import Section, Table
from demonet.report.palette import CATEGORICAL
from demonet.report.paper.words import method_name, set_name

if TYPE_CHECKING:
    from demonet.experiments.parts.identity import Distances


class Picture(TypedDict):
    """Where each node is in the plane, and its role: nodes of one role are structurally equal."""

    xy: Sequence[Sequence[float]]
    roles: Sequence[int]


@dataclass(frozen=True)
class Landed:
    """What the identity part shows beside its rows.

    Attributes:
        pictures: Of each graph and method, where the nodes landed.
        distances: How near to each other equal nodes landed, and others.
    """

    pictures: Mapping[str, Mapping[str, Picture]] = field(default_factory=dict)
    distances: Sequence[Distances] = ()


NOWHERE = Landed()


def distances_table(found: Sequence[Distances], *, anchor: str) -> Section | None:
    """What a small distance between equal nodes is worth, graph by graph."""
    if not found:
        return None
    graphs = list(dict.fromkeys(one.dataset for one in found))
    ordered = [one for graph in graphs for one in found if one.dataset == graph]
    columns = [
        Column("method"),
        *(Column(name) for name in ("equal nodes", "nearest other", "told apart", "found", "accuracy")),
    ]
    rows: list[list[Cell]] = [
        [
            method_name(one.method, one.preset, one.variant),
            *(None if math.isnan(number) else number for number in _of(one)),
        ]
        for one in ordered
    ]
    caption = (
        "Means over the runs. Equal nodes: their mean distance, as above. Nearest other: the least distance of two "
        "that are not equal. Told apart: the share of such pairs that do not coincide; below 1, a small distance of "
        "equal nodes is no merit. Found: the share of nodes whose nearest node is an equal one. Accuracy: of trained "
        "networks, on the half that was never labelled."
    )
    groups = [(set_name(graph), sum(one.dataset == graph for one in found)) for graph in graphs]
    title = "Equal nodes together, and others apart"
    return Table(columns, rows, caption, groups, sortable=True, title=title, anchor=anchor, below=True)


def _of(found: Distances) -> tuple[float, ...]:
    return found.twins, found.nearest_other, found.told_apart, found.found, found.accuracy


def identity_charts(pictures: Mapping[str, Mapping[str, Picture]]) -> dict[str, Chart]:
    """A chart for each graph that has pictures, a panel for each method."""
    charts = {}
    for graph, shown in pictures.items():
        panels = [_panel(name, picture) for name, picture in shown.items()]
        title = f"Structurally equal nodes: {set_name(graph)}"
        axes = Axis("", bare=True), Axis("", bare=True)
        charts[graph] = Chart(title, panels, *axes, columns=3, square=True, legend=False)
    return charts


def _panel(name: str, picture: Picture) -> Panel:
    """Every node by its role, and a thin line from each to the middle of its role: none is seen where all coincide."""
    members: dict[int, list[tuple[float, float]]] = {}
    for (x, y), role in zip(picture["xy"], picture["roles"], strict=True):
        members.setdefault(role, []).append((x, y))
    spokes: list[tuple[float, float]] = []
    series = []
    for role, nodes in sorted(members.items()):
        middle = (sum(x for x, _ in nodes) / len(nodes), sum(y for _, y in nodes) / len(nodes))
        spokes += [end for node in nodes for end in (middle, node)]
        said = f"role {role}: {len(nodes)} {'node' if len(nodes) == 1 else 'nodes'}"
        series.append(
            Series(
                f"role {role}",
                [x for x, _ in nodes],
                [y for _, y in nodes],
                mark="points",
                colour=role,
                symbol=role // len(CATEGORICAL),
                hover=[said] * len(nodes),
            )
        )
    return Panel(name, [Series("equal nodes", [x for x, _ in spokes], [y for _, y in spokes], mark="links"), *series])
