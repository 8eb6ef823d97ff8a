"""Mutated files: every reader and every file of a run gives a result or one error, in bounded time and memory."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import shutil
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from scipy import io as scipy_io
from scipy import sparse

from demonet import DemonetError
from demonet.data import Split, read_graph, read_graphs
from demonet.experiments.ledger.job import Cell, Job, Outcome, Stamp
from demonet.experiments.ledger.parquet import read_parquet
from demonet.experiments.ledger.store import Ledger

SLOW = 10.0  # seconds that no file may take
NASTY = [b"", b"\0", b"\xff\xfe", b"-", b"1e999", b"nan", b"9" * 30, b"0" * 5000, b"\n", b"\r", b'"', b",", b"{}"]
NASTY += [b"[" * 999, b"null", b"#", b"%", b"<", b"&x;", b"PK\x05\x06", b"\x1f\x8b", "²é\u2028".encode(), b"Infinity"]
NASTY += [b"-1", b"true"]
Reader = Callable[[Path], object]


def mutate(raw: bytes, generator: random.Random) -> bytes:
    """The bytes with one to four changes: flipped bits, cuts, repeats, swaps, numbers and words that hurt."""
    data = bytearray(raw)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        place = generator.randrange(len(data) + 1)
        kind = generator.randrange(7)
        if kind == 0 and data:
            data[place % len(data)] ^= 1 << generator.randrange(8)
        elif kind == 1:
            data[place : place + generator.choice((0, 1, 8))] = generator.choice(NASTY)
        elif kind == 2:
            del data[place : place + generator.choice((1, 4, 64, len(data)))]
        elif kind == 3:
            chunk = bytes(data[place : place + generator.choice((1, 16, 256))])
            data[place:place] = chunk * generator.choice((1, 2, 50))
        elif kind == 4:
            del data[place:]
        elif kind == 5 and len(data) >= 4:
            at = place % (len(data) - 3)
            data[at : at + 4] = generator.choice((0, 1, 2**31 - 1, 2**32 - 1)).to_bytes(4, "little")
        elif data:
            data[place % len(data)] = generator.randrange(256)
    return bytes(data)


def flip(raw: bytes, generator: random.Random) -> bytes:
    """The bytes with one flipped bit."""
    place = generator.randrange(len(raw))
    return raw[:place] + bytes([raw[place] ^ 1 << generator.randrange(8)]) + raw[place + 1 :]


def attempt(read: Reader, path: Path) -> str:
    """``"read"`` or ``"refused"``; anything but a result or a :class:`DemonetError` is raised."""
    start = time.monotonic()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            read(path)
        return "read"
    except DemonetError:
        return "refused"
    finally:
        took = time.monotonic() - start
        assert took < SLOW, f"{path}: {took:.0f} s"


def seeds(folder: Path) -> Iterator[tuple[str, bytes, Reader]]:
    """Name, content and reader of a whole file for each format."""
    graph = nx.karate_club_graph()
    frame = pd.DataFrame([(u, v, 1.5) for u, v in graph.edges], columns=["source", "target", "weight"])
    matrix = nx.to_scipy_sparse_array(graph, dtype=float)

    def written(name: str, write: Callable[[Path], object]) -> bytes:
        write(folder / name)
        return (folder / name).read_bytes()

    text = frame.to_csv(index=False).encode()
    yield "a.csv", text, read_graph
    yield "a.tsv", text.replace(b",", b"\t"), read_graph
    yield "a.txt", b"# c\n" + text.replace(b",", b" ").split(b"\n", 1)[1], read_graph
    yield "a.csv.gz", gzip.compress(text, mtime=0), read_graph
    yield "a.parquet", written("s.parquet", frame.to_parquet), read_graph
    yield "a.graphml", written("s.graphml", lambda path: nx.write_graphml(graph, path)), read_graph
    yield "a.gexf", written("s.gexf", lambda path: nx.write_gexf(graph, path)), read_graph
    yield "a.mtx", written("s.mtx", lambda path: scipy_io.mmwrite(path, sparse.coo_matrix(matrix))), read_graph
    yield "a.npz", written("s.npz", lambda path: sparse.save_npz(path, sparse.csr_matrix(matrix))), read_graph
    yield "a.npy", written("s.npy", lambda path: np.save(path, matrix.toarray())), read_graph
    yield (
        "a.mat",
        written("s.mat", lambda path: scipy_io.savemat(path, {"Network": sparse.csc_matrix(matrix)})),
        read_graph,
    )
    gin = b"2\n3 0\n0 2 1 2\n0 1 0\n0 1 0\n2 1\n1 1 1\n1 1 0\n"
    yield "gin.data", gin, read_graphs
    labels = b"node,label\n" + b"".join(b"%d,%s\n" % (i, b"ab"[i % 2 : i % 2 + 1]) for i in range(34))
    edges = folder / "edges.csv"
    edges.write_bytes(text)
    yield "labels.csv", labels, lambda path: read_graph(edges, path)
    table = b"node,x,kind\n" + b"".join(b"%d,%d.5,%s\n" % (i, i, b"uv"[i % 2 : i % 2 + 1]) for i in range(34))
    yield "features.csv", table, lambda path: read_graph(edges, features=path)
    split = Split("a", 0, *(np.arange(part * 5, part * 5 + 5) for part in range(3)))
    yield "split.json", written("s.json", split.save), Split.load


def ledger_file(path: Path) -> bytes:
    """A ledger of finished runs in one file, without a log beside it."""
    cell, stamp = Cell("accuracy", "brazil", "gcn", split="thirds"), Stamp("c0de", "{}", "cpu", "da7a")
    with Ledger(path) as ledger:
        for seed in range(8):
            ledger.claim(Job(cell, seed), stamp)
            ledger.record(Job(cell, seed), stamp, Outcome(0.5 + seed / 100, 1.5, 2.0, {"epochs": seed}))
        ledger.export_runs(path.with_suffix(".parquet"))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return path.read_bytes()


def ledger_rows(path: Path) -> list[tuple]:
    """All finished runs of a ledger, or of a Parquet file of them."""
    if path.suffix == ".parquet":
        return read_parquet(path)
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    with Ledger(path) as ledger:
        return ledger._finished()


class RunFiles:
    """The files of a run, each changed alone: every change is found before the file is used.

    Args:
        run: The folder of a finished run.
        work: A folder for copies.
    """

    def __init__(self, run: Path, work: Path) -> None:
        self.run = work / "run"
        shutil.copytree(run, self.run)
        self.raw = {path.name: path.read_bytes() for path in self.run.iterdir() if path.is_file()}
        self.names = ["config.json", "manifest.json", "metrics.json", "model.safetensors", "run.safetensors"]

    def changed(self, name: str, content: bytes, read: Callable[[], object]) -> str:
        """Read with other content in one file, which is then restored: ``"same"``, ``"read"`` or ``"refused"``."""
        (self.run / name).write_bytes(content)
        try:
            return "same" if content == self.raw[name] else attempt(lambda _: read(), self.run)
        finally:
            (self.run / name).write_bytes(self.raw[name])
