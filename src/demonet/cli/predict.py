"""``demonet predict``: predictions of a finished run, for its own graph or another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from demonet.cli.console import complete_edges, wrote
from demonet.cli.options import Options, with_options
from demonet.options import Reading

RunFolder = Annotated[Path, typer.Argument(help="The folder of a finished run.")]
Edges = Annotated[
    str, typer.Argument(help="The same graph or another one, in any format of fit.", autocompletion=complete_edges)
]
_NOT_READ = ("items", "label_column", "add_isolated", "ignore")  # of labels, or decided by the run
Changes = Annotated[dict[str, Any], Options(Reading, without=_NOT_READ, changes=True)]
Features = Annotated[str | None, typer.Option(help="Its attributes, if the run was trained with attributes.")]


@with_options
def predict(
    run: RunFolder,
    edges: Edges,
    out: Annotated[Path, typer.Option(help="A file: .csv, .parquet or .xlsx; - writes CSV to stdout.")],
    *,
    features: Features = None,
    reading: Changes,
    excel: Annotated[
        bool, typer.Option("--excel", help="For spreadsheets: an apostrophe before names such as =A1.")
    ] = False,
) -> None:
    """Predict for every node or graph with a finished run: classes, labels or numbers, as it was trained."""
    from demonet.runs import predict_run
    from demonet.runs.folder import files_of
    from demonet.runs.outputs import write_predictions
    from demonet.runs.tables import check_table

    check_table(out, inputs=(edges, features, *files_of(run)))
    inputs, names, outputs = predict_run(run, edges, features, **reading)
    noun, known = inputs.kind.removesuffix("s"), inputs.known or (None, None)
    write_predictions(out, noun, inputs.ids, names, outputs, inputs.task, *known, excel=excel)
    wrote(out, ", ".join(filter(None, [f"{len(inputs.ids):,} {inputs.kind}", inputs.standing])))
