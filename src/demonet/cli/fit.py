"""``demonet fit``: train on a graph in a file; write a folder with the model, its predictions and a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demonet.cli.choices import ClassWeight, Device, Items, Log, Metric, Preset, Scheme, SelfLoops, Task
from demonet.cli.console import complete_edges
from demonet.cli.reading import READING, IdColumn, MergeOption, Source, Target, Weight, column_of

if TYPE_CHECKING:
    from demonet.runs import Run

TRAINING, FOLDER = "Training", "Folder"
EDGES = "A graph (CSV, Parquet, GraphML, .mat, ...), many graphs (TU folder, GIN file), or a data set such as brazil."
INTERRUPTED = 130  # the usual exit code after Ctrl-C


def fit(
    edges: Annotated[str, typer.Argument(help=EDGES, autocompletion=complete_edges)],
    out: Annotated[Path, typer.Option(help="The folder to write.", rich_help_panel=FOLDER)],
    labels: Annotated[
        str | None, typer.Option(help="Table of ids and labels, or an attribute in EDGES.", rich_help_panel=READING)
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(help="Table of ids and numbers or categories, or a matrix.", rich_help_panel=READING),
    ] = None,
    items: Annotated[Items, typer.Option(help="What has labels: nodes, or graphs.", rich_help_panel=READING)] = "auto",
    directed: Annotated[
        bool | None,
        typer.Option("--directed/--undirected", help="Default: what the file says.", rich_help_panel=READING),
    ] = None,
    source: Source = None,
    target: Target = None,
    weight: Weight = None,
    graph: Annotated[str | None, typer.Option(help="Column of its graph.", rich_help_panel=READING)] = None,
    id_column: IdColumn = None,
    label_column: Annotated[
        str | None, typer.Option(help="Column of labels in LABELS.", rich_help_panel=READING)
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Column of FEATURES to leave out; repeatable.", rich_help_panel=READING)
    ] = None,
    merge: MergeOption = None,
    add_isolated: Annotated[
        bool, typer.Option("--add-isolated", help="Add ids without an edge as nodes.", rich_help_panel=READING)
    ] = False,
    self_loops: Annotated[
        SelfLoops | None, typer.Option(help="Default: the preset's choice.", rich_help_panel=READING)
    ] = None,
    task: Annotated[
        Task, typer.Option(help="What to predict; auto: by the labels.", rich_help_panel=TRAINING)
    ] = "auto",
    metric: Annotated[
        Metric | None, typer.Option(help="Chooses the epoch. Default: by the task.", rich_help_panel=TRAINING)
    ] = None,
    preset: Annotated[Preset, typer.Option(help="Features, model and training.", rich_help_panel=TRAINING)] = "default",
    scheme: Annotated[
        Scheme | None, typer.Option(help="How degrees get their weights.", rich_help_panel=TRAINING)
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31, help="Seed of splits, weights and dropout.", rich_help_panel=TRAINING)
    ] = 0,
    device: Annotated[Device, typer.Option(help="Where to train.", rich_help_panel=TRAINING)] = "auto",
    val: Annotated[float, typer.Option(help="Share for choosing the epoch.", rich_help_panel=TRAINING)] = 0.2,
    test: Annotated[float, typer.Option(help="Share for the test.", rich_help_panel=TRAINING)] = 0.2,
    split: Annotated[
        Path | None, typer.Option(help="A split.json to use instead of shares.", rich_help_panel=TRAINING)
    ] = None,
    cv: Annotated[
        int, typer.Option(min=1, help="Number of random splits; the first model is kept.", rich_help_panel=TRAINING)
    ] = 1,
    epochs: Annotated[int | None, typer.Option(min=1, help="Largest number.", rich_help_panel=TRAINING)] = None,
    class_weight: Annotated[
        ClassWeight | None, typer.Option(help="Give rare classes more weight.", rich_help_panel=TRAINING)
    ] = None,
    log: Annotated[Log | None, typer.Option(help="Also log learning curves.", rich_help_panel=TRAINING)] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run.", rich_help_panel=FOLDER)
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in the folder.", rich_help_panel=FOLDER)
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.", rich_help_panel=FOLDER)] = False,
) -> None:
    """Train on your own graph: hold out a test set, stop early, test once; write model, predictions and a page."""
    from demonet.cli.console import console_progress
    from demonet.report.page import write
    from demonet.report.run import run_page
    from demonet.runs import Reading, Settings, fit_run

    columns = {"source": source, "target": target, "weight": weight, "graph": graph}
    columns |= {"id_column": id_column, "label_column": label_column}
    reading = Reading(
        items=items,
        directed=directed,
        add_isolated=add_isolated,
        self_loops=self_loops,
        ignore=[column for text in ignore if (column := column_of(text)) is not None] if ignore else None,
        merge=merge,
        **{name: column_of(text) for name, text in columns.items()},
    )
    settings = Settings(
        task=task,
        metric=metric and str(metric),
        preset=preset,
        scheme=scheme and str(scheme),
        seed=seed,
        device=device,
        val=val,
        test=test,
        split=split,
        class_weight=class_weight,
        epochs=epochs,
        cv=cv,
        log=log,
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
            progress=console_progress(),
            page=lambda run, path: write(run_page(run), path),
        )
    except KeyboardInterrupt:
        typer.echo("interrupted: run the same command with --resume to continue", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps({"run": str(out), "kind": run.kind, "task": run.task, "metrics": run.metrics}))
    else:
        summarise(run, out)


def summarise(run: Run, out: Path) -> None:
    """Print the test metric of the model and of the floors (simple baselines), and where the files are."""
    from rich.console import Console
    from rich.table import Table

    from demonet.runs.evaluate import shown

    def interval(bounds: list[float] | None) -> str:
        return f"{shown(bounds[0])} to {shown(bounds[1])}" if bounds else ""

    console, metrics, metric = Console(), run.metrics, run.metric
    if metrics["test_metric"] is not None:
        title = metric.title[0].upper() + metric.title[1:]
        better = "" if metric.larger_is_better else " (smaller is better)"
        table = Table(title=f"{title} on {metrics['split']['test']:,} test {run.kind}{better}", title_justify="left")
        table.add_column("method")
        table.add_column(metric.title, justify="right")
        table.add_column("95 % interval", justify="right")
        table.add_row("DEMO-Net", shown(metrics["test_metric"]), interval(metrics["test_metric_interval"]))
        over = metrics.get("cv")
        if over and over["mean"] is not None:
            text = f"{shown(over['mean'])} ± {shown(over['std'])}"
            table.add_row(f"DEMO-Net, {over['splits']} splits", text, interval(over["interval"]))
        floors = sorted(metrics["floors"].items(), key=lambda floor: floor[1], reverse=metric.larger_is_better)
        for name, value in floors:
            table.add_row(f"floor: {name}", shown(value), "")
        console.print(table)
    typer.echo(f"Wrote {out}: open {out / 'report.html'}; predictions are in {out / 'predictions.csv'}.")
