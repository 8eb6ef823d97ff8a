"""The page of ``demonet demo``."""

from __future__ import annotations

import math

from demonet.experiments.demo import METHODS, Comparison, Demo, Mirror
from demonet.report.figures import accuracy_bars, embedding_scatter, learning_curves
from demonet.report.page import Facts, Figure, Page, Section, Table, Text
from demonet.report.table_cells import Cell, Column, Estimate

OURS = [method for method in METHODS if method.startswith("demonet-")]
INTRODUCTION = """The degree of a node says much about its neighbourhood. DEMO-Net has a graph convolution for the \
nodes of each degree, besides a part that all nodes share, and its readout of a graph goes degree by degree.

Three generated problems with a known answer show where that helps. All methods use the same splits (a third of the \
items each for training, selecting the epoch and testing), the same features (the degree) and the same early stopping. \
The test third is used once."""


def demo_page(demo: Demo) -> Page:
    """Accuracy, learning curves, and an embedding in which mirrored nodes coincide."""
    splits = len(demo.roles.accuracy[METHODS[0]])
    columns = [Column("method"), Column("roles of nodes", best="max"), Column("families of graphs", best="max")]
    rows: list[list[Cell]] = [
        [method, *(_estimate(part, method) for part in (demo.roles, demo.graphs))] for method in METHODS
    ]
    over = "on one split" if splits == 1 else f"mean ± standard deviation over {splits} splits"
    caption = f"Test accuracy, {over}. The best of each column is bold."
    return Page(
        "DEMO-Net demo",
        "Degree-specific graph neural networks on three generated problems",
        [
            Text(INTRODUCTION),
            Table(columns, rows, caption, title="Accuracy"),
            *(_bars(part) for part in (demo.roles, demo.graphs)),
            *(_curves(part) for part in (demo.roles, demo.graphs)),
            *_mirror(demo.mirror),
        ],
    )


def _estimate(part: Comparison, method: str) -> Cell:
    mean, deviation, _ = part.row(method)
    return mean if math.isnan(deviation) else Estimate(mean, deviation)


def _bars(part: Comparison) -> Section:
    rows = {method: (part.row(method)[0], part.row(method)[2]) for method in METHODS}
    alt = "; ".join(f"{method} {mean:.3f}" for method, (mean, _) in rows.items())
    return Figure(accuracy_bars(rows, highlight=OURS), alt=f"Test accuracy: {alt}", title=part.title, half=True)


def _curves(part: Comparison) -> Section:
    runs = {
        name: {"train_loss": run.train_loss, "val_loss": run.val_loss, "val_accuracy": run.val_metric}
        for name, run in part.curves.items()
    }
    ends = "; ".join(f"{name}: {run.epochs} epochs, best {run.best_metric:.3f}" for name, run in part.curves.items())
    return Figure(
        learning_curves(runs),
        alt=f"Learning curves on the first split. {ends}",
        title=f"{part.title}: learning curves of the first split",
        half=True,
    )


def _mirror(mirror: Mirror) -> list[Section]:
    data = mirror.data
    half = data.y.numel() // 2
    pairs = [(node, int(data.mirror[node])) for node in range(half)]
    copies = ["first copy" if node < half else "second copy" for node in range(2 * half)]
    hover = [f"member {int(data.y[node])}, {copies[node]}" for node in range(2 * half)]
    symbols = ["circle" if node < half else "circle-open" for node in range(2 * half)]
    figure = embedding_scatter(
        mirror.xy.numpy(),
        copies,
        hover,
        pairs=pairs,
        symbols=symbols,
        title="Mirrored karate club",
        axes=("first principal component", "second principal component"),
    )
    facts = {
        "mean distance of a node to its mirror": f"{mirror.mirrored_distance:.2g}",
        "mean distance of other pairs": f"{mirror.other_distance:.3g}",
        "correctly predicted members of the second copy": f"{mirror.test_accuracy:.0%} of those tested",
    }
    alt = (
        "Embedding of two copies of the karate club joined by one edge. Mirrored nodes are "
        f"{mirror.mirrored_distance:.2g} apart on average, other pairs {mirror.other_distance:.3g}."
    )
    caption = (
        "Two copies of Zachary's karate club, joined by one edge between a member and its mirror. The network was "
        "trained to tell the 34 members of the first copy apart, by their degrees alone. It embeds the second copy "
        "(rings) on top of the first (dots). No such network can tell members with the same position in the club "
        "apart."
    )
    return [
        Figure(figure, alt=alt, caption=caption, title="Structurally equal nodes coincide"),
        Facts(facts),
    ]
