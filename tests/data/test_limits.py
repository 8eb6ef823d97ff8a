"""Limits: what a file unpacks to, what its graph needs, and numbers that no machine can serve are refused at once."""

import gzip
import tracemalloc
from contextlib import nullcontext, suppress

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.reference.layers import PAPER

from demonet import DemonetError, checks
from demonet.data import ids_of, read_graph, read_graphs
from demonet.data.readers import graphml, tables
from demonet.data.readers.base import MAX_LINE, ReadOptions
from demonet.data.readers.graphml import from_networkx, read_gexf, read_graphml
from demonet.data.values import is_number
from demonet.runs import Settings
from demonet.runs.compare import Comparing
from demonet_study.ledger.work import work

GRAPHS = {
    "weighted": nx.les_miserables_graph(),
    "directed": nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")]),
    "repeated": nx.MultiGraph([(1, 2), (1, 2), (2, 3)]),
    "attributes": nx.karate_club_graph(),
}


def columns(listing):
    """Nodes, edges with their weights, and attributes; the order of edges and of their ends is not part of it."""
    ids = [ids.tolist() if isinstance(ids, np.ndarray) else ids.names[ids.codes].tolist() for ids in
           (listing.nodes, listing.source, listing.target)]  # fmt: skip
    weights = [None] * len(ids[1]) if listing.weight is None else listing.weight.tolist()
    ends = [(u, v) if listing.directed else tuple(sorted((u, v))) for u, v in zip(ids[1], ids[2], strict=True)]
    return ids[0], sorted(zip(ends, weights, strict=True)), dict(listing.inside), listing.directed


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("suffix", ["graphml", "gexf"])
def test_a_stream_of_xml_is_read_as_networkx_reads_it(tmp_path, name, suffix):
    path = tmp_path / f"a.{suffix}"
    write, read, ours = {
        "graphml": (nx.write_graphml, nx.read_graphml, read_graphml),
        "gexf": (nx.write_gexf, nx.read_gexf, read_gexf),
    }[suffix]
    write(GRAPHS[name], path)
    found = ours(path.read_bytes(), path, ReadOptions())
    assert columns(found) == columns(from_networkx(read(path), ReadOptions()))


def test_xml_takes_a_few_times_its_size(tmp_path):
    """Before, a hundred times: half a megabyte, compressed, took 6.7 GiB."""
    n = 20_000
    nodes = "".join(f'<node id="{i}"/>' for i in range(n // 10))
    edges = "".join(f'<edge source="{i % 2000}" target="{(i * 7 + 1) % 2000}"/>' for i in range(n))
    head = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
    text = f"{head}{nodes}{edges}</graph></graphml>".encode()
    tracemalloc.start()
    read_graphml(text, tmp_path / "a.graphml", ReadOptions())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(text)


def test_a_long_token_of_xml_is_read_in_a_few_passes(monkeypatch, tmp_path):
    """Each block was parsed from the beginning of the token: 40 MB took a minute."""
    fed = []

    class Counted(graphml.XMLPullParser):
        def feed(self, part):
            fed.append(len(part))
            super().feed(part)

    monkeypatch.setattr(graphml, "XMLPullParser", Counted)
    head = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
    text = f'{head}<node id="{"x" * 10**6}"/><node id="y"/></graph></graphml>'.encode()
    assert len(read_graphml(text, tmp_path / "a.graphml", ReadOptions()).nodes) == 2
    assert sum(fed) == len(text)
    assert len(fed) < 10


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("</graph>", '</graph><graph edgedefault="directed"><node id="c"/></graph>'), "more than one graph"),
        (('<node id="b"/>', "<node/>"), "a node has no id"),
        ((' target="b"', ""), "edge has no target"),
    ],
)
def test_what_xml_files_leave_out_is_no_node(tmp_path, change, words):
    """Before, nodes and ends without an id were one node called None, and other graphs were left out in silence."""
    head = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
    text = f'{head}<node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>'
    with pytest.raises(DemonetError, match=rf"a\.graphml: .*({words})"):
        read_graphml(text.replace(*change).encode(), tmp_path / "a.graphml", ReadOptions())


def test_what_does_not_fit_into_memory_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    packed, table = tmp_path / "a.csv.gz", tmp_path / "a.parquet"
    numbers = b"".join(b"%d,%d\n" % (i, i * i % 10**9) for i in range(10_000))
    packed.write_bytes(gzip.compress(numbers * 700, 1))
    rows = pa.array(np.zeros(6_000_000, np.int8))
    parquet.write_table(pa.table({"source": rows, "target": rows}), table)
    monkeypatch.setattr(checks, "available_memory", lambda: 200 << 20)
    for path in (packed, table):
        with pytest.raises(DemonetError, match=f"^{path}: .*GiB"):
            read_graph(path)


def test_numbers_that_no_machine_can_serve(tmp_path):
    for refused in (
        lambda: Settings(cv=100_000_000),
        lambda: Comparing(splits=100_000_000),
        lambda: Comparing(jobs=100_000),
        lambda: work(None, [], None, jobs=100_000),
        lambda: PAPER.changed(layers=10**6),
    ):
        with pytest.raises(DemonetError, match=r"\d"):
            refused()


def test_parquet_with_names_or_values_that_are_not_text(tmp_path):
    path = tmp_path / "a.parquet"
    broken = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xff\xfe"))
    whole = pa.array(["a", "b"])
    parquet.write_table(pa.table({"source": broken, "target": whole}), path)
    with pytest.raises(DemonetError, match=f"^{path}: "):
        read_graph(path)
    parquet.write_table(pa.table({"source": whole, "target": whole}), path)
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"source", b"so\xff\xfece"))
    with pytest.raises(DemonetError, match=f"^{path}: "):
        read_graph(path, source=0, target=1)


def test_the_memory_that_is_there():
    assert checks.available_memory() > 0
    checks.check_memory(1 << 20, "a little")
    with pytest.raises(DemonetError, match="GiB"):
        checks.check_memory(1 << 60, "everything")
    assert ids_of(read_graph([(0, 1)])) == [0, 1]


SIZE = 1 << 21
EMPTY = {
    "a.csv.gz": b"\n" * SIZE,
    "b.csv.gz": b"\n" * SIZE + b"source,target\n1,2\n",
    "c.csv.gz": b"# \n" * (SIZE // 3) + b"source,target\n1,2\n",
    "d.csv.gz": b"source,target\n1,2\n" + b" \n" * (SIZE // 2) + b"2,3\n",
    "e.txt.gz": b"1 2\n" + b"#\n" * (SIZE // 2) + b"2 3\n",
    "f.txt.gz": b"1 2\n" + b" \n" * (SIZE // 2) + b"2 3\n",
    "g.txt.gz": b"1\n" + b"\n" * SIZE + b"2 1\n0 1 1\n0 1 0\n",
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.filterwarnings("ignore")
def test_lines_without_content_take_no_memory_of_their_own(write, name):
    """64 MiB of empty lines, compressed to 65 kB, took 11.7 GiB; comments and lines of blanks 90 times their size."""
    path = write(name, gzip.compress(EMPTY[name], 1))
    read_graph([(0, 1)])  # imports
    tracemalloc.start()
    with suppress(DemonetError) if name == "a.csv.gz" else nullcontext():
        read_graphs(path) if name.startswith("g") else read_graph(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * SIZE + (1 << 24)


def test_line_numbers_count_empty_lines_and_comments(write):
    path = write("a.csv", "# a\n\n% b\nsource,target\n\n \n1,2\n\t\n\n3\n")
    with pytest.raises(DemonetError, match=f"^{path}:10: "):
        read_graph(path)
    text = write("a.txt", " \n# a\n1  2\n# b\n# c\n\n 2 x \n")
    with pytest.raises(DemonetError, match=f"^{text}:7: .*'x'"):
        read_graph(text, ids="int")


@pytest.mark.parametrize("ids", [list("abc"), [7, 8, 9]])
def test_a_table_that_is_too_wide_is_refused_in_every_format(write, tmp_path, monkeypatch, ids):
    """5,000 columns of 40 categories, 6 MB, took 7 GB: they are 200,000 columns of 0 and 1."""
    edges = write("e.csv", "source,target\n{0},{1}\n{1},{2}\n".format(*ids))
    monkeypatch.setattr(tables, "MAX_COLUMNS", 4)
    numbers = {f"n{place}": [1, 2, place] for place in range(4)}
    for many, words in (({"n4": [5, 6, 7]}, "5 columns, more than 4"), ({"n3": ["x", "y", "x"]}, "5 .*category")):
        parquet.write_table(pa.table({"node": ids, **numbers, **many}), tmp_path / "f.parquet")
        with pytest.raises(DemonetError, match=rf"^{tmp_path / 'f.parquet'}: {words}"):
            read_graph(edges, features=tmp_path / "f.parquet")
    parquet.write_table(pa.table({"node": ids, **numbers}), tmp_path / "f.parquet")
    assert read_graph(edges, features=tmp_path / "f.parquet").x.shape == (3, 4)
    with pytest.raises(DemonetError, match=r"f\.csv:1: 5 columns, more than 4"):
        read_graph(edges, features=write("f.csv", "node,a,b,c,d\n"))


@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_a_line_that_is_too_long_is_refused(write, name):
    path = write(name, b"1,2\r\n\n" + b"1" * (MAX_LINE + 1) + b",2\n3,4\n")
    with pytest.raises(DemonetError, match=f"^{path}:3: "):
        read_graph(path)


def test_a_long_row_of_digits_that_is_no_number_is_read_once():
    """Each digit was tried as the last one before the point, and each of the rest as the last one after it."""
    assert is_number("1" * 1_000_000)
    assert not is_number("1" * 1_000_000 + "x")
    assert all(map(is_number, ("1.", "1.5e3", ".5", "-007")))
    assert not any(map(is_number, ("1.e", "1..2", ".", "e3")))
