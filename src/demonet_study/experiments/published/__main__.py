"""``python -m demonet_study.experiments.published --methods gin --jobs 8`` writes ``results/published.csv``.

A row that is already in the file is kept as it is; ``--fresh`` measures it again with the present code. Every fold,
split or setting is a run of the ledger, so the same command resumes after an interruption.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from demonet_study.experiments.published.results import all_results, compare, keep, read
from demonet_study.ledger.job import Wanted, perform
from demonet_study.ledger.store import Ledger
from demonet_study.ledger.work import work


def main() -> None:
    """Measure what is missing and write the rows."""
    results = all_results()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", choices=sorted({one.method for one in results}), default=[])
    parser.add_argument("--sets", nargs="+", choices=sorted({one.dataset for one in results}), default=[])
    parser.add_argument("--fresh", action="store_true", help="measure again rows that are in the file")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, each with one thread")
    parser.add_argument("--out", type=Path, default=Path("results/published.csv"))
    parser.add_argument("--ledger", type=Path, help="default: ledger.sqlite in the folder of --out")
    arguments = parser.parse_args()
    there = set() if arguments.fresh else {row.key for row in read(arguments.out)}
    missing = [
        one
        for one in results
        if one.key not in there
        and (not arguments.methods or one.method in arguments.methods)
        and (not arguments.sets or one.dataset in arguments.sets)
    ]
    wanted = [Wanted(one.cell, one.pieces) for one in missing]
    with Ledger(arguments.ledger or arguments.out.with_name("ledger.sqlite")) as ledger:
        summary = work(ledger, wanted if arguments.fresh else ledger.incomplete(wanted), perform, jobs=arguments.jobs)
        runs = ledger.results((one.cell for one in wanted), enough={one.cell: one.runs for one in wanted})
    for one in missing:
        if len(runs[one.cell]) < one.pieces:
            continue
        row = compare(one, runs[one.cell][: one.pieces])
        keep(row, arguments.out, results)
        print(
            f"{row.method:12} {row.dataset:12} {row.protocol}: published {row.published:.3f}, "
            f"measured {row.measured:.3f} ± {row.std:.3f}, {row.seconds:.0f} s",
            file=sys.stderr,
        )
    for failure in summary.failures:
        print(f"failed: {failure.job}: {failure.error.strip().splitlines()[-1]}", file=sys.stderr)
    if summary.failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
