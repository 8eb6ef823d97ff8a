"""`demonet fit` on a large generated graph with attributes, from a store: time, and memory of its own and mapped.

    python benchmarks/large_store.py [--nodes 25000000] [--columns 64] [--labelled 100000] [--threads 2]

Degrees fall off as a power law, with two edges a node. Attributes are drawn; a class is the sign of the first one and
whether the degree is above three. ``own_gb`` is the largest memory of the process itself (``RssAnon``), ``mapped_gb``
that of pages of the store at the same time, which the system takes back when it needs them. The store needs some 330
bytes of disk a node.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import tables
import torch
from torch_geometric.data import Data

from demonet.data.read import ReadResult
from demonet.data.synthetic import power_law
from demonet.distributed.store import write_store

RESULTS = Path(__file__).parent / "results" / "large_store.csv"
OPTIONS = "--preset paper --scheme smooth --batch-size 8192 --neighbours 16 --epochs 2"


def make(path: Path, nodes: int, columns: int, labelled: int) -> int:
    """Write the store; returns its number of directed edges."""
    edge_index, generator = power_law(nodes, 2 * nodes, hub=0, seed=0).edge_index, torch.Generator().manual_seed(0)
    x, y = torch.randn(nodes, columns, generator=generator), torch.full((nodes,), -1)
    known = torch.randperm(nodes, generator=generator)[:labelled]
    degree = torch.bincount(edge_index[1], minlength=nodes)
    y[known] = (x[known, 0] > 0).long() + 2 * (degree[known] > 3).long()
    data = Data(x=x, y=y, edge_index=edge_index, num_nodes=nodes, node_ids=torch.arange(nodes))
    data.class_names = ["low", "low, many", "high", "high, many"]
    write_store(path, ReadResult(data, False, [f"column {i}" for i in range(columns)], None, "class"), "large")
    return edge_index.size(1)


def memory(process: int) -> tuple[float, float]:
    """Gigabytes of a process: its own, and of mapped files."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return tuple(float(lines.get(name, "0 kB").split()[0]) / 1e6 for name in ("RssAnon", "RssFile"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=25_000_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--labelled", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        edges = make(Path(folder) / "store", options.nodes, options.columns, options.labelled)
        command = ["fit", "store", *OPTIONS.split(), "--out", "run"]
        start, most = time.perf_counter(), (0.0, 0.0)
        settings = os.environ | {"OMP_NUM_THREADS": str(options.threads)}
        running = subprocess.Popen([sys.executable, "-m", "demonet", *command], cwd=folder, env=settings)
        while running.poll() is None:
            most = max(most, memory(running.pid))
            time.sleep(0.1)
        if running.returncode:
            sys.exit(running.returncode)
        seconds = time.perf_counter() - start
        metrics = json.loads((Path(folder) / "run" / "metrics.json").read_text(encoding="utf-8"))
    row = {"nodes": options.nodes, "edges": edges, "columns": options.columns, "labelled": options.labelled}
    row |= {"seconds": f"{seconds:.0f}", "epoch_seconds": f"{metrics['seconds'] / metrics['epochs']:.2f}"}
    row |= {"own_gb": f"{most[0]:.1f}", "mapped_gb": f"{most[1]:.1f}", "threads": options.threads}
    row |= {"command": f"demonet {' '.join(command)}", "torch": version("torch"), "machine": platform.machine()}
    tables.write(options.out, [row])
    print(row)


if __name__ == "__main__":
    main()
