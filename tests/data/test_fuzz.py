"""Whatever bytes a reader is given, it ends in a graph or in a DemonetError: nothing else, soon, and in little memory.

Each reader is given hundreds of files: random bytes, and good files (written here, and the paper's where they are) cut
short, with bytes changed, with pieces taken out, doubled or replaced by something nasty. A child process reads them, so
that a crash, a hang or memory out of bounds is seen as such.
"""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
import os
import random
import resource
import signal
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse
from tests.data.writers import EDGES, MATRICES, NODES, Drawn

from demonet.data import Split, read_graph, read_graphs
from demonet.errors import DemonetError

CASES = 150
SECONDS = 5  # for one file
MEBIBYTES = 600  # above what the process has before
NASTY = [
    b"nan",
    b"inf",
    b"-1",
    b"1e999",
    b"99999999999999999999",
    b"4294967295",
    b"\0",
    b'"',
    b",",
    b"\t",
    b"\r",
    b"\n\n",
]
NASTY += ["²é\u2028".encode(), b"\xff\xfe", b"#", b"%", b"<!--", b"&x;", b"]]>", b"PK\x05\x06", b"\x1f\x8b", b"0" * 400]


def good_graphs():
    generator = random.Random(0)
    edges = [(i, i + 1) for i in range(20)] + [(0, 5), (3, 17)]
    yield Drawn(list(range(21)), edges, None)
    yield Drawn([f"n{i:02}" for i in range(21)], edges, [generator.random() for _ in edges])


def mutate(content, generator):
    """One to four changes to a good file."""
    content = bytearray(content)
    for _ in range(generator.randint(1, 4)):
        at = generator.randrange(len(content) + 1)
        length = generator.choice([1, 1, 2, 4, 16, 64])
        how = generator.randrange(6)
        if how == 0:
            del content[at:]
        elif how == 1:
            content[at : at + length] = generator.randbytes(length)
        elif how == 2:
            del content[at : at + length]
        elif how == 3:
            content[at:at] = content[at : at + length] * generator.choice([1, 2, 50])
        elif how == 4:
            content[at : at + generator.choice([0, length])] = generator.choice(NASTY)
        elif content:
            content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    return bytes(content)


def cases(seeds, number, seed):
    generator = random.Random(seed)
    for i in range(number):
        if i % 8 == 0:
            yield generator.randbytes(generator.choice([0, 1, 2, 10, 100, 5000]))
        elif i % 8 == 1:
            yield bytes(generator.choices(b'0123456789 \t\n,.-e#%ax"', k=generator.randint(0, 300)))
        else:
            yield mutate(generator.choice(seeds), generator)


def read_all(read, path, contents, report):
    """In the child: read each case, and report the first that ends otherwise than it should."""

    def hung(*_):
        raise TimeoutError(f"longer than {SECONDS} s")

    signal.signal(signal.SIGPROF, hung)
    warnings.simplefilter("ignore")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = {"graph": 0, "error": 0}
    for content in contents:
        path.write_bytes(content)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # CPU time: a busy machine is no hang
        try:
            read(path)
            ended["graph"] += 1
        except DemonetError:
            ended["error"] += 1
        except BaseException:
            report.send({"failed": traceback.format_exc(), "content": repr(content[:2000])})
            os._exit(1)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    report.send({"ended": ended, "used": used})


def check_survives(read, path, seeds, number=CASES):
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)
    child = fork.Process(target=read_all, args=(read, path, cases(seeds, number, seed=path.name), there))
    child.start()
    there.close()
    try:
        outcome = here.recv()
    except EOFError:
        outcome = {"failed": "the reader took its process down", "content": repr(path.read_bytes()[:2000])}
    child.join()
    assert "failed" not in outcome, f"{outcome['failed']}\n{outcome['content']}"
    assert outcome["used"] < MEBIBYTES
    assert sum(outcome["ended"].values()) == number
    assert outcome["ended"]["error"] > number / 10  # the changes do hurt


def written(name, write, folder):
    for i, drawn in enumerate(good_graphs()):
        path = folder / f"{i}-{name}"
        write(drawn, path)
        yield path.read_bytes()


@pytest.mark.parametrize(
    "name",
    ["many-blanks.edgelist", "header.csv", "table.parquet", "sheet.xlsx", "base.db", "records.json", *NODES, *MATRICES],
)
def test_graphs(tmp_path, name):
    seeds = list(written(name, {**EDGES, **NODES, **MATRICES}[name], tmp_path))
    check_survives(read_graph, tmp_path / name, seeds)


def test_matlab_files_uncompressed_and_with_more_in_them(tmp_path):
    seeds = []
    for compressed in (False, True):
        stream = io.BytesIO()
        network = sparse.random_array((12, 12), density=0.3, rng=0)
        scipy_io.savemat(
            stream, {"Network": network, "Label": [[i % 3] for i in range(12)], "note": "x"}, do_compression=compressed
        )
        seeds.append(stream.getvalue())
    check_survives(lambda path: read_graph(path, "Label", matrix="Network"), tmp_path / "more.mat", seeds)


@pytest.mark.parametrize("name", ["labels.csv", "features.csv", "features.npz", "features.npy"])
def test_labels_and_features(tmp_path, name):
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{i} {i + 1}\n" for i in range(20)))
    separator = "," if name.endswith(".csv") else " "
    seeds = ["".join(f"{i}{separator}{i % 3}\n" for i in range(21)).encode()]
    if name.endswith((".npz", ".npy")):
        matrix = sparse.random_array((21, 5), density=0.4, rng=0)
        writers = {
            ".npz": lambda path: sparse.save_npz(path, matrix.tocsr()),
            ".npy": lambda path: np.save(path, matrix.toarray()),
        }
        writers[name[-4:]](tmp_path / name)
        seeds = [(tmp_path / name).read_bytes()]
    part = name.split(".")[0]
    check_survives(lambda path: read_graph(edges, **{part: path}), tmp_path / name, seeds)


def test_gin_files(tmp_path):
    seeds = [b"2\n3 1\n4 1 1\n6 2 0 2\n4 1 1\n2 0\n4 1 1\n6 1 0\n", b"1\n2 0\n-1 1 1 0.5 2\n3 1 0 1e3 4\n"]
    check_survives(read_graphs, tmp_path / "set.txt", seeds, 2 * CASES)


def test_graph_tables(tmp_path):
    seeds = [b"graph,source,target\n" + b"".join(b"%d,%d,%d\n" % (i % 4, i, i + 4) for i in range(40))]
    check_survives(read_graphs, tmp_path / "set.csv", seeds)


@pytest.mark.parametrize("part", ["A", "graph_indicator", "node_attributes"])
def test_tu_folders(tmp_path, part):
    good = {
        "A": "".join(f"{i}, {i + 1}\n" for i in range(1, 20) if i % 5),
        "graph_indicator": "".join(f"{(i + 4) // 5}\n" for i in range(1, 21)),
        "graph_labels": "1\n-1\n1\n-1\n",
        "node_labels": "".join(f"{i % 3}\n" for i in range(20)),
        "node_attributes": "".join(f"{i / 7}, {i}\n" for i in range(20)),
    }
    for name, text in good.items():
        (tmp_path / f"SET_{name}.txt").write_text(text)
    check_survives(lambda path: read_graphs(path.parent), tmp_path / f"SET_{part}.txt", [good[part].encode()])


def test_splits(tmp_path):
    good = {"name": "thirds", "seed": 0, "hash": "x", "train": [0, 3], "val": [1], "test": [2]}
    check_survives(Split.load, tmp_path / "split.json", [json.dumps(good).encode()])


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "read"),
    [
        ("brazil-airports/brazil-airports.edgelist", read_graph),
        ("PTC/PTC.txt", read_graphs),
        ("blogcatalog/BlogCatalog.mat", read_graph),
    ],
)
def test_the_papers_files(paper_data, tmp_path, file, read):
    content = (paper_data / file).read_bytes()
    packed = [gzip.compress(content)] if file.endswith(".edgelist") else []
    number = 40 if len(content) < 100_000 else 8
    check_survives(read, tmp_path / Path(file).name, [content, *packed], number)
