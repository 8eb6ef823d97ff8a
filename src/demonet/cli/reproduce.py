"""``demonet reproduce``: the tables and figures of the paper, from runs that are in the ledger or are done now."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demonet.cli.choices import Engine
from demonet.errors import DemonetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from demonet.experiments.ledger.store import Failure, Ledger
    from demonet.experiments.ledger.work import Worked
    from demonet.experiments.parts import Part, Wanted

ALL = "all"


def reproduce(
    parts: Annotated[
        list[str],
        typer.Argument(
            metavar="PART...",
            help="properties, nodes, splits, graphs, speed, layers, identity, ablation, comparison, reasons, or all.",
        ),
    ],
    runs: Annotated[int | None, typer.Option(min=1, help="Runs of each cell, instead of each one's own.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at once: 1, with Ray as many as fit.")] = None,
    engine: Annotated[Engine, typer.Option(help="Processes here, or a Ray cluster ($RAY_ADDRESS).")] = Engine.LOCAL,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")] = "cpu",
    sets: Annotated[list[str] | None, typer.Option(help="Do runs on these sets only, with commas.")] = None,
    methods: Annotated[list[str] | None, typer.Option(help="Do runs of these methods only, with commas.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The small tables: ten minutes on two cores.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do whole cells again that were made with other code or libraries.")
    ] = False,
    render_only: Annotated[bool, typer.Option("--render-only", help="Do no runs; write what is there.")] = False,
    ledger: Annotated[Path | None, typer.Option(dir_okay=False, help="Default: OUT/ledger.sqlite.")] = None,
    out: Annotated[Path, typer.Option(file_okay=False, help="Where tables, figures and paper.html go.")] = Path(
        "results"
    ),
) -> None:
    """Do the runs that are missing, then write every table and figure, each cell beside the paper's.

    Every finished run is kept in the ledger: stop whenever you like, the same command goes on. Several at once share
    the work. Runs in OUT/ledger.parquet count too. A cell that has all its runs stays as it is, with whatever code
    they were made; one that has not is never mixed: with other code it begins anew.
    """
    from demonet.cli.paper_files import write_files
    from demonet.cli.run_bar import RunBar
    from demonet.experiments.ledger.store import Ledger
    from demonet.experiments.ledger.work import work
    from demonet.experiments.perform import perform

    asked = _parts(parts)
    chosen = set(_only([one for part in asked for one in part.wanted(runs, quick)], sets, methods))
    exported = out / "ledger.parquet"
    worked: Worked | None = None
    if render_only and ledger is not None and not ledger.exists():
        raise DemonetError("there is no such ledger", file=ledger, hint="nothing would be left in the tables")
    with Ledger(ledger or out / "ledger.sqlite") as opened:
        taken = _take(opened, exported, None)
        if not render_only:
            wanted, elsewhere = [], False
            for part in asked:
                if part.device not in ("", device):
                    typer.echo(f"No runs for {part.name}: it compares what runs cost on {part.device}.", err=True)
                    elsewhere = True
                    continue
                ones = [one for one in part.wanted(runs, quick) if one in chosen]
                have = {} if fresh else opened.results((one.cell for one in ones), part.device)
                wanted += [one for one in ones if len(have.get(one.cell, ())) < one.runs]
            try:
                with RunBar() as bar:
                    worked = work(
                        opened, wanted, perform, jobs=jobs, engine=engine.value, device=device, on_progress=bar
                    )
            except KeyboardInterrupt:
                typer.echo("Interrupted. Finished runs are kept; the same command goes on from here.", err=True)
                raise typer.Exit(130) from None
            if wanted or not elsewhere:
                _say_worked(worked)
        _take(opened, exported, taken)
        written = write_files(opened, asked, out, runs=runs, quick=quick, worked=worked)
        opened.export(exported)
    typer.echo("\n".join(f"Wrote {path}" for path in [*written, exported]))
    if worked and worked.failures:
        _say_failures(worked.failures)
        raise typer.Exit(1)


def _take(ledger: Ledger, path: Path, before: tuple[int, int] | None) -> tuple[int, int] | None:
    """Take in the runs of a file, if it is there and is not the one that was taken before: others may write it, too."""
    if not path.exists():
        return None
    found = path.stat()
    version = found.st_mtime_ns, found.st_size
    if version != before:
        ledger.take(path)
    return version


def _parts(names: Sequence[str]) -> list[Part]:
    """The parts of these names, each once, in the order of the paper."""
    from demonet.experiments.parts import PARTS

    _check("part", names, [*PARTS, ALL])
    return [part for name, part in PARTS.items() if name in names or ALL in names]


def _only(wanted: list[Wanted], sets: Sequence[str] | None, methods: Sequence[str] | None) -> list[Wanted]:
    """What is left of the runs by the user's choice of sets and methods."""
    chosen_sets, chosen_methods = _names(sets), _names(methods)
    _check("set here", chosen_sets, {one.cell.dataset for one in wanted})
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
    small = {name.lower(): name for name in known}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name.lower(), small, n=1)
            hint = f"did you mean {small[near[0]]!r}?" if near else f"there are {', '.join(known)}"
            raise DemonetError(f"no {what} is called {name!r}", hint=hint)


def _say_worked(worked: Worked) -> None:
    from demonet.cli.run_bar import duration

    if worked.runs:
        took, spent = duration(worked.seconds), duration(worked.processor_seconds)
        typer.echo(f"{worked.runs:,} runs in {took}, {spent} of processor time.", err=True)
    else:
        typer.echo("No run was missing." if not worked.failures else "No run ended well.", err=True)


def _say_failures(failures: Sequence[Failure]) -> None:
    from demonet.cli.run_bar import run_name

    for failure in failures:
        lines = failure.error.strip().splitlines()
        typer.echo(f"failed: {run_name(failure.job)}: {lines[-1] if lines else 'no reason given'}", err=True)
    typer.echo(f"{len(failures):,} runs failed, and are tried again the next time.", err=True)
