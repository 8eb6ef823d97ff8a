"""The graph estimator."""

import networkx as nx
import numpy as np
from tests.estimators.problems import QUICK, families
from torch_geometric.utils import to_networkx

from demonet import DEMONetGraphClassifier
from demonet.data import GraphSet
from demonet.estimators import models as module


def test_labels_beside_the_graphs_or_in_them():
    graphs, names = families()
    own = DEMONetGraphClassifier(**QUICK).fit(graphs)
    beside = DEMONetGraphClassifier(**QUICK).fit(graphs, names)
    np.testing.assert_array_equal(own.predict_proba(graphs), beside.predict_proba(graphs))
    assert own.classes_.tolist() == [0, 1, 2, 3, 4]
    assert beside.classes_.tolist() == ["cycle", "grid", "star", "tree", "web"]
    assert own.score(graphs) == beside.score(graphs, names) == np.mean(beside.predict(graphs) == names)
    named = DEMONetGraphClassifier(**QUICK).fit(GraphSet(graphs, beside.classes_.tolist()))
    np.testing.assert_array_equal(named.predict(graphs), beside.predict(graphs))


def test_unlabelled_graphs_are_left_out():
    graphs, _ = families()
    fitted = DEMONetGraphClassifier(**QUICK).fit(graphs[:20])
    graphs[20].y[:] = -1
    again = DEMONetGraphClassifier(**QUICK).fit(graphs[:21])
    np.testing.assert_array_equal(fitted.predict_proba(graphs), again.predict_proba(graphs))
    assert fitted.score(graphs[:21]) == fitted.score(graphs[:20])


def test_other_forms_of_graphs():
    graphs, names = families()
    drawn = [to_networkx(graph, to_undirected=True) for graph in graphs]
    one, two = (DEMONetGraphClassifier(**QUICK).fit(form, names) for form in (graphs, drawn))
    np.testing.assert_array_equal(one.predict_proba(graphs), two.predict_proba(drawn))
    matrices = [nx.to_scipy_sparse_array(graph) for graph in drawn]
    np.testing.assert_array_equal(one.predict_proba(graphs), two.predict_proba(matrices))


def test_a_folder_of_files(tmp_path):
    """The same set as a TU folder: both arcs of every edge, ids from 1, classes 3 and 8."""
    graphs = [nx.cycle_graph(n) for n in range(4, 12)] + [nx.star_graph(n) for n in range(4, 12)]
    y, arcs, indicator, start = [3] * 8 + [8] * 8, [], [], 1
    for number, graph in enumerate(graphs, 1):
        arcs += [f"{u + start}, {v + start}" for u, v in graph.to_directed().edges]
        indicator += [str(number)] * len(graph)
        start += len(graph)
    folder = tmp_path / "SHAPES"
    folder.mkdir()
    for name, lines in (("A", arcs), ("graph_indicator", indicator), ("graph_labels", map(str, y))):
        (folder / f"SHAPES_{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    fitted = DEMONetGraphClassifier(**QUICK).fit(folder)
    beside = DEMONetGraphClassifier(**QUICK).fit(graphs, y)
    assert fitted.classes_.tolist() == [3, 8]
    np.testing.assert_array_equal(fitted.predict_proba(folder), beside.predict_proba(graphs))


def test_degrees_never_seen_and_size_of_the_batch(monkeypatch):
    graphs, names = families()
    fitted = DEMONetGraphClassifier(**QUICK).fit(graphs, names)
    strangers = [*graphs, nx.star_graph(60), nx.empty_graph(3)]
    probability = fitted.predict_proba(strangers)
    assert np.isfinite(probability).all()
    one_by_one = np.concatenate([fitted.predict_proba([graph]) for graph in strangers])
    np.testing.assert_allclose(one_by_one, probability, atol=1e-6)
    monkeypatch.setattr(module, "BATCH", 5)
    np.testing.assert_allclose(fitted.predict_proba(strangers), probability, atol=1e-6)
    np.testing.assert_allclose(fitted.transform(strangers[::-1])[::-1], fitted.transform(strangers), atol=1e-4)
