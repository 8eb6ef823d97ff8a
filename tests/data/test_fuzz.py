"""Whatever bytes a reader is given, it ends in a graph or in a DemonetError: nothing else, soon, and in little memory.

Each reader is given random bytes, and good files (written here, and the paper's where they are) with changes. Labels,
features, sets of graphs and splits are changed in the same way in ``tests/hostile``.
"""

import gzip
import io
import random
from pathlib import Path

import pytest
from scipy import io as scipy_io
from scipy import sparse
from tests.data.writers import EDGES, MATRICES, NODES, Drawn
from tests.hostile.formats import outcome
from tests.hostile.mutations import mutate
from tests.hostile.supervise import supervised

from demonet.data import read_graph, read_graphs

CASES = 150


def check_survives(read, path, seeds, number=CASES):
    """Read changed files in a child process, so that a crash, a hang or memory out of bounds is seen as such."""

    def case(index):
        generator = random.Random(f"{path.name} {index}")
        if index % 8 == 0:
            content = generator.randbytes(generator.choice([0, 1, 2, 10, 100, 5000]))
        elif index % 8 == 1:
            content = bytes(generator.choices(b'0123456789 \t\n,.-e#%ax"', k=generator.randint(0, 300)))
        else:
            content = mutate(generator.choice(seeds), generator)
        path.write_bytes(content)
        return path.name, outcome(lambda: read(path)), len(content)

    done = list(supervised(case, range(number)))
    assert [one for one in done if one.failure] == []
    assert sum(one.how == "refused" for one in done) > number / 10  # the changes do hurt


def good_files(name, write, folder):
    generator = random.Random(0)
    edges = [(i, i + 1) for i in range(20)] + [(0, 5), (3, 17)]
    plain = Drawn(list(range(21)), edges, None)
    weighted = Drawn([f"n{i:02}" for i in range(21)], edges, [generator.random() for _ in edges])
    for i, drawn in enumerate((plain, weighted)):
        write(drawn, folder / f"{i}-{name}")
        yield (folder / f"{i}-{name}").read_bytes()


@pytest.mark.parametrize(
    "name",
    ["many-blanks.edgelist", "header.csv", "table.parquet", "sheet.xlsx", "base.db", "records.json", *NODES, *MATRICES],
)
def test_graphs(tmp_path, name):
    seeds = list(good_files(name, {**EDGES, **NODES, **MATRICES}[name], tmp_path))
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
