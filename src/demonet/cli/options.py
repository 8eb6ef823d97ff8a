"""The options of commands, from the dataclasses in :mod:`demonet.options`."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, get_args, get_type_hints

import typer

from demonet.cli.console import complete_edges
from demonet.options import READING, Column

_EDGES = "A graph (CSV, Parquet, GraphML, .mat, ...), many graphs (TU folder, GIN file), or a data set such as brazil."

EdgesArgument = Annotated[str, typer.Argument(help=_EDGES, autocompletion=complete_edges)]
LabelsOption = Annotated[
    str | None, typer.Option(help="Table of ids and labels, or an attribute in EDGES.", rich_help_panel=READING)
]
FeaturesOption = Annotated[
    str | None, typer.Option(help="Table of ids and numbers or categories, or a matrix.", rich_help_panel=READING)
]


class Options:
    """Marks a parameter of a command that takes a dataclass of options: each of its fields becomes an option.

    Args:
        kind: The dataclass.
        without: Fields that the command does not have.
        changes: Whether the command gets a dictionary of those options that were given, not the dataclass.
        **defaults: Other defaults than those of the dataclass.
    """

    def __init__(self, kind: type, *, without: tuple[str, ...] = (), changes: bool = False, **defaults: Any) -> None:
        self.kind, self.changes, self.defaults = kind, changes, defaults
        self.fields = [each for each in fields(kind) if each.name not in without]

    def parameters(self) -> list[inspect.Parameter]:
        """A parameter for each field, as Typer reads them."""
        hints, found = get_type_hints(self.kind), []
        for each in self.fields:
            kind, known = _spelled(hints[each.name]), get_args(each.metadata.get("choices"))
            default = None if self.changes else self.defaults.get(each.name, each.default)
            if default is None and type(None) not in get_args(kind):
                kind = kind | None
            flags = [each.metadata["flag"]] if "flag" in each.metadata else []
            limits = {name: each.metadata[name] for name in ("min", "max") if name in each.metadata}
            panel, help = each.metadata["panel"], each.metadata["help"]
            if known:
                limits |= {"metavar": "|".join(known), "autocompletion": _completion(known)}
            read = typer.Option(*flags, help=help, rich_help_panel=panel, **limits)
            annotation = Annotated.__class_getitem__((kind, read))  # type: ignore[attr-defined]
            found.append(
                inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            )
        return found

    def take(self, values: dict[str, Any]) -> Any:
        """The dataclass, or the changes, from the values that Typer read; they are taken out of ``values``."""
        hints = get_type_hints(self.kind)
        own = {each.name: values.pop(each.name) for each in self.fields}
        own = {name: _column(value) if _has_columns(hints[name]) else value for name, value in own.items()}
        if self.changes:
            return {name: value for name, value in own.items() if value is not None}
        return self.kind(**self.defaults | own)


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose parameters of type ``Annotated[..., Options(...)]`` are replaced by one option for each field."""
    signature, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
    grouped: dict[str, Options] = {}
    plain: list[inspect.Parameter] = []
    flat: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        marks = [mark for mark in getattr(hints[name], "__metadata__", ()) if isinstance(mark, Options)]
        if marks:
            grouped[name] = marks[0]
            flat += marks[0].parameters()
        else:
            place = plain if parameter.default is inspect.Parameter.empty else flat
            place.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**values: Any) -> Any:
        taken = {name: options.take(values) for name, options in grouped.items()}
        return command(**values, **taken)

    run.__signature__ = inspect.Signature([*plain, *flat])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*plain, *flat)}
    return run


def _completion(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete


def _spelled(kind: Any) -> Any:
    """A type as the command line reads it: a column is text."""
    if not _has_columns(kind):
        return kind
    return list[str] | None if any(getattr(part, "__origin__", None) is list for part in get_args(kind)) else str | None


def _has_columns(kind: Any) -> bool:
    """Whether a type is a column, or has one inside."""
    return kind == Column or {str, int} <= set(get_args(kind)) or any(map(_has_columns, get_args(kind)))


def _column(given: Any) -> Any:
    """A column by name, or by its position from 0; a list of them; None if the list is empty."""
    if isinstance(given, list):
        return [_column(each) for each in given] or None
    return int(given) if isinstance(given, str) and re.fullmatch("[0-9]{1,9}", given) else given
