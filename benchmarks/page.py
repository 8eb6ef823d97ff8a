"""The Performance page from the files of results: its tables between their markers, and the running-time figures.

python benchmarks/page.py [--results benchmarks/results] [--docs docs]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from demonet.atomic import replacing
from demonet.bench.rows import read_rows
from demonet.bench.tables import FIGURES, fill
from demonet.report.bench import running_time

ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    options = parser.parse_args()
    page = options.docs / "performance.md"
    text = fill(page.read_text(encoding="utf-8"), options.results)
    with replacing(page) as draft:
        draft.write_text(text, encoding="utf-8")
    for name, title in FIGURES.items():
        if (options.results / f"{name}.csv").exists():
            image = running_time(read_rows(options.results / f"{name}.csv"), title)
            (options.docs / "images" / f"{name}.svg").write_text(image, encoding="utf-8")


if __name__ == "__main__":
    main()
