"""Table 1: what the computation finds, model by model, on all subtrees of up to three nodes and three colours."""

import csv

import pytest

from demonet.errors import DemonetError
from demonet.sealed import canonical
from demonet_study.experiments.properties import main, properties, table_one_by_computation
from demonet_study.ledger.job import Cell, Job


@pytest.fixture(scope="module")
def table():
    return table_one_by_computation(max_nodes=3, num_colours=3, draws=25)


def mark(table, model, name, taken="lemma"):
    (found,) = [m for m in table[0] if (m.model, m.property, m.pairs_taken) == (model, name, taken)]
    return found


FOUND = {  # seed-oriented, degree-aware, order-free, subtree-only
    "GCN": (False, False, True, False),
    "GAT": (True, False, True, True),
    "GraphSAGE (mean)": (True, False, True, True),
    "GraphSAGE (LSTM)": (True, True, False, True),
    "DCNN (hops 1 to 2)": (False, False, True, False),
    "DCNN (hops 0 to 2)": (True, False, True, False),
    "DEMO-Net (weight)": (True, True, True, True),
    "DEMO-Net (hash)": (True, True, True, True),
    "DEMO-Net (smooth)": (True, True, True, True),
    "DEMO-Net (scale)": (True, True, True, True),
}
PROPERTIES = ("seed-oriented", "degree-aware", "order-free", "subtree-only")


@pytest.mark.parametrize("model", FOUND)
def test_marks(table, model):
    assert tuple(mark(table, model, name).holds for name in PROPERTIES) == FOUND[model]


def test_disagreements_with_the_paper_are_the_two_that_are_explained(table):
    """An LSTM sees how many neighbours there are; hop 0 shows DCNN the seed."""
    said = {"yes": True, "no": False}
    differ = {
        (m.model, m.property) for m in table[0] if m.pairs_taken == "lemma" and said.get(m.paper, m.holds) != m.holds
    }
    assert differ == {("GraphSAGE (LSTM)", "degree-aware"), ("DCNN (hops 0 to 2)", "seed-oriented")}


@pytest.mark.parametrize(
    ("model", "name", "pair"),
    [
        ("GCN", "seed-oriented", ("ab 01", "ba 01")),
        ("GCN", "degree-aware", ("aa 01", "aaa 01 02 12")),
        ("GAT", "degree-aware", ("aa 01", "aaa 01 02")),
        ("GraphSAGE (mean)", "degree-aware", ("aa 01", "aaa 01 02")),
        ("DCNN (hops 1 to 2)", "seed-oriented", ("aab 01 12", "baa 01 12")),
        ("DCNN (hops 0 to 2)", "degree-aware", ("aa 01", "aaa 01 02")),
    ],
)
def test_deciding_pairs_collide_in_every_draw(table, model, name, pair):
    found = mark(table, model, name)
    assert (found.left, found.right) == pair
    assert found.share == 1
    assert found.always > 0


@pytest.mark.parametrize(("model", "name"), [("GCN", "seed-oriented"), ("GAT", "seed-oriented"), ("GCN", "order-free")])
def test_a_run_of_the_ledger_is_one_mark(table, model, name):
    options = canonical({"model": model, "max_nodes": 3, "num_colours": 3, "draws": 25})
    done = properties(Job(Cell("properties", name, model, options=options), 0))
    expected = mark(table, model, name)
    assert done.value == float(expected.holds)
    assert done.extra == {field: getattr(expected, field) for field in done.extra}
    assert done.extra.keys() >= {"left", "right", "share"}


def test_a_run_of_what_is_not_there():
    options = canonical({"model": "GCN", "max_nodes": 3, "num_colours": 2, "draws": 1})
    with pytest.raises(DemonetError, match=r"'beautiful'.*'GCN'"):
        properties(Job(Cell("properties", "beautiful", "gcn", options=options), 0))


@pytest.mark.parametrize("size", [{"draws": 0}, {"max_nodes": 2}, {"num_colours": 1}])
def test_too_little_to_compare_is_an_error(size):
    with pytest.raises(DemonetError, match=next(f"{name}={value}" for name, value in size.items())):
        table_one_by_computation(**size)


def test_files(tmp_path):
    main(["--out", str(tmp_path / "new"), "--draws", "1"])
    rows = {path.stem: list(csv.DictReader(path.open())) for path in (tmp_path / "new").iterdir()}
    assert set(rows) == {"properties_marks", "properties_pairs", "properties_reals"}
    assert {row["holds"] for row in rows["properties_marks"]} == {"yes", "no"}
    assert {"left", "right", "share"} <= rows["properties_reals"][0].keys()
