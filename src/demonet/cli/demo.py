"""``demonet demo``: train and compare on generated data, and write a page."""

from __future__ import annotations

import itertools
import math
import time
from pathlib import Path
from typing import Annotated

import typer

from demonet.cli.console import print_table, say


def demo(
    out: Annotated[Path, typer.Option(dir_okay=False, help="The page to write.")] = Path("report.html"),
    splits: Annotated[int, typer.Option(min=1, max=1000, help="Number of splits per problem.")] = 3,
    seed: Annotated[int, typer.Option(min=0, max=2**31, help="Seed of data, splits and networks.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is no page of demonet.")] = False,
) -> None:
    """Train DEMO-Net, its closed form and other methods on generated graphs; print tables and write a page."""
    import torch

    from demonet.atomic import check_file, check_ours
    from demonet.progress import Bar
    from demonet.report.demo import demo_page
    from demonet.report.page import GENERATOR, write
    from demonet.runs.demo import FLIP_METHODS, METHODS, run, steps
    from demonet.runs.folder import listed_beside

    check_file(out, "out", listed_beside(out))  # before minutes of training
    check_ours(out, GENERATOR, overwrite=overwrite)
    torch.set_num_threads(1)  # the graphs are small, and results must not depend on the number of threads
    start = time.perf_counter()
    done, total = itertools.count(1), steps(splits)
    with Bar("", total) as bar:

        def on_step(step: str) -> None:
            bar.show(next(done), now=step)
            if bar.due:
                bar.line(step)

        result = run(splits, seed, on_step)
    write(demo_page(result), out)

    over = "one split" if splits == 1 else f"mean ± deviation over {splits} splits"
    parts, flip = (result.roles, result.graphs), result.flip
    rows = [[method, *(_shown(*part.row(method)) for part in parts)] for method in METHODS]
    print_table(f"Test accuracy, {over}", ["method", *(part.title for part in parts)], rows)
    rows = [[method, _shown(*flip.comparison.row(method))] for method in FLIP_METHODS]
    rows.append(["ceiling", _shown(flip.ceiling, math.nan)])
    print_table(f"{flip.comparison.title}: test accuracy, {over}", ["method", "accuracy"], rows)
    say(
        f"Mirrored karate club: a node and its mirror are {result.mirror.mirrored_distance:.2g} apart on average, "
        f"other pairs {result.mirror.other_distance:.3g}."
    )
    seconds = time.perf_counter() - start
    say(f"Wrote {out} in {seconds:.0f} s.")


def _shown(mean: float, deviation: float, half: float = math.nan) -> str:
    return f"{mean:.3f}" if math.isnan(deviation) else f"{mean:.3f} ± {deviation:.3f}"
