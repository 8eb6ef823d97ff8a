"""``demonet fit``: train on a graph in a file; write a folder with the model, its predictions and a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demonet.cli import reading
from demonet.cli.choices import (
    ClassWeight,
    Device,
    Effort,
    Log,
    Metric,
    Model,
    Partition,
    Preset,
    Scheme,
    Task,
    Workers,
)
from demonet.cli.console import INTERRUPTED
from demonet.distributed.launch import ended_before, launch, under_torchrun

if TYPE_CHECKING:
    from demonet.runs import Run

TRAINING, NETWORK, FOLDER, PROCESSES = "Training", "Networks alone", "Folder", "Networks over processes"


def _take_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the options in the file the defaults of this call."""
    if path is not None:
        from demonet.configfile import read_config

        once = {"config", "resume", "overwrite", "as_json", "help"}
        known = {parameter.name for parameter in context.command.params if parameter.name} - once
        context.default_map = {**(context.default_map or {}), **read_config(path, known)}
    return path


def fit(
    edges: reading.EdgesArgument,
    out: Annotated[Path, typer.Option(help="The folder to write.", rich_help_panel=FOLDER)],
    config: Annotated[
        Path | None,
        typer.Option(
            callback=_take_config,
            is_eager=True,
            help="Options in a TOML file, such as the run.toml of another run.",
            rich_help_panel=FOLDER,
        ),
    ] = None,
    labels: reading.LabelsOption = None,
    features: reading.FeaturesOption = None,
    items: reading.ItemsOption = "auto",
    directed: reading.DirectedOption = None,
    source: reading.SourceOption = None,
    target: reading.TargetOption = None,
    weight: reading.WeightOption = None,
    graph: reading.GraphOption = None,
    id_column: reading.IdOption = None,
    label_column: reading.LabelOption = None,
    ignore: reading.IgnoreOption = None,
    merge: reading.MergeOption = None,
    add_isolated: reading.IsolatedOption = False,
    self_loops: reading.LoopsOption = None,
    task: Annotated[
        Task, typer.Option(help="What to predict; auto: by the labels.", rich_help_panel=TRAINING)
    ] = "auto",
    model: Annotated[
        Model | None,
        typer.Option(help="Default: auto, or network with an option of networks.", rich_help_panel=TRAINING),
    ] = None,
    effort: Annotated[
        Effort | None, typer.Option(help="How much auto tries. Default: standard.", rich_help_panel=TRAINING)
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for auto, roughly.", rich_help_panel=TRAINING)
    ] = None,
    metric: Annotated[
        Metric | None,
        typer.Option(help="Chooses weights or epoch, and is reported. Default: by the task.", rich_help_panel=TRAINING),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            help="The positive one of two classes, for average-precision. Default: the rarer.", rich_help_panel=TRAINING
        ),
    ] = None,
    preset: Annotated[Preset, typer.Option(help="Features, model and training.", rich_help_panel=NETWORK)] = "strong",
    scheme: Annotated[
        Scheme | None, typer.Option(help="How degrees get their weights.", rich_help_panel=NETWORK)
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31, help="Seed of splits, weights and dropout.", rich_help_panel=TRAINING)
    ] = 0,
    device: Annotated[Device, typer.Option(help="Where to train.", rich_help_panel=TRAINING)] = "auto",
    val: Annotated[float, typer.Option(help="Share for choosing.", rich_help_panel=TRAINING)] = 0.2,
    test: Annotated[float, typer.Option(help="Share for the test.", rich_help_panel=TRAINING)] = 0.2,
    split: Annotated[
        Path | None, typer.Option(help="A split.json to use instead of shares.", rich_help_panel=TRAINING)
    ] = None,
    cv: Annotated[
        int, typer.Option(min=1, help="Number of random splits; the first model is kept.", rich_help_panel=TRAINING)
    ] = 1,
    epochs: Annotated[int | None, typer.Option(min=1, help="Largest number.", rich_help_panel=NETWORK)] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Nodes of a batch. Default: all, if they fit into memory.", rich_help_panel=NETWORK),
    ] = None,
    neighbours: Annotated[
        int | None,
        typer.Option(min=1, help="Neighbours of a node drawn in a batch. Default: all.", rich_help_panel=NETWORK),
    ] = None,
    class_weight: Annotated[
        ClassWeight | None, typer.Option(help="Give rare classes more weight.", rich_help_panel=NETWORK)
    ] = None,
    log: Annotated[Log | None, typer.Option(help="Also log learning curves.", rich_help_panel=NETWORK)] = None,
    engine: Annotated[
        Workers | None,
        typer.Option(
            help="torchrun or ray train in several processes. Default: local, in one.", rich_help_panel=PROCESSES
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of processes. Default: as many as the store has parts.", rich_help_panel=PROCESSES
        ),
    ] = None,
    partition: Annotated[
        Partition | None,
        typer.Option(
            help="How the graph is divided: balanced by degree, hash, or metis. A store with parts has its own.",
            rich_help_panel=PROCESSES,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run.", rich_help_panel=FOLDER)
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in the folder.", rich_help_panel=FOLDER)
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.", rich_help_panel=FOLDER)] = False,
) -> None:
    """Train on your own graph: hold out a test set, choose on validation, test once; write model, predictions, page."""
    from demonet.cli.console import Heartbeat, console_progress
    from demonet.report.page import write
    from demonet.report.run import run_page
    from demonet.runs import Settings, fit_run
    from demonet.runs.engines import count_workers, join

    columns = {"source": source, "target": target, "weight": weight, "graph": graph}
    columns |= {"id_column": id_column, "label_column": label_column}
    options = {"items": items, "directed": directed, "add_isolated": add_isolated, "self_loops": self_loops}
    settings = Settings(
        task=task,
        model=model,
        effort=effort,
        time_limit=time_limit,
        metric=metric and str(metric),
        positive=positive,
        preset=preset,
        scheme=scheme and str(scheme),
        seed=seed,
        device=device,
        val=val,
        test=test,
        split=split,
        class_weight=class_weight,
        epochs=epochs,
        batch_size=batch_size,
        neighbours=neighbours,
        cv=cv,
        log=log,
        engine=engine,
        workers=workers,
        partition=partition,
    )
    if engine == "torchrun" and not under_torchrun():
        raise typer.Exit(launch(sys.argv[1:], count_workers(edges, workers)))
    if ended_before():
        return
    try:
        with join(settings) as role, Heartbeat() as heartbeat:
            if role.served:
                return
            run = fit_run(
                edges,
                labels,
                features,
                out=out,
                reading=reading.make_reading(columns, ignore, merge=merge, **options),
                settings=settings,
                resume=resume or role.again,
                overwrite=overwrite and not role.again,
                lead=role.lead,
                progress=console_progress(heartbeat),
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
    """Print the test metric of the model and of the simple baselines, and where the files are."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from demonet.runs.evaluate import mean_interval, shown
    from demonet.runs.floors import FLOOR_NAMES

    def interval(bounds: list[float] | None) -> str:
        return f"{shown(bounds[0])} to {shown(bounds[1])}" if bounds else ""

    console, metrics, metric = Console(), run.metrics, run.metric
    over = metrics.get("cv")
    splits = over["splits"] if over and over["mean"] is not None else 1

    if metrics["test_metric"] is not None:
        title = escape(metric.title[0].upper() + metric.title[1:])
        better = "" if metric.larger_is_better else " (smaller is better)"
        table = Table(title=f"{title} on {metrics['split']['test']:,} test {run.kind}{better}", title_justify="left")
        table.add_column("method", no_wrap=True)
        heads = [escape(metric.title)] if splits == 1 else ["first split", f"mean of {splits} splits"]
        for head in (*heads, "95 % interval"):
            table.add_column(head, justify="right", no_wrap=head == "95 % interval")

        def row(name: str, value: float, bounds: list[float] | None, values: list[float | None] | None) -> None:
            if splits == 1:
                table.add_row(name, shown(value), interval(bounds))
                return
            known = [value for value in values or [] if value is not None]
            whole = len(known) == splits
            mean = f"{shown(fmean(known))} ± {shown(stdev(known))}" if whole else ""
            table.add_row(name, shown(value), mean, interval(mean_interval(metric, known) if whole else None))

        row("DEMO-Net", metrics["test_metric"], metrics["test_metric_interval"], over and over["test_metric"])
        if metrics.get("rule") == "refit":
            strict, every = metrics["strict"], over and over["strict"]["test_metric"]
            row("DEMO-Net, strict", strict["test_metric"], strict["test_metric_interval"], every)
        if inductive := metrics.get("inductive", {}).get("refit"):
            row("DEMO-Net, on another graph", inductive["test_metric"], inductive["test_metric_interval"], None)
        floors = sorted(metrics["floors"].items(), key=lambda floor: floor[1], reverse=metric.larger_is_better)
        for name, value in floors:
            row(f"simple baseline: {FLOOR_NAMES.get(name, name)}", value, None, over and over["floors"].get(name))
        console.print(table)
        if metrics.get("rule") == "refit":
            typer.echo("All are fitted on training and validation items; strict: on training items alone.")
    if metrics.get("candidates"):
        members = [row for row in metrics["candidates"] if row["weight"] > 0]
        best = ", ".join(f"{row['name']} {row['weight']:.2f}" for row in sorted(members, key=_weight)[:4])
        rest = ", ..." if len(members) > 4 else ""
        typer.echo(f"{len(members)} of {len(metrics['candidates'])} candidates have a weight: {best}{rest}")
    if effect := metrics.get("degree_effect"):
        told = effect.get("verdict") or f"Not measured: {effect['skipped']}."
        typer.echo(f"Does the degree matter? {told}")
    typer.echo(f"Wrote {out}: open {out / 'report.html'}; predictions are in {out / 'predictions.csv'}.")


def _weight(row: dict[str, Any]) -> float:
    return -row["weight"]
