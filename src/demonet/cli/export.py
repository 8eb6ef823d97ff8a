"""``demonet export``: the model of a finished run as ONNX, for use without Python or torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demonet.cli.predict import RunFolder


def export(
    run: RunFolder,
    onnx: Annotated[Path, typer.Option(help="The ONNX file to write.")],
    weighted: Annotated[bool, typer.Option("--weighted", help="Add edge weights as an input.")] = False,
) -> None:
    """Write the model of a finished run as ONNX: features and edges in, probabilities out."""
    from demonet.estimators import DEMONetClassifier, DEMONetGraphClassifier
    from demonet.runs import load_run
    from demonet.runs.folder import MODEL

    make = DEMONetClassifier if load_run(run).kind == "nodes" else DEMONetGraphClassifier
    make.load(run / MODEL).to_onnx(onnx, weighted=weighted)
    typer.echo(f"Wrote {onnx}.")
