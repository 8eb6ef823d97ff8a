"""GraphML and GEXF files, NetworkX graphs, and PyG's Data.

Files are parsed in a stream. NetworkX decodes one element at a time, which is then forgotten, and what it finds is kept
in flat columns: a file needs a few times its size, where NetworkX's own graphs need a hundred times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, XMLPullParser

import numpy as np
from networkx.readwrite.gexf import GEXFReader
from networkx.readwrite.graphml import GraphMLReader
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_edge_index, check_memory
from demonet.data.ids import make_ids, take
from demonet.data.readers.base import MASKS, Listing, ReadOptions, as_text
from demonet.errors import DemonetError

_NODE_BYTES, _EDGE_BYTES = 500, 80  # of memory for each, at least
_BLOCK = 1 << 14  # bytes that are parsed at once


def read_graphml(content: bytes, path: Path, options: ReadOptions) -> Listing:
    """The first graph of a GraphML file."""
    return _read(_graphml, "GraphML", content, path, options)


def read_gexf(content: bytes, path: Path, options: ReadOptions) -> Listing:
    """A GEXF file."""
    return _read(_gexf, "GEXF", content, path, options)


def _read(reader: Any, name: str, content: bytes, path: Path, options: ReadOptions) -> Listing:
    text = as_text(content, path)
    needed = _NODE_BYTES * text.count(b"<node ") + _EDGE_BYTES * text.count(b"<edge ") + len(text)
    check_memory(needed, "its graph", file=path)
    try:
        found: _Columns | None = reader(text, options.edge_weight or "weight")
        if found is None:
            raise ValueError("no <graph> element")
    except Exception as error:  # NetworkX raises KeyError, TypeError and its own errors
        raise DemonetError(f"not a {name} graph: {error!r}", file=path) from None
    return found.listing(options, path)


class _Columns:
    """A graph as columns, with the methods that NetworkX's readers call.

    Args:
        directed: Whether edges are directed.
        weight: The edge attribute that is kept.
    """

    def __init__(self, directed: bool, weight: str) -> None:
        self.directed, self.weight = directed, weight
        self.graph: dict[str, Any] = {}
        self.nodes: dict[Any, dict[str, Any]] = {}
        self.ends: list[Any] = []
        self.weights: list[Any] = []

    def is_directed(self) -> bool:
        return self.directed

    def has_edge(self, source: Any, target: Any) -> bool:
        return False  # repeated edges are settled by the caller

    def add_node(self, node: Any, **data: Any) -> None:
        self.nodes[node] = self.nodes.get(node, _NO_DATA) | data if data else self.nodes.get(node, _NO_DATA)

    def add_edges_from(self, edges: Iterable[tuple[Any, Any, Any, dict[str, Any]]]) -> None:
        for source, target, _, data in edges:
            self.add_edge(source, target, **data)

    def add_edge(self, source: Any, target: Any, **data: Any) -> None:
        self.ends += source, target
        self.weights.append(data.get(self.weight))

    def listing(self, options: ReadOptions, file: Path) -> Listing:
        for node in self.ends:
            self.nodes.setdefault(node, _NO_DATA)
        edges = zip(self.ends[::2], self.ends[1::2], strict=True)
        return _listing(self.nodes, edges, self.weights, self.directed, options, file)


_NO_DATA: dict[str, Any] = {}


class _Forgetful(dict[Any, Any]):
    """The ids of edges, which are not used."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


def _graphml(text: bytes, weight: str) -> _Columns | None:
    reader, found, first = GraphMLReader(), None, None
    reader.edge_ids = _Forgetful()
    keys: Any = None
    for path, ended in _elements(text, depth=2):
        name = _local(path[-1])
        if not ended and len(path) == 2 and name == "graph" and found is not None:
            raise ValueError("more than one graph: write one into a file of its own")
        if not ended and len(path) == 2 and name == "graph":
            keys, first = reader.find_graphml_keys(path[0]), path[1]
            found = _Columns(first.get("edgedefault") == "directed", weight)
        elif ended and found is not None and path[1] is first:
            if name == "hyperedge":
                raise ValueError("hyperedges are not supported")
            _check_ids(path[-1], name)
            if name == "node":
                reader.add_node(found, path[-1], *keys)
            elif name == "edge":
                reader.add_edge(found, path[-1], keys[0])
    return found


def _gexf(text: bytes, weight: str) -> _Columns | None:
    reader, found, first = GEXFReader(), None, None
    attributes: dict[str, dict[str, Any]] = {"node": {}, "edge": {}}
    for path, ended in _elements(text, depth=3):
        name = _local(path[-1])
        if not ended and len(path) == 2 and name == "graph" and found is None:
            first = path[1]
            reader.set_version(_version(reader, first))
            reader.timeformat = "string" if first.get("timeformat") == "date" else first.get("timeformat")
            found = _Columns(first.get("defaultedgetype") == "directed", weight)
        elif not ended and len(path) == 3 and path[1] is first and name in ("nodes", "edges"):
            for element in path[1].findall(f"{{{reader.NS_GEXF}}}attributes"):
                attributes[element.get("class", "")] |= reader.find_gexf_attributes(element)[0]
            attributes["edge"]["weight"] = {"type": "double", "mode": "static", "title": "weight"}  # as Gephi 0.7
        elif ended and found is not None and path[1] is first:
            parent = _local(path[2])
            _check_ids(path[-1], name)
            if parent == "nodes" and name == "node":
                reader.add_node(found, path[-1], attributes["node"])
            elif parent == "edges" and name == "edge":
                reader.add_edge(found, path[-1], attributes["edge"])
    return found


def _check_ids(element: Element, name: str) -> None:
    """Refuse a node or an edge without ids, which NetworkX takes for the node ``None``."""
    for attribute in {"node": ("id",), "edge": ("source", "target")}.get(name, ()):
        if element.get(attribute) is None:
            raise ValueError(f"a {name} has no {attribute}")


def _version(reader: Any, graph: Element) -> str:
    for version in reader.versions:
        reader.set_version(version)
        if graph.tag == f"{{{reader.NS_GEXF}}}graph":
            return version
    raise ValueError(f"unknown namespace of {graph.tag}")


def _elements(text: bytes, depth: int) -> Iterator[tuple[list[Element], bool]]:
    """The path from the root to an element: when those above ``depth`` start, and when those at it have ended.

    The latter are then removed, unless they declare attributes.
    """
    path: list[Element] = []
    parser: Any = XMLPullParser(("start", "end"))
    start, size = 0, _BLOCK
    while start < len(text):
        parser.feed(text[start : start + size])
        start, size = start + size, 2 * size  # in a long token, it begins again with each block
        if start >= len(text):
            parser.close()
        for event, element in parser.read_events():
            size = _BLOCK
            if event == "start":
                path.append(element)
                if len(path) <= depth:
                    yield path, False
                continue
            if len(path) == depth + 1:
                yield path, True
                if _local(path[-2]) not in ("key", "attributes"):
                    del path[-2][:]
            path.pop()


def _local(element: Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def from_networkx(graph: Any, options: ReadOptions, file: Path | None = None) -> Listing:
    """A NetworkX graph, nodes in its order and their attributes by name."""
    weights = [attributes.get(options.edge_weight or "weight") for _, _, attributes in graph.edges(data=True)]
    return _listing(dict(graph.nodes(data=True)), graph.edges(), weights, graph.is_directed(), options, file)


def _listing(
    nodes: Mapping[Any, Mapping[str, Any]],
    edges: Iterable[tuple[Any, Any]],
    weights: list[Any],
    directed: bool,
    options: ReadOptions,
    file: Path | None,
) -> Listing:
    ids = make_ids(nodes, options.ids)
    number = {node: i for i, node in enumerate(nodes)}
    ends = np.fromiter((number[node] for edge in edges for node in edge), np.int64).reshape(-1, 2)
    names = {name for attributes in nodes.values() for name in attributes}
    inside = {name: [attributes.get(name) for attributes in nodes.values()] for name in names}
    weight = _weights(weights, list(nodes), ends, options.edge_weight, file)
    source, target = (take(ids, column) for column in ends.T)
    return Listing(source, target, weight, ids, directed=directed, inside=inside, file=file)


def from_data(data: Data) -> Listing:
    """A PyG Data with its ``x``, ``y``, ``edge_weight`` and masks, if any."""
    if data.edge_index is None:
        raise DemonetError("the Data has no edge_index")
    n = int(data.num_nodes)
    check_edge_index(data.edge_index, n)
    source, target = data.edge_index.cpu().numpy().astype(np.int64)
    weight = data.get("edge_weight")
    if weight is not None and weight.numel() != source.size:
        raise DemonetError(f"edge_weight has {weight.numel():,} values for {source.size:,} edges")
    given = data.get("node_ids")
    nodes = np.arange(n) if given is None else given.cpu().numpy() if isinstance(given, Tensor) else make_ids(given)
    inside = {name: data[name] for name in ("x", "y", *MASKS) if data.get(name) is not None}
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


def _weights(
    values: list[Any], nodes: list[Any], ends: np.ndarray, name: str | None, file: Path | None
) -> np.ndarray | None:
    if not values or (name is None and all(value is None for value in values)):
        return None
    for edge, value in enumerate(values):
        try:
            if not np.isfinite(float(value)):
                raise ValueError
        except (TypeError, ValueError):
            u, v = (nodes[end] for end in ends[edge])
            problem = f"weight {value!r} of the edge between {u!r} and {v!r} is not a finite number"
            raise DemonetError(problem, file=file) from None
    return np.array(values, dtype=np.float64)
