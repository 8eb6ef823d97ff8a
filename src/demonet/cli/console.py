"""What commands say when something is amiss: warnings and errors on stderr, each one line however long it is."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from demonet.errors import DemonetError, DemonetWarning

# What the Python functions call their arguments, and what the commands do.
_OPTIONS = {
    "add_isolated=True adds": "--add-isolated adds",
    'self_loops="keep" keeps them': "--self-loops keep keeps them",
    "directed=True": "--directed",
    "header=False reads it as an edge": "add a line with column names if it is an edge",
    "source=, target= and weight=": "--source, --target and --weight",
}


def in_options(text: str) -> str:
    """A message of the package in the words of the command line, on one line."""
    for argument, option in _OPTIONS.items():
        text = text.replace(argument, option)
    return " ".join(text.splitlines())


@contextmanager
def plain_errors() -> Iterator[None]:
    """Expected errors are one line on stderr and exit code 2; what was changed on the user's behalf is a line, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DemonetWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if issubclass(category, DemonetWarning):
                typer.echo(f"warning: {in_options(str(message))}", err=True)
            else:
                shown(message, category, *rest)

        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        except DemonetError as error:
            typer.echo(f"{'' if error.file else 'error: '}{in_options(str(error))}", err=True)
            sys.exit(2)
        except OSError as error:
            typer.echo(f"{error.filename or 'error'}: {error.strerror or error}", err=True)
            sys.exit(2)


def complete_edges(incomplete: str) -> list[str]:
    """Names of known sets and of files, for a shell."""
    from demonet.data.catalog import CATALOG

    folder, _, start = incomplete.rpartition("/")
    try:
        entries = sorted(Path(f"{folder}/" if incomplete.startswith("/") else folder or ".").iterdir())
    except OSError:
        entries = []
    files = [
        f"{folder}/{entry.name}" if "/" in incomplete else entry.name
        for entry in entries
        if entry.name.startswith(start) and not entry.name.startswith(".")
    ]
    return [name for name in CATALOG if name.lower().startswith(incomplete.lower())] + files
