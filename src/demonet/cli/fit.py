"""``demonet fit``: train on a graph in a file; write a folder with the model, its predictions and a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demonet.cli.console import INTERRUPTED
from demonet.cli.options import EdgesArgument, FeaturesOption, LabelsOption, Options, with_options
from demonet.distributed.launch import ended_before, launch, under_torchrun
from demonet.options import Reading, Settings

if TYPE_CHECKING:
    from demonet.runs import Run

FOLDER = "Folder"


def _take_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the options in the file the defaults of this call."""
    if path is not None:
        from demonet.configfile import read_config

        once = {"config", "resume", "overwrite", "as_json", "help"}
        known = {parameter.name for parameter in context.command.params if parameter.name} - once
        context.default_map = {**(context.default_map or {}), **read_config(path, known)}
    return path


@with_options
def fit(
    edges: EdgesArgument,
    out: Annotated[Path, typer.Option(help="The folder to write.", rich_help_panel=FOLDER)],
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            callback=_take_config,
            is_eager=True,
            help="Options in a TOML file, such as the run.toml of another run.",
            rich_help_panel=FOLDER,
        ),
    ] = None,
    labels: LabelsOption = None,
    features: FeaturesOption = None,
    reading: Annotated[Reading, Options(Reading)],
    settings: Annotated[Settings, Options(Settings)],
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
    from demonet.runs import fit_run
    from demonet.runs.engines import count_workers, join

    if settings.engine == "torchrun" and not under_torchrun():
        raise typer.Exit(launch(sys.argv[1:], count_workers(edges, settings.workers)))
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
                reading=reading,
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
