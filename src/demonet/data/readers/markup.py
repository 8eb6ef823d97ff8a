"""NetworkX graphs, the files that NetworkX reads (GraphML and GEXF), and PyG's own Data."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_edge_index
from demonet.data.ids import Ids, make_ids
from demonet.data.readers.listing import Listing
from demonet.data.readers.raw import read_text
from demonet.errors import DemonetError


def read_markup(path: Path, language: str, weight: str | None, ids: str) -> Listing:
    """A GraphML or GEXF file."""
    data = read_text(path)
    reader = nx.read_graphml if language == "graphml" else nx.read_gexf
    try:
        graph = reader(io.BytesIO(data))
    except Exception as error:  # the reader raises whatever it meets: KeyError, TypeError, its own errors
        raise DemonetError(f"not a {language} graph: {error!r}", file=path) from None
    return from_networkx(graph, weight, ids, file=path)


def from_networkx(graph: Any, weight: str | None = None, ids: str = "auto", file: Path | None = None) -> Listing:
    """A NetworkX graph, its nodes in its own order and their attributes by name."""
    nodes = make_ids(graph.nodes, ids)
    number = {node: i for i, node in enumerate(graph.nodes)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    source, target = (_take(nodes, column) for column in pairs.T)
    names = {name for _, attributes in graph.nodes(data=True) for name in attributes}
    inside = {name: [graph.nodes[node].get(name) for node in graph.nodes] for name in names}
    weights = _weights(graph, weight, file)
    return Listing(source, target, weights, nodes, directed=graph.is_directed(), inside=inside, file=file)


def from_data(data: Data) -> Listing:
    """A PyG Data; ``x``, ``y`` and ``edge_weight`` are taken where they are there."""
    if data.edge_index is None:
        raise DemonetError("a Data without edge_index")
    n = int(data.num_nodes)
    check_edge_index(data.edge_index, n)
    source, target = data.edge_index.cpu().numpy().astype(np.int64)
    weight = data.get("edge_weight")
    given = data.get("node_ids")
    nodes = np.arange(n) if given is None else given.cpu().numpy() if isinstance(given, Tensor) else make_ids(given)
    inside = {name: data[name] for name in ("x", "y") if data.get(name) is not None}
    return Listing(
        _take(nodes, source),
        _take(nodes, target),
        None if weight is None else weight.detach().cpu().numpy().astype(np.float64).reshape(-1),
        nodes,
        inside=inside,
        labels="y" if "y" in inside else None,
        features="x" if "x" in inside else None,
    )


def _take(ids: Ids, numbers: np.ndarray) -> Ids:
    return ids[numbers] if isinstance(ids, np.ndarray) else type(ids)(ids.codes[numbers], ids.names)


def _weights(graph: Any, name: str | None, file: Path | None) -> np.ndarray | None:
    values = [attributes.get(name or "weight") for _, _, attributes in graph.edges(data=True)]
    if not values or (name is None and all(value is None for value in values)):
        return None
    for (u, v), value in zip(graph.edges(), values, strict=True):
        try:
            if not np.isfinite(float(value)):
                raise ValueError
        except (TypeError, ValueError):
            problem = f"weight {value!r} of the edge between {u!r} and {v!r} is not a finite number"
            raise DemonetError(problem, file=file) from None
    return np.array(values, dtype=np.float64)
