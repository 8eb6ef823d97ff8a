"""``demonet datasets``: a table of the paper's data sets, or one of them with its degree distribution."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated

import typer

from demonet.errors import DemonetWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from torch import Tensor

    from demonet.data.catalog import DataSet

BAR = 40


def datasets(
    name: Annotated[str | None, typer.Argument(help="A data set to show with its degree distribution.")] = None,
) -> None:
    """List the paper's data sets and whether they are available locally, or show one (downloaded if needed)."""
    from rich.console import Console

    from demonet.data import catalog

    console = Console()
    if name is None:
        console.print(_listing())
        console.print(
            "attrs: attributes, or distinct node labels; degrees: distinct degrees; * quartiles of the degree.\n"
            "Files are looked up in $DEMONET_DATA, then in the user's cache, and downloaded otherwise.",
            style="dim",
        )
    else:
        _show(catalog.find(name), console)


def _listing() -> Table:
    from rich.table import Table

    from demonet.data import catalog, download

    table = Table(
        title="Data sets of the DEMO-Net paper", title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("name")
    for column in ("graphs", "nodes", "edges", "classes", "attrs", "degrees", "largest", "isolated"):
        table.add_column(column, justify="right")
    table.add_column("here")
    for entry in catalog.CATALOG.values():
        facts = entry.statistics
        classes = str(len(facts.class_counts)) if facts.class_counts else "4*"
        row = [facts.graphs if entry.task == "graphs" else "", facts.nodes, facts.edges, classes]
        row += [facts.attributes or "", facts.distinct_degrees, facts.max_degree, facts.isolated]
        here = "yes" if download.locate(entry) else "no"
        table.add_row(entry.name, *(f"{cell:,}" if isinstance(cell, int) else cell for cell in row), here)
    return table


def _show(entry: DataSet, console: Console) -> None:
    from rich.table import Table

    from demonet.data import download, load
    from demonet.data.load import degrees, measure

    if download.locate(entry) is None:
        console.print(f"Downloading {entry.name} from {entry.files[0].url}")
    with warnings.catch_warnings(record=True) as changes:
        warnings.simplefilter("always", DemonetWarning)
        data = load(entry.name)
    facts = measure(data)
    table = Table(title=f"{entry.name}: {entry.title}", show_header=False, title_justify="left")
    table.add_column()
    table.add_column(overflow="fold")
    rows = {
        "graphs": f"{facts.graphs:,}" if entry.task == "graphs" else None,
        "nodes": f"{facts.nodes:,}",
        "edges": f"{facts.edges:,} (simple, undirected)",
        "classes": ", ".join(f"{name}: {n:,}" for name, n in zip(data.class_names, facts.class_counts, strict=True)),
        "degree cuts": ", ".join(map(str, cuts)) if (cuts := getattr(data, "degree_cuts", None)) else None,
        "attributes" if entry.task == "nodes" else "node labels": f"{facts.attributes:,}" if facts.attributes else None,
        "degrees": f"{facts.distinct_degrees} distinct, largest {facts.max_degree:,}",
        "isolated": f"{facts.isolated:,}",
        "paper's split": entry.protocol,
        "licence": entry.licence,
        "note": entry.note or None,
        "changed": "; ".join(str(change.message).rsplit("/", 1)[-1] for change in changes) or None,
        "files": "\n".join(file.name for file in entry.files),
        "folder": str(download.locate(entry)),
        "addresses": "\n".join(dict.fromkeys(file.url for file in entry.files)),
    }
    for key, value in rows.items():
        if value is not None:
            table.add_row(key, value)
    console.print(table)
    console.print(_degree_plot(degrees(data)))


def _degree_plot(degree: Tensor) -> Table:
    """The number of nodes by degree, in bins that double, as bars."""
    import torch
    from rich.bar import Bar
    from rich.table import Table

    table = Table(title="Degree distribution", box=None, title_justify="left")
    table.add_column("degree", justify="right")
    table.add_column("nodes", justify="right")
    table.add_column("")
    place = torch.where(degree > 0, torch.log2(degree.clamp(min=1).double()).floor().long() + 1, 0)
    counts = torch.bincount(place).tolist()
    for i, count in enumerate(counts):
        low, high = (0, 0) if i == 0 else (2 ** (i - 1), 2**i - 1)
        if count or i:
            least = max(counts) / (8 * BAR) if count else 0.0  # one node is seen, too
            bar = Bar(max(counts), 0, max(count, least), width=BAR)
            table.add_row(str(low) if low == high else f"{low}-{high}", f"{count:,}", bar)
    return table
