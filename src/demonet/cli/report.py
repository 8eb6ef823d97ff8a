"""``demonet report``: write the page of a finished run again."""

from __future__ import annotations

import typer

from demonet.cli.predict import RunFolder


def report(run: RunFolder) -> None:
    """Write report.html again from the folder of a finished run; the graph is not needed."""
    from demonet.report.page import write
    from demonet.report.run import run_page
    from demonet.runs import load_run
    from demonet.runs.folder import PAGE

    write(run_page(load_run(run)), run / PAGE)
    typer.echo(f"Wrote {run / PAGE}.")
