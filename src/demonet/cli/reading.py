"""The options of commands that read a graph, as types of their parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demonet.cli.choices import Items, Merge, SelfLoops
from demonet.cli.console import complete_edges

if TYPE_CHECKING:
    from demonet.runs import Reading

PANEL = "Reading files"
EDGES = "A graph (CSV, Parquet, GraphML, .mat, ...), many graphs (TU folder, GIN file), or a data set such as brazil."


def _option(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=PANEL)


EdgesArgument = Annotated[str, typer.Argument(help=EDGES, autocompletion=complete_edges)]
LabelsOption = Annotated[str | None, _option(help="Table of ids and labels, or an attribute in EDGES.")]
FeaturesOption = Annotated[str | None, _option(help="Table of ids and numbers or categories, or a matrix.")]
ItemsOption = Annotated[Items, _option(help="What has labels: nodes, or graphs.")]
DirectedOption = Annotated[bool | None, _option("--directed/--undirected", help="Default: what the file says.")]
SourceOption = Annotated[str | None, _option(help="Column of an edge's source.")]
TargetOption = Annotated[str | None, _option(help="Column of its target.")]
WeightOption = Annotated[str | None, _option(help="Column of its weight.")]
GraphOption = Annotated[str | None, _option(help="Column of its graph.")]
IdOption = Annotated[str | None, _option(help="Column of ids in tables of labels and features.")]
LabelOption = Annotated[str | None, _option(help="Column of labels in LABELS.")]
IgnoreOption = Annotated[list[str] | None, _option(help="Column of FEATURES to leave out; repeatable.")]
MergeOption = Annotated[Merge | None, _option("--merge", help="Weight of an edge listed several times.")]
IsolatedOption = Annotated[bool, _option("--add-isolated", help="Add ids without an edge as nodes.")]
LoopsOption = Annotated[SelfLoops | None, _option(help="Default: the preset's choice.")]


def column_of(text: str | None) -> str | int | None:
    """A column by name, or by its position from 0."""
    return int(text) if text is not None and re.fullmatch("[0-9]{1,9}", text) else text


def make_reading(columns: dict[str, str | None], ignore: list[str] | None = None, **options: Any) -> Reading:
    """How files are read.

    Args:
        columns: Columns by what they hold.
        ignore: Columns of features to leave out.
        **options: Other fields of :class:`~demonet.runs.Reading`.
    """
    from demonet.runs import Reading

    left_out = [column for text in ignore if (column := column_of(text)) is not None] if ignore else None
    return Reading(ignore=left_out, **{name: column_of(text) for name, text in columns.items()}, **options)  # type: ignore[arg-type]
