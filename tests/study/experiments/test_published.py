"""Published results: what is inside an interval; rows that are kept; every fold is a run of the ledger."""

import math
import operator
import sys
from functools import partial

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.linalg import expm
from tests.kernels.graphs import path, star
from tests.pages import ROOT
from tests.study.ledger.fakes import FORK
from torch_geometric.data import Data

from demonet import workers
from demonet.data.synthetic import role_graph
from demonet.degree.keep import Memo
from demonet.errors import DemonetError
from demonet.features.graph import simple_adjacency
from demonet.methods.layers import Product
from demonet.train.config import TrainConfig
from demonet_study.experiments.published import __main__ as script
from demonet_study.experiments.published import embeddings, gcn, gin, kernels, results
from demonet_study.experiments.published.embeddings import (
    PRINTED,
    _local,
    factored,
    our_way,
    their_embedding,
    their_way,
)
from demonet_study.experiments.published.gcn import PyGCN, neighbour_mean, partition, present, train
from demonet_study.experiments.published.results import PublishedResult, compare, is_within, keep, measure, read
from demonet_study.ledger import job
from demonet_study.ledger import work as working
from demonet_study.ledger.job import Cell, Job, Outcome, Result, Stamp
from demonet_study.ledger.store import Ledger
from demonet_study.methods.gin import GIN
from demonet_study.methods.graphwave import laplacian


def published(values, method="gin", printed=0.8, std=0.05):
    return PublishedResult(method, "MUTAG", "made up", printed, std, len(values), values.__getitem__)


def row(*arguments, **named):
    made = published(*arguments, **named)
    outcomes = [Outcome(0.0, 0.5, 1.0, {"answer": made.piece(number)}) for number in range(made.pieces)]
    return compare(made, [Result(Job(made.cell, i), Stamp("", "", ""), one) for i, one in enumerate(outcomes)])


def table(rows):
    """The rows as a Markdown table."""
    lines = ["| method | set | protocol | printed | measured | within |", "|---|---|---|---|---|---|"]
    for row in rows:
        spread = "" if math.isnan(row.published_std) else f" ± {row.published_std:.3f}"
        measured = f"{row.measured:.3f} ± {row.std:.3f}"
        printed = f"{row.published:.3f}{spread}"
        lines.append(f"| `{row.method}` | {row.dataset} | {row.protocol} | {printed} | {measured} | {row.within} |")
    return "\n".join(lines)


def test_a_row():
    found = row([0.7, 0.8, 0.9])
    assert (found.measured, found.std, found.runs, found.within) == (pytest.approx(0.8), pytest.approx(0.1), 3, "yes")
    assert found.seconds == 1.5
    assert row([0.7, 0.72]).within == "no"
    assert not is_within(0.8, 0.01, 0.78, 0.5)  # a printed interval is not widened by our own spread


def test_rows_are_kept_in_the_order_of_the_results(tmp_path):
    path, order = tmp_path / "a.csv", [published([0.8], "gin"), published([0.7], "gcn", std=math.nan)]
    keep(row([0.7], "gcn", std=math.nan), path, order)
    keep(row([0.8], "gin"), path, order)
    assert [found.method for found in read(path)] == ["gin", "gcn"]
    keep(row([0.9], "gcn"), path, order)
    rows = read(path)
    assert [found.measured for found in rows] == [0.8, 0.9]
    assert math.isnan(rows[0].std)
    assert rows[0].runs == 1


def test_a_piece_is_a_run(monkeypatch):
    made = published([[0.7, 0.9], 0.5])
    monkeypatch.setattr(results, "all_results", lambda: [made])
    outcome = measure(Job(made.cell, 0))
    assert (outcome.value, outcome.extra) == (pytest.approx(0.8), {"answer": [0.7, 0.9]})
    assert measure(Job(made.cell, 1)).value == 0.5
    with pytest.raises(DemonetError, match="nothing"):
        measure(Job(Cell("published", "MUTAG", "gin", options='{"protocol":"nothing"}'), 0))


def test_finished_pieces_survive_a_stop_and_finished_rows_stay(tmp_path, monkeypatch):
    """The ledger resumes; a row of the file is measured again only if asked for and if the code has changed."""
    made = PublishedResult("gin", "MUTAG", "made up", 0.8, 0.1, 3, partial(operator.add, 0.5))
    monkeypatch.setattr(workers, "CONTEXT", FORK)
    monkeypatch.setattr(working, "POLL", 0.02)
    for module in (script, results):
        monkeypatch.setattr(module, "all_results", lambda: [made])
    monkeypatch.setattr(job, "code", lambda: "first")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        working.work(ledger, [job.Wanted(made.cell, 2)], job.perform)  # as far as a stopped command came

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["published", "--out", str(tmp_path / "a.csv"), *arguments])
        script.main()
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            return sum(runs for _, runs, _ in ledger.seconds())

    assert run() == 3
    assert read(tmp_path / "a.csv")[0].measured == pytest.approx(1.5)
    monkeypatch.setattr(job, "code", lambda: "second")
    assert run() == 3
    assert run("--fresh") == 6
    assert run("--fresh") == 6


def test_the_page_shows_the_file():
    page = (ROOT / "docs" / "baselines.md").read_text(encoding="utf-8")
    shown = page.split("<!-- published: results/published.csv -->\n")[1].split("\n<!-- end -->")[0]
    assert shown == table(read(ROOT / "results" / "published.csv"))


@pytest.fixture
def graph(monkeypatch):
    """56 nodes."""
    made = role_graph(0, motifs=8)
    monkeypatch.setattr(embeddings, "load", lambda name: made)
    return made


def test_one_embedding_and_seventy_thirty(graph, monkeypatch):
    """The graph is embedded once; 30 % of 56 nodes, 17, are tested each time, and nobody validates."""
    splits, real = [], embeddings.classify
    monkeypatch.setattr(embeddings, "classify", lambda z, y, split: splits.append((z, split)) or real(z, y, split))
    found = our_way("graphwave", "made up", 0, runs=3)
    assert len({id(z) for z, _ in splits}) == 1
    assert [(s.train.numel(), s.val.numel(), s.test.numel()) for _, s in splits] == [(39, 0, 17)] * 3
    assert not torch.equal(splits[0][1].test, splits[1][1].test)
    assert all(round(share * 17) == pytest.approx(share * 17) for share in found)


@pytest.mark.parametrize("method", PRINTED)
def test_their_way(graph, method):
    found = their_way(method, "made up", 0, runs=3)
    assert len(set(found)) > 1
    assert np.mean(found) > 0.3  # of twelve roles


def test_their_scales(graph):
    """Heat after 19 and 20, by the exponential of the Laplacian."""
    heat = expm(-20 * laplacian(simple_adjacency(graph)).toarray())
    z = their_embedding("graphwave", graph)
    assert z.shape == (56, 100)
    np.testing.assert_allclose(z[:, 50:75], np.cos(heat.T[:, :, None] * np.linspace(0, 100, 25)).mean(1), atol=1e-8)


def test_local_features_against_networkx():
    graph = nx.karate_club_graph()
    adjacency = sparse.csr_array(nx.to_scipy_sparse_array(graph, weight=None, format="csr").astype(np.float64))
    found = _local(adjacency)
    for node in graph:
        ego = nx.ego_graph(graph, node)
        inside, arcs = ego.number_of_edges(), sum(graph.degree(other) for other in ego)
        expected = [inside, arcs, inside / arcs, 1 - inside / arcs, graph.degree(node), nx.clustering(graph, node)]
        np.testing.assert_allclose(found[node], expected)


def test_bits_are_explained():
    bits = np.eye(4)[np.arange(32) % 4]
    z = factored(bits, seed=0, epochs=300, dimensions=8)
    assert np.array_equal(z, factored(bits, seed=0, epochs=300, dimensions=8))
    apart = np.linalg.norm(z[:, None] - z[None], axis=2)
    alike = (np.arange(32)[:, None] - np.arange(32)[None]) % 4 == 0
    assert apart[alike].max() < apart[~alike].min()


Y = torch.arange(300) % 3


def test_their_partition():
    rows, test = partition(Y, 5, seed=20, tested=100)
    assert torch.bincount(Y[rows]).tolist() == [5, 5, 5]
    assert test.numel() == 100
    assert not torch.isin(rows, test).any()
    assert not torch.equal(test, partition(Y, 5, seed=21, tested=100)[1])


def test_against_dense_matrices():
    edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    dense = torch.eye(4).index_put((edges[0], edges[1]), torch.tensor(1.0))
    dense /= dense.sum(1, keepdim=True)
    arcs = neighbour_mean(edges, 4)
    torch.testing.assert_close(arcs.matrix.to_dense(), dense)
    torch.manual_seed(0)
    model = PyGCN(3, 2).eval()
    x = torch.rand(4, 3)
    (w1, w2), (b1, b2) = model.weights, model.biases
    expected = dense @ torch.relu(dense @ x @ w1 + b1) @ w2 + b2
    torch.testing.assert_close(model(Product(x.to_sparse_csr(), Memo()), arcs), expected)


def test_two_groups_and_the_last_epoch(monkeypatch):
    """Two cliques, each with an attribute of its own: learned, differently after one epoch, the same for one seed."""
    n = 40
    member = torch.arange(n) // (n // 2)
    pairs = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    edges = pairs[:, (member[pairs[0]] == member[pairs[1]]) & (pairs[0] != pairs[1])]
    data = Data(x=torch.eye(2)[member].to_sparse_csr(), edge_index=edges, y=member, num_nodes=n)
    monkeypatch.setattr(gcn, "load", lambda name: data)
    monkeypatch.setattr(gcn, "partition", lambda y, each, seed: (torch.tensor([0, n - 1]), torch.arange(1, n - 1)))
    assert gcn.their_way("made up", 1, 0) == 1.0
    arguments = (present(data.x), neighbour_mean(edges, n), member, torch.tensor([0, n - 1]), 3)
    once, again, short = train(*arguments), train(*arguments), train(*arguments, epochs=1)
    assert torch.equal(once, again)
    assert not torch.allclose(once, short)


@pytest.fixture
def graphs(monkeypatch):
    """Thirty paths and thirty stars, whose attributes are far from zero and from one another."""
    made = []
    for label, make in enumerate((path, star)):
        for i in range(30):
            one = make(4 + i % 3)
            attributes = 100 + 10 * torch.arange(one.num_nodes).float()[:, None]
            x = torch.ones(one.num_nodes, 1)
            made.append(Data(x=x, attributes=attributes, edge_index=one.edge_index, y=torch.tensor([label])))
    monkeypatch.setattr(gin, "load", lambda name: made)
    return made


def test_one_epoch_for_all_folds():
    """Each fold has an epoch at which all is right, but no epoch is better than the second for both."""
    assert gin.best_epoch([[1.0, 0.8, 0.0], [0.0, 0.8, 1.0]]) == [0.8, 0.8]


def test_the_fold_is_tested_after_every_epoch(graphs):
    curve = gin.epoch_by_epoch("made up", 16, fold=1, folds=3, epochs=5)
    assert len(curve) == 5
    assert all((share * 20) == pytest.approx(round(share * 20)) for share in curve)


def test_attributes_are_scaled_by_training_graphs(graphs):
    split = gin.nested_k_fold(torch.tensor([0] * 30 + [1] * 30), 3, 10, seed=0)[0][0]
    scaled = gin._with_attributes(graphs, split)
    seen = torch.cat([scaled[i].x[:, 1:] for i in split.train.tolist()])
    torch.testing.assert_close(seen.mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
    torch.testing.assert_close(seen.std(), torch.tensor(1.0))


def test_folds_within_folds(graphs, monkeypatch):
    monkeypatch.setattr(gin, "GIN", partial(GIN, train=TrainConfig(epochs=40, lr=0.01, batch_size=16)))
    assert gin.nested("made up", fold=0, folds=3, runs=1, grid=[(8, 0.0)]) > 0.9


def labelled(one, label):
    return Data(x=torch.ones(one.num_nodes, 1), edge_index=one.edge_index, y=torch.tensor([label]))


@pytest.fixture
def few_graphs(monkeypatch):
    """Nine paths and nine stars."""
    made = [labelled(make(3 + i % 3), int(make is star)) for make in (path, star) for i in range(9)]
    monkeypatch.setattr(kernels, "load", lambda name: made)
    return made


def by_setting():
    return kernels.best_setting([kernels.by_strength("made up", setting, 3) for setting in range(12)])


def by_another_fold():
    return [kernels.by_another_fold("made up", fold, 3) for fold in range(3)]


def test_every_graph_is_tested_once_by_one_setting(few_graphs):
    """A path and a star have each other's class: the folds that test them are wrong once each, and nothing helps."""
    few_graphs[0].y, few_graphs[9].y = torch.tensor([1]), torch.tensor([0])
    found = by_setting()  # of equal size, so their mean is the share that is right
    assert sum(found) / 3 == pytest.approx(16 / 18)
    assert sum(found) >= sum(by_another_fold())
