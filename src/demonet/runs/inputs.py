"""What the user brings: a graph or many, from files or by the name of a known set, with the ids and names in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torch_geometric.data import Data

from demonet.data import catalog, store
from demonet.data.files import read_graph
from demonet.data.graph_files import read_graphs
from demonet.data.graph_set import GraphSet
from demonet.data.ids import ids_of
from demonet.data.load import load
from demonet.data.readers.edge_list import open_table
from demonet.data.readers.raw import read_text
from demonet.errors import DemonetError
from demonet.runs.settings import Reading

_TABLES = (".csv", ".tsv", ".parquet", ".pq")
_MATRICES = (".npy", ".npz", ".mtx")


@dataclass(frozen=True, eq=False)
class Inputs:
    """A problem as it was read.

    Attributes:
        kind: What is to be classified.
        data: The graph, or the graphs.
        name: A short name for it.
        ids: One text an item, as in the files.
        columns: The names of the attributes, where they have names.
        files: What was read, by its part: ``edges``, ``labels``, ``features``.
    """

    kind: Literal["nodes", "graphs"]
    data: Data | GraphSet
    name: str
    ids: list[str]
    columns: list[str] | None
    files: dict[str, Path]

    @property
    def class_names(self) -> list[Any]:
        """The classes, as the labels have them."""
        names = self.data.get("class_names") if isinstance(self.data, Data) else self.data.class_names
        return list(names or [])

    @property
    def graphs(self) -> list[Data]:
        """The graph alone, or all of them."""
        return [self.data] if isinstance(self.data, Data) else list(self.data)


def read_inputs(edges: str, labels: str | None, features: str | None, reading: Reading) -> Inputs:
    """Read whatever the user named: files, a folder, or a known set.

    Args:
        edges: A file that :func:`~demonet.data.read_graph` or :func:`~demonet.data.read_graphs` reads, or the name of
            a set of the paper.
        labels: A table of id and label, or the name of an attribute inside ``edges``.
        features: A table or matrix of node attributes.
        reading: How.
    """
    if not Path(edges).exists() and not any(mark in edges for mark in "./\\"):
        return _known(edges, labels, features, reading)
    table: dict[str, Any] = {name: getattr(reading, name) for name in ("source", "target", "weight")}
    table["self_loops"] = reading.self_loops or "drop"
    given = {"edges": edges, "labels": labels, "features": features}
    files = {part: Path(name) for part, name in given.items() if name is not None and Path(name).exists()}
    if task_of(edges, labels, reading) == "graphs":
        _refuse_beside_graphs(edges, labels, features)
        graphs = read_graphs(edges, labels, graph=reading.graph, **table)
        return _graphs(graphs, files)
    table |= {"directed": reading.directed, "add_isolated": reading.add_isolated}
    data = read_graph(edges, labels, features, **table)
    return Inputs("nodes", data, Path(edges).stem, list(map(str, ids_of(data))), _columns(features), files)


def task_of(edges: str, labels: str | None, reading: Reading) -> Literal["nodes", "graphs"]:
    """Whether nodes or graphs are classified: what the user says, or what the files look like.

    A folder, a table with a column ``graph`` and a text file that starts with the number of its graphs hold graphs.
    """
    if reading.task != "auto":
        return reading.task
    path = Path(edges)
    if path.is_dir() or reading.graph is not None:
        return "graphs"
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending in _TABLES:
        return "graphs" if "graph" in (open_table(path).names or []) else "nodes"
    if ending == ".txt" and labels is None:
        first = read_text(path).split(b"\n", 1)[0].split()
        return "graphs" if len(first) == 1 and first[0].isdigit() else "nodes"
    return "nodes"


def checksums(files: dict[str, Path]) -> dict[str, str]:
    """The sha256 of every file; of a folder, that of all files in it."""
    sums = {}
    for part, path in files.items():
        total = hashlib.sha256()
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.is_file():
                total.update(file.name.encode() if path.is_dir() else b"")
                for piece in _pieces(file):
                    total.update(piece)
        sums[part] = total.hexdigest()
    return sums


def _known(name: str, labels: str | None, features: str | None, reading: Reading) -> Inputs:
    """A set of the paper."""
    try:
        entry = catalog.find(name)
    except DemonetError as error:
        raise DemonetError(f"no such file, and {error.message}", file=name, hint=error.hint) from None
    if labels is not None or features is not None:
        raise DemonetError(f"{entry.name} brings its own labels and features", hint="leave --labels and --features out")
    data = load(entry.name, self_loops=reading.self_loops or "drop")
    files = {"edges": store.fetch(entry)}
    if isinstance(data, GraphSet):
        return _graphs(data, files)
    return Inputs("nodes", data, entry.name, list(map(str, ids_of(data))), None, files)


def _graphs(graphs: GraphSet, files: dict[str, Path]) -> Inputs:
    columns = [str(name) for name in graphs.node_label_names] or None
    return Inputs("graphs", graphs, graphs.name, list(map(str, graphs.graph_ids)), columns, files)


def _refuse_beside_graphs(edges: str, labels: str | None, features: str | None) -> None:
    path = Path(edges)
    if features is not None:
        raise DemonetError(
            "features beside a set of graphs", file=edges, hint="a TU folder or GIN file has them inside"
        )
    if labels is not None and (path.is_dir() or Path(path.name.removesuffix(".gz")).suffix.lower() not in _TABLES):
        raise DemonetError("this format brings its own labels", file=edges, hint="leave --labels out")


def _columns(features: str | None) -> list[str] | None:
    """What the header of a table of features calls its columns."""
    if features is None or not Path(features).is_file() or Path(features.removesuffix(".gz")).suffix in _MATRICES:
        return None
    names = open_table(Path(features)).names
    return None if names is None else names[1:]


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            yield piece
