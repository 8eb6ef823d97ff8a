"""``demonet embed``: embeddings of a finished run, for its own graph or another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demonet.cli.console import wrote
from demonet.cli.predict import Edges, Features, RunFolder
from demonet.cli.reading import (
    DirectedOption,
    IdOption,
    MergeOption,
    SourceOption,
    TargetOption,
    WeightOption,
    column_of,
)


def embed(
    run: RunFolder,
    edges: Edges,
    out: Annotated[Path, typer.Option(help="The file to write: .parquet, .csv or .npy; - for CSV to standard output.")],
    features: Features = None,
    directed: DirectedOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    weight: WeightOption = None,
    id_column: IdOption = None,
    merge: MergeOption = None,
) -> None:
    """Write the embedding of every node or graph, computed by a finished run."""
    from demonet.runs import embed_run
    from demonet.runs.folder import files_of
    from demonet.runs.outputs import check_suffix, write_embeddings

    check_suffix(out, inputs=(edges, features, *files_of(run)))
    columns = {"source": source, "target": target, "weight": weight, "id_column": id_column}
    reading = {**{name: column_of(text) for name, text in columns.items()}, "directed": directed, "merge": merge}
    inputs, embedding = embed_run(run, edges, features, **reading)
    write_embeddings(out, inputs.kind.removesuffix("s"), inputs.ids, embedding)
    wrote(out, f"{len(inputs.ids):,} {inputs.kind}, {embedding.shape[1]} columns")
