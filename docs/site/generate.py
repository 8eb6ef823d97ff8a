"""Writes what pages say of presets, commands and halos, from code and results: ``python docs/site/generate.py``."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer

from demonet.cli import app
from demonet.train.presets import PRESETS, Family, Preset

DOCS = Path(__file__).parent.parent
NAMES = ("strong", "default", "deep-5", "deep-12", "paper", "authors")
FAMILIES: dict[Family, str] = {
    "nodes": "Nodes without attributes",
    "attributes": "Nodes with attributes",
    "graphs": "Graphs",
}


def settings_of(preset: Preset) -> dict[str, Any]:
    """Every setting of a preset, by its name in code."""
    flat = asdict(preset)
    nested = {f"{part}.{name}": value for part in ("model", "train") for name, value in flat.pop(part).items()}
    return {name: value for name, value in flat.items() if name not in ("name", "family")} | nested


def presets() -> str:
    """What all presets share, then a table for each family with what they do not."""
    every = {key: settings_of(preset) for key, preset in PRESETS.items()}
    first = next(iter(every.values()))
    same = [name for name in first if len({repr(settings[name]) for settings in every.values()}) == 1]
    parts = ["The same in all: " + ", ".join(f"`{name} = {first[name]!r}`" for name in same) + "."]
    for family, title in FAMILIES.items():
        columns = [every[name, family] for name in NAMES]
        rows = [["setting", *(f"`{name}`" for name in NAMES)], ["---"] * (len(NAMES) + 1)]
        rows += [[f"`{n}`", *(str(column[n]) for column in columns)] for n in first if n not in same]
        parts += [f"### {title}", "\n".join(f"| {' | '.join(row)} |" for row in rows)]
    return "\n\n".join(parts)


def commands() -> str:
    """One section a command: what it does, its arguments and its options."""
    group: Any = typer.main.get_command(app)
    return "\n\n".join(_section(name, group.get_command(None, name)) for name in group.list_commands(None))


def _section(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    hints = get_type_hints(command.callback)
    usage = " ".join(["demonet", name, *(p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments)])
    needed = [f"{p.opts[0]} {p.name.upper()}" for p in options if p.required]
    rows = [f"| `{p.name.upper()}` | {_cell(p.help)} | {'' if p.required else 'none'} |" for p in arguments]
    rows += [f"| {_names(p, hints[p.name])} | {_cell(p.help)} | {_default(p)} |" for p in options]
    parts = [f"## demonet {name}", _cell(command.help), f"`{' '.join([usage, *needed])}`"]
    return "\n\n".join([*parts, "\n".join(["| | | default |", "|---|---|---|", *rows])] if rows else parts)


def _names(option: Any, hint: Any) -> str:
    """The option's spellings and, of a Literal, an enumeration or a registry, its values."""
    named = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    kinds = (hint, *get_args(hint))
    choices = [[c.value for c in kind] for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum)]
    choices += [list(get_args(kind)) for kind in kinds if get_origin(kind) is Literal]
    if option.metavar and "|" in option.metavar:
        choices.append(option.metavar.split("|"))
    return "<br>".join([named, *(" ".join(f"`{value}`" for value in values) for values in choices)])


def _default(option: Any) -> str:
    if option.required:
        return "required"
    value = getattr(option.default, "value", option.default)
    return "" if value is None or value is False else f"`{value}`"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def halo() -> str:
    """The halo over the number of nodes: a column for each number of workers, a row for each graph and partition."""
    with (DOCS.parent / "benchmarks" / "results" / "communication.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    workers = list(dict.fromkeys(row["workers"] for row in rows))
    table = [["graph", "partition", *(f"{int(count):,}" for count in workers)], ["---", "---", *["--:"] * len(workers)]]
    for graph, partition in dict.fromkeys((row["graph"], row["partition"]) for row in rows):
        found = {row["workers"]: row["halo"] for row in rows if (row["graph"], row["partition"]) == (graph, partition)}
        table.append([graph, f"`{partition}`", *(f"{float(found[count]):.2f}" for count in workers)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table)


PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "presets.md": ("presets", presets),
    "cli.md": ("commands", commands),
    "distributed.md": ("halo", halo),
}


def written(page: str) -> str:
    """The page as it should be."""
    name, make = PARTS[page]
    text = (DOCS / page).read_text(encoding="utf-8")
    pattern = rf"(<!-- {name}: [^>]*-->\n).*?(<!-- end -->)"
    new, count = re.subn(pattern, lambda found: f"{found[1]}\n{make()}\n\n{found[2]}", text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{page} has the part {name!r} {count} times")
    return new


if __name__ == "__main__":
    for page in PARTS:
        (DOCS / page).write_text(written(page), encoding="utf-8")
