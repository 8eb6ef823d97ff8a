"""The demo as a page."""

from __future__ import annotations

import math

from demonet.experiments.demo import METHODS, Comparison, Demo, Mirror
from demonet.report.cells import Cell, Column, Estimate
from demonet.report.figures import accuracy_bars, embedding_scatter, learning_curves
from demonet.report.page import Facts, Figure, Page, Section, Table, Text

OURS = [method for method in METHODS if method.startswith("demonet-")]
INTRODUCTION = """A node's degree says what its neighbourhood looks like. DEMO-Net gives the nodes of one degree a \
graph convolution of their own, beside a part that all nodes share, and reads a graph out degree by degree.

Three generated problems with a known answer show what that is good for. Every method had the same splits (a third of \
the items to train on, a third to choose the epoch, a third to test), the same features (the node's degree) and the \
same early stopping; the test third was looked at once."""


def demo_page(demo: Demo) -> Page:
    """Accuracy, learning curves, and the embedding in which mirrored nodes fall together."""
    splits = len(demo.roles.accuracy[METHODS[0]])
    columns = [Column("method"), Column("roles of nodes", best="max"), Column("families of graphs", best="max")]
    rows: list[list[Cell]] = [
        [method, *(_estimate(part, method) for part in (demo.roles, demo.graphs))] for method in METHODS
    ]
    over = "on one split" if splits == 1 else f"mean ± standard deviation over {splits} splits"
    caption = f"Test accuracy, {over}; the best of each column is marked."
    return Page(
        "DEMO-Net, the demo",
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
        name: {"train_loss": run.train_loss, "val_loss": run.val_loss, "val_accuracy": run.val_accuracy}
        for name, run in part.curves.items()
    }
    ends = "; ".join(f"{name}: {run.epochs} epochs, best {run.best_accuracy:.3f}" for name, run in part.curves.items())
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
        "members of the second copy named right": f"{mirror.test_accuracy:.0%} of those tested",
    }
    alt = (
        "Embedding of two copies of the karate club joined by one edge. Mirrored nodes are "
        f"{mirror.mirrored_distance:.2g} apart on average, other pairs {mirror.other_distance:.3g}."
    )
    caption = (
        "Two copies of Zachary's karate club, joined by one edge between a member and its mirror. The network learnt "
        "to tell the 34 members of the first copy apart, from their degrees alone; the second copy (rings) lands "
        "on the first (dots). Members whose places in the club are the same cannot be told apart by any such network."
    )
    return [
        Figure(figure, alt=alt, caption=caption, title="Structurally equal nodes fall together"),
        Facts(facts),
    ]
