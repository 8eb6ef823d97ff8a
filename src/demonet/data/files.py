"""`read_graph`: one graph, from any file or object that holds one, to a checked PyG Data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse
from torch_geometric.data import Data

from demonet.checks import check_edge_index, check_features, check_labels
from demonet.data.edges import SelfLoops, simple_edges
from demonet.data.ids import Ids, Numbering, as_attribute, id_at, number_ends, number_listed
from demonet.data.node_features import Featured, from_matrix_rows, read_features
from demonet.data.node_labels import Labelled, from_mapping, from_sequence
from demonet.data.readers.edge_list import Column, read_edge_list
from demonet.data.readers.listing import Listing
from demonet.data.readers.markup import from_data, from_networkx, read_markup
from demonet.data.readers.matrix import from_matrix, read_mat, read_npz
from demonet.data.readers.matrix_market import read_matrix_market
from demonet.errors import DemonetError

_FORMATS = {".graphml": "graphml", ".gexf": "gexf", ".mtx": "mtx", ".npz": "npz", ".mat": "mat"}


def read_graph(
    edges: Any,
    labels: Any = None,
    features: Any = None,
    *,
    source: Column = None,
    target: Column = None,
    weight: Column | bool = None,
    directed: bool | None = None,
    self_loops: SelfLoops = "drop",
    ids: str = "auto",
    header: bool | None = None,
    matrix: str | None = None,
    add_isolated: bool = False,
) -> Data:
    """One graph as a checked Data: simple, both arcs of an undirected edge listed, sorted.

    Args:
        edges: A file, by its ending: ``.graphml``, ``.gexf``, ``.mtx``, ``.npz``, ``.mat``, ``.parquet``; any other is
            text with blanks, tabs or commas. All but Parquet may be packed with gzip. Or a NetworkX graph, a SciPy or
            NumPy matrix, or a PyG Data.
        labels: A table of id and label; or the name of a node attribute or variable inside ``edges``; or a mapping from
            id to label; or one label a node, in the order of the nodes. Nodes without one get -1. Of
            these only a tensor of integers is read as ``y``, where -1 is no label; elsewhere -1 is a class name.
        features: A table of id and numbers; or a matrix with one row a node, as a file (``.npy``, ``.npz``, ``.mtx``),
            as an object, or by its name inside ``edges``; or a list of names of numeric node attributes.
        source: The column of an edge's source, by name or by place from 0. Unless said, ``"source"`` or the first.
        target: That of its target. Unless said, ``"target"`` or the second.
        weight: That of its weight, or the edge attribute. Unless said, ``"weight"``, or the third of three columns that
            have no header; ``False`` reads none. Weights that are all 1 are left out.
        directed: Whether arcs stay one-way. Unless said, as the source says, and undirected where it says nothing.
        self_loops: ``"drop"`` with a warning, or ``"keep"``, where a loop is one arc and counts once in the degree.
        ids: ``"auto"`` (integers if all are, else strings), ``"int"`` or ``"str"``.
        header: Whether a text file of edges starts with column names; guessed unless said.
        matrix: The variable that is the adjacency matrix, in a ``.mat`` file with several.
        add_isolated: Add ids that only ``labels`` or ``features`` have as isolated nodes; else they are an error.

    Returns:
        A Data with ``edge_index``, ``num_nodes``, ``node_ids`` (the ids as they came, an int64 tensor or a list of
        strings: in the order of the source where it lists its nodes, sorted where it lists edges only) and, where
        given, ``edge_weight``, ``x``, ``y`` (int64, -1 for unlabelled) and ``class_names``.
    """
    if ids not in ("auto", "int", "str"):
        raise DemonetError(f"ids={ids!r}", hint='"auto", "int" or "str"')
    listing = _listing(edges, source, target, weight, ids, header, matrix)
    numbering, ends = _number(listing)
    nodes = listing.nodes if listing.nodes is not None else numbering.node_ids
    labelled = _labelled(labels, listing, numbering, nodes)
    featured = _featured(features, listing, numbering, nodes)
    for given in (labelled, featured):
        if given is not None:
            numbering = _settle_strangers(given, numbering, add_isolated)
    data = Data(num_nodes=numbering.node_ids.size, node_ids=as_attribute(numbering.node_ids))
    weights = listing.weight if weight is not False else None
    data.edge_index, edge_weight = simple_edges(
        ends.pop(0),
        ends.pop(0),
        data.num_nodes,
        weight=None if weights is None or (weights == 1).all() else weights,
        directed=bool(listing.directed if directed is None else directed),
        self_loops=self_loops,
        file=listing.file,
    )
    check_edge_index(data.edge_index, data.num_nodes, file=listing.file)
    if edge_weight is not None:
        data.edge_weight = edge_weight
    if featured is not None:
        data.x = featured.encode(numbering)
        check_features(data.x, data.num_nodes, file=featured.where(0).get("file"))
    if labelled is not None:
        data.y, data.class_names = labelled.encode(numbering)
        check_labels(data.y, data.num_nodes, len(data.class_names))
    return data


def _listing(
    edges: Any, source: Column, target: Column, weight: Column | bool, ids: str, header: bool | None, matrix: str | None
) -> Listing:
    named_weight = weight if isinstance(weight, str) else None
    if isinstance(edges, str | Path):
        path = Path(edges)
        file_format = _FORMATS.get(Path(path.name.removesuffix(".gz")).suffix.lower())
        if file_format in ("graphml", "gexf"):
            return read_markup(path, file_format, named_weight, ids)
        if file_format == "mat":
            network, inside = read_mat(path, matrix)
            return from_matrix(network, path, inside)
        if file_format is not None:
            return from_matrix(read_npz(path) if file_format == "npz" else read_matrix_market(path), path)
        return read_edge_list(path, source, target, weight, ids, header)
    if isinstance(edges, nx.Graph):
        return from_networkx(edges, named_weight, ids)
    if isinstance(edges, Data):
        return from_data(edges)
    if sparse.issparse(edges) or isinstance(edges, np.ndarray):
        return from_matrix(edges)
    raise DemonetError(
        f"a graph cannot be read from a {type(edges).__name__}",
        hint="a file name, a NetworkX graph, a SciPy or NumPy matrix, or a PyG Data",
    )


def _number(listing: Listing) -> tuple[Numbering, list[np.ndarray]]:
    """The numbers of sources and of targets; the listing gives up its own, which may be most of the memory."""
    source, target = listing.source, listing.target
    listing.source = listing.target = np.empty(0, np.int64)
    if listing.nodes is None:
        numbering, *ends = number_ends(source, target)
    else:
        numbering = number_listed(listing.nodes)
        ends = [numbering.find(source), numbering.find(target)]
    return numbering, ends


def _labelled(labels: Any, listing: Listing, numbering: Numbering, nodes: Ids) -> Labelled | None:
    labels = listing.labels if labels is None else labels
    if labels is None:
        return None
    if isinstance(labels, str) and labels in listing.inside:
        return from_sequence(listing.inside[labels], nodes)
    if isinstance(labels, str | Path):
        return Labelled.read(_file(labels, listing, "labels"), numbering.kind)
    return from_mapping(labels) if hasattr(labels, "items") else from_sequence(labels, nodes)


def _featured(features: Any, listing: Listing, numbering: Numbering, nodes: Ids) -> Featured | None:
    features = listing.features if features is None else features
    if features is None:
        return None
    if isinstance(features, str) and features in listing.inside:
        return from_matrix_rows(listing.inside[features], nodes, file=listing.file)
    if isinstance(features, list) and features and all(isinstance(name, str) for name in features):
        columns = [listing.inside.get(name) for name in features]
        if any(column is None or None in column for column in columns):
            raise DemonetError(f"not every node has the attributes {features}", file=listing.file)
        return from_matrix_rows(np.array(columns).T, nodes, file=listing.file)
    if isinstance(features, str | Path):
        return read_features(_file(features, listing, "features"), numbering.kind, nodes)
    return from_matrix_rows(features, nodes)


def _file(name: str | Path, listing: Listing, what: str) -> Path:
    if listing.inside and not Path(name).is_file():
        hint = f"inside are {', '.join(sorted(listing.inside)[:20])}"
        raise DemonetError(f"{what} {str(name)!r}: no such file, and nothing of that name inside", hint=hint)
    return Path(name)


def _settle_strangers(given: Labelled | Featured, numbering: Numbering, add_isolated: bool) -> Numbering:
    """Ids of labels or features that no edge has: an error, or new nodes at the end."""
    strangers = np.flatnonzero(numbering.find(given.ids) < 0)
    if strangers.size and not add_isolated:
        row = int(strangers[0])
        problem = f"id {id_at(given.ids, row)!r} is in no edge ({strangers.size} such)"
        hint = "add_isolated=True adds them as isolated nodes"
        if row == 0 and given.table is not None and given.table.names is None:
            hint = f"a header starts with 'node' or 'id'; {hint}"
        raise DemonetError(problem, **given.where(row), hint=hint)
    return numbering.extended(given.ids) if strangers.size else numbering
