"""Structurally equal nodes (twins): whether a method embeds them at the same point, and other nodes elsewhere."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.page import Section, Table
from demonet.report.palette import CATEGORICAL
from demonet.report.table_cells import Cell as TableCell
from demonet.report.table_cells import Column
from demonet.sealed import canonical
from demonet_study.experiments.twins import GRAPHS, ONE_HOT_NODES
from demonet_study.ledger.job import Cell
from demonet_study.report.grid import Layout
from demonet_study.report.names import method_name, set_name, slug
from demonet_study.report.parts.part import Entry, Part, Results, Shown
from demonet_study.report.parts.tables import PAPER_RUNS

# Method, preset, features (None for those of the preset), and the name of the features.
NETWORKS = (
    *((f"demonet-{scheme}", "paper", None, "degree") for scheme in ("hash", "weight")),
    *((f"demonet-{scheme}", "authors", None, "adjacency") for scheme in ("hash", "weight")),
    ("demonet-default", "default", None, "degree"),
    ("gcn", "", "degree-onehot", "degree"),
    ("gcn", "", ONE_HOT_NODES, "identity"),
)
EMBEDDINGS = ("struc2vec", "graphwave")


def _entries(graphs: Sequence[str], runs: int) -> list[Entry]:
    return [Entry(cell, runs, variant) for graph in graphs for cell, variant in _cells(graph)]


def _cells(graph: str) -> Iterator[tuple[Cell, str]]:
    for trained, weights in ((False, "first weights"), (True, "trained")):
        if trained and graph == "cycle":  # there is only one role
            continue
        for method, preset, features, name in NETWORKS:
            options = {"trained": trained} | ({"features": features} if features else {})
            yield Cell("identity", graph, method, preset, canonical(options)), f"{name}, {weights}"
    for method in EMBEDDINGS:
        yield Cell("identity", graph, method), ""


@dataclass(frozen=True)
class Distances:
    """A method on a graph: the means over the runs of :class:`~demonet_study.experiments.twins.Nearness`.

    ``accuracy`` is that of trained networks on the half without labels. Numbers that do not apply are NaN.
    """

    dataset: str
    method: str
    preset: str
    variant: str
    runs: int
    twins: float
    others: float
    nearest_other: float
    told_apart: float
    found: float
    accuracy: float


def distances(entries: Sequence[Entry], results: Results) -> list[Distances]:
    """One row for every cell that has runs."""
    measured = ("twins", "others", "nearest_other", "told_apart", "found", "accuracy")
    return [
        Distances(
            *(entry.cell.dataset, entry.cell.method, entry.cell.preset, entry.variant, len(done)),
            *(statistics.mean(one.outcome.extra.get(name, math.nan) for one in done) for name in measured),
        )
        for entry in entries
        if (done := results.get(entry.cell, ()))
    ]


class Points(TypedDict):
    """The coordinates and the role of each node; nodes of one role are structurally equal."""

    xy: Sequence[Sequence[float]]
    roles: Sequence[int]


@dataclass(frozen=True)
class Embedded:
    """What this part shows besides its rows."""

    # By graph and method, the coordinates of the nodes.
    embeddings: Mapping[str, Mapping[str, Points]] = field(default_factory=dict)
    distances: Sequence[Distances] = ()  # how close equal nodes are, and others


def embeddings(entries: Iterable[Entry], results: Results) -> dict[str, dict[str, Points]]:
    """By graph and method, the coordinates of the nodes in the first run.

    Networks have runs with initial weights and trained; these share a name here, and the trained one is kept.
    """
    found: dict[str, dict[str, Points]] = {}
    for entry in entries:
        for result in results[entry.cell][:1]:
            features, _, _ = entry.variant.partition(", ")
            name = method_name(entry.cell.method, entry.cell.preset, features)
            extra = result.outcome.extra
            found.setdefault(entry.cell.dataset, {})[name] = {"xy": extra["points"], "roles": extra["roles"]}
    return found


def distances_table(found: Sequence[Distances], *, anchor: str) -> Section | None:
    """The distances, graph by graph."""
    if not found:
        return None
    graphs = list(dict.fromkeys(one.dataset for one in found))
    ordered = [one for graph in graphs for one in found if one.dataset == graph]
    columns = [
        Column("method"),
        *(Column(name) for name in ("equal nodes", "nearest other", "told apart", "found", "accuracy")),
    ]
    rows: list[list[TableCell]] = []
    for one in ordered:
        numbers = one.twins, one.nearest_other, one.told_apart, one.found, one.accuracy
        name = method_name(one.method, one.preset, one.variant)
        rows.append([name, *(None if math.isnan(number) else number for number in numbers)])
    caption = (
        "Means over the runs. Equal nodes: their mean distance, as above. Nearest other: the smallest distance between "
        "two nodes that are not equal. Told apart: the share of such pairs that do not coincide; if it is below 1, a "
        "small distance between equal nodes is no merit. Found: the share of nodes whose nearest node is an equal one. "
        "Accuracy: of trained networks, on the half without labels."
    )
    groups = [(set_name(graph), sum(one.dataset == graph for one in found)) for graph in graphs]
    title = "Equal nodes together, and others apart"
    return Table(columns, rows, caption, groups, sortable=True, title=title, anchor=anchor, below=True)


def identity_charts(found: Mapping[str, Mapping[str, Points]]) -> dict[str, Chart | None]:
    """A chart per graph, with a panel per method."""
    charts: dict[str, Chart | None] = {}
    for graph, shown in found.items():
        panels = [_panel(name, points) for name, points in shown.items()]
        title = f"Structurally equal nodes: {set_name(graph)}"
        axes = Axis("", bare=True), Axis("", bare=True)
        charts[slug(f"identity {graph}")] = Chart(title, panels, *axes, columns=3, square=True, legend=False)
    return charts


def _panel(name: str, points: Points) -> Panel:
    """Nodes coloured by role, each with a thin line to the mean of its role, which is invisible if all coincide."""
    members: dict[int, list[tuple[float, float]]] = {}
    for (x, y), role in zip(points["xy"], points["roles"], strict=True):
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


def _sections(shown: Shown) -> list[Section | None]:
    table = distances_table(shown.extra.distances, anchor="identity-distances") if shown.extra else None
    return [*shown.figures, *shown.tables, table]


IDENTITY = Part(
    "identity",
    "Structurally equal nodes",
    "Mean distance of nodes that a symmetry of the graph exchanges (equal nodes), divided by the mean distance of all "
    "pairs; on the cycle, where all nodes are equal, divided by the mean norm. It is 0 if equal nodes coincide. Lower "
    "is better, provided that other nodes are told apart. Networks have their initial weights, or are trained to "
    "predict the roles with labels in one half of the graph only. Features are the degree alone, or identify every "
    "node by its row of the adjacency matrix (as in the authors' code) or of the identity matrix (as in GCN's paper). "
    "The published paper has no such study; a comment in its source mentions cycle and mirrored karate.",
    lambda: _entries(tuple(GRAPHS), PAPER_RUNS),
    lambda: _entries(("mirrored-karate", "cycle"), 1),
    # A small distance is no merit if other nodes are not told apart, so none is marked as best.
    layout=Layout(line=lambda row: row.full_name, best=None),
    charts=lambda rows, extra: identity_charts(extra.embeddings) if extra else {},
    sections=_sections,
    extra=lambda entries, results: Embedded(embeddings(entries, results), distances(entries, results)),
    files=lambda extra: {"identity_distances.csv": extra.distances},
)
