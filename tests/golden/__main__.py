"""Write the golden values anew: ``python -m tests.golden --write`` from the root of the project.

It prints the processor seconds of each case. Names of cases after the option choose some of them. Commit the changed
lines of ``golden.json`` together with the change that is meant to cause them.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from tests.golden.cases import CASES, compute
from tests.golden.stored import PATH, read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*", metavar="CASE")
    options = parser.parse_args()
    known = read() if options.names else {}
    for name in options.names or CASES:
        start = time.process_time()
        known[name] = compute(name)
        print(f"{time.process_time() - start:6.2f} s  {name}")
    if options.write:
        PATH.write_text(_lines({name: known[name] for name in CASES}), encoding="utf-8")


def _lines(cases: dict[str, dict[str, Any]]) -> str:
    """One line for each value, so that a difference is short."""
    blocks = []
    for name, values in cases.items():
        inside = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items())
        blocks.append(f" {json.dumps(name)}: {{\n{inside}\n }}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    main()
