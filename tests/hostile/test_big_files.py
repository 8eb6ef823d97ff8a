"""Small files that unpack to much, or claim much: refused in little memory, or read in a few times their size."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.hostile.supervise import supervised

from demonet import DemonetError, checks
from demonet.data import read_graph, read_graphs

HEAD = b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'


def repeated(unit: bytes, size: int) -> bytes:
    """So many bytes of one unit, compressed: as a stream, without having them in memory."""
    packed, chunk = io.BytesIO(), unit * ((1 << 20) // len(unit))
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0) as stream:
        for _ in range(size // len(chunk)):
            stream.write(chunk)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("a.graphml.gz", b'<node id="a"/>'),
        ("a.gexf.gz", b'<edge source="a" target="b"/>'),
        ("a.csv.gz", b"a,b\n"),
        ("a.mtx.gz", b"1 2\n"),
        ("a.json.gz", b"["),
    ],
)
def test_a_compressed_file_that_expands_a_thousand_times_is_refused(tmp_path, name, unit):
    path = tmp_path / name
    path.write_bytes(repeated(unit, 160 << 20))
    assert path.stat().st_size < 2 << 20

    def case(index: int) -> tuple[str, str, int]:
        with pytest.raises(DemonetError, match=f"^{path}: .*compressed bytes expand"):
            read_graph(path)
        return name, "refused", path.stat().st_size

    (done,) = supervised(case, range(1))
    assert not done.failure


def test_compressed_xml_takes_a_few_times_its_size(tmp_path):
    """Half a megabyte in a thousand nodes: NetworkX alone took a hundred times as much."""
    path = tmp_path / "a.graphml.gz"
    nodes = b"".join(b'<node id="n%d"/>' % i for i in range(1000))
    edges = b"".join(b'<edge source="n%d" target="n%d"/>' % (i % 1000, (7 * i + 1) % 1000) for i in range(1000))
    text = HEAD + nodes + edges * 120 + b"</graph></graphml>"
    path.write_bytes(gzip.compress(text, mtime=0))

    def case(index: int) -> tuple[str, str, int]:
        data = read_graph(path)
        assert (data.num_nodes, data.num_edges) == (1000, 1000)
        return path.name, "read", path.stat().st_size

    (done,) = supervised(case, range(1))
    assert not done.failure
    assert done.memory < 16 * len(text) / 2**20


def test_a_parquet_file_of_more_rows_than_there_is_memory_for(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    zeros = pa.array(np.zeros(1_000_000, np.int8))
    table = pa.table({"source": zeros, "target": zeros})
    with parquet.ParquetWriter(path, table.schema) as writer:
        for _ in range(8):
            writer.write_table(table)
    assert path.stat().st_size < 1 << 20
    monkeypatch.setattr(checks, "available_memory", lambda: 300 << 20)
    with pytest.raises(DemonetError, match=f"^{path}: 8,000,000 rows.*GiB"):
        read_graph(path)


@pytest.mark.parametrize("name", ["a.graphml", "a.gexf"])
def test_xml_of_more_nodes_than_there_is_memory_for(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_bytes(b"<a>" + b'<node id="a"/>' * 600_000 + b"</a>")
    monkeypatch.setattr(checks, "available_memory", lambda: 270 << 20)
    with pytest.raises(DemonetError, match=f"^{path}: its graph.*GiB"):
        read_graph(path)


def test_parquet_columns_of_unequal_length(tmp_path):
    path, stream = tmp_path / "a.parquet", io.BytesIO()
    table = pa.table({"source": np.arange(5) + 100, "target": np.arange(5) + 200})
    parquet.write_table(table, stream, compression="none", use_dictionary=False, write_statistics=False)
    raw = stream.getvalue()
    five, three = b"\x2c\x15\x0a\x15\x00", b"\x2c\x15\x06\x15\x00"  # the header of a page: 5 plain values, or 3
    assert raw.count(five) == 2
    path.write_bytes(three.join(raw.rsplit(five, 1)))
    with pytest.raises(DemonetError, match=f"^{path}: columns of 5 and of 3 rows"):
        read_graph(path)


@pytest.mark.parametrize("zeros", [41, 5000])
def test_a_number_of_thousands_of_zeros_is_not_a_tag(tmp_path, zeros):
    path = tmp_path / "graphs.txt"
    path.write_text(f"1\n2 0\n{'0' * zeros} 1 1\n0 1 0\n")
    with pytest.raises(DemonetError, match=f"^{path}:3: "):
        read_graphs(path)
