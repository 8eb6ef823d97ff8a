"""`read_graphs`: many graphs to classify, from a folder, a file or a list, to a checked `GraphSet`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from demonet.checks import check_labels
from demonet.data.edges import SelfLoops
from demonet.data.files import read_graph
from demonet.data.graph_set import GraphSet
from demonet.data.ids import Numbering, id_at, number_ends
from demonet.data.node_labels import Labelled, encode_classes, from_mapping
from demonet.data.readers.collection import Collection
from demonet.data.readers.columns import Kind, place_of
from demonet.data.readers.edge_list import Column, edge_columns, open_table
from demonet.data.readers.gin import read_gin
from demonet.data.readers.tu import read_tu
from demonet.errors import DemonetError

_TABLES = (".csv", ".tsv", ".parquet", ".pq")


def read_graphs(
    graphs: Any,
    labels: Any = None,
    *,
    graph: Column = None,
    source: Column = None,
    target: Column = None,
    weight: Column | bool = None,
    self_loops: SelfLoops = "drop",
    name: str | None = None,
) -> GraphSet:
    """Many graphs as a checked `GraphSet`: each simple and undirected, both arcs of each edge listed.

    Args:
        graphs: A TU folder; a text file in the format of GIN and DGCNN; a table of edges (``.csv``, ``.tsv``,
            ``.parquet``) with a column that says to which graph each belongs; or a list of anything that `read_graph`
            takes.
        labels: For a table, a file of graph and label, or a mapping; for a list, one label a graph. A graph without
            one gets -1. TU folders and GIN files bring their own.
        graph: The column of the graph, by name or place; ``"graph"`` unless said. Node ids count within a graph.
        source: As in `read_graph`.
        target: As in `read_graph`.
        weight: As in `read_graph`.
        self_loops: As in `read_graph`.
        name: A name for the set; that of the file unless said.

    Returns:
        The set. ``x`` is the one-hot of the node labels that occur, continuous attributes are in ``attributes``, and
        ``node_ids`` and ``graph_ids`` have the ids as they came (graphs of a TU folder count from 1).
    """
    if not isinstance(graphs, str | Path):
        return _from_list(graphs, labels, self_loops, name or "graphs")
    path = Path(graphs)
    if path.is_dir():
        collection = read_tu(path)
    elif graph is not None or Path(path.name.removesuffix(".gz")).suffix in _TABLES:
        collection = _read_table(path, labels, "graph" if graph is None else graph, source, target, weight)
    else:
        collection = read_gin(path)
    return collection.graphs(name or path.stem, self_loops)


def _from_list(graphs: Iterable[Any], labels: Any, self_loops: SelfLoops, name: str) -> GraphSet:
    read, own = [], []
    for graph in graphs:
        label = None
        if isinstance(graph, Data) and graph.y is not None and graph.y.numel() == 1:
            label, graph = int(graph.y), graph.clone()  # the class of the graph, not of its nodes
            del graph.y
        read.append(read_graph(graph, self_loops=self_loops, directed=False))
        own.append(None if label == -1 else label)
    codes, class_names = encode_classes(own if labels is None else labels)
    check_labels(torch.from_numpy(codes), len(read), len(class_names))
    for data, code in zip(read, codes, strict=True):
        data.y = torch.tensor([code])
    return GraphSet(read, class_names, name=name)


def _read_table(
    path: Path, labels: Any, graph: str | int, source: Column, target: Column, weight: Column | bool
) -> Collection:
    """Edges with a graph column; a node is a graph and an id."""
    table = open_table(path, True if isinstance(graph, str) else None)
    graph_at = place_of(table, graph, "graph of an edge")
    ends, weight_at = edge_columns(table, source, target, weight, skip=graph_at)
    kinds: list[Kind] = ["id", "id", "id", "number"]
    places = [graph_at, *ends, *([] if weight_at is None else [weight_at])]
    graph_ids, heads, tails, *weights = table.columns(places, kinds[: len(places)])
    graphs, graph_of, _ = number_ends(graph_ids, graph_ids)
    nodes, source_of, target_of = number_ends(heads, tails)
    n = nodes.node_ids.size
    pairs = np.concatenate([graph_of * n + source_of, graph_of * n + target_of])
    distinct, numbers = np.unique(pairs, return_inverse=True)
    return Collection(
        source=numbers[: len(heads)],
        target=numbers[len(heads) :],
        graph=distinct // n,
        labels=_graph_labels(labels, graphs),
        weight=weights[0] if weights and (weights[0] != 1).any() else None,
        node_ids=nodes.node_ids[distinct % n],
        file=path,
        graph_ids=graphs.node_ids.tolist(),
    )


def _graph_labels(labels: Any, graphs: Numbering) -> list[Any]:
    if labels is None:
        return [None] * graphs.node_ids.size
    labelled = from_mapping(labels) if hasattr(labels, "items") else Labelled.read(Path(labels), graphs.kind)
    strangers = np.flatnonzero(graphs.find(labelled.ids) < 0)
    if strangers.size:
        row = int(strangers[0])
        problem = f"graph {id_at(labelled.ids, row)!r} has a label but no edge ({strangers.size} such)"
        raise DemonetError(problem, **labelled.where(row))
    y, names = labelled.encode(graphs)
    return [None if code < 0 else names[code] for code in y.tolist()]
