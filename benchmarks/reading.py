"""Reading speed and memory: `read_graph` and `read_graphs` against pandas and PyTorch Geometric's own readers.

    python benchmarks/reading.py [--data FOLDER] [--repeats 3] [--out benchmarks/results/reading.csv]

Each line is the median of fresh processes, in which everything is imported before the clock starts and files are in the
page cache. ``peak`` is what the process grew by at its highest, over what it had before reading; ``arrays`` is the size
of what came out (tensors, and string ids where there are any); the target for ``ratio`` is at most 4. All readers of an
edge list end in the same undirected graph without duplicates, both arcs of each edge: pandas and PyG are given PyG's
``to_undirected`` for that, node ids being 0 to n - 1 already; ours also maps, checks and keeps ids, and drops loops.
FOLDER is laid out as $DEMONET_DATA is, for the graph sets.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tables

HERE = Path(__file__).parent
NODES, SEED = 200_000, 0
TASKS = {  # task: (edges, file, readers)
    "edge list, CSV": (1_000_000, "edges.csv", ["demonet", "pandas"]),
    "edge list, blanks": (1_000_000, "edges.txt", ["demonet", "pandas", "pyg"]),
    "edge list, string ids": (1_000_000, "names.csv", ["demonet", "pandas"]),
    "edge list, Parquet": (10_000_000, "edges.parquet", ["demonet", "pandas"]),
    "TU folder MUTAG": (3_721, "MUTAG", ["demonet", "pyg"]),
    "TU folder PROTEINS": (81_044, "PROTEINS", ["demonet", "pyg"]),
    "TU folder ENZYMES": (37_282, "ENZYMES", ["demonet", "pyg"]),
}


def write_files(folder: Path) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    for size, names in ((1_000_000, ("edges.csv", "edges.txt", "names.csv")), (10_000_000, ("edges.parquet",))):
        pairs = np.random.default_rng(SEED).integers(NODES if size == 1_000_000 else 10 * NODES, size=(2, size))
        table = pa.table({"source": pairs[0], "target": pairs[1]})
        for name in names:
            if name.endswith(".parquet"):
                parquet.write_table(table, folder / name)
            elif name == "names.csv":
                strings = pa.table(
                    {c: pa.array([f"node-{i:07}" for i in table[c].to_pylist()]) for c in table.column_names}
                )
                arrow_csv.write_csv(strings, folder / name)
            else:
                blanks = name.endswith(".txt")
                options = arrow_csv.WriteOptions(include_header=not blanks, delimiter=" " if blanks else ",")
                arrow_csv.write_csv(table, folder / name, options)


def read_one(task: str, reader: str, path: Path) -> dict[str, float]:
    """In a fresh process: read once, and say how long it took and how much memory."""
    import warnings

    import numpy as np
    import pandas as pd
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401
    import torch
    from torch_geometric.data import Data
    from torch_geometric.io import read_tu_data, read_txt_array
    from torch_geometric.utils import to_undirected

    from demonet.data import read_graph, read_graphs

    warnings.simplefilter("ignore")

    def from_pandas(frame: pd.DataFrame) -> list[Data]:
        if not pd.api.types.is_integer_dtype(frame["source"].dtype):
            codes, _ = pd.factorize(pd.concat([frame["source"], frame["target"]]), sort=True)
            edge_index = torch.from_numpy(codes.reshape(2, -1))
        else:
            edge_index = torch.from_numpy(np.stack([frame["source"].to_numpy(), frame["target"].to_numpy()]))
        return [Data(edge_index=to_undirected(edge_index))]

    def with_pandas() -> list[Data]:
        if path.suffix == ".parquet":
            return from_pandas(pd.read_parquet(path))
        return from_pandas(
            pd.read_csv(
                path,
                sep=" " if path.suffix == ".txt" else ",",
                names=["source", "target"],
                header=None if path.suffix == ".txt" else 0,
            )
        )

    def with_pyg() -> list[Data]:
        if path.is_dir():
            return [read_tu_data(str(path), path.name)[0]]
        return [Data(edge_index=to_undirected(read_txt_array(str(path), sep=" ", dtype=torch.long).T))]

    def with_demonet() -> list[Data]:
        return list(read_graphs(path)) if path.is_dir() else [read_graph(path)]

    run = {"demonet": with_demonet, "pandas": with_pandas, "pyg": with_pyg}[reader]
    path.is_dir() or path.read_bytes()  # into the page cache
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = memory("VmRSS")
    start = time.perf_counter()
    graphs = run()
    seconds = time.perf_counter() - start
    peak = memory("VmHWM") - before
    values = [value for graph in graphs for value in graph.to_dict().values()]
    arrays = sum(value.numel() * value.element_size() for value in values if torch.is_tensor(value))
    strings = [value for value in values if isinstance(value, list)]
    arrays += sum(sys.getsizeof(ids) + sum(map(sys.getsizeof, ids)) for ids in strings)
    return {
        "seconds": seconds,
        "peak": peak,
        "arrays": arrays / 2**20,
        "arcs": sum(g.edge_index.size(1) for g in graphs),
    }


def memory(what: str) -> float:
    """Mebibytes, as Linux counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("DEMONET_DATA"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "reading.csv")
    parser.add_argument("--one", nargs=3, metavar=("TASK", "READER", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(read_one(*options.one[:2], Path(options.one[2]))))
        return
    import pandas
    import pyarrow
    import torch
    import torch_geometric

    packages = (torch, torch_geometric, pandas, pyarrow)
    versions = ", ".join(f"{package.__name__} {package.__version__}" for package in packages)
    cores = len(os.sched_getaffinity(0))
    machine = f"{platform.machine()}, {cores} cores, Python {platform.python_version()}, {versions}"
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        write_files(Path(scratch))
        for task, (edges, file, readers) in TASKS.items():
            path = Path(scratch) / file
            if task.startswith("TU"):
                if options.data is None or not (options.data / file).is_dir():
                    print(f"{task}: skipped, --data has no {file}", file=sys.stderr)
                    continue
                path = options.data / file
            for reader in readers:
                command = [sys.executable, __file__, "--one", task, reader, str(path)]
                runs = [
                    json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                    for _ in range(options.repeats)
                ]
                median = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
                row = {"task": task, "edges": edges, "reader": reader, "seconds": round(median["seconds"], 3)}
                row |= {"peak_mib": round(median["peak"], 1), "arrays_mib": round(median["arrays"], 1)}
                row |= {
                    "ratio": round(median["peak"] / median["arrays"], 2),
                    "arcs": int(median["arcs"]),
                    "runs": options.repeats,
                    "machine": machine,
                }
                rows.append(row)
                print({key: row[key] for key in list(row)[:-1]}, flush=True)
    tables.write(options.out, rows)


if __name__ == "__main__":
    main()
