"""Every CPU table of the Performance page: networks at 100,000 nodes, also compiled, times by size, the paper's sets.

    python benchmarks/cpu.py --out benchmarks/results [--only epoch compiled sizes sets]

Every part runs in a process of its own for each number of threads, set by OMP_NUM_THREADS. The sets are read from
$DEMONET_DATA or downloaded. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tables import say

from demonet_study.bench import METHODS, GraphSpec, bench, bench_set
from demonet_study.bench.measure import Row
from demonet_study.experiments.rows import read_rows, write_rows

SETS = ["brazil", "usa", "flickr"]
LINES = ["weight", "hash", "smooth", "mlp", "gcn", "gcn-csr", "sage-csr", "gin-csr", "gat", "gat-8", "mfconv"]


def epoch(size: float, command: str) -> list[Row]:
    """100,000 nodes, 400,000 arcs: all methods, float32 and bfloat16, with peak memory."""
    rows = []
    for precision in ("float32", "bfloat16"):
        spec = GraphSpec("uniform", nodes=round(100_000 * size))
        rows += bench(spec, list(METHODS), precision=precision, apart=True, command=command, on_step=say)
    return rows


def compiled(size: float, command: str) -> list[Row]:
    """The first table once more, compiled."""
    spec = GraphSpec("uniform", nodes=round(100_000 * size))
    return bench(spec, list(METHODS), modes=("compiled",), command=command, on_step=say)


def sizes(size: float, command: str) -> list[Row]:
    """The running-time figure of the paper: 2n random edges."""
    rows = []
    for nodes in (1_000, 10_000, 100_000, 1_000_000):
        spec = GraphSpec("uniform", nodes=max(100, round(nodes * size)))
        together = nodes < 1_000_000  # of the largest, there is room for one at a time
        rows += bench(spec, LINES, apart=True, together=together, seconds=10.0, command=command, on_step=say)
    return rows


def sets(size: float, command: str) -> list[Row]:
    """Presets on the paper's sets."""
    rows = []
    for name in SETS if size == 1 else SETS[:1]:
        # Of the largest, there is room for one at a time. On the others a sample is a few milliseconds: take many.
        options: dict[str, Any] = {"together": False} if name == "flickr" else {"repeats": 100}
        rows += bench_set(name, **options, command=command, on_step=say)
    return rows


# With which numbers of threads: the paper's sets are so small that one core is the usual case.
PARTS: dict[str, tuple[Callable[[float, str], list[Row]], tuple[int, ...]]] = {
    "epoch": (epoch, (2, 1)),
    "compiled": (compiled, (2,)),
    "sizes": (sizes, (2,)),
    "sets": (sets, (1, 2)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--size", type=float, default=1.0, help="share of the full sizes, to try it out")
    parser.add_argument("--one", nargs=2, metavar=("PART", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        part, path = options.one
        write_rows(PARTS[part][0](options.size, f"cpu.py --only {part}"), Path(path))
        return
    for part in options.only:
        rows: list[Row] = []
        for threads in PARTS[part][1]:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "rows.csv"
                command = [sys.executable, __file__, "--one", part, str(path), "--size", str(options.size)]
                subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": str(threads)})
                rows += read_rows(Row, path)
        write_rows(rows, options.out / f"cpu_{part}.csv")


if __name__ == "__main__":
    main()
