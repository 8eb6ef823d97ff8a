"""``demonet embed``: embeddings of a finished run, for its own graph or another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demonet.cli.predict import Edges, Features, RunFolder


def embed(
    run: RunFolder,
    edges: Edges,
    out: Annotated[Path, typer.Option(help="The file to write: .parquet, .csv or .npy.")],
    features: Features = None,
) -> None:
    """Write the embedding of every node or graph, computed by a finished run."""
    from demonet.runs import embed_run
    from demonet.runs.outputs import check_suffix, write_embeddings

    check_suffix(out)
    inputs, embedding = embed_run(run, edges, features)
    write_embeddings(out, inputs.kind.removesuffix("s"), inputs.ids, embedding)
    typer.echo(f"Wrote {out}: {len(inputs.ids):,} {inputs.kind}, {embedding.shape[1]} columns.")
