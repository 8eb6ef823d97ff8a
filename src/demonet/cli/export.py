"""``demonet export``: the model of a finished run as ONNX, for use without Python or torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demonet.cli.console import say
from demonet.cli.predict import RunFolder
from demonet.errors import DemonetError


def export(
    run: RunFolder,
    onnx: Annotated[Path, typer.Option(help="The ONNX file to write.")],
    weighted: Annotated[bool, typer.Option("--weighted", help="Add edge weights as an input.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is no such model.")] = False,
) -> None:
    """Write the model of a finished run as ONNX: features and edges in, probabilities or numbers out."""
    from demonet.atomic import check_file, check_ours
    from demonet.estimators.onnx import FORMAT
    from demonet.runs.folder import files_of, load_model_of

    check_file(onnx, inputs=files_of(run, onnx))
    check_ours(onnx, FORMAT.encode(), overwrite=overwrite)
    finished, estimator = load_model_of(run)
    if finished.model != "network":
        hint = "only networks can be exported: fit again with --model network"
        raise DemonetError(f"the model of this run is {finished.model!r}", file=run, hint=hint)
    estimator.to_onnx(onnx, weighted=weighted)
    say(f"Wrote {onnx}.")
