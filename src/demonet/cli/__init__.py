"""The command line: one file for each command, thin. ``demonet --help`` explains each in a line."""

from __future__ import annotations

import sys

import typer

from demonet.cli.datasets import datasets
from demonet.cli.demo import demo
from demonet.errors import DemonetError

app = typer.Typer(
    name="demonet",
    help="Degree-specific graph neural networks (DEMO-Net, KDD'19).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo)
app.command("datasets")(datasets)


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit code 2, never a traceback."""
    try:
        app()
    except DemonetError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
