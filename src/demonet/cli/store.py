"""``demonet store``: read a graph once, and write it as arrays that are mapped into memory, whole and in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demonet.cli import reading
from demonet.cli.choices import Partition
from demonet.cli.console import wrote

PARTS = "Parts"


def store(
    edges: reading.EdgesArgument,
    out: Annotated[Path, typer.Option(help="The folder to write; it must be new.")],
    parts: Annotated[
        int | None, typer.Option(min=1, help="Number of parts, one for each worker.", rich_help_panel=PARTS)
    ] = None,
    partition: Annotated[
        Partition,
        typer.Option(help="balanced: by degree; hash: evenly; metis: few edges between parts.", rich_help_panel=PARTS),
    ] = "balanced",
    labels: reading.LabelsOption = None,
    features: reading.FeaturesOption = None,
    directed: reading.DirectedOption = None,
    source: reading.SourceOption = None,
    target: reading.TargetOption = None,
    weight: reading.WeightOption = None,
    id_column: reading.IdOption = None,
    label_column: reading.LabelOption = None,
    ignore: reading.IgnoreOption = None,
    merge: reading.MergeOption = None,
    add_isolated: reading.IsolatedOption = False,
    self_loops: reading.LoopsOption = None,
) -> None:
    """Write a graph as a store: read once, then opened at once by `demonet fit` and by its workers."""
    from demonet.runs.storing import store_graph

    columns = {"source": source, "target": target, "weight": weight}
    columns |= {"id_column": id_column, "label_column": label_column}
    options = {"items": "nodes", "directed": directed, "add_isolated": add_isolated, "self_loops": self_loops}
    read = reading.make_reading(columns, ignore, merge=merge, **options)
    inputs = store_graph(edges, labels, features, out=out, reading=read, parts=parts, partition=partition)
    counts = ", ".join(f"{value:,} {name}" for name, value in inputs.sizes.items() if value)
    wrote(out, f"{counts}; in {parts} parts ({partition})" if parts else counts)
