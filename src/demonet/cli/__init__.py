"""The command line. One file per command; heavy imports are inside the commands, so that help is fast."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from demonet.cli.bench import bench
from demonet.cli.compare import compare
from demonet.cli.console import plain_errors, spelling
from demonet.cli.datasets import datasets
from demonet.cli.demo import demo
from demonet.cli.embed import embed
from demonet.cli.export import export
from demonet.cli.fit import fit
from demonet.cli.predict import predict
from demonet.cli.report import report
from demonet.cli.reproduce import reproduce
from demonet.cli.store import store
from demonet.distributed.launch import status

app = typer.Typer(name="demonet", no_args_is_help=True, pretty_exceptions_enable=False)
app.command("demo")(demo)
app.command("fit")(fit)
app.command("compare")(compare)
app.command("store")(store)
app.command("predict")(predict)
app.command("embed")(embed)
app.command("report")(report)
app.command("export")(export)
app.command("datasets")(datasets)
app.command("bench")(bench)
app.command("reproduce")(reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        from demonet import __version__

        typer.echo(f"demonet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Degree-specific graph neural networks (DEMO-Net, KDD'19)."""


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit code 2, without a traceback."""
    with status():
        with plain_errors(spelling(app, sys.argv[1:])):
            code = app(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
