"""``demonet predict``: predictions of a finished run, for its own graph or another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from demonet.cli.console import complete_edges, wrote
from demonet.cli.options import Options, with_options
from demonet.options import Decimal, Reading

RunFolder = Annotated[Path, typer.Argument(help="The folder of a finished run.")]
Edges = Annotated[
    str, typer.Argument(help="The same graph or another one, in any format of fit.", autocompletion=complete_edges)
]
Changes = Annotated[dict[str, Any], Options(Reading, changes=True)]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a file that is no table of predictions or embeddings.")
]
Features = Annotated[str | None, typer.Option(help="Its attributes, if the run was trained with attributes.")]


@with_options
def predict(
    run: RunFolder,
    edges: Edges,
    out: Annotated[Path, typer.Option(help="A file: .csv, .parquet or .xlsx; - writes CSV to stdout.")],
    *,
    features: Features = None,
    labels: Annotated[str | None, typer.Option(help="Labels that are new or corrected, by id.")] = None,
    rank: Annotated[str | None, typer.Option(help="Sort by the probability of this class.")] = None,
    top: Annotated[int | None, typer.Option(min=1, help="Write so many rows, ranked.")] = None,
    reasons: Annotated[int, typer.Option(min=0, help="Say for so many rows what moved the answer.")] = 0,
    reading: Changes,
    excel: Annotated[
        Decimal | None,
        typer.Option(help="CSV for Excel with this decimal mark; with a comma, semicolons separate columns."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Predict for every node or graph with a finished run: classes, labels or numbers, as it was trained."""
    from demonet.runs import predict_run
    from demonet.runs.folder import files_of
    from demonet.runs.outputs import check_output, write_predictions

    check_output(out, (edges, features, labels, *files_of(run, out)), overwrite=overwrite)
    reading |= {"rank": rank, "top": top, "reasons": reasons}
    inputs, names, outputs = predict_run(run, edges, features, labels, **reading)
    noun, known = inputs.kind.removesuffix("s"), inputs.known or (None, None)
    given = inputs.ids, names, outputs, inputs.task, *known
    found = {"rows": inputs.rows, "reasons": inputs.reasons, "decision": inputs.decision}
    write_predictions(out, noun, *given, **found, excel=excel)
    wrote(out, ", ".join(filter(None, [f"{len(inputs.ids):,} {inputs.kind}", inputs.standing])))
