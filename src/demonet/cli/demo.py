"""``demonet demo``: train and compare on generated data, and write a page."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(dir_okay=False, help="The page to write.")] = Path("report.html"),
    splits: Annotated[int, typer.Option(min=1, max=1000, help="Number of splits per problem.")] = 3,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Seed of data, splits and networks.")] = 0,
) -> None:
    """Train DEMO-Net, its closed form and other methods on generated graphs; print tables and write a page."""
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table

    from demonet.errors import DemonetError
    from demonet.report.demo import demo_page
    from demonet.report.page import write
    from demonet.runs.demo import FLIP_METHODS, METHODS, run, steps

    if not out.parent.is_dir():  # before minutes of training
        raise DemonetError("the folder of the page does not exist", argument="out", file=out)
    torch.set_num_threads(1)  # the graphs are small, and results must not depend on the number of threads
    start = time.perf_counter()
    errors = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("", total=steps(splits))

        def on_step(step: str) -> None:
            progress.update(task, description=step, advance=1)
            if not errors.is_terminal:
                errors.print(step, highlight=False, soft_wrap=True)

        result = run(splits, seed, on_step)
    write(demo_page(result), out)

    over = "one split" if splits == 1 else f"mean ± deviation over {splits} splits"
    table = Table(title=f"Test accuracy, {over}", title_justify="left")
    table.add_column("method")
    for part in (result.roles, result.graphs):
        table.add_column(part.title, justify="right")
    for method in METHODS:
        cells = [part.row(method) for part in (result.roles, result.graphs)]
        table.add_row(method, *(_shown(mean, deviation) for mean, deviation, _ in cells))
    flip = result.flip
    flipped = Table(title=f"{flip.comparison.title}: test accuracy, {over}", title_justify="left")
    flipped.add_column("method")
    flipped.add_column("accuracy", justify="right")
    for method in FLIP_METHODS:
        mean, deviation, _ = flip.comparison.row(method)
        flipped.add_row(method, _shown(mean, deviation))
    flipped.add_section()
    flipped.add_row("ceiling", _shown(flip.ceiling, math.nan))
    console = Console()
    console.print(table)
    console.print(flipped)
    console.print(
        f"Mirrored karate club: a node and its mirror are {result.mirror.mirrored_distance:.2g} apart on average, "
        f"other pairs {result.mirror.other_distance:.3g}.",
        highlight=False,
        soft_wrap=True,
    )
    seconds = time.perf_counter() - start
    console.print(f"Wrote {out} in {seconds:.0f} s.", highlight=False, markup=False, soft_wrap=True)


def _shown(mean: float, deviation: float) -> str:
    return f"{mean:.3f}" if math.isnan(deviation) else f"{mean:.3f} ± {deviation:.3f}"
