"""`demonet fit` on generated graphs and on public ones: time, memory and the size of the page.

    python benchmarks/large.py [--nodes 100000] [--edges 1000000] [--columns 0] [--labelled 0] [--options "..."]
    python benchmarks/large.py --graph cora --public FOLDER [--options "..."]

A public set (as in ``development.py``) is written as a table of edges, a table of labels and a sparse ``.npz`` of
attributes; ``brazil`` is the paper's. A generated graph is written as Parquet, every undirected edge once: edges drawn
uniformly, or with degrees that fall off as a power law with a hub. Every node has one of five classes, mostly by how
connected its neighbours are (``--labelled``: so many nodes have a label, drawn at random); with ``--columns`` it has
as many numbers as attributes, of which one tells something about the class. The command is a process of its own;
``seconds``, ``cpu_seconds`` (of all cores and workers) and ``peak_mb`` (of one process) are of the whole of it, from
start to page; this needs Linux. ``load`` is the machine's: above the number of its cores, others were at work on it,
too. Rows are added to the table; one with the same graph, sizes and command is replaced.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import development
import numpy as np
import pyarrow as pa
import tables
from other_sets import by_neighbours
from pyarrow import parquet
from scipy import sparse
from torch_geometric.data import Data

from demonet.data.synthetic import power_law, uniform_random
from demonet.degree.count import count_degree

GRAPHS = {"uniform": uniform_random, "power law": power_law}
PUBLIC = ("brazil", *development.SETS)
PR_SET_CHILD_SUBREAPER = 36  # of the kernel
NOISE = 0.3  # of the classes are drawn at random
KEY = ("graph", "nodes", "edges", "columns", "labelled", "command")


def connected(edges: pa.Table, nodes: int) -> pa.Table:
    """One more edge, to a random node, for every node that has none."""
    seen = np.zeros(nodes, bool)
    for end in ("source", "target"):
        seen[edges[end].to_numpy()] = True
    known, alone = np.flatnonzero(seen), np.flatnonzero(~seen)
    others = np.random.default_rng(3).choice(known, len(alone))
    return pa.concat_tables([edges, pa.table({"source": alone, "target": others})])


def write_files(data: Data, columns: int, labelled: int, connect: bool, folder: Path) -> None:
    source, target = data.edge_index.numpy()
    once = source < target
    edges = pa.table({"source": source[once], "target": target[once]})
    if connect:
        edges = connected(edges, data.num_nodes)
    parquet.write_table(edges, folder / "edges.parquet")
    found = by_neighbours(data, (0.2, 0.4, 0.6, 0.8), NOISE, seed=0)
    names = pa.DictionaryArray.from_arrays(pa.array(found), [f"class {c}" for c in range(5)])
    seen = np.flatnonzero(count_degree(data.edge_index, data.num_nodes).numpy() > 0)  # the others are in no edge
    known = np.sort(np.random.default_rng(2).choice(seen, min(labelled or len(seen), len(seen)), replace=False))
    table = pa.table({"node": known, "label": names.take(pa.array(known)).cast(pa.string())})
    parquet.write_table(table, folder / "labels.parquet")
    if columns:
        values = np.random.default_rng(1).standard_normal((columns, len(seen)), np.float32)
        values[0] += found[seen]
        named = {f"x{number}": column for number, column in enumerate(values)}
        parquet.write_table(pa.table({"node": seen, **named}), folder / "features.parquet")


def write_public(public: Path, name: str, folder: Path) -> dict[str, Any]:
    """The files of a public set, without the few nodes that are in no edge, and its sizes."""
    problem = development.load(public, name)
    source, target = problem.edge_index.numpy()
    once, nodes = source < target, np.unique(source)
    parquet.write_table(pa.table({"source": source[once], "target": target[once]}), folder / "edges.parquet")
    names = [f"class {label}" for label in problem.y.numpy()[nodes]]
    parquet.write_table(pa.table({"node": nodes, "label": names}), folder / "labels.parquet")
    sparse.save_npz(folder / "features.npz", sparse.csr_array(problem.x.numpy()[nodes]))
    return {"nodes": len(names), "edges": int(once.sum()), "columns": problem.x.shape[1], "labelled": "all"}


def measure(folder: Path, options: str, edges: str = "edges.parquet") -> dict[str, Any]:
    """Run the command, and ask the kernel what it and the processes that it has started took."""
    command = ["demonet", "fit", edges]
    command += ["--labels", "labels.parquet"] if edges == "edges.parquet" else []
    for features in sorted(folder.glob("features.*")):
        command += ["--features", features.name]
    command += [*shlex.split(options), "--out", "run", "--json"]
    start = time.perf_counter()
    with (folder / "metrics.json").open("w") as out:
        script = [sys.executable, "-m", *command]
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # workers that outlive the command become our children
        _, status = os.waitpid(subprocess.Popen(script, cwd=folder, stdout=out).pid, 0)
    seconds = time.perf_counter() - start
    with suppress(ChildProcessError):
        while True:
            os.wait()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status:
        sys.exit(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    metrics = json.loads((folder / "metrics.json").read_text())["metrics"]
    sizes = json.loads((folder / "run" / "config.json").read_text())["sizes"]
    for row in metrics.get("candidates", []):
        fit = f"{row['seconds']:.1f} + {row['refit_seconds']:.1f} s"
        print(f"  {row['name']:24} {row['status']:8} {fit:18} weight {row['weight']:.3f} {row['reason']}")
    return {
        "nodes_with_edges": sizes["nodes"],
        "edges_read": sizes["edges"],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "fit_seconds": round(metrics["seconds"], 1),
        "peak_mb": round(usage.ru_maxrss / 1024),
        "report_mb": round((folder / "run" / "report.html").stat().st_size / 1e6, 2),
        "test_accuracy": round(metrics["test_accuracy"], 4),
        "best_floor": round(max(metrics["floors"].values()), 4),
        "command": " ".join(command),
    }


def add_row(path: Path, row: dict[str, Any]) -> None:
    """Add a row to the table, or replace the one of the same measurement."""
    kept = [old for old in tables.read(path) if any(old.get(name) != str(row[name]) for name in KEY)]
    tables.write(path, [*kept, row])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000, help="undirected edges")
    parser.add_argument("--columns", type=int, default=0, help="attributes of a node")
    parser.add_argument("--labelled", type=int, default=0, help="nodes with a label; 0 for all")
    parser.add_argument("--connect", action="store_true", help="an edge for every node that has none")
    parser.add_argument("--graph", choices=[*GRAPHS, *PUBLIC], default="power law")
    parser.add_argument("--public", type=Path, help="the folder of the public sets")
    parser.add_argument("--options", default="", help="further options of demonet fit, as one word")
    parser.add_argument("--folder", type=Path, help="where the files are kept; a temporary folder by default")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/large.csv"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        graph, edges = options.graph, "edges.parquet"
        row = {name: getattr(options, name) for name in ("nodes", "edges", "columns", "labelled")}
        row["labelled"] = row["labelled"] or "all"
        if graph == "brazil":
            row, edges = {"nodes": 131, "edges": 1038, "columns": 0, "labelled": "all"}, graph
        elif graph in PUBLIC:
            row = write_public(options.public, graph, folder)
        elif not (folder / edges).exists():
            data = GRAPHS[graph](options.nodes, options.edges, seed=0)
            write_files(data, options.columns, options.labelled, options.connect, folder)
            del data
        measured = measure(folder, options.options, edges)
    row = {"graph": graph} | row
    python = f"Python {platform.python_version()}, torch {version('torch')}"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {python}"
    row |= {**measured, "load": round(os.getloadavg()[0], 1), "machine": machine}
    print(row, flush=True)
    add_row(options.out, row)


if __name__ == "__main__":
    main()
