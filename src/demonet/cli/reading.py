"""Options for columns of tables, which ``fit``, ``predict`` and ``embed`` share."""

from __future__ import annotations

from typing import Annotated

import typer

from demonet.cli.choices import Merge

READING = "Reading files"
Source = Annotated[str | None, typer.Option(help="Column of an edge's source.", rich_help_panel=READING)]
Target = Annotated[str | None, typer.Option(help="Column of its target.", rich_help_panel=READING)]
Weight = Annotated[str | None, typer.Option(help="Column of its weight.", rich_help_panel=READING)]
IdColumn = Annotated[
    str | None, typer.Option(help="Column of ids in tables of labels and features.", rich_help_panel=READING)
]
MergeOption = Annotated[
    Merge | None, typer.Option("--merge", help="Weight of an edge listed several times.", rich_help_panel=READING)
]


def column_of(text: str | None) -> str | int | None:
    """A column by name, or by its position from 0."""
    return int(text) if text is not None and text.isdigit() else text
