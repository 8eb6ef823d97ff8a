"""``demonet compare``: every method of the package on the user's own graph, over the same splits."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demonet.cli.console import INTERRUPTED, Heartbeat, console_progress, print_table, say
from demonet.cli.options import EdgesArgument, FeaturesOption, LabelsOption, Options, with_options
from demonet.errors import DemonetError
from demonet.options import COMPARING, Comparing, Reading
from demonet.workers import import_ahead

if TYPE_CHECKING:
    from demonet.runs.compare import Leaderboard

FOLDER = "Folder"
BESIDE = ("auc", "macro-f1", "accuracy", "mae", "r2", "rmse")  # the first two of a task are shown beside what ranks


@with_options
def compare(
    edges: EdgesArgument,
    *,
    out: Annotated[Path, typer.Option(help="The folder to write.", rich_help_panel=FOLDER)] = Path("comparison"),
    labels: LabelsOption = None,
    features: FeaturesOption = None,
    reading: Annotated[Reading, Options(Reading)],
    methods: Annotated[
        str | None,
        typer.Option(help="Names, separated by commas. Default: all but expensive ones.", rich_help_panel=COMPARING),
    ] = None,
    comparing: Annotated[Comparing, Options(Comparing, without=("methods", "jobs"))],
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes at once. Default: one per core.", rich_help_panel=COMPARING)
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the comparison in the folder.", rich_help_panel=FOLDER)
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the leaderboard as JSON.", rich_help_panel=FOLDER)
    ] = False,
) -> None:
    """Compare all methods on your own graph over the same splits; the same command goes on where it stopped."""
    import_ahead()
    from demonet.report.compare import compare_page
    from demonet.report.page import write
    from demonet.runs.compare import compare_run

    named = None if methods is None else tuple(name.strip() for name in methods.split(",") if name.strip())
    comparing = replace(comparing, methods=named, jobs=jobs or os.cpu_count() or 1)
    try:
        with Heartbeat() as heartbeat:
            board = compare_run(
                edges,
                labels,
                features,
                out=out,
                reading=reading,
                comparing=comparing,
                overwrite=overwrite,
                progress=console_progress(heartbeat),
                page=lambda board, path: write(compare_page(board), path),
            )
    except KeyboardInterrupt:
        say("interrupted: run the same command again to continue", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        say(json.dumps(board.to_json()))
    else:
        _print(board)
        say(board.verdict.replace("`", ""))
        say(f"Wrote {out}: open {out / 'report.html'}; the table is {out / 'leaderboard.csv'}.")
    failed = [row.method for row in board.rows if row.status == "failed"]
    if failed and board.best is None:
        raise DemonetError(f"no method could be compared; failed: {', '.join(failed)}", file=out / "leaderboard.csv")


def _print(board: Leaderboard) -> None:
    from demonet.runs.evaluate import shown

    def number(value: float | None, form: str) -> str:
        return "" if value is None else f"{value:{form}}"

    def score(value: float | None) -> str:
        return "" if value is None else shown(value)

    ranked, found = board.about["metric"], board.about["metrics"]
    beside = [name for name in BESIDE if name in found and name != ranked][:2]
    rows = [
        [
            row.method + (" *" if row.status == "incomplete" else ""),
            score(row.mean),
            "" if row.low is None else f"{score(row.low)} to {score(row.high)}",
            number(row.p, ".3f"),
            *(score(row.means.get(name)) for name in beside),
            number(row.seconds, ".1f"),
        ]
        for row in board.rows
        if row.mean is not None
    ]
    heads = ["method", "mean", "95 % interval", "p", *beside, "seconds"]  # no more: a line has 80 columns
    print_table(f"{ranked} over {board.about['splits']} splits", heads, rows)
    reasons: dict[str, list[str]] = {}
    for row in board.rows:
        if row.reason:
            mark = "* " if row.status == "incomplete" else ""
            reasons.setdefault(f"{mark}{row.status}, {row.reason}", []).append(row.method)
    for reason, names in reasons.items():
        say(f"{reason}: {', '.join(names)}")
