"""One graph written in every format that `read_graph` takes: the other half of the round trip."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import torch
from scipy import io, sparse
from torch_geometric.data import Data


@dataclass
class Drawn:
    """A simple graph: edges once, as node numbers; an id for each node; perhaps weights."""

    ids: list[Any]
    edges: list[tuple[int, int]]
    weights: list[float] | None
    directed: bool = False

    def rows(self) -> list[tuple[Any, ...]]:
        extra = [()] * len(self.edges) if self.weights is None else [(w,) for w in self.weights]
        return [(self.ids[u], self.ids[v], *w) for (u, v), w in zip(self.edges, extra, strict=True)]

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows(), columns=["source", "target", *(["weight"] if self.weights else [])])

    def networkx(self) -> nx.Graph:
        graph = nx.DiGraph() if self.directed else nx.Graph()
        graph.add_nodes_from(self.ids)
        for u, v, *w in self.rows():
            graph.add_edge(u, v, **({"weight": w[0]} if w else {}))
        return graph

    def matrix(self) -> sparse.csr_array:
        n = len(self.ids)
        weights = np.array(self.weights or [1.0] * len(self.edges))
        u, v = np.array(self.edges, dtype=np.int64).reshape(-1, 2).T
        half = sparse.coo_array((weights, (u, v)), shape=(n, n))
        return sparse.csr_array(half if self.directed else half + half.T)

    def data(self) -> Data:
        u, v = torch.tensor(self.edges, dtype=torch.int64).reshape(-1, 2).T
        ids = torch.tensor(self.ids) if isinstance(self.ids[0], int) else self.ids
        data = Data(edge_index=torch.stack([u, v]), num_nodes=len(self.ids), node_ids=ids)
        if self.weights is not None:
            data.edge_weight = torch.tensor(self.weights)
        return data


def _text(separator: str, newline: str = "\n", comment: str = "") -> Callable[[Drawn, Path], None]:
    def write(drawn: Drawn, path: Path) -> None:
        lines = [separator.join(map(str, row)) for row in drawn.rows()]
        path.write_bytes(newline.join([*([comment] if comment else []), *lines, ""]).encode())

    return write


def _gzip(drawn: Drawn, path: Path) -> None:
    path.write_bytes(gzip.compress("\n".join(" ".join(map(str, row)) for row in drawn.rows()).encode()))


def _sqlite(drawn: Drawn, path: Path) -> None:
    with closing(sqlite3.connect(path)) as base:
        drawn.frame().to_sql("edges", base, index=False)


# Formats that list edges only know no isolated nodes; matrices know nodes by number only.
EDGES: dict[str, Callable[[Drawn, Path], None]] = {
    "blanks.txt": _text(" "),
    "many-blanks.edgelist": _text("  \t "),
    "crlf.txt": _text("\t", newline="\r\n", comment="# from\tto"),
    "comma.csv": _text(",", comment="% a comment, with a comma"),
    "gzip.txt.gz": _gzip,
    "header.csv": lambda drawn, path: drawn.frame().to_csv(path, index=False),
    "table.parquet": lambda drawn, path: drawn.frame().to_parquet(path),
    "sheet.xlsx": lambda drawn, path: drawn.frame().to_excel(path, index=False),
    "base.db": _sqlite,
    "records.json": lambda drawn, path: drawn.frame().to_json(path, orient="records", double_precision=15),
}
NODES: dict[str, Callable[[Drawn, Path], None]] = {
    "graph.graphml": lambda drawn, path: nx.write_graphml(drawn.networkx(), path),
    "graph.gexf": lambda drawn, path: nx.write_gexf(drawn.networkx(), path),
}
MATRICES: dict[str, Callable[[Drawn, Path], None]] = {
    "matrix.mtx": lambda drawn, path: io.mmwrite(path, drawn.matrix()),
    "matrix.npz": lambda drawn, path: sparse.save_npz(path, drawn.matrix()),
    "matrix.mat": lambda drawn, path: io.savemat(path, {"Network": drawn.matrix()}, do_compression=True),
}
OBJECTS: dict[str, Callable[[Drawn], Any]] = {
    "networkx": Drawn.networkx,
    "data": Drawn.data,
    "scipy": Drawn.matrix,
    "numpy": lambda drawn: drawn.matrix().toarray(),
}
