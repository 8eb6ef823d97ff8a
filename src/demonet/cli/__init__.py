"""The command line. One file per command; heavy imports are inside the commands, so that help is fast.

The commands of :data:`STUDY` are in the package ``demonet_study``, which imports this one. They are looked up by name
when they are asked for, or listed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from demonet.cli.compare import compare
from demonet.cli.console import check_address_limit, plain_errors, spelling
from demonet.cli.datasets import datasets
from demonet.cli.demo import demo
from demonet.cli.embed import embed
from demonet.cli.export import export
from demonet.cli.fit import fit
from demonet.cli.predict import predict
from demonet.cli.report import report
from demonet.cli.store import store
from demonet.distributed.launch import status

STUDY = ("bench", "reproduce")  # demonet_study.cli.bench.bench, demonet_study.cli.reproduce.reproduce


class Commands(TyperGroup):
    """The commands of this package, and those of the study."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        return [*super().list_commands(ctx), *STUDY]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is none."""
        if cmd_name in STUDY and cmd_name not in self.commands:
            found = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            found.command(cmd_name)(getattr(import_module(f"demonet_study.cli.{cmd_name}"), cmd_name))
            self.add_command(typer.main.get_command(found), cmd_name)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(name="demonet", cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)
for command in (demo, fit, compare, store, predict, embed, report, export, datasets):
    app.command(command.__name__)(command)


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
            if not {"--help", "--version"} & {*sys.argv}:
                check_address_limit()
            code = app(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
