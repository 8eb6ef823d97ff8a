"""The page of ``demonet demo``."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from demonet.report.bins import Bin, bin_of, share
from demonet.report.chart import Axis, Chart, Panel, Series
from demonet.report.figures import interval_bars, learning_curves
from demonet.report.page import Facts, Figure, Page, Section, Table, Text
from demonet.report.table_cells import Cell, Column, Estimate
from demonet.runs.demo import EPOCHS, FLIP_METHODS, METHODS, PATIENCE, Comparison, Demo, Flip, Mirror

OURS = [method for method in (*METHODS, *FLIP_METHODS) if method.startswith("demonet-") or method == "kernel"]
BY_DEGREE = ("kernel", "demonet-default", "gcn", "gcn + degree")
INTRODUCTION = f"""The degree of a node says much about its neighbourhood. DEMO-Net has a graph convolution for the \
nodes of each degree, besides a part that all nodes share, and its readout of a graph goes degree by degree.

Four generated problems with a known answer show where that helps. All methods use the same splits (a third of the \
items each for training, for selecting the epoch or the settings, and for testing). All networks have the same inputs \
where nothing else is said, at most {EPOCHS:,} epochs, and stop after {PATIENCE} epochs without an improvement. The \
test third is used once."""
FLIP = """Every node has four random attributes. If its degree is at most the median, its class is the sign of its \
neighbours' mean first attribute; above the median, it is the opposite sign. A few classes are exchanged at random, so \
nobody can be right more often than the ceiling. Neither the degree nor the attributes say anything alone.

`kernel` is DEMO-Net in closed form; `s_d = 0` removes its degree-specific part, `shuffled degrees` gives each node \
the degree of another. `demonet-default` is the network. `+ degree` has a radial basis of the degree among its \
inputs. `lr` and `mlp` are a logistic regression and a perceptron on a table with the attributes of a node, the mean \
attributes of its neighbours, and the degree: whoever knows beforehand what the rule reads can do without a graph \
network."""


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
        "Degree-specific graph neural networks on four generated problems",
        [
            Text(INTRODUCTION),
            Table(columns, rows, caption, title="Accuracy"),
            *(_bars(part, part.title) for part in (demo.roles, demo.graphs)),
            *_flip(demo.flip, over),
            *_mirror(demo.mirror),
            *(_curves(part) for part in (demo.roles, demo.graphs)),
        ],
    )


def _estimate(part: Comparison, method: str) -> Cell:
    mean, deviation, _ = part.row(method)
    return mean if math.isnan(deviation) else Estimate(mean, deviation)


def _bars(part: Comparison, title: str, ceiling: float | None = None) -> Section:
    found = {method: part.row(method) for method in part.accuracy}
    rows = {method: (mean, mean - half, mean + half) for method, (mean, _, half) in found.items()}
    chart = interval_bars(rows, title="Test accuracy with 95 % interval", highlight=OURS, line=ceiling)
    caption = "DEMO-Net is in colour." + ("" if ceiling is None else f" The dotted line is the ceiling, {ceiling:.3f}.")
    return Figure(chart, caption=caption, title=title, half=True)


def _curves(part: Comparison) -> Section:
    runs = {
        name: {"train_loss": run.train_loss, "val_loss": run.val_loss, "val_accuracy": run.val_metric}
        for name, run in part.curves.items()
    }
    ends = "; ".join(f"{name}: {run.epochs} epochs, best {run.best_metric:.3f}" for name, run in part.curves.items())
    return Figure(
        learning_curves(runs),
        alt=f"Learning curves on the first split. {ends}",
        title=part.title,
        half=True,
        fold="Learning curves of the first split",
    )


def _flip(flip: Flip, over: str) -> list[Section]:
    part = flip.comparison
    rows: list[list[Cell]] = [[method, _estimate(part, method)] for method in FLIP_METHODS]
    columns = [Column("method"), Column("accuracy", best="max")]
    caption = f"Test accuracy, {over}. The ceiling is {flip.ceiling:.3f}."
    return [
        Text(FLIP, title=part.title),
        Table(columns, rows, caption),
        _bars(part, "Accuracy", flip.ceiling),
        _by_degree(flip),
    ]


def _by_degree(flip: Flip) -> Section:
    """Accuracy by degree, with Wilson's intervals."""
    bins = degree_bins(flip.degree, int(flip.threshold))
    place = bin_of(flip.degree, bins)
    counts = np.bincount(place, minlength=len(bins))
    drawn = [index for index in range(len(bins)) if counts[index]]
    names = {float(index): bins[index].name for index in drawn}
    series = []
    for number, method in enumerate(BY_DEGREE):
        right = np.bincount(place, flip.right[method], minlength=len(bins)).astype(int)
        values, low, high = zip(*(share(right[index], counts[index]) for index in drawn), strict=True)
        hover = [f"{method}, degree {bins[index].name}: {right[index]} of {counts[index]}" for index in drawn]
        series.append(Series(method, list(names), values, low, high, colour=number, symbol=number, hover=hover))
    series.append(Series("ceiling", (drawn[0], drawn[-1]), (flip.ceiling, flip.ceiling), hover=("ceiling",) * 2))
    edge = bin_of(np.array([int(flip.threshold)]), bins)[0] + 0.5
    series.append(Series("the rule is reversed", (edge, edge), (0.0, 1.0), mark="links"))
    chart = Chart("Accuracy by degree", [Panel("", series)], Axis("degree", names=names), Axis("accuracy"))
    alt = "; ".join(
        f"{one.name} " + ", ".join(f"{value:.2f} at {name}" for name, value in zip(names.values(), one.y, strict=True))
        for one in series[: len(BY_DEGREE)]
    )
    caption = (
        f"The rule is reversed above degree {flip.threshold:g}, at the vertical line. Who is right on one side of it "
        "and wrong on the other has learnt half of the rule. Bands are 95 % intervals over the tested nodes."
    )
    return Figure(chart, f"By degree: {alt}", caption, title=chart.title, half=True)


def degree_bins(degree: NDArray[np.int64], threshold: int) -> list[Bin]:
    """A bin for each degree up to a threshold (0 and 1 together), then bins that double in width.

    >>> [bin.name for bin in degree_bins(np.arange(30), 3)]
    ['0–1', '2', '3', '4–5', '6–9', '10–17', '18–33']
    """
    bins = [Bin(0, 1), *(Bin(low, low) for low in range(2, threshold + 1))]
    width = 2
    while bins[-1].high < degree.max():
        low = bins[-1].high + 1
        bins.append(Bin(low, low + width - 1))
        width *= 2
    return bins


def _mirror(mirror: Mirror) -> list[Section]:
    data, (x, y) = mirror.data, mirror.xy.numpy().T
    half = data.y.numel() // 2
    other = data.mirror[:half].numpy()
    hover = [f"member {member}" for member in data.y.tolist()]
    from_x, from_y = (np.column_stack([along[:half], along[other]]).ravel().tolist() for along in (x, y))
    series = [
        Series("mirrored", from_x, from_y, mark="links"),
        Series("first copy", x[:half], y[:half], mark="points", colour=0, hover=hover[:half]),
        Series("second copy", x[half:], y[half:], mark="points", colour=1, hollow=True, hover=hover[half:]),
    ]
    across, up = (Axis(f"{number} principal component", bare=True) for number in ("first", "second"))
    chart = Chart("Mirrored karate club", [Panel("", series)], across, up, square=True)
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
    return [Figure(chart, alt=alt, caption=caption, title="Structurally equal nodes coincide"), Facts(facts)]
