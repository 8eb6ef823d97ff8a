"""``demonet embed``: embeddings of a finished run, for its own graph or another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demonet.cli.console import wrote
from demonet.cli.options import with_options
from demonet.cli.predict import Changes, Edges, Features, Overwrite, RunFolder


@with_options
def embed(
    run: RunFolder,
    edges: Edges,
    out: Annotated[Path, typer.Option(help="A file: .csv, .parquet, .xlsx or .npy; - writes CSV to stdout.")],
    *,
    features: Features = None,
    reading: Changes,
    overwrite: Overwrite = False,
) -> None:
    """Write the embedding of every node or graph, computed by a finished run."""
    from demonet.runs import embed_run
    from demonet.runs.folder import files_of
    from demonet.runs.outputs import check_output, write_embeddings

    check_output(out, (edges, features, *files_of(run, out)), overwrite=overwrite, also=[".npy"])
    inputs, embedding = embed_run(run, edges, features, **reading)
    write_embeddings(out, inputs.kind.removesuffix("s"), inputs.ids, embedding)
    wrote(out, f"{len(inputs.ids):,} {inputs.kind}, {embedding.shape[1]} columns")
