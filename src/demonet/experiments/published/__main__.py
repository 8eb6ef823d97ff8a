"""``python -m demonet.experiments.published --methods gin --jobs 8`` writes ``results/published.csv``.

A row that is already there is not measured again unless asked for with ``--fresh``. Folds, splits or settings that have
ended are kept in a folder beside it until their row is written, so that the same command goes on after a stop.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from demonet.experiments.published.claims import all_claims, keep, read, select
from demonet.experiments.published.pieces import measure


def main() -> None:
    """Measure what is missing, and write after every claim."""
    claims = all_claims()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", choices=sorted({claim.method for claim in claims}), default=[])
    parser.add_argument("--sets", nargs="+", choices=sorted({claim.dataset for claim in claims}), default=[])
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--out", type=Path, default=Path("results/published.csv"))
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error("--jobs is at least 1")
    for claim in select(claims, arguments.methods, arguments.sets):
        if not arguments.fresh and claim.key in {row.key for row in read(arguments.out)}:
            continue
        row = measure(claim, arguments.out.with_suffix(".pieces"), arguments.jobs)
        keep(row, arguments.out, claims)
        print(
            f"{row.method:12} {row.dataset:12} {row.protocol}: published {row.published:.3f}, "
            f"measured {row.measured:.3f} ± {row.std:.3f}, {row.seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    main()
