"""`demonet fit` on a graph of 100,000 nodes and a million edges: time, memory and the size of the page.

    python benchmarks/fit_large.py [--nodes 100000] [--edges 1000000] [--out benchmarks/results/fit_large.csv]

Two graphs are written as CSV: edges drawn uniformly, and with degrees that fall off as a power law with a hub. Every
node has one of five classes, mostly by how connected its neighbours are. The command is a process of its own with all
its defaults; ``seconds``, ``cpu_seconds`` (of all cores) and ``peak_mb`` are of the whole of it, from start to page,
reading, floors and all. ``load`` is the machine's: above the number of its cores, others were at work on it, too.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from torch_geometric.data import Data

from demonet.data.synthetic import power_law, uniform_random
from demonet.degree.count import count_degree

GRAPHS = {"uniform": uniform_random, "power law": power_law}
NOISE = 0.3  # of the classes are drawn at random
FOLDER = Path(__file__).parent / "results"


def classes(data: Data, seed: int) -> np.ndarray:
    """Five equal classes by the mean log-degree of the neighbours, some of them at random."""
    generator = np.random.default_rng(seed)
    source, target = data.edge_index.numpy()
    degree = np.maximum(count_degree(data.edge_index, data.num_nodes).numpy(), 1)
    mean = np.bincount(target, np.log1p(degree[source]), minlength=data.num_nodes) / degree
    chosen = np.searchsorted(np.quantile(mean, [0.2, 0.4, 0.6, 0.8]), mean)
    return np.where(generator.random(len(mean)) < NOISE, generator.integers(5, size=len(mean)), chosen)


def write_files(data: Data, folder: Path) -> None:
    source, target = data.edge_index.numpy()
    once = source < target
    arrow_csv.write_csv(pa.table({"source": source[once], "target": target[once]}), folder / "edges.csv")
    labels = [f"class {c}" for c in classes(data, 0).tolist()]
    seen = count_degree(data.edge_index, data.num_nodes).numpy() > 0  # the others are in no edge
    table = pa.table({"node": np.flatnonzero(seen), "label": pa.array(np.array(labels)[seen])})
    arrow_csv.write_csv(table, folder / "labels.csv")


def measure(folder: Path) -> dict[str, object]:
    """Run the command, and ask the kernel what it took."""
    command = ["demonet", "fit", "edges.csv", "--labels", "labels.csv", "--out", "run", "--json"]
    start = time.perf_counter()
    with (folder / "metrics.json").open("w") as out:
        script = [sys.executable, "-c", "from demonet.cli import main; main()", *command[1:]]
        _, status, usage = os.wait4(subprocess.Popen(script, cwd=folder, stdout=out).pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    metrics = json.loads((folder / "metrics.json").read_text())["metrics"]
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "training_seconds": round(metrics["seconds"], 1),
        "epochs": metrics["epochs"],
        "peak_mb": round(usage.ru_maxrss / 1024),
        "report_mb": round((folder / "run" / "report.html").stat().st_size / 1e6, 2),
        "test_accuracy": round(metrics["test_accuracy"], 4),
        "best_floor": round(max(metrics["floors"].values()), 4),
        "command": " ".join(command),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--graphs", nargs="*", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--out", type=Path, default=FOLDER / "fit_large.csv")
    options = parser.parse_args()
    machine = (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {version('torch')}"
    )
    rows = []
    for name in options.graphs:
        with tempfile.TemporaryDirectory() as temporary:
            write_files(GRAPHS[name](options.nodes, options.edges, seed=0), Path(temporary))
            rows.append({"graph": name, "nodes": options.nodes, "edges": options.edges, **measure(Path(temporary))})
        rows[-1]["load"] = round(os.getloadavg()[0], 1)
        rows[-1]["machine"] = machine
        print(rows[-1], flush=True)
        with options.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
