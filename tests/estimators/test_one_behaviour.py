"""The command and the estimators treat the same files alike: inputs column by column, then predictions."""

import networkx as nx
import numpy as np
import pytest
from tests.runs.files import roles, write_table

from demonet import DEMONetClassifier, DEMONetGraphClassifier
from demonet.data import Split, read_graphs
from demonet.features.views import view_of
from demonet.runs import Reading, Settings, fit_run
from demonet.runs.inputs import read_inputs

pytestmark = pytest.mark.filterwarnings("ignore::demonet.errors.DemonetWarning")
EDGES, LABELS = roles(8)
WORDS, MIXED = "words", "mixed"
NETWORK = {"model": "network", "epochs": 3, "preset": "strong"}


@pytest.fixture
def files(tmp_path):
    """Edges, labels, a table of counts, and one with every other kind of column."""
    rng = np.random.default_rng(0)
    write_table(tmp_path / "edges.csv", ("source", "target"), EDGES)
    write_table(tmp_path / "labels.csv", ("node", "label"), LABELS.items())
    counts = rng.poisson(0.2, (len(LABELS), 6))
    counts[np.arange(len(LABELS)), np.arange(len(LABELS)) % 6] += 1  # nobody is without a word
    write_table(
        tmp_path / f"{WORDS}.csv",
        ("node", *(f"w{i}" for i in range(6))),
        [(name, *row) for name, row in zip(LABELS, counts.tolist(), strict=True)],
    )
    write_table(
        tmp_path / f"{MIXED}.csv",
        ("node", "balance", "age", "city", "active"),
        [
            (name, round(float(rng.normal(-5, 30)), 2), "" if i % 7 == 0 else 20 + i, ("Rom", "Köln")[i % 2], i % 3 > 0)
            for i, name in enumerate(LABELS)
        ],
    )
    return tmp_path


def split_of(folder):
    path = folder / "split.json"
    return Split.from_json(path.read_bytes(), path)


def both(files, name, **options):
    """A run of the command's function, and the estimator fitted on the split of that run."""
    paths = [str(files / f"{part}.csv") for part in ("edges", "labels", name)]
    run = fit_run(*paths, out=files / f"run-{name}", settings=Settings(**options))
    given = read_inputs(*paths, Reading()).data
    estimator = DEMONetClassifier(random_state=0, **options)
    return run, given, estimator.fit_split(given, split_of(files / f"run-{name}")), paths


@pytest.mark.parametrize("name", [WORDS, MIXED])
def test_a_network_gets_the_same_columns(files, name):
    run, given, estimator, (edges, _, features) = both(files, name, **NETWORK)
    saved = DEMONetClassifier.load(files / f"run-{name}" / "model.safetensors")
    by_files = DEMONetClassifier(graph=edges, attributes=features, random_state=0, **NETWORK).fit(y=LABELS)
    assert saved.features_.spec == estimator.features_.spec == by_files.features_.spec == run.config["features"]
    np.testing.assert_array_equal(by_files.graph_.x.to_dense(), given.x.to_dense())
    columns = [one.features_.transform(given).to_dense().numpy() for one in (saved, estimator, by_files)]
    for column in range(columns[0].shape[1]):
        np.testing.assert_array_equal(columns[1][:, column], columns[0][:, column])
        np.testing.assert_array_equal(columns[2][:, column], columns[0][:, column])
    np.testing.assert_array_equal(estimator.predict_proba().astype(np.float32), run.outputs)


def test_the_closed_form_gets_the_same_columns_and_predicts_the_same(files):
    name = MIXED
    run, given, estimator, (edges, _, features) = both(files, name, model="kernel")
    by_files = DEMONetClassifier(graph=edges, attributes=features, model="kernel").fit(y=LABELS)
    ours, theirs = view_of(given), view_of(by_files.graph_)
    assert ours.facts["attributes"] == theirs.facts["attributes"] == "numbers"
    for one, other in ((ours.own, theirs.own), (ours.structure, theirs.structure)):
        dense = [rows if isinstance(rows, np.ndarray) else rows.toarray() for rows in (one, other)]
        np.testing.assert_array_equal(*dense)
    np.testing.assert_array_equal(estimator.predict_proba().astype(np.float32), run.outputs)


def test_graph_sets_are_treated_alike(tmp_path):
    rows, kinds = [], []
    for number in range(24):
        graph = nx.cycle_graph(5 + number % 4) if number % 2 else nx.star_graph(4 + number % 4)
        rows += [(f"g{number}", u, v) for u, v in graph.edges]
        kinds.append((f"g{number}", "cycle" if number % 2 else "star"))
    edges = str(write_table(tmp_path / "graphs.csv", ("graph", "source", "target"), rows))
    labels = str(write_table(tmp_path / "kinds.csv", ("graph", "kind"), kinds))
    run = fit_run(edges, labels, out=tmp_path / "run", settings=Settings(**NETWORK))
    graphs = read_graphs(edges, labels)
    estimator = DEMONetGraphClassifier(random_state=0, **NETWORK).fit_split(graphs, split_of(tmp_path / "run"))
    assert estimator.features_.spec == run.config["features"]
    saved = DEMONetGraphClassifier.load(tmp_path / "run" / "model.safetensors")
    for graph in graphs:
        columns = [one.features_.transform(graph).to_dense().numpy() for one in (saved, estimator)]
        np.testing.assert_array_equal(*columns)
    np.testing.assert_array_equal(estimator.predict_proba(graphs).astype(np.float32), run.outputs)
