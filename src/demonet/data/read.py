"""Reading graphs: files, NetworkX graphs, matrices and PyG Data become checked PyG Data.

A source is described (`Listing` for one graph, `Collection` for many), its nodes are numbered, its edges made simple,
and labels and features are matched to its nodes. Every file is opened once.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import networkx as nx
import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data

from demonet.checks import check_edge_index, check_features, check_labels
from demonet.data.columns import Columns
from demonet.data.edges import simple_edges
from demonet.data.graph_set import Collection, GraphSet
from demonet.data.ids import (
    LabelTable,
    Numbering,
    as_attribute,
    encode_classes,
    id_at,
    make_ids,
    number_ends,
    number_listed,
    take,
    warn_of_forms,
)
from demonet.data.node_data import (
    FeatureRows,
    Labels,
    from_attributes,
    from_mapping,
    from_matrix_rows,
    from_sequence,
)
from demonet.data.readers import TEXT, format_of, open_table
from demonet.data.readers.arrow import FrameTable, is_frame
from demonet.data.readers.base import MASKS, InputFiles, Listing, ReadOptions
from demonet.data.readers.graphml import from_data, from_networkx
from demonet.data.readers.matrix import from_matrix
from demonet.data.readers.tables import Kind, Table, edge_columns, place_of, read_edges, tell_unused
from demonet.data.readers.tu import read_tu
from demonet.data.values import as_integer, is_missing, number_value
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.options import Column, Decimal, Merge, SelfLoops

MOST_LISTED = 200_000  # edges that are also kept as they are listed, where nobody says whether they are directed


@dataclass(frozen=True, eq=False)
class ReadResult:
    """One graph or many, as read.

    Attributes:
        data: The checked graph, or the checked graphs.
        directed: Whether the edges are directed.
        told_directed: Whether the source says so; None if it says nothing.
        columns: The names of the attributes, if they have names.
        labels: The columns of labels, if there are several.
        label_name: The name of the first column of labels, if it has one.
        weighted: Whether the source has weights, which may all be 1; None if that is not known.
        undirected: The warning that edges are read as undirected, if nobody has said so and they are not all listed in
            both directions.
        as_listed: Then, unless the graph is large, the same graph with directed edges. None also if every edge has its
            smaller id first, as lists of undirected edges have.
    """

    data: Data | GraphSet
    directed: bool = False
    columns: list[str] | None = None
    labels: LabelTable | None = None
    label_name: str | None = None
    weighted: bool | None = None
    undirected: DemonetWarning | None = None
    as_listed: Data | None = None
    told_directed: bool | None = None


def read_graph(
    edges: Any,
    labels: Any = None,
    features: Any = None,
    *,
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | bool | None = None,
    directed: bool | None = None,
    self_loops: SelfLoops = "drop",
    ids: Literal["auto", "int", "str"] = "auto",
    header: bool | None = None,
    matrix: str | None = None,
    add_isolated: bool = False,
    id_column: Column | None = None,
    label_column: Column | None = None,
    ignore: Iterable[str | int] = (),
    merge: Merge | None = None,
    decimal: Decimal | None = None,
    columns: Columns | None = None,
) -> Data:
    """Read one graph as a checked Data: simple, sorted, undirected edges listed in both directions.

    Args:
        edges: A file, read by its suffix: ``.csv``, ``.tsv``, ``.parquet``, ``.graphml``, ``.gexf``, ``.mtx``,
            ``.npz``, ``.npy``, ``.mat``; any other file is text with commas, semicolons, tabs, vertical bars or blanks.
            Files may be compressed with gzip. Or a data frame of edges (pandas, Polars, Arrow), a list of pairs or
            triples (with weights), a NetworkX graph, a SciPy or NumPy matrix, or a PyG Data.
        labels: A table of ids and labels, as a file or a data frame; or the name of a node attribute or variable in
            ``edges``; or a mapping or Series from id to label; or one label per node, in the order of the nodes.
            Unlabelled nodes get -1: those without a label, and those whose label is None, NaN, empty or a word such as
            ``NA``, ``N/A``, ``null`` or ``nan``. Labels are names, so that -1 is a class like any other; only in a
            torch tensor of integers, which has class numbers, it means unlabelled.
        features: A table of ids and numbers or categories, as a file or a data frame (the index of a pandas frame has
            the ids, unless a column is called ``node``, ``node_id`` or ``id``); or a matrix with one row per node, as a
            file (``.npy``, ``.npz``, ``.mtx``), as an object, or by its name in ``edges``; or a list of names of node
            attributes; or ``"all"`` for all node attributes except the labels.
        source: The column of an edge's source, by name or by position from 0. Default: ``"source"`` or another usual
            name, otherwise the first, unless it has dates, decimals or few values.
        target: The column of its target. Default: ``"target"``, otherwise the second, in the same way.
        weight: The column of its weight, or the edge attribute. Default: ``"weight"``, or the third of three columns
            without a header. ``False`` reads no weights. Weights that are all 1 are left out.
        directed: Whether edges are directed. Default: what the source says, otherwise undirected.
        self_loops: ``"drop"`` with a warning, or ``"keep"``; a self-loop counts once in the degree.
        ids: ``"auto"`` (integers if all ids are written as integers are, otherwise strings, so that ``007`` is not
            ``7``), ``"int"`` (numbers: ``007`` is 7) or ``"str"``.
        header: Whether a text file of edges starts with column names. Default: guessed.
        matrix: The variable with the adjacency matrix, in a ``.mat`` file with several.
        add_isolated: Add ids that occur only in ``labels`` or ``features`` as isolated nodes. By default they are an
            error.
        id_column: The column of ids in tables of labels and features, by name or position. Default: ``node``,
            ``node_id`` or ``id``, otherwise the first.
        label_column: The column of labels. Default: ``label``, ``class``, ``target`` or ``y``, otherwise the only one
            beside the ids; several columns of numbers are all read. A column of this name in the table of features
            is not a feature.
        ignore: Columns of the table of features that are left out.
        merge: The weight of an edge that is listed several times: ``"sum"``, ``"mean"``, ``"max"`` or ``"last"``.
            Default: repetitions are copies if no edge has two different weights; otherwise all weights are added.
        decimal: The decimal mark of numbers in text, ``"."`` or ``","``. Default: the one that fits all numbers of a
            column; thousands may be separated.
        columns: How a table of features is encoded, as learned from another one: its ``data.columns``.

    Returns:
        A Data with ``edge_index``, ``num_nodes``, ``node_ids`` (the original ids, an int64 tensor or a list of strings:
        in the order of the source if it lists its nodes, sorted if it lists only edges) and, if given, ``edge_weight``,
        ``x``, ``columns`` (what the columns of a table became, a `Columns`), ``y`` (int64, -1 for unlabelled),
        ``class_names``, and ``train_mask``, ``val_mask`` and ``test_mask`` (of a Data, or node attributes of these
        names).
    """
    options = ReadOptions(
        directed=directed,
        source=source,
        target=target,
        weight=weight,
        id_column=id_column,
        label_column=label_column,
        ignore=list(ignore),
        merge=merge,
        decimal=decimal,
        add_isolated=add_isolated,
        self_loops=self_loops,
        ids=ids,
        header=header,
        matrix=matrix,
        columns=columns,
    )
    files = InputFiles()
    if isinstance(edges, str | Path):
        listing = _describe_file(files.read(Path(edges)), Path(edges), options)
    else:
        listing = _describe(edges, options)
    options = replace(options, directed=bool(listing.directed) if directed is None else directed)
    data = _build(listing, labels, features, options, files).data
    assert isinstance(data, Data)
    return data


def read_graphs(
    graphs: Any,
    labels: Any = None,
    *,
    graph: Column | None = None,
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | bool | None = None,
    self_loops: SelfLoops = "drop",
    name: str | None = None,
    id_column: Column | None = None,
    label_column: Column | None = None,
    merge: Merge | None = None,
) -> GraphSet:
    """Read many graphs as a checked `GraphSet`: each simple and undirected, edges listed in both directions.

    Args:
        graphs: A TU folder; a text file in the format of GIN and DGCNN; a table of edges (``.csv``, ``.tsv``,
            ``.parquet``) with a column for the graph of each edge; or a list of anything that `read_graph` reads.
        labels: For a table, a file of graphs and labels, or a mapping; for a list, one label per graph. Unlabelled
            graphs get -1. TU folders and GIN files have their own labels.
        graph: The column of the graph, by name or position. Default: ``"graph"``. Node ids are unique within a graph.
        source, target, weight, self_loops, label_column, merge: As in `read_graph`.
        name: A name for the set. Default: the name of the file.
        id_column: The column of graphs in a table of labels. Default: ``graph``, otherwise the first.

    Returns:
        The set. ``x`` is the one-hot encoding of the node labels that occur. Continuous attributes are in
        ``attributes``, and in ``x`` if there are no node labels; edge labels are not read. ``node_ids`` and
        ``graph_ids`` have the original ids (graphs of a TU folder count from 1).
    """
    if not isinstance(graphs, str | Path):
        return _from_list(graphs, labels, self_loops, name or "graphs")
    options = ReadOptions(
        items="graphs",
        source=source,
        target=target,
        weight=weight,
        graph=graph,
        id_column=id_column,
        label_column=label_column,
        merge=merge,
        self_loops=self_loops,
    )
    path, files = Path(graphs), InputFiles()
    content = b"" if path.is_dir() else files.read(path)
    return _collection(content, path, labels, options, files).graphs(name or path.stem, self_loops, merge)


def read_problem(
    edges: Path,
    labels: str | None,
    features: str | None,
    options: ReadOptions,
    files: InputFiles,
) -> ReadResult:
    """Read a file that holds one graph or many.

    With ``items="auto"``, a folder, a table with a column ``graph`` and a text file that starts with the number of its
    graphs hold many graphs; any other file holds one.

    Args:
        edges: A file or folder that :func:`read_graph` or :func:`read_graphs` reads.
        labels, features: As in :func:`read_graph`.
        options: How to read it.
        files: Opens the files.
    """
    folder = edges.is_dir() and options.items != "nodes"
    content, table = b"" if folder else files.read(edges), None
    form = format_of(edges)
    if not folder and form.table is not None and (form is not TEXT or options.graph is not None):
        table = open_table(content, edges, _edge_header(options))
    many = options.items == "graphs" or folder
    if options.items == "auto" and not many:
        many = options.graph is not None or (table is not None and "graph" in (table.names or []))
        many = many or (table is None and labels is None and _counts_graphs(content, edges))
    if not many:
        listing = _describe_file(content, edges, options, table)
        return _build(listing, labels, features, options, files)
    unused = {"directed": options.directed, "ids": options.ids != "auto", "add_isolated": options.add_isolated}
    if argument := next((name for name, given in unused.items() if given), None):
        raise DemonetError("not allowed for a set of graphs", argument=argument, file=edges)
    if features not in (None, "attributes") or (features is not None and table is not None):
        hint = Hint("node attributes of a TU folder or a GIN file are used with {features}", features="attributes")
        raise DemonetError("not allowed for a set of graphs", argument="features", file=edges, hint=hint)
    collection = _collection(content, edges, labels, options, files, table)
    for what in collection.unused:
        warn(DemonetWarning(f"{what} are not used: no model here reads them", file=edges))
    collection.with_attributes = features == "attributes"
    if collection.attributes is None and features is not None:
        raise DemonetError("there are no node attributes", argument="features", file=edges)
    if collection.attributes is not None and collection.node_labels is not None and features is None:
        problem = f"{collection.attributes.shape[1]} node attributes are not used, only node labels"
        warn(DemonetWarning(problem, file=edges, hint=Hint("{features} uses them, too", features="attributes")))
    graphs = collection.graphs(edges.stem, options.self_loops or "drop", options.merge)
    return ReadResult(graphs, False, collection.column_names, collection.label_table, collection.label_name)


def _counts_graphs(content: bytes, path: Path) -> bool:
    """Whether a text file starts with the number of its graphs."""
    if format_of(path) is not TEXT or not path.name.lower().removesuffix(".gz").endswith(".txt"):
        return False
    first = content.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].split()
    return len(first) == 1 and first[0].isdigit()


def _edge_header(options: ReadOptions) -> bool | None:
    """Whether a table of edges has a header."""
    named = _header(options.source, options.target, options.weight, options.graph)
    return named if options.header is None else options.header


def _header(*columns: Column | bool | None) -> bool | None:
    """Whether a table has a header: yes, if one of its columns is given by name."""
    return True if any(isinstance(column, str) for column in columns) else None


def _collection(
    content: bytes, path: Path, labels: Any, options: ReadOptions, files: InputFiles, table: Table | None = None
) -> Collection:
    """The graphs of a folder or file; ``table`` is its table, if it has been parsed."""
    reader = format_of(path).graphs
    if path.is_dir() or (table is None and options.graph is None and reader is not None):
        if labels is not None:
            raise DemonetError("not allowed, this format has its own labels", argument="labels", file=path)
        return read_tu(path, files) if path.is_dir() or reader is None else reader(content, path)
    if table is None:
        table = open_table(content, path, True if options.graph is None else _edge_header(options))
    return _collect(table, labels, options, files)


def _describe(edges: Any, options: ReadOptions) -> Listing:
    """Describe the graph in an object."""
    if isinstance(edges, nx.Graph):
        return from_networkx(edges, options)
    if isinstance(edges, Data):
        return from_data(edges)
    if sparse.issparse(edges) or isinstance(edges, np.ndarray):
        return from_matrix(edges)
    if is_frame(edges):
        return read_edges(FrameTable(edges), options)
    if isinstance(edges, list | tuple | set):
        return _from_pairs(edges, options.ids)
    hint = "pass a file name, a data frame, a list of pairs, a NetworkX graph, a SciPy or NumPy matrix, or a PyG Data"
    raise DemonetError(f"cannot read a graph from a {type(edges).__name__}", hint=hint)


def _from_pairs(pairs: Iterable[Any], ids: str) -> Listing:
    """A list of pairs, or of triples with weights."""
    rows = [tuple(row) if isinstance(row, tuple | list | np.ndarray) else (row,) for row in pairs]
    widths = {len(row) for row in rows}
    if not widths <= {2} and not widths <= {3}:
        bad = next(row for row in rows if len(row) not in (2, 3) or len(row) != len(rows[0]))
        raise DemonetError(f"{bad!r} in a list of edges", hint="use pairs (source, target) or triples with a weight")
    ends = make_ids([row[0] for row in rows] + [row[1] for row in rows], ids)
    source, target = take(ends, np.arange(len(rows))), take(ends, np.arange(len(rows), 2 * len(rows)))
    try:
        weight = np.array([row[2] for row in rows], dtype=np.float64) if widths == {3} else None
    except (TypeError, ValueError) as error:
        raise DemonetError(f"the weight of an edge is not a number: {error}") from None
    if weight is not None and not np.isfinite(weight).all():
        raise DemonetError(
            f"weight {weight[~np.isfinite(weight)][0]} in a list of edges", hint="weights must be finite"
        )
    return Listing(source, target, weight)


def _describe_file(content: bytes, path: Path, options: ReadOptions, table: Table | None = None) -> Listing:
    """Describe the graph in a file; ``table`` is its table, if it has been parsed."""
    form = format_of(path)
    if form.graph is not None:
        return form.graph(content, path, options)
    if form.matrix is not None:
        return from_matrix(form.matrix(content, path), path)
    return read_edges(table or open_table(content, path, _edge_header(options)), options)


def _build(listing: Listing, labels: Any, features: Any, options: ReadOptions, files: InputFiles) -> ReadResult:
    """Number the nodes, make the edges simple, match labels and features to the nodes, check the result."""
    numbering, ends = _number(listing)
    named, labels = labels is not None, listing.labels if labels is None else labels
    features = listing.features if features is None else features
    labelled = None if labels is None else _labels(labels, listing, numbering, files, options)
    paths = [os.path.realpath(each) for each in (labels, features) if isinstance(each, str | Path)]
    same_table = features is labels or (len(paths) == 2 and paths[0] == paths[1])
    if labelled is not None and labelled.table is not None and not same_table:
        reads = Hint("{features} reads attributes from it", features=str(labelled.file) if labelled.file else ...)
        tell_unused(labelled.table, labelled.used, reads if features is None else None)
    featured = None
    if features is not None:
        given = options if same_table else replace(options, label_column=None)
        if same_table and labelled is not None and labelled.table is not None:
            _check_label_column(labelled.table, options)
        named_so = (*(() if labelled is None else labelled.names), options.label_column)
        names = {name.casefold() for name in named_so if isinstance(name, str)}
        featured = _features(features, labels, listing, numbering, files, given, names)
    _check_id_column((labelled, featured), options)
    for given_by_id in (labelled, featured):
        if given_by_id is not None:
            numbering = _add_unknown(given_by_id, numbering, add=options.add_isolated)
    if numbering.kind == "str":
        warn_of_forms(numbering.node_ids, "ids", file=listing.file)
        if words := [name for name in numbering.node_ids.tolist() if is_missing(name)]:
            hint = "if it stands for a missing id, leave its rows out"
            warn(DemonetWarning(f"{words[0]!r} is read as an id like any other", file=listing.file, hint=hint))
    data = Data(num_nodes=numbering.node_ids.size, node_ids=as_attribute(numbering.node_ids))
    weights = listing.weight if options.weight is not False else None
    said = listing.directed if options.directed is None else options.directed
    untold: list[DemonetWarning] = []
    again = list(ends) if said is None and len(ends[0]) <= MOST_LISTED else []
    simple: dict[str, Any] = {"weight": None if weights is None or (weights == 1).all() else weights}
    simple |= {"self_loops": options.self_loops or "drop", "merge": options.merge, "file": listing.file}
    found = simple_edges(
        ends.pop(0), ends.pop(0), data.num_nodes, directed=said, tell_direction=untold.append, **simple
    )
    _set_edges(data, *found, listing.file)
    columns = None
    if featured is not None:
        data.x = featured.encode(numbering)
        if featured.columns is not None:
            data.columns = featured.columns
            columns = featured.columns.names if featured.columns.named else None
        check_features(data.x, data.num_nodes, file=featured.where(0).get("file"))
    table, name = None, None
    if labelled is not None:
        data.y, data.class_names = labelled.encode(numbering)
        check_labels(data.y, data.num_nodes, len(data.class_names))
        table, name = labelled.encode_table(numbering), labelled.name if named else None
    for mask in MASKS:
        if mask in listing.inside:
            data[mask] = _mask(listing.inside[mask], mask, data.num_nodes, listing.file)
    undirected = untold[0] if untold else None
    as_listed = _as_listed(data, again[0], again[1], simple) if untold and again else None
    return ReadResult(
        data, bool(said), columns, table, name, weights is not None, undirected, as_listed, listing.directed
    )


def _check_id_column(given: Sequence[Labels | FeatureRows | None], options: ReadOptions) -> None:
    """Refuse a name of the column of ids that no table has; in one of two tables it may be another."""
    tables, name = [one.table for one in given if one is not None and one.table is not None], options.id_column
    trained = options.columns is not None or options.check_label is not None  # by a run, perhaps with another table
    if tables and isinstance(name, str) and not trained and all(name not in (own.names or ()) for own in tables):
        place_of(tables[0], name, "id_column")


def _check_label_column(table: Table, options: ReadOptions) -> None:
    """Refuse a table of labels and of features in which nothing says which columns are which."""
    if table.names is None and options.label_column is None:
        problem = "labels and features are one table without names, so that the labels would be features"
        hint = "write the names of the columns into its first line"
        raise DemonetError(problem, file=table.file, hint=hint)


def _set_edges(data: Data, edge_index: torch.Tensor, edge_weight: torch.Tensor | None, file: Path | None) -> None:
    check_edge_index(edge_index, data.num_nodes, file=file)
    data.edge_index = edge_index
    if edge_weight is not None:
        data.edge_weight = edge_weight


def _as_listed(data: Data, source: np.ndarray, target: np.ndarray, simple: dict[str, Any]) -> Data | None:
    """The graph with directed edges, of which the same was said as of undirected ones."""
    if (source <= target).all():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        found = simple_edges(source, target, data.num_nodes, directed=True, **simple)
    other = copy.copy(data)
    _set_edges(other, *found, simple["file"])
    return other


def _mask(given: Any, name: str, num_nodes: int, file: Path | None) -> torch.Tensor:
    """A mask of a Data, or a node attribute of that name; nodes that labels or features have added are not in it."""
    if not isinstance(given, torch.Tensor):
        cells = np.array([False if value is None else value for value in given])
        if cells.dtype.kind not in "biuf" or not np.isin(cells, (0, 1)).all():
            raise DemonetError(f"node attribute {name!r} has values other than true and false", file=file)
        given = torch.from_numpy(cells.astype(np.bool_))
    added = given.new_zeros(max(num_nodes - given.size(0), 0), *given.shape[1:])
    return torch.cat([given, added]).cpu()


def _number(listing: Listing) -> tuple[Numbering, list[np.ndarray]]:
    """The indices of sources and of targets. The listing drops its ids, which may be most of the memory."""
    source, target = listing.source, listing.target
    listing.source = listing.target = np.empty(0, np.int64)
    if listing.nodes is None:
        numbering, *ends = number_ends(source, target)
    else:
        numbering = number_listed(listing.nodes)
        ends = [numbering.find(source), numbering.find(target)]
    return numbering, ends


def _labels(labels: Any, listing: Listing, numbering: Numbering, files: InputFiles, options: ReadOptions) -> Labels:
    if isinstance(labels, str) and labels in listing.inside:
        return from_sequence(listing.inside[labels], numbering.node_ids, labels)
    if isinstance(labels, str | Path):
        path = _file(labels, listing, "labels")
        header = _header(options.id_column, options.label_column)
        table = open_table(files.read(path), path, header, words=numbering.kind == "str")
        return Labels.read(table, numbering, options)
    if is_frame(labels):
        return Labels.read(FrameTable(labels, index=True), numbering, options)
    if hasattr(labels, "items"):
        return from_mapping(labels)
    _check_order(listing, numbering, None)
    return from_sequence(labels, numbering.node_ids)


def _check_order(listing: Listing, numbering: Numbering, file: Path | None) -> None:
    """Refuse rows in the order of the nodes where that order is not what anybody expects: 1, 10, 2, x."""
    if listing.nodes is None and numbering.kind == "str":
        words = [name for name in numbering.node_ids.tolist() if as_integer(name) is None]
        if len(words) < numbering.node_ids.size:
            problem = f"rows without ids, for ids that are numbers and words such as {words[0]!r}: in which order?"
            raise DemonetError(problem, file=file, hint="use a table with a column of ids")


def _features(
    features: Any,
    labels: Any,
    listing: Listing,
    numbering: Numbering,
    files: InputFiles,
    options: ReadOptions,
    taken: set[Any],
) -> FeatureRows:
    names, nodes = _attribute_names(features, labels, listing), numbering.node_ids
    if names is not None:
        return from_attributes(names, [listing.inside[name] for name in names], nodes, options.columns, listing.file)
    if isinstance(features, str) and features in listing.inside:
        return from_matrix_rows(listing.inside[features], nodes, file=listing.file, columns=listing.columns)
    if isinstance(features, str | Path):
        path = _file(features, listing, "features")
        content, matrix = files.read(path), format_of(path).matrix
        if matrix is not None:
            _check_order(listing, numbering, path)
            return from_matrix_rows(matrix(content, path), nodes, file=path)
        header = _header(options.id_column, options.label_column, *(options.ignore or ()))
        table = open_table(content, path, header, words=numbering.kind == "str")
        return FeatureRows.read(table, numbering, options, taken)
    if is_frame(features):
        return FeatureRows.read(FrameTable(features, index=True), numbering, options, taken)
    _check_order(listing, numbering, None)
    return from_matrix_rows(features, nodes)


def _attribute_names(features: Any, labels: Any, listing: Listing) -> list[str] | None:
    """The node attributes that are named as features: a list, ``"all"``, one name, or names with commas."""
    inside = {name: values for name, values in listing.inside.items() if isinstance(values, list)}
    if isinstance(features, list | tuple) and features and all(isinstance(name, str) for name in features):
        names = list(features)
    elif not isinstance(features, str) or not inside or Path(features).is_file():
        return None
    elif features == "all":
        names = sorted(name for name in inside if name not in (labels, *MASKS))
    else:
        names = features.split(",")
    missing = [name for name in names if name not in inside]
    if missing:
        known = ", ".join(sorted(inside)[:20])
        problem = f"no node has the attribute {missing[0]!r}"
        raise DemonetError(problem, argument="features", file=listing.file, hint=f"in the graph: {known}")
    return names


def _file(name: str | Path, listing: Listing, argument: str) -> Path:
    if listing.inside and not Path(name).is_file():
        hint = f"in the graph: {', '.join(sorted(listing.inside)[:20])}"
        raise DemonetError(f"no file and no attribute {str(name)!r}", argument=argument, hint=hint)
    return Path(name)


def _add_unknown(
    given: Labels | FeatureRows,
    numbering: Numbering,
    problem: str = "id {name!r} is in no edge",
    *,
    add: bool | None = None,
) -> Numbering:
    """Ids of labels or features that no edge has: an error, or with ``add`` new items at the end."""
    unknown = np.flatnonzero(numbering.find(given.ids) < 0)
    if not unknown.size:
        return numbering
    if add:
        return numbering.extended(given.ids)
    row = int(unknown[0])
    name = id_at(given.ids, row)
    problem = f"{problem.format(name=name)} ({unknown.size} in total)"
    advice: dict[str, Any] = {}
    if row == 0 and given.table is not None and given.table.names is None:
        advice["{id_column} reads the line as a header"] = {"id_column": name}
    if (value := number_value(str(name))) is not None:
        same = (str(known) for known in numbering.node_ids.tolist() if number_value(str(known)) == value)
        for other in islice(same, 1):
            problem += f", but {other!r} is"
            advice["{ids} reads both as numbers"] = {"ids": "int"}
    if add is not None:
        advice["{add_isolated} adds them as isolated nodes"] = {"add_isolated": True}
    hint = Hint("; ".join(advice), **{key: value for each in advice.values() for key, value in each.items()})
    raise DemonetError(problem, **given.where(row), hint=hint or None)


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


def _collect(table: Table, labels: Any, options: ReadOptions, files: InputFiles) -> Collection:
    """Edges with a column for the graph; a node is a graph and an id."""
    table.decimal = options.decimal
    graph_at = place_of(table, "graph" if options.graph is None else options.graph, "graph")
    places = [graph_at, *edge_columns(table, options, skip=graph_at)]
    kinds: list[Kind] = ["id", "id", "id", "number"]
    graph_ids, heads, tails, *weights = table.columns(places, kinds[: len(places)])
    graphs, graph_of, _ = number_ends(graph_ids, graph_ids)
    nodes, source_of, target_of = number_ends(heads, tails)
    n = nodes.node_ids.size
    for numbering, what in ((graphs, "graphs"), (nodes, "ids")):
        if numbering.kind == "str":
            warn_of_forms(numbering.node_ids, what, file=table.file)
    labelled = None
    if labels is not None:
        listed = Listing(graph_ids, graph_ids, nodes=graphs.node_ids, file=table.file)
        labelled = _labels(labels, listed, graphs, files, options)
        _check_id_column((labelled,), options)
        _add_unknown(labelled, graphs, "graph {name!r} has a label but no edge")
    y, class_names = encode_classes([None] * graphs.node_ids.size) if labelled is None else labelled.encode(graphs)
    pairs = np.concatenate([graph_of * n + source_of, graph_of * n + target_of])
    distinct, numbers = np.unique(pairs, return_inverse=True)
    return Collection(
        source=numbers[: len(heads)],
        target=numbers[len(heads) :],
        graph=distinct // n,
        y=np.asarray(y),
        class_names=class_names,
        label_table=None if labelled is None else labelled.encode_table(graphs),
        label_name=None if labelled is None else labelled.name,
        weight=weights[0] if weights and (weights[0] != 1).any() else None,
        node_ids=nodes.node_ids[distinct % n],
        file=table.file,
        graph_ids=graphs.node_ids.tolist(),
    )
