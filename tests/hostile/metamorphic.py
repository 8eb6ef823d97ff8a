"""The same graph gives the same answer: problems, what may be done to their files, and what may follow from it.

A problem is three tables. A `Change` writes the same problem in another way, and says how ids and classes are called
then. Three questions are asked of it: does a finished run predict the same for the changed files; does a fit on them
predict the same; and does it with the same items in each part of the split? `RULES` has the answers, `table` writes
them for docs/reliability.md.
"""

from __future__ import annotations

import math
import multiprocessing
import shutil
import sqlite3
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import networkx as nx
import numpy as np
import pandas as pd
import torch
from tests.data.writers import MATRICES, NODES, Drawn
from tests.hostile.supervise import Done

from demonet import DemonetError, DemonetWarning
from demonet.data.splits import Split
from demonet.estimators.core import fit_checked
from demonet.estimators.models import EnsembleModel
from demonet.runs import Reading, Run, Settings, fit_run, plan, predict_run
from demonet.runs.folder import load_model_of
from demonet.runs.inputs import read_inputs

Table: TypeAlias = pd.DataFrame


@dataclass(frozen=True, eq=False)
class Problem:
    """Tables of one graph or many.

    Attributes:
        edges: ``source``, ``target``, perhaps ``weight``; of many graphs, ``graph`` before them.
        labels: Ids (``node`` or ``graph``) and one label or more.
        features: Ids and attributes of nodes.
        directed: Whether edges are.
    """

    edges: Table
    labels: Table
    features: Table | None = None
    directed: bool = False

    @property
    def many(self) -> bool:
        """Whether it is a set of graphs."""
        return "graph" in self.edges

    @property
    def ids(self) -> list[Any]:
        """The ids of nodes, in the order in which they are numbered."""
        return sorted({*self.edges["source"], *self.edges["target"]})

    def drawn(self, ids: list[Any]) -> Drawn:
        """The graph for the writers of other formats; nodes are listed in the order of the ids."""
        place = {name: number for number, name in enumerate(ids)}
        pairs = [(place[u], place[v]) for u, v in self.edges[["source", "target"]].itertuples(index=False)]
        weights = self.edges["weight"].tolist() if "weight" in self.edges else None
        return Drawn(ids, pairs, weights, self.directed)


# --- problems -------------------------------------------------------------------------------------------------------


def _of(graph: nx.Graph, label: Mapping[Any, Any] | None = None, name: str = "v{:03}", **more: Any) -> Problem:
    """A graph with names, and classes by distance from its first node where none are given."""
    ids = {node: name.format(number) if isinstance(name, str) else name + number for number, node in enumerate(graph)}
    weights = nx.get_edge_attributes(graph, "weight")
    edges = Table([(ids[u], ids[v]) for u, v in graph.edges()], columns=["source", "target"])
    if weights and set(weights.values()) != {1}:
        edges["weight"] = [weights[edge] for edge in graph.edges()]
    rows = sorted((ids[node], _halves(graph)[node] if label is None else label[node]) for node in graph)
    used = {*edges["source"], *edges["target"]}
    labels = Table([row for row in rows if row[0] in used], columns=["node", "label"])
    return Problem(edges, labels, **more)


def _halves(graph: nx.Graph) -> dict[Any, str]:
    """Two halves of a ranking by distance from the first node, and one node in eleven in the other half."""
    plain = graph.to_undirected()
    distance = nx.single_source_shortest_path_length(plain, next(iter(plain)))
    order = sorted(plain, key=lambda node: (distance.get(node, math.inf), str(node)))
    return {node: "xy"[(2 * place >= len(order)) ^ (place % 11 == 5)] for place, node in enumerate(order)}


def _forest() -> nx.Graph:
    tree = nx.balanced_tree(3, 4)
    tree.remove_node(0)
    return tree


def _feet() -> nx.Graph:
    """A ring whose every third node carries a triangle."""
    graph = nx.cycle_graph(36)
    for node in range(0, 36, 3):
        graph.add_edges_from([(node, f"a{node}"), (node, f"b{node}"), (f"a{node}", f"b{node}")])
    return graph


def _components(graph: nx.Graph) -> dict[Any, str]:
    return {node: "abc"[number % 3] for number, part in enumerate(nx.connected_components(graph)) for node in part}


def _weighted(graph: nx.Graph, seed: int) -> nx.Graph:
    generator = np.random.default_rng(seed)
    for _, _, data in graph.edges(data=True):
        data["weight"] = round(float(generator.gamma(2.0)) + 0.125, 3)
    return graph


def _planted(seed: int = 0) -> nx.Graph:
    return nx.Graph(nx.planted_partition_graph(3, 30, 0.25, 0.02, seed=seed).edges())


def _blocks(graph: nx.Graph, size: int = 30) -> dict[Any, str]:
    return {node: "abcdef"[node // size] for node in graph}


def _with_features(problem: Problem, seed: int, *, mixed: bool) -> Problem:
    """Numbers that say something about the class; mixed, also a category, missing values and a constant."""
    generator, label = np.random.default_rng(seed), problem.labels["label"]
    code = pd.factorize(label, sort=True)[0]
    table = Table({"node": problem.labels["node"]})
    table["height"] = (code + generator.normal(size=len(code))).round(3)
    table["age"] = generator.integers(20, 60, len(code))
    table["income"] = np.exp(generator.normal(size=len(code)) + 0.3 * code).round(2)
    if mixed:
        table["town"] = np.array(["Oslo", "Rome", "Bern", "Riga"])[generator.integers(0, 4, len(code))]
        table["height"] = table["height"].where(generator.random(len(code)) > 0.1)
        table["town"] = table["town"].where(generator.random(len(code)) > 0.1, None)
        table["country"] = "here"
    return replace(problem, features=table)


def _numbers(problem: Problem, columns: int, seed: int = 0) -> Problem:
    """Numbers that follow the degree as labels."""
    degree = pd.concat([problem.edges["source"], problem.edges["target"]]).value_counts()
    generator, nodes = np.random.default_rng(seed), problem.labels["node"]
    value = np.log1p(degree.loc[nodes].to_numpy())[:, None] + generator.normal(size=(len(nodes), columns)) / 5
    names = ["score", "size"][:columns]
    return replace(problem, labels=Table({"node": nodes, **dict(zip(names, (100 * value.T).round(3), strict=True))}))


def _tags(problem: Problem, seed: int = 0) -> Problem:
    """Three labels of 0 and 1, some of them unknown."""
    generator, code = np.random.default_rng(seed), pd.factorize(problem.labels["label"], sort=True)[0]
    tags = {"first": (code == 0), "odd": code % 2 == 1, "late": generator.random(len(code)) + code / 3 > 0.7}
    table = Table({"node": problem.labels["node"], **{name: value.astype(int) for name, value in tags.items()}})
    table["late"] = table["late"].astype("Int64").mask(generator.random(len(code)) < 0.1)
    return replace(problem, labels=table)


def _graphs(numbers: bool = False, kinds: int = 2, seed: int = 0) -> Problem:
    """Cycles, stars and trees, with a few edges more."""
    generator, rows, labels = np.random.default_rng(seed), [], []
    for number in range(30):
        size, kind = 6 + int(generator.integers(6)), number % kinds
        graph = [nx.cycle_graph, nx.star_graph, nx.path_graph][kind](size)
        ends = generator.integers(0, size, 2)
        if number % 3 == 0 and ends[0] != ends[1]:
            graph.add_edge(*ends.tolist())
        rows += [(f"g{number:02}", f"n{u}", f"n{v}") for u, v in graph.edges()]
        value = round(graph.number_of_edges() + float(generator.normal()) / 5, 3)
        labels.append((f"g{number:02}", value if numbers else "cst"[kind]))
    return Problem(Table(rows, columns=["graph", "source", "target"]), Table(labels, columns=["graph", "label"]))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "trees": lambda: _of(_forest(), _components(_forest())),
    "ring": lambda: _of(nx.cycle_graph(48)),
    "ring with triangles": lambda: _of(_feet(), {n: {2: "ring", 4: "foot"}.get(d, "ring") for n, d in _feet().degree}),
    "grid": lambda: _of(nx.grid_2d_graph(8, 7)),
    "caveman": lambda: _of(nx.caveman_graph(9, 5), _components(nx.caveman_graph(9, 5))),
    "connected caveman": lambda: _of(nx.connected_caveman_graph(8, 6)),
    "barbell": lambda: _of(nx.barbell_graph(20, 6)),
    "karate": lambda: _of(_unweighted(nx.karate_club_graph()), nx.get_node_attributes(nx.karate_club_graph(), "club")),
    "Les Miserables": lambda: _of(nx.les_miserables_graph()),
    "planted": lambda: _of(_planted(), _blocks(_planted())),
    "hubs": lambda: _of(nx.barabasi_albert_graph(90, 2, seed=1)),
    "hubs, integers": lambda: _of(nx.barabasi_albert_graph(70, 2, seed=2), name=100),
    "directed": lambda: _of(nx.gnp_random_graph(70, 0.06, seed=3, directed=True), directed=True),
    "directed, weighted": lambda: _of(
        _weighted(nx.gnp_random_graph(60, 0.07, seed=4, directed=True), 4), directed=True
    ),
    "weighted": lambda: _of(_weighted(_planted(5), 5), _blocks(_planted(5))),
    "attributes": lambda: _with_features(_of(_planted(6), _blocks(_planted(6))), 6, mixed=False),
    "mixed attributes": lambda: _with_features(_of(nx.barabasi_albert_graph(80, 2, seed=7)), 7, mixed=True),
    "weighted, mixed attributes": lambda: _with_features(_of(nx.les_miserables_graph()), 8, mixed=True),
    "tags": lambda: _tags(_of(_planted(9), _blocks(_planted(9)))),
    "number": lambda: _numbers(_of(nx.barabasi_albert_graph(80, 2, seed=10)), 1),
    "numbers, attributes": lambda: _numbers(
        _with_features(_of(_planted(11), _blocks(_planted(11))), 11, mixed=True), 2
    ),
    "graphs": lambda: _graphs(),
    "graphs, three classes": lambda: _graphs(kinds=3, seed=1),
    "graphs, numbers": lambda: _graphs(numbers=True, seed=2),
}


def _unweighted(graph: nx.Graph) -> nx.Graph:
    return nx.Graph(graph.edges())


# --- changes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Changed:
    """The same problem, written in another way.

    Attributes:
        problem: Its tables.
        ids: The new id of each item, where it has one.
        names: The new name of each class or label, where it has one.
        form: The format of the files.
        listed: Where the format lists nodes: in which order.
        elsewhere: Whether another process reads them, with two threads.
    """

    problem: Problem
    ids: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    form: str = "csv"
    listed: list[Any] | None = None
    elsewhere: bool = False


Change = Callable[[Problem, np.random.Generator], "Changed | None"]  # None: it does not apply


def _shuffled(table: Table, generator: np.random.Generator) -> Table:
    return table.iloc[generator.permutation(len(table))].reset_index(drop=True)


def rows_of(part: str) -> Change:
    """The rows of one table in another order."""

    def change(problem: Problem, generator: np.random.Generator) -> Changed | None:
        table = getattr(problem, part)
        return None if table is None else Changed(replace(problem, **{part: _shuffled(table, generator)}))

    return change


def columns_of_features(problem: Problem, generator: np.random.Generator) -> Changed | None:
    if problem.features is None:
        return None
    names = list(problem.features.columns[1:])
    order = ["node", *generator.permutation(names).tolist()]
    order = order if order[1:] != names else ["node", *names[::-1]]
    return Changed(replace(problem, features=problem.features[order]))


def constant_column(problem: Problem, generator: np.random.Generator) -> Changed | None:
    if problem.features is None:
        return None
    return Changed(replace(problem, features=problem.features.assign(planet=7)))


def ends_swapped(problem: Problem, generator: np.random.Generator) -> Changed | None:
    if problem.directed:
        return None
    edges, some = problem.edges.copy(), generator.random(len(problem.edges)) < 0.5
    edges.loc[some, ["source", "target"]] = problem.edges.loc[some, ["target", "source"]].to_numpy()
    return Changed(replace(problem, edges=edges))


def edges_twice(problem: Problem, generator: np.random.Generator) -> Changed:
    """Some edges are listed two or three times, with the same weight."""
    times = generator.integers(1, 4, len(problem.edges))
    return Changed(replace(problem, edges=problem.edges.loc[problem.edges.index.repeat(times)].reset_index(drop=True)))


def renamed(*, order: bool, many: bool = False) -> Change:
    """New ids for nodes, of the same kind; ``order``: sorted as the old ones are. ``many``: for sets of graphs."""

    def change(problem: Problem, generator: np.random.Generator) -> Changed | None:
        if problem.many != many:
            return None
        ids = problem.ids
        fresh = np.sort(generator.choice(9_000, len(ids), replace=False) + 1_000)
        if not order:
            fresh = generator.permutation(fresh)
        new = dict(zip(ids, [int(n) if isinstance(ids[0], int) else f"q{n}" for n in fresh], strict=True))
        edges = problem.edges.assign(**{end: problem.edges[end].map(new) for end in ("source", "target")})
        tables = [edges, problem.labels, problem.features]
        tables = [
            table.assign(node=table["node"].map(new)) if table is not None and "node" in table else table
            for table in tables
        ]
        known = {} if problem.many else {str(old): str(name) for old, name in new.items()}
        return Changed(replace(problem, edges=tables[0], labels=tables[1], features=tables[2]), known)

    return change


def graphs_renamed(*, order: bool) -> Change:
    """New ids for graphs."""

    def change(problem: Problem, generator: np.random.Generator) -> Changed | None:
        if not problem.many:
            return None
        ids = sorted(set(problem.edges["graph"]))
        fresh = [f"q{n}" for n in np.sort(generator.choice(900, len(ids), replace=False) + 100)]
        new = dict(zip(ids, fresh if order else generator.permutation(fresh).tolist(), strict=True))
        tables = (table.assign(graph=table["graph"].map(new)) for table in (problem.edges, problem.labels))
        return Changed(Problem(*tables), new)

    return change


def classes_renamed(*, order: bool) -> Change:
    """New names for classes."""

    def change(problem: Problem, generator: np.random.Generator) -> Changed | None:
        if list(problem.labels.columns[1:]) != ["label"] or problem.labels["label"].dtype.kind == "f":
            return None
        names = sorted(set(problem.labels["label"]))
        fresh = [f"K{place}" for place in range(len(names))]
        new = dict(zip(names, fresh if order else fresh[::-1], strict=True))
        return Changed(replace(problem, labels=problem.labels.assign(label=problem.labels["label"].map(new))), {}, new)

    return change


def weights_of_one(problem: Problem, generator: np.random.Generator) -> Changed | None:
    if "weight" in problem.edges:
        return None
    return Changed(replace(problem, edges=problem.edges.assign(weight=1.0)))


def isolated_nodes(problem: Problem, generator: np.random.Generator) -> Changed | None:
    """Three nodes without an edge or a label, one before all others and two behind them, in a file that lists nodes."""
    if problem.many:
        return None
    ids, features = problem.ids, problem.features
    new: list[Any] = [ids[0] - 1, ids[-1] + 1, ids[-1] + 9] if isinstance(ids[0], int) else ["A", "y", "z"]
    if features is not None:
        copies = features.iloc[generator.choice(len(features), 3, replace=False)].assign(node=new)
        features = pd.concat([features, copies], ignore_index=True)
    return Changed(replace(problem, features=features), form="graphml", listed=[new[0], *ids, *new[1:]])


def form(name: str, *, listed: bool = False) -> Change:
    """Another format; ``listed``: one that lists nodes, in another order."""

    def change(problem: Problem, generator: np.random.Generator) -> Changed | None:
        if problem.many and (name not in TABLES or name == "txt"):  # sets of graphs in text are in the format of GIN
            return None
        changed = Changed(problem, form=name)
        if name in NUMBERED:  # such files know nodes by number alone
            new = {
                old: number
                for number, old in enumerate(
                    generator.permutation(np.array(problem.ids, object)) if listed else problem.ids
                )
            }
            edges = problem.edges.assign(**{end: problem.edges[end].map(new) for end in ("source", "target")})
            tables = (t if t is None else t.assign(node=t["node"].map(new)) for t in (problem.labels, problem.features))
            known = {str(old): str(number) for old, number in new.items()}
            return replace(changed, problem=Problem(edges, *tables, directed=problem.directed), ids=known)
        return replace(
            changed, listed=generator.permutation(np.array(problem.ids, object)).tolist() if listed else problem.ids
        )

    return change


def _write_sqlite(table: Table, path: Path) -> None:
    with closing(sqlite3.connect(path)) as base:
        table.to_sql("rows", base, index=False)


TABLES: dict[str, Callable[[Table, Path], object]] = {
    "csv": lambda table, path: table.to_csv(path, index=False),
    "tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    "txt": lambda table, path: table.to_csv(path, index=False, sep=";"),
    "csv.gz": lambda table, path: table.to_csv(path, index=False),
    "parquet": lambda table, path: table.to_parquet(path),
    "xlsx": lambda table, path: table.to_excel(path, index=False),
    "sqlite": _write_sqlite,
    "json": lambda table, path: table.to_json(path, orient="records", double_precision=15),
    "jsonl": lambda table, path: table.to_json(path, orient="records", lines=True, double_precision=15),
}
NUMBERED: dict[str, Callable[[Drawn, Path], object]] = {
    **{name.partition(".")[2]: write for name, write in MATRICES.items()},
    "pt": lambda drawn, path: torch.save(_as_saved(drawn), path),
}
LISTING: dict[str, Callable[[Drawn, Path], object]] = {name.partition(".")[2]: write for name, write in NODES.items()}


def _as_saved(drawn: Drawn) -> Any:
    data = drawn.data()
    if not drawn.directed:  # a Data lists an undirected edge in both directions
        data.edge_index = torch.cat([data.edge_index, data.edge_index.flip(0)], 1)
        if data.get("edge_weight") is not None:
            data.edge_weight = data.edge_weight.repeat(2)
    return data


def write(changed: Changed, folder: Path) -> list[str | None]:
    """Write the files; edges, labels and features."""
    folder.mkdir(parents=True)
    problem, names = changed.problem, list[str | None]()
    for part in ("edges", "labels", "features"):
        table, form = getattr(problem, part), changed.form
        path = folder / f"{part}.{form}"
        if table is None:
            names.append(None)
            continue
        if form in TABLES:
            TABLES[form](table, path)
        elif part == "edges":
            ids = changed.listed if form in LISTING else problem.ids
            (LISTING | NUMBERED)[form](problem.drawn(ids), path)
        else:
            path = path.with_suffix(".csv")
            table.to_csv(path, index=False)
        names.append(str(path))
    return names


CHANGES: dict[str, Change] = {
    "nothing": lambda problem, generator: Changed(problem),
    "another process": lambda problem, generator: Changed(problem, elsewhere=True),
    "rows of edges": rows_of("edges"),
    "rows of labels": rows_of("labels"),
    "rows of features": rows_of("features"),
    "columns of features": columns_of_features,
    "ends swapped": ends_swapped,
    "edges listed again": edges_twice,
    "weights of 1": weights_of_one,
    **{f"format {name}": form(name) for name in [*TABLES, *LISTING, *NUMBERED] if name != "csv"},
    "nodes listed in another order": form("graphml", listed=True),
    "nodes numbered in another order": form("pt", listed=True),
    "nodes renamed, same order": renamed(order=True),
    "nodes renamed": renamed(order=False),
    "nodes of graphs renamed": renamed(order=False, many=True),
    "graphs renamed, same order": graphs_renamed(order=True),
    "graphs renamed": graphs_renamed(order=False),
    "classes renamed, same order": classes_renamed(order=True),
    "classes renamed": classes_renamed(order=False),
    "isolated nodes": isolated_nodes,
    "a constant column": constant_column,
}
MODELS: dict[str, Settings] = {
    "auto": Settings(effort="quick"),
    "kernel": Settings(model="kernel"),
    "strong": Settings(model="network", epochs=8),
    "default": Settings(model="network", preset="default", epochs=8),
    "authors": Settings(model="network", preset="authors", epochs=8),
    "paper, hash": Settings(model="network", preset="paper", scheme="hash", epochs=8),
    "deep-5": Settings(model="network", preset="deep-5", epochs=4),
}


# --- answers --------------------------------------------------------------------------------------------------------

Question = Literal["predict", "fit", "fit, same split"]
Kind = Literal["auto", "kernel", "network", "adjacency"]  # a network on rows of the adjacency matrix
QUESTIONS: tuple[Question, ...] = ("predict", "fit", "fit, same split")
ROUNDING = 1e-5  # of a probability, or of the largest number

SAME, NEAR, DRAW, SIZE, OTHER, REFUSED = "same bits", "rounding", "another draw", "size", "another graph", "refused"


class Rule(NamedTuple):
    """What may follow from a change, for ``auto``, ``kernel``, ``network``: one answer, or one for each of them."""

    predict: str | tuple[str, str, str] | None
    fit: str | tuple[str, str, str]
    same_split: str | tuple[str, str, str] | None = None

    def answer(self, question: Question, kind: Kind) -> str | None:
        """What is promised; None where there is nothing to ask."""
        found = self[QUESTIONS.index(question)]
        if isinstance(found, tuple):
            found = found[{"auto": 0, "kernel": 1}.get(kind, 2)]
        return REFUSED if kind == "adjacency" and question == "predict" and found == NEAR else found


_KERNEL = (DRAW, NEAR, DRAW)
RULES: dict[str, Rule] = {
    "nothing": Rule(SAME, SAME),
    "another process": Rule(SAME, SAME),
    "rows of edges": Rule(SAME, SAME),
    "rows of labels": Rule(None, SAME),
    "rows of features": Rule(SAME, SAME),
    "ends swapped": Rule(SAME, SAME),
    "edges listed again": Rule(SAME, SAME),
    "weights of 1": Rule(SAME, SAME),
    "format": Rule(SAME, SAME),
    "numbered format": Rule((OTHER, SAME, SAME), SAME),
    "nodes renamed, same order": Rule((OTHER, SAME, SAME), SAME),
    "nodes listed in another order": Rule(NEAR, DRAW, _KERNEL),
    "nodes numbered in another order": Rule((OTHER, NEAR, NEAR), DRAW, _KERNEL),
    "nodes renamed": Rule((OTHER, NEAR, NEAR), DRAW, _KERNEL),
    "nodes of graphs renamed": Rule(NEAR, (NEAR, NEAR, DRAW)),
    "graphs renamed, same order": Rule(SAME, SAME),
    "graphs renamed": Rule(NEAR, DRAW, _KERNEL),
    "classes renamed, same order": Rule(None, SAME),
    "classes renamed": Rule(None, _KERNEL),
    "columns of features": Rule(SAME, _KERNEL),
    "isolated nodes": Rule((SIZE, NEAR, NEAR), DRAW),
    "a constant column": Rule(SAME, DRAW),
}


def rule_of(change: str) -> Rule:
    """The rule for a change; formats share two."""
    if change.startswith("format "):
        return RULES["numbered format" if change.removeprefix("format ") in NUMBERED else "format"]
    return RULES[change]


class Case(NamedTuple):
    """A question about a change of a problem, to a model."""

    problem: str
    model: str
    question: Question
    change: str


def pairs() -> list[tuple[str, str]]:
    """Every problem with every model; a seventh of the list has every problem once."""
    names, models = list(PROBLEMS), list(MODELS)
    turns = [(n, models[(place + turn) % len(models)]) for turn in range(len(models)) for place, n in enumerate(names)]
    return [pair for pair in turns if pair != ("tags", "kernel")]  # a kernel machine predicts one class, or numbers


def cases(some: Iterable[tuple[str, str]]) -> list[Case]:
    """Every question about problems and models; of formats, one model is fitted: all read the same graph."""
    found = []
    for name, model in some:
        kind = kind_of(model, PROBLEMS[name]())
        for change in _changes(name):
            asked = QUESTIONS[:1] if change.startswith("format") and model != "strong" else QUESTIONS
            found += [Case(name, model, each, change) for each in asked if rule_of(change).answer(each, kind)]
    return found


@cache
def _changes(name: str) -> list[str]:
    """The changes that a problem can have."""
    problem = PROBLEMS[name]()
    return [change for change, make in CHANGES.items() if make(problem, np.random.default_rng(0)) is not None]


def kind_of(model: str, problem: Problem) -> Kind:
    if model == "authors" and problem.features is None and not problem.many:
        return "adjacency"
    return "auto" if model == "auto" else "kernel" if model == "kernel" else "network"


class Base(NamedTuple):
    """A finished run of a problem as it is."""

    problem: Problem
    folder: Path
    run: Run
    expected: Table

    @property
    def part(self) -> dict[str, int]:
        """The part of the split that each item is in."""
        return dict(zip(self.run.ids, self.run.part.tolist(), strict=True))

    def of_another_graph(self) -> Table | None:
        """What the run says if it does not know the nodes; None if it refuses."""
        model = load_model_of(self.folder)[1].fitted_.model
        assert isinstance(model, EnsembleModel)
        if model.ensemble.needs_fitted_graph:
            return None
        with plan.fitting_threads(inputs := read_inputs(*self.files, Reading(**reading(self.problem)))):
            return by_id(self.run.ids, self.run.class_names, model.outputs_elsewhere(inputs.data).astype(np.float32))

    @property
    def files(self) -> Any:
        found = self.run.config["files"]
        return [found.get(part) for part in ("edges", "labels", "features")]


def base(folder: Path, problem: str, model: str) -> Base:
    """Fit a problem as it is."""
    made = PROBLEMS[problem]()
    files = write(Changed(made), folder / "files")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        run = fit_run(*files, out=folder / "run", reading=Reading(**reading(made)), settings=MODELS[model])
    return Base(made, folder / "run", run, by_id(run.ids, run.class_names, run.outputs))


def reading(problem: Problem) -> dict[str, Any]:
    """How the files of a problem are to be read."""
    return {"items": "graphs"} if problem.many else {"items": "nodes", "directed": problem.directed}


def by_id(ids: Any, names: Any, outputs: Any) -> Table:
    """Outputs as a table."""
    return Table(np.asarray(outputs, np.float64), index=list(map(str, ids)), columns=list(map(str, names)))


def fitted(files: Any, problem: Problem, settings: Settings, part: Mapping[str, int] | None = None) -> Table:
    """What a fit predicts, without the files of a run; ``part`` has the part of the split that an item is in."""
    planned = plan.make_plan(*files, Reading(**reading(problem)), settings)
    if part is not None:
        parts = np.array([part.get(name, -1) for name in planned.inputs.ids])
        split = Split("given", settings.seed, *(torch.from_numpy(np.flatnonzero(parts == each)) for each in range(3)))
        planned = replace(planned, splits=[split])
    data, names = planned.inputs.data, planned.inputs.names
    with plan.fitting_threads(planned.inputs):
        found = fit_checked(planned.estimator(0), data, planned.splits[0], names)
        return by_id(planned.inputs.ids, names, found.outputs(data).astype(np.float32))


def predicted(files: Any, problem: Problem, run: Path) -> Table:
    """What a finished run predicts."""
    inputs, names, outputs = predict_run(run, files[0], files[2], **reading(problem))
    return by_id(inputs.ids, names, outputs)


def difference(found: Table, expected: Table) -> float:
    """The largest difference, of probabilities or in units of the largest number; all expected items must be there."""
    assert set(expected.index) <= set(found.index), "items are missing"
    assert set(expected.columns) == set(found.columns), f"{list(found.columns)}, not {list(expected.columns)}"
    change = np.abs(found.loc[expected.index, expected.columns] - expected).to_numpy()
    return float(change.max()) / max(1.0, float(np.abs(expected).to_numpy().max()))


def ask(case: Case, known: Base, folder: Path, seed: int, others: ProcessPoolExecutor) -> str:
    """Ask a question, and check the answer.

    Args:
        case: The question.
        known: The run of the problem as it is.
        folder: Where to write the changed files.
        seed: Of the change.
        others: Another process.

    Returns:
        What was promised.
    """
    rule, kind = rule_of(case.change), kind_of(case.model, known.problem)
    promised = rule.answer(case.question, kind)
    changed = CHANGES[case.change](known.problem, np.random.default_rng(seed))
    assert promised is not None
    assert changed is not None
    files, problem = write(changed, folder), changed.problem
    expected: Table | None = known.expected.rename(index=changed.ids)
    if promised == OTHER:
        other = known.of_another_graph()
        promised, expected = (REFUSED, None) if other is None else (NEAR, other.rename(index=changed.ids))
    if case.question == "predict":
        question: Any = (predicted, files, problem, known.folder)
    else:
        part = {changed.ids.get(name, name): number for name, number in known.part.items()}
        question = (fitted, files, problem, MODELS[case.model], part if case.question == "fit, same split" else None)
        expected = known.expected.rename(index=changed.ids, columns=changed.names)
    try:
        found = _quietly(*question) if not changed.elsewhere else others.submit(_quietly, *question).result()
    except DemonetError:
        if promised == REFUSED:
            return REFUSED
        raise
    assert promised != REFUSED, "not refused"
    assert expected is not None
    change = difference(found, expected)
    assert np.isfinite(found.to_numpy()).all()
    if known.run.task == "classify":
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=ROUNDING)
    limit = {SAME: 0.0, NEAR: ROUNDING}.get(promised, math.inf)
    assert change <= limit, f"{promised} is promised, the largest difference is {change:.2g}"
    return promised


def _quietly(function: Callable[..., Table], *arguments: Any) -> Table:
    """Without warnings: changed files give some, such as of merged edges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        return function(*arguments)


def another_process() -> ProcessPoolExecutor:
    """Another process, with two threads; it is started when it is first used."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, context, initializer=torch.set_num_threads, initargs=(2,))


def answers(folder: Path, asked: Iterable[tuple[int, Case]], seed: int) -> Iterator[Done]:
    """Ask questions, and tell how they ended; those to one run come one after the other.

    Args:
        folder: Where runs and files are written.
        asked: The questions, and their numbers.
        seed: Of the changes.
    """
    known: Base | None = None
    last = None
    with another_process() as others:
        for index, case in asked:
            began, failure = time.monotonic(), ""
            try:
                if case[:2] != last:
                    last, known = case[:2], None
                    shutil.rmtree(folder / "base", ignore_errors=True)
                    known = base(folder / "base", *case[:2])
                assert known is not None, "the problem as it is could not be fitted"
                how = ask(case, known, folder / "changed", seed + index, others)
            except Exception:
                how, failure = "failed", traceback.format_exc()
            shutil.rmtree(folder / "changed", ignore_errors=True)
            yield Done(index, ", ".join(case), how, time.monotonic() - began, 0.0, failure)


def table() -> str:
    """The rules as docs/reliability.md has them."""
    kinds: tuple[Kind, ...] = ("auto", "kernel", "network")

    def cell(rule: Rule, question: Question) -> str:
        told = [rule.answer(question, kind) for kind in kinds]
        if told[0] is None:
            return ""
        if len(set(told)) == 1:
            return str(told[0])
        return "; ".join(f"{kind}: {answer}" for kind, answer in zip(kinds, told, strict=True))

    rows = [
        f"| {change} | {' | '.join(cell(rule, question) for question in QUESTIONS)} |" for change, rule in RULES.items()
    ]
    return "\n".join([f"| change | {' | '.join(QUESTIONS)} |", "|---|---|---|---|", *rows, ""])
