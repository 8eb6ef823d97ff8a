"""``demonet fit``: train on a graph in a file; write a folder with the model, its predictions and a page."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demonet.cli.console import INTERRUPTED, print_table, say
from demonet.cli.options import EdgesArgument, FeaturesOption, LabelsOption, Options, with_options
from demonet.distributed.launch import ended_before, launch, under_torchrun
from demonet.options import Reading, Settings
from demonet.workers import import_ahead

if TYPE_CHECKING:
    from demonet.runs import Run

FOLDER = "Folder"
MOST_JOBS = 4  # processes that are started without being asked for


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
    jobs = min(os.cpu_count() or 1, MOST_JOBS)
    ensemble = settings.model in (None, "auto") and not settings.for_networks and settings.engine != "ray"
    if ensemble and (settings.jobs or jobs) > 1:
        import_ahead()  # before this process begins with its own
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
                jobs=jobs,
            )
    except KeyboardInterrupt:
        say("interrupted: run the same command with --resume to continue", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        say(json.dumps({"run": str(out), "kind": run.kind, "task": run.task, "metrics": run.metrics}))
    else:
        summarise(run, out)


def summarise(run: Run, out: Path) -> None:
    """Print the test metric of the model and of the simple baselines, and where the files are."""
    from demonet.runs.facts import RunFacts

    facts = RunFacts(run)
    for title, heads, rows in facts.tables:
        print_table(title, heads, rows)
    if facts.rules_told:
        say(facts.rules_told)
    if facts.candidates:
        members = [row for row in facts.candidates if row["weight"] > 0]
        best = ", ".join(f"{row['name']} {row['weight']:.2f}" for row in members[:4])
        rest = ", ..." if len(members) > 4 else ""
        say(f"{len(members)} of {len(facts.candidates)} candidates have a weight: {best}{rest}")
    if facts.degree:
        say(f"Does the degree matter? {facts.degree}")
    if facts.cut:
        say(facts.cut)
    say(f"Wrote {out}: open {out / 'report.html'}; predictions are in {out / 'predictions.csv'}.")
