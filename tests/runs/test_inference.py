"""A finished run on the same graph and on others: nodes and degrees never seen, columns moved, missing and strange."""

import csv
import warnings

import networkx as nx
import numpy as np
import pytest
from tests.runs.files import MOTIFS, roles, write_problem, write_table

from demonet import DemonetError, DemonetWarning
from demonet.runs import Reading, Settings, embed_run, fit_run, predict_run
from demonet.runs.outputs import write_embeddings, write_predictions

FAST = Settings(epochs=12)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run without attributes, one with them, and one whose features know their own graph alone."""
    folder = tmp_path_factory.mktemp("runs")
    write_problem(folder)
    edges, labels, features = (folder / f"{name}.csv" for name in ("edges", "labels", "features"))
    fit_run(edges, labels, out=folder / "plain", settings=FAST)
    fit_run(edges, labels, features, out=folder / "attributes", settings=FAST)
    fit_run(edges, labels, out=folder / "authors", settings=Settings(preset="authors", epochs=3))
    return folder


@pytest.mark.parametrize("motifs", [3, MOTIFS + 9])
def test_another_graph_with_fewer_or_more_nodes(runs, tmp_path, motifs):
    edges, _ = roles(motifs)
    other = write_table(tmp_path / "other.csv", ("source", "target"), [(f"x{u}", f"x{v}") for u, v in edges])
    inputs, names, found = predict_run(runs / "plain", other)
    assert found.shape == (5 * motifs, 3)
    assert names == ["corner", "foot", "ring"]
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    assert all(name.startswith("x") for name in inputs.ids)


def test_the_order_of_columns_does_not_matter_but_is_said(runs, tmp_path):
    with (runs / "features.csv").open(newline="") as file:
        rows = [(node, age, height) for node, height, age in csv.reader(file)]
    moved = write_table(tmp_path / "moved.csv", rows[0], rows[1:])
    expected = predict_run(runs / "attributes", runs / "edges.csv", runs / "features.csv")[2]
    with pytest.warns(DemonetWarning, match=r"moved\.csv: .*columns"):
        found = predict_run(runs / "attributes", runs / "edges.csv", moved)[2]
    np.testing.assert_array_equal(found, expected)


def test_other_columns_are_named(runs, tmp_path):
    with (runs / "features.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    other = write_table(tmp_path / "other.csv", ("node", "height", "weight"), rows[1:])
    message = r"other\.csv: .*'age'.*'weight'"
    with pytest.raises(DemonetError, match=message):
        predict_run(runs / "attributes", runs / "edges.csv", other)
    with pytest.raises(DemonetError, match=r"^features: .*\b2\b.*'height', 'age'"):
        predict_run(runs / "attributes", runs / "edges.csv")
    with pytest.raises(DemonetError, match=r"features\.csv: features: "):
        predict_run(runs / "plain", runs / "edges.csv", runs / "features.csv")


def test_features_that_know_their_own_graph_refuse_another(runs, tmp_path):
    assert predict_run(runs / "authors", runs / "edges.csv")[2].shape == (60, 3)
    other = write_table(tmp_path / "other.csv", ("source", "target"), roles(3)[0])
    with pytest.raises(DemonetError, match=r"'adjacency'.*\b60\b"):
        predict_run(runs / "authors", other)


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(DemonetError, match=r"/none: "):
        predict_run(tmp_path / "none", "edges.csv")
    with pytest.raises(DemonetError, match=f"^{tmp_path}: "):
        predict_run(tmp_path, "edges.csv")


def test_a_graph_set_with_other_node_labels(tmp_path):
    """Columns are labels: those of the new set stand where training had them, a label never seen is none of them."""

    def gin(path, tags):
        graphs = [
            [f"{len(tags)} {g % 2}", *(f"{t} 1 {(i + 1) % len(tags)}" for i, t in enumerate(tags))] for g in range(12)
        ]
        path.write_text("\n".join(["12", *(line for graph in graphs for line in graph)]) + "\n")
        return path

    run = fit_run(gin(tmp_path / "train.txt", [3, 5, 7, 9]), out=tmp_path / "run", settings=Settings(epochs=3))
    assert run.columns == ["3", "5", "7", "9"]
    inputs, _, _ = predict_run(tmp_path / "run", gin(tmp_path / "fewer.txt", [7, 5, 7]))
    assert inputs.graphs[0].x.tolist() == [[0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    with pytest.warns(DemonetWarning, match=r"strange\.txt: .*'4' \(12 nodes\)"):
        inputs, _, _ = predict_run(tmp_path / "run", gin(tmp_path / "strange.txt", [3, 4, 7]))
    assert inputs.graphs[0].x.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]


def test_embeddings_in_every_form(runs, tmp_path):
    from pyarrow import parquet

    inputs, embedding = embed_run(runs / "plain", runs / "edges.csv")
    for ending in ("parquet", "csv", "npy"):
        write_embeddings(tmp_path / f"e.{ending}", "node", inputs.ids, embedding)
    table = parquet.read_table(tmp_path / "e.parquet")
    assert table.column_names == ["node", *(f"e{i}" for i in range(embedding.shape[1]))]
    assert table["node"].to_pylist() == inputs.ids
    np.testing.assert_array_equal(np.stack([table[f"e{i}"].to_numpy() for i in range(64)], 1), embedding)
    np.testing.assert_array_equal(np.load(tmp_path / "e.npy"), embedding)
    with pytest.raises(DemonetError, match=r"e\.txt: out: .*'\.txt' .*\.csv, \.parquet, \.xlsx, \.npy"):
        write_embeddings(tmp_path / "e.txt", "node", inputs.ids, embedding)


def test_names_come_back_as_they_are_and_are_safe_for_spreadsheets_on_request(tmp_path):
    ids, names = ["=HYPERLINK(1)", "+a", "-3.5", "@x", "plain", "'=1", "\uff1d1", "x;=cmd|a"], ["=yes", "no"]
    safe = ["'=HYPERLINK(1)", "'+a", "-3.5", "'@x", "plain", "''=1", "'\uff1d1", "'x; =cmd|a"]
    outputs = np.tile(np.array([[0.75, 0.25]], np.float32), (len(ids), 1))
    for excel, expected in ((None, ids), (".", safe)):
        write_predictions(tmp_path / "a.csv", "node", ids, names, outputs, excel=excel)
        with (tmp_path / "a.csv").open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))
        assert [row[0] for row in rows[1:]] == expected
        assert rows[1][1] == rows[0][3] == ("'=yes" if excel else "=yes")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Runs on one graph with directed edges, with weights, and with neither; and the graph in files of these kinds."""
    folder = tmp_path_factory.mktemp("drawn")
    edges, labels = roles()
    write_table(folder / "labels.csv", ("node", "label"), labels.items())
    graph = nx.DiGraph(edges)
    nx.write_graphml(graph, folder / "directed.graphml")
    nx.write_graphml(graph.to_undirected(), folder / "plain.graphml")
    weights = [(u, v, 1 + number % 3) for number, (u, v) in enumerate(edges)]
    write_table(folder / "weighted.csv", ("source", "target", "weight"), weights)
    write_table(folder / "ones.csv", ("source", "target", "weight"), [(u, v, 1) for u, v in edges])
    write_table(folder / "plain.csv", ("source", "target"), edges)
    for name in ("directed.graphml", "weighted.csv", "plain.csv"):
        settings = Settings(epochs=3, preset="default")
        fit_run(folder / name, folder / "labels.csv", out=folder / name.partition(".")[0], settings=settings)
    return folder


def test_nodes_without_edges_are_predicted(drawn, tmp_path):
    nx.write_graphml(nx.empty_graph(3), tmp_path / "nodes.graphml")
    for run in ("plain", "weighted"):
        assert predict_run(drawn / run, tmp_path / "nodes.graphml")[2].shape == (3, 3)
        assert embed_run(drawn / run, tmp_path / "nodes.graphml")[1].shape[0] == 3


def test_weights_that_training_did_not_have_are_told_and_not_used(drawn):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DemonetWarning)
        expected = (
            predict_run(drawn / "plain", drawn / "plain.csv")[2],
            embed_run(drawn / "plain", drawn / "plain.csv")[1],
        )
        np.testing.assert_array_equal(predict_run(drawn / "plain", drawn / "ones.csv")[2], expected[0])
    for use, found in ((predict_run, expected[0]), (embed_run, expected[1])):
        with pytest.warns(DemonetWarning, match=r"weighted\.csv: .*weights") as told:
            np.testing.assert_array_equal(use(drawn / "plain", drawn / "weighted.csv")[-1], found)
        assert len(told) == 1


def test_weights_that_are_missing_are_an_error(drawn):
    with pytest.raises(DemonetError, match=r"plain\.csv: .*weights"):
        predict_run(drawn / "weighted", drawn / "plain.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DemonetWarning)
        predict_run(drawn / "weighted", drawn / "weighted.csv")
        predict_run(drawn / "weighted", drawn / "ones.csv")


def test_weights_in_other_units_are_told(drawn, tmp_path):
    rows = [line.split(",") for line in (drawn / "weighted.csv").read_text().splitlines()[1:]]
    for factor in (1000, 0.001):
        table = tmp_path / "other.csv"
        write_table(table, ("source", "target", "weight"), [(u, v, factor * float(weight)) for u, v, weight in rows])
        with pytest.warns(
            DemonetWarning, match=rf"other\.csv: .*'weights' \(median {2 * factor:g}, .*training median 2,"
        ):
            predict_run(drawn / "weighted", table)


def test_another_direction_than_that_of_training_is_told(drawn):
    for run, other in (("directed", "plain.graphml"), ("directed", "plain.csv"), ("plain", "directed.graphml")):
        with pytest.warns(DemonetWarning, match=f"{other}: .*directed") as told:
            predict_run(drawn / run, drawn / other)
        assert len(told) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", DemonetWarning)
            predict_run(drawn / run, drawn / "directed.graphml", directed=run == "directed")


def test_a_file_that_says_another_direction_than_fit_was_told_is_told(drawn, tmp_path):
    """Both options are kept with the run, and were applied to any file without a word."""
    for directed, of, other in ((True, "directed", "plain"), (False, "plain", "directed")):
        run, settings = tmp_path / of, Settings(epochs=2, preset="default")
        reading = Reading(directed=directed)
        fit_run(drawn / f"{of}.graphml", drawn / "labels.csv", out=run, settings=settings, reading=reading)
        with pytest.warns(DemonetWarning, match=rf"{other}\.graphml: .*{other.replace('plain', 'undirected')}") as told:
            predict_run(run, drawn / f"{other}.graphml")
        assert len(told) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", DemonetWarning)
            predict_run(run, drawn / f"{of}.graphml")
            predict_run(run, drawn / f"{other}.graphml", directed=directed)


def test_ids_and_classes_keep_their_form_through_a_run(tmp_path):
    """00001 came back as 1, and the classes 01 and 1 were one."""
    edges, kinds = roles()
    form = {node: f"{number:05d}" for number, node in enumerate(kinds)}
    classes = {"corner": "01", "foot": "1", "ring": "2"}
    file = write_table(tmp_path / "edges.csv", ("source", "target"), [(form[u], form[v]) for u, v in edges])
    labels = [(form[node], classes[kind]) for node, kind in kinds.items()]
    with pytest.warns(DemonetWarning, match="'1' and '01'"):
        run = fit_run(
            file, write_table(tmp_path / "labels.csv", ("node", "label"), labels), out=tmp_path / "run", settings=FAST
        )
    assert run.class_names == ["01", "1", "2"]
    inputs, names, _ = predict_run(tmp_path / "run", file)
    assert names == run.class_names
    _, embedding = embed_run(tmp_path / "run", file)
    write_embeddings(tmp_path / "run.csv", "node", inputs.ids, embedding)
    for table in (tmp_path / "run" / "predictions.csv", tmp_path / "run.csv"):
        with table.open(newline="") as rows:
            assert sorted(row["node"] for row in csv.DictReader(rows)) == sorted(form.values())
