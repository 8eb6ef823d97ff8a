"""The command line: one file for each command, thin. ``demonet --help`` explains each in a line."""

from __future__ import annotations

import typer

from demonet.cli.bench import bench
from demonet.cli.console import plain_errors
from demonet.cli.datasets import datasets
from demonet.cli.demo import demo
from demonet.cli.embed import embed
from demonet.cli.export import export
from demonet.cli.fit import fit
from demonet.cli.predict import predict
from demonet.cli.report import report
from demonet.cli.reproduce import reproduce

app = typer.Typer(
    name="demonet",
    help="Degree-specific graph neural networks (DEMO-Net, KDD'19).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo)
app.command("fit")(fit)
app.command("predict")(predict)
app.command("embed")(embed)
app.command("report")(report)
app.command("export")(export)
app.command("datasets")(datasets)
app.command("bench")(bench)
app.command("reproduce")(reproduce)


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit code 2, never a traceback."""
    with plain_errors():
        app()
