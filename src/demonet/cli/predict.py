"""``demonet predict``: predictions of a finished run, for its own graph or another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demonet.cli.console import complete_edges, wrote
from demonet.cli.reading import (
    DirectedOption,
    IdOption,
    MergeOption,
    SourceOption,
    TargetOption,
    WeightOption,
    column_of,
)

RunFolder = Annotated[Path, typer.Argument(help="The folder of a finished run.")]
Edges = Annotated[
    str, typer.Argument(help="The same graph or another one, in any format of fit.", autocompletion=complete_edges)
]
Features = Annotated[str | None, typer.Option(help="Its attributes, if the run was trained with attributes.")]


def predict(
    run: RunFolder,
    edges: Edges,
    out: Annotated[Path, typer.Option(help="The file to write: CSV, or .parquet; - for standard output.")],
    features: Features = None,
    directed: DirectedOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    weight: WeightOption = None,
    id_column: IdOption = None,
    merge: MergeOption = None,
    excel: Annotated[
        bool, typer.Option("--excel", help="For spreadsheets: an apostrophe before names such as =A1.")
    ] = False,
) -> None:
    """Predict for every node or graph with a finished run: classes, labels or numbers, as it was trained."""
    from demonet.atomic import check_file
    from demonet.runs import predict_run
    from demonet.runs.folder import files_of
    from demonet.runs.outputs import write_predictions

    check_file(out, inputs=(edges, features, *files_of(run)))
    columns = {"source": source, "target": target, "weight": weight, "id_column": id_column}
    reading = {**{name: column_of(text) for name, text in columns.items()}, "directed": directed, "merge": merge}
    inputs, names, outputs = predict_run(run, edges, features, **reading)
    noun, known = inputs.kind.removesuffix("s"), inputs.known or (None, None)
    write_predictions(out, noun, inputs.ids, names, outputs, inputs.task, *known, excel=excel)
    wrote(out, ", ".join(filter(None, [f"{len(inputs.ids):,} {inputs.kind}", inputs.standing])))
