"""``demonet reproduce``: the paper's tables and figures, from runs in the ledger and runs made now."""

from __future__ import annotations

import difflib
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demonet.atomic import whole_of
from demonet.cli.console import INTERRUPTED
from demonet.errors import DemonetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from demonet_study.ledger.job import Wanted
    from demonet_study.ledger.store import Failure, Ledger
    from demonet_study.ledger.work import WorkSummary
    from demonet_study.report.parts import Part


ALL = "all"


class Engine(StrEnum):
    """Where runs are made."""

    LOCAL = "local"
    RAY = "ray"


def reproduce(
    parts: Annotated[
        list[str],
        typer.Argument(
            metavar="PART...",
            help="default, properties, nodes, splits, graphs, speed, layers, identity, ablation, comparison, reasons, "
            "or all.",
        ),
    ],
    runs: Annotated[int | None, typer.Option(min=1, help="Runs per cell, instead of each cell's own number.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at once: by default 1, with Ray all that fit.")] = None,
    engine: Annotated[Engine, typer.Option(help="Local processes, or a Ray cluster ($RAY_ADDRESS).")] = Engine.LOCAL,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")] = "cpu",
    sets: Annotated[list[str] | None, typer.Option(help="Make runs on these data sets only (comma-separated).")] = None,
    methods: Annotated[
        list[str] | None, typer.Option(help="Make runs of these methods only (comma-separated).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small tables: ten minutes on two cores.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Repeat complete cells that were made with other code or libraries.")
    ] = False,
    render_only: Annotated[bool, typer.Option("--render-only", help="Make no runs; write what is there.")] = False,
    no_render: Annotated[
        bool, typer.Option("--no-render", help="Make runs only; write nothing but the ledger.")
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds after which to stop; runs that would not end by then are not started."),
    ] = None,
    merge: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="Add the runs of other ledgers (.sqlite or .parquet)."),
    ] = None,
    ledger: Annotated[Path | None, typer.Option(dir_okay=False, help="Default: OUT/ledger.sqlite.")] = None,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for tables, figures and paper.html.")] = Path(
        "results"
    ),
) -> None:
    """Make the runs that are missing, then write every table and figure, with the paper's numbers beside ours.

    Finished runs are kept in the ledger: interrupt the command at any time, and run it again to resume. Several
    commands can share one ledger. Runs in OUT/ledger.parquet count, too. A cell that has all its runs is kept, whatever
    code they were made with. A cell that lacks runs is never mixed: if the code has changed, all its runs are repeated.

    To make runs on a machine without the libraries for figures, use --no-render there, copy its ledger and add it here
    with --merge.
    """
    from demonet_study.cli.run_bar import RunBar
    from demonet_study.ledger import job
    from demonet_study.ledger.store import Ledger
    from demonet_study.ledger.work import work

    asked = _parts(parts)
    chosen = set(_only([one for part in asked for one in part.wanted(runs, quick)], sets, methods))
    exported = out / "ledger.parquet"
    summary: WorkSummary | None = None
    if render_only and no_render:
        raise DemonetError("--render-only with --no-render", hint="choose one of them")
    if render_only and ledger is not None and not ledger.exists():
        raise DemonetError("no such ledger", file=ledger, hint="--render-only would write empty tables")
    if ledger is None or not no_render:
        _check_out(out)
    with Ledger(ledger or out / "ledger.sqlite") as opened:
        imported = None if no_render else _import(opened, exported, None)
        for path in merge or ():
            typer.echo(f"Added {opened.import_runs(path):,} runs of {path}.", err=True)
        if not render_only:
            wanted, elsewhere = [], False
            for part in asked:
                if part.device not in ("", device):
                    typer.echo(f"No runs for {part.name}: it compares the cost of runs on {part.device}.", err=True)
                    elsewhere = True
                    continue
                ones = [one for one in part.wanted(runs, quick, own=True) if one in chosen]
                wanted += ones if fresh else opened.incomplete(ones, part.device)
            try:
                with RunBar() as bar:
                    summary = work(
                        *(opened, wanted, job.perform),
                        jobs=jobs,
                        engine=engine.value,
                        device=device,
                        time_limit=time_limit,
                        on_progress=bar,
                    )
            except KeyboardInterrupt:
                typer.echo("Interrupted. Finished runs are kept; run the same command to resume.", err=True)
                raise typer.Exit(INTERRUPTED) from None
            if wanted or not elsewhere:
                _print_summary(summary)
        if not no_render:
            _import(opened, exported, imported)
            _render(opened, asked, out, runs, quick, summary)
    if summary and summary.failures:
        _print_failures(summary.failures)
        raise typer.Exit(1)


def _check_out(out: Path) -> None:
    """Refuse a folder of files without a ledger: tables and figures would replace those of others."""
    names = {whole_of(entry.name) for entry in out.iterdir()} if out.is_dir() else set()
    if names and names.isdisjoint(("ledger.sqlite", "ledger.parquet")):
        raise DemonetError("the folder is not empty and has no ledger", file=out, hint="use a new folder for --out")


def _render(
    ledger: Ledger, parts: Sequence[Part], out: Path, runs: int | None, quick: bool, summary: WorkSummary | None
) -> None:
    from demonet_study.report.files import write_files

    ledger.export_runs(out / "ledger.parquet")  # first: it tells the next command that the folder is ours
    written = write_files(ledger, parts, out, runs=runs, quick=quick, summary=summary)
    typer.echo("\n".join(f"Wrote {path}" for path in [*written, out / "ledger.parquet"]))


def _import(ledger: Ledger, path: Path, before: tuple[int, int] | None) -> tuple[int, int] | None:
    """Import the runs of a file if it exists and has changed: another command may write it meanwhile."""
    if not path.exists():
        return None
    found = path.stat()
    version = found.st_mtime_ns, found.st_size
    if version != before:
        ledger.import_runs(path)
    return version


def _parts(names: Sequence[str]) -> list[Part]:
    """The parts with these names, each once, in the order of the paper."""
    from demonet_study.report.parts import PARTS

    _check("part", names, [*PARTS, ALL])
    return [part for name, part in PARTS.items() if name in names or ALL in names]


def _only(wanted: list[Wanted], sets: Sequence[str] | None, methods: Sequence[str] | None) -> list[Wanted]:
    """The wanted runs on the chosen data sets and of the chosen methods."""
    chosen_sets, chosen_methods = _names(sets), _names(methods)
    _check("data set here", chosen_sets, {one.cell.dataset for one in wanted})
    _check("method here", chosen_methods, {one.cell.method for one in wanted})
    return [
        one
        for one in wanted
        if (not chosen_sets or one.cell.dataset in chosen_sets)
        and (not chosen_methods or one.cell.method in chosen_methods)
    ]


def _names(values: Sequence[str] | None) -> list[str]:
    return [name.strip() for value in values or () for name in value.split(",") if name.strip()]


def _check(what: str, names: Iterable[str], there: Iterable[str]) -> None:
    known = sorted(there)
    lower = {name.lower(): name for name in known}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name.lower(), lower, n=1)
            hint = f"did you mean {lower[near[0]]!r}?" if near else f"expected one of {', '.join(known)}"
            raise DemonetError(f"no {what} is called {name!r}", hint=hint)


def _print_summary(summary: WorkSummary) -> None:
    from demonet_study.report.files import duration

    if summary.left:
        typer.echo(f"Stopped with {summary.left:,} runs left; the same command continues.", err=True)
    if summary.runs:
        elapsed, processor = duration(summary.seconds), duration(summary.processor_seconds)
        typer.echo(f"{summary.runs:,} runs in {elapsed}, {processor} of processor time.", err=True)
    else:
        typer.echo("No run succeeded." if summary.failures else "No run was missing.", err=True)


def _print_failures(failures: Sequence[Failure]) -> None:
    from demonet_study.cli.run_bar import run_name

    for failure in failures:
        lines = failure.error.strip().splitlines()
        typer.echo(f"failed: {run_name(failure.job)}: {lines[-1] if lines else 'no reason given'}", err=True)
    typer.echo(f"{len(failures):,} runs failed. The next command tries them again.", err=True)
