"""Table 1: which convolutions are seed-oriented, degree-aware and order-free, by computation."""

from __future__ import annotations

import math

from demonet.sealed import canonical
from demonet_study.experiments.expressive.convolutions import Convolution, table_one
from demonet_study.ledger.job import Cell
from demonet_study.report.grid import Layout
from demonet_study.report.parts.part import Entry, Part

COLUMNS = ("seed-oriented", "degree-aware", "order-free")
# Layer: method, and its form if one line of the paper covers several.
METHODS = {
    "GCN": ("gcn", ""),
    "GAT": ("gat", ""),
    "GraphSAGE (mean)": ("sage", "mean"),
    "GraphSAGE (LSTM)": ("sage", "LSTM"),
    "DCNN (hops 1 to 2)": ("dcnn", "hops 1 to 2"),
    "DCNN (hops 0 to 2)": ("dcnn", "hops 0 to 2"),
    "DEMO-Net (weight)": ("demonet-weight", ""),
    "DEMO-Net (hash)": ("demonet-hash", ""),
    "DEMO-Net (smooth)": ("demonet-smooth", ""),
    "DEMO-Net (scale)": ("demonet-scale", ""),
}
MARKS = {"yes": 1.0, "no": 0.0, "depends": math.nan, "": math.nan}  # the paper's dash is no mark


def _entries(max_nodes: int, draws: int) -> list[Entry]:
    size = {"max_nodes": max_nodes, "num_colours": 3, "draws": draws}
    return [
        _entry(layer, place, canonical(size | {"model": layer.name}))
        for layer in table_one(max_degree=max_nodes - 1)
        for place in range(len(COLUMNS))
    ]


def _entry(layer: Convolution, place: int, options: str) -> Entry:
    method, form = METHODS[layer.name]
    cell = Cell("properties", COLUMNS[place], method, options=options)
    return Entry(cell, 1, form, MARKS[layer.paper[place]], most=1)


PROPERTIES = Part(
    "properties",
    "Table 1: three properties of convolutions",
    "Whether a convolution has each property, over all pairs of subtrees of all connected graphs with at most four "
    "nodes in three colours. A property that requires different results fails if some pair collides in each of 100 "
    "draws of the weights. Order-free fails if another order changes a result in some draw.",
    lambda: _entries(4, 100),
    lambda: _entries(3, 25),
    layout=Layout(
        column=lambda row: row.dataset, line=lambda row: row.full_name, best=None, words={1.0: "yes", 0.0: "no"}
    ),
)
