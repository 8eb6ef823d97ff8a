"""The long form: losses with 1, 2 and 4 processes in every configuration, as a table.

``python -m tests.distributed [--epochs 50] [--out benchmarks/results/processes.csv]`` (or ``make processes``) from the
root of the project. ``difference`` is the largest of all training and validation losses from those of one process.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
import torch
from tests.distributed.cases import full_product, histories
from tests.distributed.processes import run

WORLDS = (2, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/processes.csv"))
    options = parser.parse_args()
    cases, rows = list(full_product()), []
    alone = run(1, histories, cases, options.epochs)[0]
    for world in WORLDS:
        every = run(world, histories, cases, options.epochs)
        assert all(found == every[0] for found in every), "processes have different losses"
        for case, expected, found in zip(cases, alone, every[0], strict=True):
            difference = max(np.abs(np.subtract(a, b)).max() for a, b in zip(expected[:2], found[:2], strict=True))
            model = " ".join(f"{name}={value}" for name, value in case.model.items()) or "scheme=weight"
            kind = {"directed": case.directed, "partition": case.partition, "by": case.by, "task": case.task}
            kind |= {"weighted": case.weighted, "sparse": case.sparse, "dtype": str(case.dtype).removeprefix("torch.")}
            rows.append({"model": model, **kind, "processes": world, "epochs": options.epochs})
            rows[-1] |= {"loss": f"{found[0][-1]:.6f}", "difference": f"{difference:.1e}", "torch": torch.__version__}
        with options.out.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"{world} processes: {len(cases)} cases", flush=True)
    for dtype in ("float64", "float32"):
        worst = max(float(row["difference"]) for row in rows if row["dtype"] == dtype)
        print(f"largest difference in {dtype}: {worst:.1e}")
    sys.exit(any(float(row["difference"]) > 1e-5 for row in rows if row["dtype"] == "float64"))


if __name__ == "__main__":
    main()
