"""NetworkX graphs, the files that NetworkX reads (GraphML and GEXF), and PyG's Data."""

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
from demonet.data.readers.base import GraphOptions, Listing, as_text
from demonet.errors import DemonetError


def read_graphml(content: bytes, path: Path, options: GraphOptions) -> Listing:
    """A GraphML file."""
    return _read(nx.read_graphml, "GraphML", content, path, options)


def read_gexf(content: bytes, path: Path, options: GraphOptions) -> Listing:
    """A GEXF file."""
    return _read(nx.read_gexf, "GEXF", content, path, options)


def _read(reader: Any, name: str, content: bytes, path: Path, options: GraphOptions) -> Listing:
    text = as_text(content, path)
    try:
        graph = reader(io.BytesIO(text))
    except Exception as error:  # NetworkX raises KeyError, TypeError and its own errors
        raise DemonetError(f"not a {name} graph: {error!r}", file=path) from None
    return from_networkx(graph, options, file=path)


def from_networkx(graph: Any, options: GraphOptions, file: Path | None = None) -> Listing:
    """A NetworkX graph, nodes in its order and their attributes by name."""
    nodes = make_ids(graph.nodes, options.ids)
    number = {node: i for i, node in enumerate(graph.nodes)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    source, target = (take(nodes, column) for column in pairs.T)
    names = {name for _, attributes in graph.nodes(data=True) for name in attributes}
    inside = {name: [graph.nodes[node].get(name) for node in graph.nodes] for name in names}
    weights = _weights(graph, options.weight, file)
    return Listing(source, target, weights, nodes, directed=graph.is_directed(), inside=inside, file=file)


def from_data(data: Data) -> Listing:
    """A PyG Data with its ``x``, ``y`` and ``edge_weight``, if any."""
    if data.edge_index is None:
        raise DemonetError("the Data has no edge_index")
    n = int(data.num_nodes)
    check_edge_index(data.edge_index, n)
    source, target = data.edge_index.cpu().numpy().astype(np.int64)
    weight = data.get("edge_weight")
    given = data.get("node_ids")
    nodes = np.arange(n) if given is None else given.cpu().numpy() if isinstance(given, Tensor) else make_ids(given)
    inside = {name: data[name] for name in ("x", "y") if data.get(name) is not None}
    return Listing(
        take(nodes, source),
        take(nodes, target),
        None if weight is None else weight.detach().cpu().numpy().astype(np.float64).reshape(-1),
        nodes,
        inside=inside,
        labels="y" if "y" in inside else None,
        features="x" if "x" in inside else None,
        columns=data.get("columns"),
    )


def take(ids: Ids, numbers: np.ndarray) -> Ids:
    """The ids with these numbers."""
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
