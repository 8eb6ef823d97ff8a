"""The registry of file formats: suffixes in upper and lower case, gzip, and a format of one's own."""

import gzip
import hashlib

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from demonet.data import read_graph, read_graphs
from demonet.data.readers.base import InputFiles
from demonet.errors import DemonetError

EDGES = "source,target\n1,2\n2,3\n3,1\n"


def test_a_suffix_may_be_in_upper_case_and_compressed(write, tmp_path):
    """Tables of graphs were read as GIN files, and Parquet as text."""
    parquet.write_table(pa.table({"source": [1, 2, 3], "target": [2, 3, 1]}), tmp_path / "plain")
    np.save(tmp_path / "plain.npy", np.eye(3, 2))
    table, array = (tmp_path / "plain").read_bytes(), (tmp_path / "plain.npy").read_bytes()
    text = EDGES.encode()
    for name, content in (("e.CSV", text), ("e.Csv.GZ", text), ("E.PQ", table), ("e.parquet.gz", table)):
        data = read_graph(write(name, gzip.compress(content) if name.lower().endswith("gz") else content))
        assert (data.num_nodes, data.edge_index.size(1)) == (3, 6)
    for name in ("X.NPY", "x.npy.gz"):
        path = write(name, gzip.compress(array) if name.endswith("gz") else array)
        assert read_graph(write("e.csv", EDGES), features=path).x.tolist() == [[1, 0], [0, 1], [0, 0]]
    path = write("G.CSV", "graph,source,target\na,1,2\nb,1,2\nb,2,3\n")
    assert [graph.num_nodes for graph in read_graphs(path)] == [2, 3]


def test_a_format_that_holds_no_table(write):
    with pytest.raises(DemonetError, match=r"l\.graphml: .*\.graphml"):
        read_graph(write("e.csv", EDGES), labels=write("l.graphml", "<graphml/>"))


def test_the_checksum_is_that_of_the_file(write):
    path = write("e.csv.gz", gzip.compress(EDGES.encode()))
    files = InputFiles()
    assert files.read(path) == EDGES.encode()
    assert files.checksums == {path: hashlib.sha256(path.read_bytes()).hexdigest()}
