"""The paper's data sets: load one by its name, and count what a graph or a set of graphs holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.data import catalog, download
from demonet.data.catalog import Statistics
from demonet.data.graph_set import GraphSet
from demonet.data.read import read_graph, read_graphs
from demonet.degree.count import count_degree
from demonet.options import SelfLoops


def load(name: str, *, self_loops: SelfLoops = "drop") -> Data | GraphSet:
    """A data set of the paper: a checked Data for one graph, a checked `GraphSet` for many.

    Files are looked up in ``$DEMONET_DATA/<folder>/``, then in the user's cache, and downloaded otherwise; each is
    checked against its sha256. Edges are simple and undirected, listed in both directions; ``y`` is int64; ``node_ids``
    has the ids of the file. facebook and wiki-vote have no labels: their classes are quartiles of the degree, with the
    cut points in ``degree_cuts``.

    Args:
        name: One of ``demonet.data.CATALOG``, in upper or lower case.
        self_loops: ``"drop"`` with a warning, or ``"keep"``.
    """
    entry = catalog.find(name)
    folder = download.fetch(entry)
    if entry.task == "graphs":
        source = folder / entry.files[0].name if entry.name == "PTC" else folder
        return read_graphs(source, self_loops=self_loops, name=entry.name)
    edges, labels = folder / entry.files[0].name, [folder / file.name for file in entry.files[1:]]
    if edges.suffix == ".mat":
        return read_graph(edges, "Label", "Attributes", matrix="Network", self_loops=self_loops)
    data = read_graph(edges, labels[0] if labels else None, directed=False, self_loops=self_loops)
    return data if labels else _with_degree_quartiles(data)


def _with_degree_quartiles(data: Data) -> Data:
    """Four classes by degree; each cut point is the largest degree of its class."""
    every = degrees(data).numpy()
    cuts = np.unique(np.quantile(every, [0.25, 0.5, 0.75], method="inverted_cdf")).astype(int).tolist()
    data.y = torch.from_numpy(np.searchsorted(cuts, every, side="left"))
    firsts = [int(every.min()), *(cut + 1 for cut in cuts)]
    lasts = [*cuts, int(every.max())]
    data.class_names = [f"degree {low} to {high}" for low, high in zip(firsts, lasts, strict=True)]
    data.degree_cuts = cuts
    return data


def degrees(data: Data | Sequence[Data]) -> Tensor:
    """The degrees of all nodes, graph by graph."""
    return torch.cat([count_degree(graph.edge_index.cpu(), int(graph.num_nodes)) for graph in _graphs(data)])


def measure(data: Data | GraphSet) -> Statistics:
    """Count nodes, edges (a self-loop is one), classes, attributes and degrees."""
    graphs = _graphs(data)
    loops = sum(int((graph.edge_index[0] == graph.edge_index[1]).sum()) for graph in graphs)
    every = degrees(graphs)
    y = data.y
    return Statistics(
        nodes=every.numel(),
        edges=(sum(graph.edge_index.size(1) for graph in graphs) + loops) // 2,
        class_counts=() if y is None else tuple(torch.bincount(y[y >= 0]).tolist()),
        attributes=0 if graphs[0].x is None else graphs[0].x.size(1),
        distinct_degrees=every.unique().numel(),
        max_degree=int(every.max()) if every.numel() else 0,
        isolated=int((every == 0).sum()),
        graphs=len(graphs),
    )


def _graphs(data: Data | Sequence[Data]) -> list[Data]:
    return [data] if isinstance(data, Data) else list(data)
