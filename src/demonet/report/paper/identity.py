"""The pictures of the identity part: where the nodes of a graph land, structurally equal ones joined by a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.palette import CATEGORICAL
from demonet.report.paper.words import set_name


class Picture(TypedDict):
    """Where each node is in the plane, and its role: nodes of one role are structurally equal."""

    xy: Sequence[Sequence[float]]
    roles: Sequence[int]


def identity_charts(points: Mapping[str, Mapping[str, Picture]]) -> dict[str, Chart]:
    """A chart for each graph that has pictures, a panel for each method."""
    charts = {}
    for graph, shown in points.items():
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
