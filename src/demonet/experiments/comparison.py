"""Every method side by side: all baselines and the presets of DEMO-Net, on the same splits, with time and memory.

``python -m demonet.experiments.comparison`` writes ``results/comparison_runs.csv``, a line for each run as it ends, and
from those that are complete ``results/comparison.csv``. A run that is there is not run again.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from demonet import baselines
from demonet.data import load
from demonet.experiments.presets import Run, baseline_run, demonet_run, spread
from demonet.experiments.rows import write_rows
from demonet.train import family_of
from demonet.train.presets import Family

SETS = ("brazil", "MUTAG")
RUNS = 10
# DEMO-Net_m reads graphs out by the mean of their nodes, and is for graphs only.
PRESETS: dict[str, Run] = {
    "demonet-hash": demonet_run("paper", scheme="hash"),
    "demonet-weight": demonet_run("paper", scheme="weight"),
    "demonet-m-hash": demonet_run("paper", scheme="hash", pooling="mean"),
    "demonet-m-weight": demonet_run("paper", scheme="weight", pooling="mean"),
    "demonet-hash-authors": demonet_run("authors", scheme="hash"),
    "demonet-weight-authors": demonet_run("authors", scheme="weight"),
    "demonet-default": demonet_run("default"),
}


@dataclass(frozen=True)
class OneRun:
    """A method on a split; ``peak_memory_mb`` is the most its process had resident until then, libraries included."""

    dataset: str
    method: str
    seed: int
    accuracy: float
    seconds: float
    peak_memory_mb: float


@dataclass(frozen=True)
class Row:
    """A method on a set: accuracy over the runs, mean processor seconds of a run, the peak over all."""

    dataset: str
    method: str
    mean: float
    std: float
    ci95: float
    runs: int
    seconds: float
    peak_memory_mb: float


def methods() -> list[str]:
    """All names, in the order of the table."""
    return [*baselines.names(), *PRESETS]


def applies(method: str, family: Family) -> bool:
    """Whether a method is made for such a problem: for nodes or graphs, and with attributes where it works on them."""
    if method.startswith("demonet-m-"):
        return family == "graphs"
    if method in PRESETS:
        return True
    if method.startswith("attribute-") and family == "nodes":
        return False
    return ("graphs" if family == "graphs" else "nodes") in baselines.get(method).kinds


def run(dataset: str, method: str, seed: int) -> OneRun:
    """Split ``seed`` and seed ``seed``, in this process; reading the set counts as part of the time.

    The time is that of the processor, so that it does not matter what else the machine is doing.
    """
    chosen = PRESETS[method] if method in PRESETS else baseline_run(method)
    start = time.process_time()
    accuracy = chosen(dataset, seed)
    return OneRun(dataset, method, seed, accuracy, time.process_time() - start, peak_memory_mb())


def peak_memory_mb() -> float:
    """The most memory that this process has had resident, in units of 10^6 bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # what the other clock says includes the process that started this one
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    import resource  # Windows has neither

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def fill(dataset: str, method: str, runs: int, path: Path, *, fresh: bool = False) -> None:
    """Do the runs of one cell that are not in the file, in one fresh process, and write each as it ends."""
    done = [one for one in read(path) if not (fresh and (one.dataset, one.method) == (dataset, method))]
    there = {(one.dataset, one.method, one.seed) for one in done}
    missing = [seed for seed in range(runs) if (dataset, method, seed) not in there]
    if not missing:
        return
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
        for seed in missing:
            done.append(child.submit(run, dataset, method, seed).result())
            write_rows(done, path)


def read(path: Path) -> list[OneRun]:
    """The runs in a file, none where there is no file yet."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            OneRun(
                row["dataset"],
                row["method"],
                int(row["seed"]),
                *(float(row[name]) for name in ("accuracy", "seconds", "peak_memory_mb")),
            )
            for row in csv.DictReader(file)
        ]


def rows(done: Sequence[OneRun], runs: int) -> list[Row]:
    """The cells that have all their runs, in the order of sets and methods."""
    found = []
    for dataset in SETS:
        for method in methods():
            cell = [one for one in done if (one.dataset, one.method) == (dataset, method) and one.seed < runs]
            if len(cell) == runs:
                accuracy = spread([one.accuracy for one in cell])
                seconds = statistics.mean(one.seconds for one in cell)
                found.append(Row(dataset, method, *accuracy, runs, seconds, max(one.peak_memory_mb for one in cell)))
    return found


def table(path: Path) -> str:
    """What ``main`` wrote, as a Markdown table: a line for each method, three columns for each set."""
    with path.open(newline="", encoding="utf-8") as file:
        cells = {(row["dataset"], row["method"]): row for row in csv.DictReader(file)}
    lines = ["| method | " + " | ".join(f"{name} | s | MB" for name in SETS) + " |", "|---" + "|---|--:|--:" * 2 + "|"]
    for method in (method for method in methods() if any((name, method) in cells for name in SETS)):
        shown = [_shown(cells[name, method]) if (name, method) in cells else "| |" for name in SETS]
        lines.append(f"| `{method}` | {' | '.join(shown)} |")
    return "\n".join(lines)


def _shown(row: dict[str, str]) -> str:
    accuracy = f"{float(row['mean']):.3f} ± {float(row['std']):.3f}"
    return f"{accuracy} | {float(row['seconds']):.2g} | {float(row['peak_memory_mb']):.0f}"


def main() -> None:
    """Do what is missing; a method that fails is named, the others go on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--methods", nargs="+", choices=methods(), default=methods())
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--fresh", action="store_true", help="run again what is there")
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    each, whole = arguments.out / "comparison_runs.csv", arguments.out / "comparison.csv"
    failed = []
    for dataset in arguments.sets:
        family = family_of(load(dataset))
        for method in (method for method in arguments.methods if applies(method, family)):
            try:
                fill(dataset, method, arguments.runs, each, fresh=arguments.fresh)
            except Exception as error:
                failed.append(f"{method} on {dataset}: {error}")
                continue
            write_rows(found := rows(read(each), arguments.runs), whole)
            row = next(row for row in found if (row.dataset, row.method) == (dataset, method))
            print(f"{dataset:8} {method:24} {row.mean:.3f} ± {row.std:.3f}  {row.seconds:.2g} s", file=sys.stderr)
    if failed:
        sys.exit("\n".join(failed))
    print(table(whole))


if __name__ == "__main__":
    main()
