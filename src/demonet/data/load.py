"""`load`: a set of the paper by its name."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from demonet.data import catalog, store
from demonet.data.edges import SelfLoops
from demonet.data.encodings import degree
from demonet.data.files import read_graph
from demonet.data.graph_files import read_graphs
from demonet.data.graph_set import GraphSet


def load(name: str, *, self_loops: SelfLoops = "drop") -> Data | GraphSet:
    """A set of the paper: a checked Data for a network, a checked `GraphSet` for a set of graphs.

    Files are looked for in ``$DEMONET_DATA/<folder>/``, then in the user's cache, and else are downloaded; each is
    checked against its sha256. Edges are simple, undirected and in both directions; ``y`` is int64; ``node_ids`` has
    the ids of the file. Of facebook and wiki-vote, which have no labels, the classes are quartiles of the degree, with
    the cut points in ``degree_cuts``.

    Args:
        name: One of ``demonet.data.CATALOG``, in any case.
        self_loops: ``"drop"`` with a warning, or ``"keep"``.
    """
    entry = catalog.find(name)
    folder = store.fetch(entry)
    if entry.task == "graphs":
        source = folder / entry.files[0].name if entry.name == "PTC" else folder
        return read_graphs(source, self_loops=self_loops, name=entry.name)
    edges, labels = folder / entry.files[0].name, [folder / file.name for file in entry.files[1:]]
    if edges.suffix == ".mat":
        return read_graph(edges, "Label", "Attributes", matrix="Network", self_loops=self_loops)
    data = read_graph(edges, labels[0] if labels else None, directed=False, self_loops=self_loops)
    return data if labels else _with_degree_quartiles(data)


def _with_degree_quartiles(data: Data) -> Data:
    """Four classes by degree, equal degrees together: cut points are degrees, each the last of its class."""
    degrees = degree(data).numpy()
    cuts = np.unique(np.quantile(degrees, [0.25, 0.5, 0.75], method="inverted_cdf")).astype(int).tolist()
    data.y = torch.from_numpy(np.searchsorted(cuts, degrees, side="left"))
    firsts = [int(degrees.min()), *(cut + 1 for cut in cuts)]
    lasts = [*cuts, int(degrees.max())]
    data.class_names = [f"degree {low} to {high}" for low, high in zip(firsts, lasts, strict=True)]
    data.degree_cuts = cuts
    return data
