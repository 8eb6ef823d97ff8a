"""The same graph, written in every format, reads back as the same Data."""

import tempfile
import unicodedata
import warnings
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data.writers import EDGES, MATRICES, NODES, OBJECTS, Drawn

from demonet.data import ids_of, read_graph
from demonet.errors import DemonetWarning

NAMES = st.text(st.characters(codec="utf-8", categories=["L", "Nd"]), min_size=1, max_size=6).map(
    partial(unicodedata.normalize, "NFC")  # the form that names are read in
)


@st.composite
def graphs(draw, kinds=("numbers", "integers", "strings"), isolated=True):
    n = draw(st.integers(2, 12))
    directed = draw(st.booleans())
    kind = draw(st.sampled_from(kinds))
    if kind == "numbers":
        ids = list(range(n))
    elif kind == "integers":
        ids = sorted(draw(st.sets(st.integers(-(10**12), 10**12), min_size=n, max_size=n)))
    else:  # no column name among them, and at least one that is not an integer
        names = draw(st.sets(NAMES.filter(lambda s: s.lower() not in FIRST), min_size=n - 1, max_size=n - 1))
        ids = sorted({*names, "é-x"})
    pairs = [(u, v) for u in range(len(ids)) for v in range(u + 1, len(ids))]
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    if not isolated:
        used = sorted({node for edge in edges for node in edge})
        kept = [ids[node] for node in used]
        if kind == "strings" and all(name.lstrip("-").isdigit() for name in kept):
            kept[-1] = "z" + kept[-1]
            kept = sorted(kept)
        ids, edges = kept, [(used.index(u), used.index(v)) for u, v in edges]
        if kind == "numbers":
            ids = list(range(len(ids)))
    if directed:
        edges = [(v, u) if draw(st.booleans()) else (u, v) for u, v in edges]
    weights = None
    if draw(st.booleans()):
        weight = st.floats(0.125, 64, width=16)
        weights = draw(st.lists(weight, min_size=len(edges), max_size=len(edges)).filter(lambda w: set(w) != {1.0}))
    return Drawn(ids, edges, weights, directed)


FIRST = {"source", "src", "from", "node", "node_id", "id", "graph", "graph_id"}


def expected(drawn):
    arcs = {}
    for i, (u, v) in enumerate(drawn.edges):
        weight = 1.0 if drawn.weights is None else drawn.weights[i]
        arcs[u, v] = weight
        if not drawn.directed:
            arcs[v, u] = weight
    order = sorted(arcs)
    return order, None if drawn.weights is None else [arcs[arc] for arc in order]


def check_same(drawn, data):
    arcs, weights = expected(drawn)
    assert ids_of(data) == drawn.ids
    assert list(zip(*data.edge_index.tolist(), strict=True)) == arcs
    assert data.num_nodes == len(drawn.ids)
    assert (None if data.edge_weight is None else data.edge_weight.tolist()) == weights
    assert data.is_undirected() or drawn.directed


def check_written(drawn, name, write):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error", DemonetWarning)
        warnings.filterwarnings("ignore", r"(?s).* is read as an edge", DemonetWarning)  # a hint, and a fair one
        warnings.filterwarnings("ignore", r"(?s).* skipped as a comment", DemonetWarning)  # counted, as it should be
        forms = r"(?s).* (is read as an id like any other|differ only in form)"
        warnings.filterwarnings("ignore", forms, DemonetWarning)
        path = Path(folder) / name
        write(drawn, path)
        check_same(drawn, read_graph(path, directed=drawn.directed, header=name in ("header.csv", "sheet.xlsx")))


@pytest.mark.parametrize("name", EDGES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=graphs(isolated=False))
def test_edge_lists(name, drawn):
    check_written(drawn, name, EDGES[name])


@pytest.mark.parametrize("name", NODES)
@settings(max_examples=12, deadline=None)
@given(drawn=graphs())
def test_markup(name, drawn):
    check_written(drawn, name, NODES[name])


@pytest.mark.parametrize("name", MATRICES)
@settings(max_examples=12, deadline=None)
@given(drawn=graphs(kinds=["numbers"]))
def test_matrices(name, drawn):
    check_written(drawn, name, MATRICES[name])


@pytest.mark.parametrize("name", OBJECTS)
@settings(max_examples=12, deadline=None)
@given(drawn=graphs(kinds=["numbers"]))
def test_objects(name, drawn):
    check_same(drawn, read_graph(OBJECTS[name](drawn), directed=drawn.directed))


@settings(max_examples=12, deadline=None)
@given(drawn=graphs(isolated=False), data=st.data())
def test_labels_and_features_find_their_nodes(drawn, data):
    labels = data.draw(st.lists(st.sampled_from(["a", "b", None]), min_size=len(drawn.ids), max_size=len(drawn.ids)))
    order = data.draw(st.permutations(range(len(drawn.ids))))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("edges.csv", "labels.csv", "features.txt")]
        EDGES["header.csv"](drawn, paths[0])
        paths[1].write_text("".join(f"{drawn.ids[i]},{labels[i] or ''}\n" for i in order), encoding="utf-8")
        paths[2].write_text("".join(f"{drawn.ids[i]} {i} {-i / 2}\n" for i in order), encoding="utf-8")
        graph = read_graph(*paths, directed=False)
    assert [None if y < 0 else graph.class_names[y] for y in graph.y.tolist()] == labels
    numbers = torch.arange(len(drawn.ids)).float()
    assert torch.equal(graph.x, torch.stack([numbers, -numbers / 2], dim=1))
    assert ids_of(graph) == drawn.ids
