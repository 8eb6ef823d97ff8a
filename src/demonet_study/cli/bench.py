"""``demonet bench``: time DEMO-Net and its peers on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from rich.table import Table

    from demonet_study.bench.measure import Row


_NODE_BYTES = 1000  # of memory that a node needs at least: features, its edges, and the layers of a network


def bench(
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")] = "auto",
    sizes: Annotated[
        str, typer.Option(help="Numbers of nodes n; each graph has 2n random edges.")
    ] = "1000,10000,100000",
    graph: Annotated[str, typer.Option(help="uniform, pairs, power-law, or a network of the paper.")] = "uniform",
    methods: Annotated[str, typer.Option(help="Comma-separated names, or all.")] = "all",
    dtype: Annotated[str, typer.Option(help="float32, tf32, bfloat16 (tensors), autocast (to bfloat16).")] = "float32",
    compile: Annotated[bool, typer.Option("--compile", help="Also with torch.compile.")] = False,
    apart: Annotated[
        bool, typer.Option("--apart", help="On a CPU: one process per method, which also measures peak memory.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=3, help="Samples per method.")] = 9,
    quick: Annotated[bool, typer.Option("--quick", help="Two small sizes and few samples: under a minute.")] = False,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for bench.csv and bench.html.")] = Path("bench"),
) -> None:
    """Time an epoch of DEMO-Net and of its peers; print ratios, write a CSV file and a page."""
    from rich.console import Console

    from demonet.atomic import check_ours
    from demonet.errors import DemonetError
    from demonet.report.page import GENERATOR, write
    from demonet_study.bench import METHODS, GraphSpec
    from demonet_study.bench import bench as measure
    from demonet_study.bench.floor import copy_bandwidth
    from demonet_study.bench.graphs import KINDS
    from demonet_study.bench.methods import find
    from demonet_study.bench.step import MODES, PRECISIONS
    from demonet_study.experiments.rows import write_rows
    from demonet_study.report.bench import bench_page

    if dtype not in PRECISIONS:
        raise DemonetError(f"--dtype {dtype}", hint=f"expected one of {', '.join(PRECISIONS)}")
    where = _device(device)
    left_out = [word for word, wanted in (("compiled", compile), ("graphed", where.type == "cuda")) if not wanted]
    modes = [mode for mode in MODES if not any(word in mode for word in left_out)]
    names = list(METHODS) if methods == "all" else [name.strip() for name in methods.split(",")]
    find(names)  # fails early on an unknown name
    numbers = [1000, 5000] if quick else _sizes(sizes)
    specs = [GraphSpec(graph, nodes=n) for n in numbers] if graph in KINDS else [GraphSpec(graph)]
    for name, mark in (("bench.csv", b"graph,nodes,arcs,"), ("bench.html", GENERATOR)):
        check_ours(out / name, mark, overwrite=False)
    out.mkdir(parents=True, exist_ok=True)

    console, errors = Console(), Console(stderr=True)
    bandwidth = copy_bandwidth(where, mebibytes=64 if quick else 256)
    rows: list[Row] = []
    with errors.status("") as status:
        for spec in specs:
            found = measure(
                spec,
                names,
                device=where,
                precision=dtype,
                modes=modes,
                apart=apart,
                bandwidth=bandwidth,
                repeats=3 if quick else repeats,
                seconds=0.5 if quick else 20.0,
                on_step=status.update,
            )
            rows += found
            console.print(_table(found))
            for row in found:
                if row.failed:
                    line = f"{row.method}, {row.mode}: {row.error}"
                    console.print(line, style="dim", highlight=False, markup=False, soft_wrap=True)
            write_rows(rows, out / "bench.csv")  # after every size, so that an interrupted command keeps its results
    write(bench_page(rows), out / "bench.html")
    console.print(f"Wrote {out}/bench.csv and {out}/bench.html.", highlight=False, markup=False, soft_wrap=True)


def _device(name: str) -> torch.device:
    import torch

    from demonet.errors import DemonetError

    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
    except RuntimeError as error:
        raise DemonetError(f"unknown device {name!r}", hint="expected auto, cpu, cuda or cuda:1") from error
    if device.type not in ("cpu", "cuda") or (device.type == "cuda" and not torch.cuda.is_available()):
        raise DemonetError(f"device {name!r} is not available", hint="use auto")
    return device


def _sizes(text: str) -> list[int]:
    from demonet.checks import check_memory
    from demonet.errors import DemonetError

    try:
        sizes = [int(float(part)) for part in text.split(",")]
    except (ValueError, OverflowError) as error:
        raise DemonetError(f"--sizes {text}", hint="expected numbers of nodes, such as 1000,1e4") from error
    for size in sizes:
        check_memory(_NODE_BYTES * size, f"--sizes {size}")
    return sizes


def _table(rows: Sequence[Row]) -> Table:
    """The table of the page, without the columns for which a terminal has no room."""
    from rich.table import Table

    from demonet_study.report.bench import epochs_table

    shown = epochs_table(rows)
    table = Table(title=f"{shown.title}, {rows[0].device}", title_justify="left")
    left_out = ("input", "setup ms", "of lower bound", "of one-step bound", "error")
    places = [place for place, column in enumerate(shown.head) if column.name not in left_out]
    for place in places:
        name = shown.head[place].name
        table.add_column(name, justify="left" if name in ("method", "mode") else "right")
    for line in shown.shown:
        table.add_row(*(line[place].text for place in places))
    return table
