"""A run of `demonet fit` on the graph as it changes: the score it promised, the ranking, and the same file rewritten.

    python benchmarks/later.py [--sets planted roles ...] [--shares 0.01 0.1 0.3] [--first 5000] [--seeds 3]
        [--folder ../shared/data/public] [--out benchmarks/results/later.csv] [--work FOLDER]

Nodes and edges of a set arrive in an order. The run is fitted on the first of them (effort quick); with a share of 0.1,
`predict` gets the graph from which the first tenth of the nodes and of the edges have gone, and to which as many have
come. What comes is of the same kind, since it was a part of the same graph; only `roles`, whose motifs would be broken,
gets whole new motifs, and edges between random nodes. A row is a share: the metric on the test nodes of the run that
are still there, beside the metric and the interval of metrics.json, and where it is below that, the metric of a new fit
on the changed graph with the same labels (`anew`); how many of the first 100 of the ranking are those of the fitted
graph; how many test nodes keep their class. With the first share, also how far outputs move when the file is shuffled,
its edges turned round and its name changed (`moved`), and the same for a file with other ids (`moved_ids`).
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tables
import torch
from development import load
from numpy.typing import NDArray
from torch_geometric.data import Data

from demonet.data.load import load as load_dataset
from demonet.data.splits import Split
from demonet.data.synthetic import role_graph
from demonet.ensemble import Ensemble
from demonet.runs import Reading, Run, Settings, fit_run, load_run, predict_run
from demonet.runs.inputs import Inputs
from demonet.train.objective import value_of

Array = NDArray[Any]
MOST = 0.3  # the largest share that a set has nodes and edges for
TOP = 100  # of a ranking; the first tenth of fewer than 300 nodes
COLUMNS = ("set", "seed", "share", "nodes", "edges", "metric", "tested", "promised", "low", "high", "score", "inside")
COLUMNS += ("anew", "known", "top", "shared", "agree", "calibration", "moved", "moved_ids", "seconds", "command")


@dataclass(frozen=True)
class Growing:
    """A graph whose nodes and edges arrive in an order.

    Attributes:
        y: The class of each node, as a name.
        edges: ``[m, 2]`` nodes, in the order in which the edges arrive.
        nodes_first, edges_first: How many are there when the run is fitted.
        x: Attributes.
        weight: Of each edge.
        rank: The class that is ranked.
        reading: How the files are read.
    """

    y: Array
    edges: Array
    nodes_first: int
    edges_first: int
    x: Array | None = None
    weight: Array | None = None
    rank: str = "0"
    reading: Reading = field(default_factory=lambda: Reading(directed=False))

    def write(self, folder: Path, share: float, seed: int | None = None, prefix: str = "n") -> dict[str, Path]:
        """The files of the graph after a share of it has been replaced; with a seed, in another order and renamed."""
        gone = round(share * self.nodes_first)
        alive = np.arange(gone, gone + self.nodes_first)
        rows = np.arange(self.edges_first) + round(share * self.edges_first)
        rows = rows[np.isin(self.edges[rows], alive).all(1)]
        ends = self.edges[rows]
        alive = np.unique(ends)  # what has no edge is in no file
        if seed is not None:
            random = np.random.default_rng(seed)
            alive, order = random.permutation(alive), random.permutation(len(rows))
            rows, ends = rows[order], ends[order]
            if not self.reading.directed:
                ends = np.where(random.random((len(rows), 1)) < 0.5, ends, ends[:, ::-1])
        name = f"{prefix}-{share:g}" if seed is None else f"again-{prefix}-{share:g}"
        head = ["source", "target"] + (["amount"] if self.weight is not None else [])
        columns = [ends[:, 0], ends[:, 1]] + ([self.weight[rows]] if self.weight is not None else [])
        lines = [[f"{prefix}{u}", f"{prefix}{v}", *rest] for u, v, *rest in zip(*columns, strict=True)]
        files = {"edges": folder / f"{name}-edges.csv", "labels": folder / f"{name}-labels.csv"}
        write_rows(files["edges"], head, lines)
        write_rows(files["labels"], ["id", "label"], [[f"{prefix}{node}", self.y[node]] for node in alive])
        if self.x is not None:
            files["features"] = folder / f"{name}-features.csv"
            lines = [[f"{prefix}{node}", *self.x[node].tolist()] for node in alive]
            write_rows(files["features"], ["id", *(f"x{i}" for i in range(self.x.shape[1]))], lines)
        return files


def write_rows(path: Path, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])


def growing(y: Array, edges: Array, seed: int, **options: Any) -> Growing:
    """Nodes and undirected edges in a random order."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(y))
    place, x = np.argsort(order), options.pop("x", None)
    rows = random.permutation(len(edges))
    if (weight := options.pop("weight", None)) is not None:
        options["weight"] = weight[rows]
    sizes = (int(len(each) / (1 + MOST)) for each in (y, edges))
    return Growing(y[order], place[edges[rows]], *sizes, x=None if x is None else x[order], **options)


def drawn(random: np.random.Generator, y: Array, table: Array) -> Array:
    """Distinct edges of a block model: ``table[a, b]`` are the expected neighbours of class b of a node of class a."""
    sizes = np.bincount(y)
    u, v = np.triu_indices(len(y), 1)
    some = random.random(len(u)) < (table / sizes)[y[u], y[v]]
    return np.stack([u[some], v[some]], 1)


def planted(seed: int) -> Growing:
    """Four communities: a node has six neighbours in its own and five in the others; the class is the community."""
    random = np.random.default_rng(seed)
    y = np.arange(780) % 4
    return growing(y.astype(str), drawn(random, y, np.full((4, 4), 1.7) + 4.3 * np.eye(4)), seed)


def roles(seed: int) -> Growing:
    """Motifs on a backbone, in the order of the backbone; edges that come are noise, as is a part of the first ones."""
    motifs, random = 78, np.random.default_rng(seed)
    data = role_graph(seed, motifs=motifs)
    y, edges, n = np.array(data.class_names)[data.y.numpy()], pairs(data.edge_index), len(data.y)
    place = np.arange(n)
    place = np.where(place < 2 * motifs, place // 2, (place - 2 * motifs) // 5)  # a motif, and its two backbone nodes
    order, noise = np.argsort(place, kind="stable"), random.integers(n, size=(len(edges), 2))
    noise = noise[noise[:, 0] != noise[:, 1]][: round(MOST * len(edges))]
    edges, first = np.concatenate([random.permutation(edges), noise]), len(edges)
    return Growing(y[order], np.argsort(order)[edges], 7 * round(motifs / (1 + MOST)), first, rank="backbone")


def bank(seed: int) -> Growing:
    """Transfers with amounts, and customers of whom 3 % are risky: they pay each other, and turn over less."""
    random = np.random.default_rng(seed)
    risky = random.random(2730) < 0.03
    customers, circle = np.arange(len(risky)), np.flatnonzero(risky)
    payer = np.repeat(customers, random.poisson(4, len(customers)) + 1)
    inside = risky[payer] & (random.random(len(payer)) < 0.3)
    payee = np.where(inside, random.choice(circle, len(payer)), random.choice(customers, len(payer)))
    amount = np.round(random.lognormal(5 - 0.5 * inside, 1), 2)
    edges, first = np.unique(np.stack([payer, payee], 1), axis=0, return_index=True)
    amount, other = amount[first], edges[:, 0] != edges[:, 1]
    turnover = random.lognormal(7 - risky, 1)
    since = random.integers(0, 4000, len(risky)) * np.where(risky, 0.7, 1.0)
    x = np.round(np.stack([turnover, since, *random.normal(size=(3, len(risky)))], 1), 3)
    names, reading = np.where(risky, "high", "low"), Reading(directed=True, weight="amount")
    return growing(names, edges[other], seed, x=x, weight=amount[other], rank="high", reading=reading)


def mixed(seed: int) -> Growing:
    """Heterophilous: two pairs of classes whose nodes are joined to each other; attributes say little."""
    random = np.random.default_rng(seed)
    y = np.arange(780) % 4
    table = np.full((4, 4), 1.4)
    table[[0, 1, 2, 3], [1, 0, 3, 2]] = 5.0
    x = np.round(random.normal(size=(len(y), 8)) + 0.6 * np.eye(4, 8)[y], 3)
    return growing(y.astype(str), drawn(random, y, table), seed, x=x)


def airports(seed: int) -> Growing:
    """Flights between airports of the USA; the class is the quarter of the activity."""
    data = load_dataset("usa")
    assert isinstance(data, Data)
    return growing(data.y.numpy().astype(str), pairs(data.edge_index), seed, rank="3")


def cora(folder: Path) -> Callable[[int], Growing]:
    """Citations between papers, with words."""

    def made(seed: int) -> Growing:
        found = load(folder, "cora")
        x = (found.x.numpy() > 0).astype(int)
        return growing(found.y.numpy().astype(str), pairs(found.edge_index), seed, x=x)

    return made


def pairs(edge_index: torch.Tensor) -> Array:
    """Undirected edges, each once."""
    edges = edge_index.t().numpy()
    return edges[edges[:, 0] < edges[:, 1]]


def predicted(run: Path, files: dict[str, Path]) -> tuple[list[str], Array, Inputs]:
    """Ids, outputs, and the graph as read."""
    inputs, _, outputs = predict_run(run, files["edges"], files.get("features"))
    return [str(node) for node in inputs.ids], outputs.astype(np.float64), inputs


def fitted_anew(run: Run, inputs: Inputs, ids: Sequence[str]) -> float | None:
    """The metric of an ensemble that is fitted on the changed graph, with the labels of the run."""
    place = {node: row for row, node in enumerate(ids)}
    old = [row for row, node in enumerate(run.ids) if str(node) in place]
    new = np.array([place[str(run.ids[row])] for row in old])
    y, part, data = np.full(len(ids), -1), run.part[old], inputs.data
    y[new] = run.y[old]
    data.y = torch.from_numpy(y)
    parts = (torch.from_numpy(new[part == number]) for number in range(3))
    seed = run.config["seed"]
    outputs = Ensemble.fit(data, Split("later", seed, *parts), effort="quick", seed=seed).fitted_outputs
    assert outputs is not None
    test = new[part == 2]
    return value_of(run.metric, "classify", y[test], outputs[test])


def first_of(ids: Sequence[str], column: Array, count: int) -> set[str]:
    """The first of a ranking, as `predict --rank --top` lists them."""
    return {ids[row] for row in np.argsort(-column, kind="stable")[:count]}


def rewritten(run: Path, problem: Growing, share: float) -> dict[str, str]:
    """How far outputs move when the files of a share are written in another order, also with other ids."""
    found = {}
    for called, prefix in (("moved", "n"), ("moved_ids", "other")):
        ids, outputs, _ = predicted(run, problem.write(run.parent, share, prefix=prefix))
        again, moved, _ = predicted(run, problem.write(run.parent, share, seed=1, prefix=prefix))
        place = {node: row for row, node in enumerate(again)}
        found[called] = f"{np.abs(moved[[place[node] for node in ids]] - outputs).max():.1e}"
    return found


def measure(run: Run, folder: Path, problem: Growing, share: float) -> dict[str, Any]:
    """What a share of new nodes and edges does to a finished run; and the same files written again."""
    start, metrics = time.perf_counter(), json.loads((folder / "run" / "metrics.json").read_text())
    files = problem.write(folder, share)
    ids, outputs, inputs = predicted(folder / "run", files)
    classes = run.class_names
    test = [row for row, part in enumerate(run.part) if part == 2]
    place = {node: row for row, node in enumerate(ids)}
    kept = [row for row in test if str(run.ids[row]) in place]
    later = outputs[[place[str(run.ids[row])] for row in kept]]
    score = value_of(run.metric, "classify", run.y[kept], later)
    low, high = metrics["test_metric_interval"]
    count, ranked = (TOP if len(ids) >= 3 * TOP else len(ids) // 10), classes.index(problem.rank)
    before = first_of([str(node) for node in run.ids], run.outputs[:, ranked], count)
    shared = len(before & first_of(ids, outputs[:, ranked], count)) / count
    anew = fitted_anew(run, inputs, ids) if (score or 0.0) < low else None
    with files["edges"].open() as file:
        edges = sum(1 for _ in file) - 1
    return {
        "share": share,
        "nodes": len(ids),
        "edges": edges,
        "metric": run.metric.name,
        "tested": len(kept),
        "promised": f"{metrics['test_metric']:.3f}",
        "low": f"{low:.3f}",
        "high": f"{high:.3f}",
        "score": f"{score:.3f}",
        "inside": int(low <= (score or 0.0) <= high),
        "anew": "" if anew is None else f"{anew:.3f}",
        "known": inputs.standing.split(" of them")[0].replace(",", "") if "of them known" in inputs.standing else "",
        "top": count,
        "shared": f"{shared:.2f}",
        "agree": f"{(later.argmax(1) == run.outputs[kept].argmax(1)).mean():.3f}",
        "calibration": metrics["calibration"]["method"],
        "moved": "",
        "moved_ids": "",
        "seconds": f"{time.perf_counter() - start:.1f}",
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("../shared/data/public"))
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--shares", nargs="+", type=float, default=[0.01, 0.1, MOST])
    parser.add_argument("--first", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/later.csv"))
    parser.add_argument("--work", type=Path, help="keep files and runs here; a finished run is used again")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    made: dict[str, Callable[[int], Growing]] = {each.__name__: each for each in (planted, roles, bank, mixed)}
    made |= {"usa-airports": airports, "cora": cora(options.folder)}
    command, rows = tables.command(options.folder, out=options.out, work=options.work), []
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.sets or made:
            for seed in range(options.first, options.first + options.seeds):
                problem, folder = made[name](seed), (options.work or Path(temporary)) / f"{name}-{seed}"
                folder.mkdir(parents=True, exist_ok=True)
                files = problem.write(folder, 0.0)
                if not (folder / "run" / "metrics.json").exists():
                    settings = Settings(effort="quick", seed=seed)
                    given = files["edges"], files["labels"], files.get("features")
                    fit_run(*given, out=folder / "run", reading=problem.reading, settings=settings)
                run, told = load_run(folder / "run"), {"set": name, "seed": seed, "command": command}
                for share in options.shares:
                    rows.append(told | measure(run, folder, problem, share))
                    if share == options.shares[0]:
                        rows[-1] |= rewritten(folder / "run", problem, share)
                    print(rows[-1], flush=True)
                    tables.write(
                        options.out,
                        [{"moved": "", "moved_ids": ""} | row | {"command": command} for row in rows],
                        COLUMNS,
                    )


if __name__ == "__main__":
    main()
