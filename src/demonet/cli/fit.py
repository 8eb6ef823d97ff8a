"""``demonet fit``: a graph in a file, to a folder with a model, its predictions and a page about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demonet.cli.choices import ClassWeight, Device, Log, Preset, Scheme, SelfLoops, Task
from demonet.cli.console import complete_edges

if TYPE_CHECKING:
    from demonet.runs.run import Run

READING, TRAINING, FOLDER = "Reading files", "Training", "The run's folder"
EDGES = "The graph: CSV, Parquet, GraphML, .mat, ...; a TU folder or GIN file of graphs; or a known set such as brazil."
INTERRUPTED = 130  # what a shell reports of a command that Ctrl-C has stopped


def column(text: str | None) -> str | int | None:
    """A column by name, or by its place from 0."""
    return int(text) if text is not None and text.isdigit() else text


def fit(
    edges: Annotated[str, typer.Argument(help=EDGES, autocompletion=complete_edges)],
    out: Annotated[Path, typer.Option(help="The folder to write.", rich_help_panel=FOLDER)],
    labels: Annotated[
        str | None, typer.Option(help="Table of id and label; or an attribute inside EDGES.", rich_help_panel=READING)
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Table of id and numbers, or a matrix.", rich_help_panel=READING)
    ] = None,
    task: Annotated[Task, typer.Option(help="What is classified.", rich_help_panel=READING)] = Task.AUTO,
    directed: Annotated[
        bool | None,
        typer.Option("--directed/--undirected", help="As the file says unless given.", rich_help_panel=READING),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Column of an edge's source.", rich_help_panel=READING)] = None,
    target: Annotated[str | None, typer.Option(help="That of its target.", rich_help_panel=READING)] = None,
    weight: Annotated[str | None, typer.Option(help="That of its weight.", rich_help_panel=READING)] = None,
    graph: Annotated[str | None, typer.Option(help="That of its graph.", rich_help_panel=READING)] = None,
    add_isolated: Annotated[
        bool, typer.Option("--add-isolated", help="Ids that are in no edge are nodes, too.", rich_help_panel=READING)
    ] = False,
    self_loops: Annotated[
        SelfLoops | None, typer.Option(help="As the preset says unless given.", rich_help_panel=READING)
    ] = None,
    preset: Annotated[
        Preset, typer.Option(help="Features, model and training.", rich_help_panel=TRAINING)
    ] = Preset.DEFAULT,
    scheme: Annotated[Scheme | None, typer.Option(help="How degrees get weights.", rich_help_panel=TRAINING)] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31, help="Of splits, weights and dropout.", rich_help_panel=TRAINING)
    ] = 0,
    device: Annotated[Device, typer.Option(help="Where it trains.", rich_help_panel=TRAINING)] = Device.AUTO,
    val: Annotated[float, typer.Option(help="Share that chooses the epoch.", rich_help_panel=TRAINING)] = 0.2,
    test: Annotated[float, typer.Option(help="Share that is tested.", rich_help_panel=TRAINING)] = 0.2,
    split: Annotated[
        Path | None, typer.Option(help="A split.json in place of these shares.", rich_help_panel=TRAINING)
    ] = None,
    cv: Annotated[
        int, typer.Option(min=1, help="Random splits to repeat it all on; the first is kept.", rich_help_panel=TRAINING)
    ] = 1,
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many.", rich_help_panel=TRAINING)] = None,
    class_weight: Annotated[
        ClassWeight | None, typer.Option(help="Count rare classes for more.", rich_help_panel=TRAINING)
    ] = None,
    log: Annotated[
        Log | None, typer.Option(help="Write the curves for TensorBoard, too.", rich_help_panel=TRAINING)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run.", rich_help_panel=FOLDER)
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run that is there.", rich_help_panel=FOLDER)
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.", rich_help_panel=FOLDER)] = False,
) -> None:
    """Train on a graph in a file: hold out, stop early, test once; write model, predictions and a page."""
    from demonet.cli.watch import ConsoleWatch
    from demonet.report.page import write
    from demonet.report.run import run_page
    from demonet.runs import Reading, Settings, fit_run

    columns: dict[str, Any] = {
        name: column(text)
        for name, text in (("source", source), ("target", target), ("weight", weight), ("graph", graph))
    }
    if self_loops is not None:
        columns["self_loops"] = self_loops.value
    reading = Reading(task.value, directed, add_isolated=add_isolated, **columns)
    settings = Settings(
        preset=preset.value,
        scheme=scheme and scheme.value,
        seed=seed,
        device=device.value,
        val=val,
        test=test,
        split=split,
        class_weight=class_weight and class_weight.value,
        epochs=epochs,
        cv=cv,
        log=log and log.value,
    )
    try:
        run = fit_run(
            edges,
            labels,
            features,
            out=out,
            reading=reading,
            settings=settings,
            resume=resume,
            overwrite=overwrite,
            watch=ConsoleWatch(),
            page=lambda run, path: write(run_page(run), path),
        )
    except KeyboardInterrupt:
        typer.echo("interrupted: the same command with --resume goes on", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps({"run": str(out), "kind": run.kind, "metrics": run.metrics}))
    else:
        summarise(run, out)


def summarise(run: Run, out: Path) -> None:
    """The test accuracy beside the floors, and where everything is."""
    from rich.console import Console
    from rich.table import Table

    console, metrics = Console(), run.metrics
    if metrics["test_accuracy"] is not None:
        table = Table(title=f"Accuracy on {metrics['split']['test']:,} test {run.kind}", title_justify="left")
        table.add_column("method")
        table.add_column("accuracy", justify="right")
        table.add_column("95 % interval", justify="right")
        table.add_row("DEMO-Net", f"{metrics['test_accuracy']:.3f}", _interval(metrics["test_interval"]))
        if "cv" in metrics:
            over = metrics["cv"]
            told = f"{over['mean']:.3f} ± {over['std']:.3f}"
            table.add_row(f"DEMO-Net, {over['splits']} splits", told, _interval(over["interval"]))
        for name, accuracy in sorted(metrics["floors"].items(), key=lambda floor: -floor[1]):
            table.add_row(f"floor: {name}", f"{accuracy:.3f}", "")
        console.print(table)
    typer.echo(f"Wrote {out}: open {out / 'report.html'}; predictions are in {out / 'predictions.csv'}.")


def _interval(bounds: list[float]) -> str:
    return f"{bounds[0]:.3f} to {bounds[1]:.3f}"
