"""``demonet store``: read a graph once, and write it as arrays that are mapped into memory, whole and in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demonet.cli.console import wrote
from demonet.cli.options import EdgesArgument, FeaturesOption, LabelsOption, Options, with_options
from demonet.options import Partition, Reading

PARTS = "Parts"


@with_options
def store(
    edges: EdgesArgument,
    out: Annotated[Path, typer.Option(help="The folder to write; it must be new.")],
    *,
    parts: Annotated[
        int | None, typer.Option(min=1, help="Number of parts, one for each worker.", rich_help_panel=PARTS)
    ] = None,
    partition: Annotated[
        Partition,
        typer.Option(help="balanced: by degree; hash: evenly; metis: few edges between parts.", rich_help_panel=PARTS),
    ] = "balanced",
    labels: LabelsOption = None,
    features: FeaturesOption = None,
    reading: Annotated[Reading, Options(Reading, without=("items", "graph"), items="nodes")],
) -> None:
    """Write a graph as a store: read once, then opened at once by `demonet fit` and by its workers."""
    from demonet.runs.storing import store_graph

    inputs = store_graph(edges, labels, features, out=out, reading=reading, parts=parts, partition=partition)
    counts = ", ".join(f"{value:,} {name}" for name, value in inputs.sizes.items() if value)
    wrote(out, f"{counts}; in {parts} parts ({partition})" if parts else counts)
