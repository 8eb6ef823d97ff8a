"""A whole file, or folder, of every format that is read, and its reader: what mutations start from."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from scipy import io as scipy_io
from scipy import sparse
from tests.hostile.mutations import mutate

from demonet import DemonetError
from demonet.configfile import read_config
from demonet.data import Split, read_graph, read_graphs

TRIANGLES = {"A": b"1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n", "graph_indicator": b"1\n1\n1\n2\n2\n"}
TRIANGLES |= {"graph_labels": b"0\n1\n"}
TRIANGLES |= {"node_labels": b"0\n1\n0\n2\n2\n", "node_attributes": b"0.5, 1\n1, 2\n0, 0\n3, 1\n1, 1\n"}
TRIANGLES |= {"graph_attributes": b"0.25\n-3\n"}


@dataclass(frozen=True)
class Format:
    """Files, and what reads them.

    Attributes:
        name: Its name.
        files: The content of each file, by name.
        read: Called with the folder of the files.
        changed: The files to change.
    """

    name: str
    files: dict[str, bytes]
    read: Callable[[Path], object]
    changed: tuple[str, ...]


def outcome(read: Callable[[], object]) -> str:
    """``"read"`` or ``"refused"``; anything but a result or a :class:`DemonetError` is raised."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            read()
        return "read"
    except DemonetError:
        return "refused"


class Mutations:
    """Mutated files of all formats in turn, each given by its number.

    Args:
        folder: Where to write them.
        seed: Of all of them.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        (folder / "seeds").mkdir()
        self.formats = list(formats(folder / "seeds"))
        for one in self.formats:
            (folder / one.name).mkdir()
            for name, content in one.files.items():
                (folder / one.name / name).write_bytes(content)

    def __call__(self, index: int) -> tuple[str, str, int]:
        """The name of the format, how reading ended, and the size of the mutated file."""
        one, generator = self.formats[index % len(self.formats)], random.Random(f"{self.seed} {index}")
        name = generator.choice(one.changed)
        path, content = self.folder / one.name / name, mutate(one.files[name], generator)
        path.write_bytes(content)
        try:
            return one.name, outcome(lambda: one.read(path.parent)), len(content)
        finally:
            path.write_bytes(one.files[name])


def formats(folder: Path) -> Iterator[Format]:
    """All formats; ``folder`` is for files that libraries write."""
    graph = nx.karate_club_graph()
    frame = pd.DataFrame([(u, v, 1.5) for u, v in graph.edges], columns=["source", "target", "weight"])
    matrix = nx.to_scipy_sparse_array(graph, dtype=float)
    text = frame.to_csv(index=False).encode()

    def written(name: str, write: Callable[[Path], object]) -> bytes:
        write(folder / name)
        return (folder / name).read_bytes()

    graphml = written("s.graphml", lambda path: nx.write_graphml(graph, path))
    single = {
        "a.csv": text,
        "a.tsv": text.replace(b",", b"\t"),
        "a.txt": b"# c\n" + text.replace(b",", b" ").split(b"\n", 1)[1],
        "a.csv.gz": gzip.compress(text, mtime=0),
        "a.parquet": written("s.parquet", frame.to_parquet),
        "a.graphml": graphml,
        "a.graphml.gz": gzip.compress(graphml, mtime=0),
        "a.gexf": written("s.gexf", lambda path: nx.write_gexf(graph, path)),
        "a.mtx": written("s.mtx", lambda path: scipy_io.mmwrite(path, sparse.coo_matrix(matrix))),
        "a.npz": written("s.npz", lambda path: sparse.save_npz(path, sparse.csr_matrix(matrix))),
        "a.npy": written("s.npy", lambda path: np.save(path, matrix.toarray())),
        "a.mat": written("s.mat", lambda path: scipy_io.savemat(path, {"Network": sparse.csc_matrix(matrix)})),
    }
    for name, content in single.items():
        yield Format(name, {name: content}, lambda folder, name=name: read_graph(folder / name), (name,))
    edges = {"edges.csv": text}
    labels = b"node,label\n" + b"".join(b"%d,%s\n" % (i, b"ab"[i % 2 : i % 2 + 1]) for i in range(34))
    table = b"node,x,kind\n" + b"".join(b"%d,%d.5,%s\n" % (i, i, b"uv"[i % 2 : i % 2 + 1]) for i in range(34))
    rows = pd.DataFrame({"node": range(34), "x": np.linspace(0, 1, 34), "kind": ["u", "v"] * 17})
    beside = {
        "labels.csv": labels,
        "features.csv": table,
        "features.parquet": written("f.parquet", rows.to_parquet),
        "features.npy": written("f.npy", lambda path: np.save(path, np.eye(34))),
    }
    for name, content in beside.items():
        part = "labels" if name.startswith("labels") else "features"
        read = lambda folder, name=name, part=part: read_graph(folder / "edges.csv", **{part: folder / name})  # noqa: E731
        yield Format(name, {**edges, name: content}, read, (name,))
    yield _one("graphs.data", b"2\n3 0\n0 2 1 2\n0 1 0\n0 1 0\n2 1\n1 1 1\n1 1 0\n", read_graphs)
    many = b"graph,source,target\n" + b"".join(b"g%d,%d,%d\n" % (i // 4, i % 4, (i + 1) % 4) for i in range(40))
    yield _one("graphs.csv", many, read_graphs)
    members = {f"TU_{part}.txt": content for part, content in TRIANGLES.items()}
    yield Format("TU", members, read_graphs, tuple(members))
    packed = {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in members.items()}
    yield Format("TU.gz", packed, read_graphs, tuple(packed))
    split = Split("a", 0, *(np.arange(part * 5, part * 5 + 5) for part in range(3)))
    yield _one("split.json", written("s.json", split.save), Split.load)
    options = b'# c\nedges = "../edges.csv"\nepochs = 12\nlr = 0.5\ndirected = false\nignore = ["a", "b"]\n'
    known = {"edges", "epochs", "lr", "directed", "ignore"}
    yield _one("run.toml", options, lambda path: read_config(path, known))


def _one(name: str, content: bytes, read: Callable[[Path], object]) -> Format:
    return Format(name, {name: content}, lambda folder: read(folder / name), (name,))
