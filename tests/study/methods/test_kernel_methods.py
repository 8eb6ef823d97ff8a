"""Kernel machines and histograms of sub-structures: against GraKeL, by hand, and where they are easy to get wrong."""

import sys

import grakel
import numpy as np
import pytest
import torch
from tests.kernels.graphs import graph, path, permuted, star, to_grakel
from torch_geometric.data import Data

from demonet import DemonetError, methods
from demonet.data.splits import Split, thirds
from demonet.data.synthetic import role_graph, small_graphs
from demonet_study.methods.wl import DeepWLKernel

METHODS = ["wl-lr", "wl-rf", "wl-1nn", "deepwl", "wl", "degree-wl"]
QUICK = {"deepwl": {"dimensions": (5,), "windows": (5,)}, "wl-rf": {"trees": 10}}


def made(name, **changes):
    """The method, deepwl with a grid of one, the forest with few trees."""
    return methods.get(name)(**QUICK.get(name, {}), **changes)


def labelled(graphs, classes):
    return [
        Data(x=one.x, edge_index=one.edge_index, num_nodes=one.num_nodes, y=torch.tensor([label]))
        for one, label in zip(graphs, classes, strict=True)
    ]


@pytest.fixture(scope="module")
def families():
    """Paths against stars, with one label for all nodes: small, medium, large of each, twice."""
    graphs = [make(size, x=[[1.0]] * (size + extra)) for size in range(3, 9) for make, extra in ((path, 0), (star, 1))]
    return labelled(graphs, [0, 1] * 6)


SPLIT = Split("by size", 0, [0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 10, 11])


@pytest.mark.parametrize("name", METHODS)
def test_paths_and_stars(families, name):
    """Larger graphs than any in training, of which most colours are known: all six tell the families apart."""
    found = made(name).fit(families, SPLIT, seed=0)
    assert found.predict().tolist() == [0, 1] * 6
    assert found.score(SPLIT.test, torch.tensor([0, 1] * 6)) == 1.0
    assert found.embeddings().shape == (12, found.kernel.features_.shape[1])


def test_wl_is_grakels_matrix_to_the_last_integer():
    """Training graphs fit, everyone is compared with them; the baseline's rows are that matrix in other units."""
    graphs = small_graphs(15, seed=3)
    for number, one in enumerate(graphs):
        one.x = torch.eye(3)[torch.arange(one.num_nodes) * (number + 2) % 3]
    y = torch.cat([one.y for one in graphs])
    split = thirds(y, 0, stratified=True)
    method = methods.get("wl")(rounds=(2,), normalize=(False,)).fit(graphs, split)
    seen = [graphs[i] for i in split.train.tolist()]
    theirs = grakel.WeisfeilerLehman(n_iter=2, base_graph_kernel=grakel.VertexHistogram)
    fitted = theirs.fit_transform([to_grakel(one) for one in seen])
    everyone = theirs.transform([to_grakel(one) for one in graphs])
    np.testing.assert_array_equal(method.kernel.transform(graphs), everyone)
    np.testing.assert_array_equal(everyone[split.train], fitted)
    rows = method._rows(method.kernel, list(graphs), split)
    np.testing.assert_allclose(rows * np.trace(fitted) / len(seen), everyone, rtol=1e-12)
    # A machine that was given GraKeL's matrix, and C in its units, says the same of everyone.
    machine = type(method.model)(C=method.model.C * len(seen) / np.trace(fitted), kernel="precomputed")
    theirs_say = machine.fit(fitted, y[split.train].numpy()).predict(everyone)
    assert method.predict().tolist() == theirs_say.tolist()


class ByHand(DeepWLKernel):
    """The hub's and the leaves' colours are alike by a half; the first colour is like itself only."""

    def _embed(self, counts):
        assert counts.toarray().tolist() == [[2, 2, 0], [3, 2, 1]]
        return np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.75**0.5]])


def test_deepwl_by_hand():
    """An edge and a path of three. Round 0: 2 and 3 nodes of one colour; round 1: 2 leaves, and 2 leaves and a hub.

    K = 2*2 + 2*2 = 8 for the edge alone, 2*3 + 2*2 + 2*1/2 = 11 between, 3*3 + 2*2 + 1 + 2 * 2*1/2 = 16 for the path.
    """
    pair = [path(2), path(3)]
    np.testing.assert_allclose(ByHand(1).fit_transform(pair), [[8, 11], [11, 16]], atol=1e-12)
    across = 11 / (8 * 16) ** 0.5
    np.testing.assert_allclose(ByHand(1, normalize=True).fit_transform(pair), [[1, across], [across, 1]], atol=1e-12)
    # A star of three leaves has 4 nodes and 3 leaves that are known, and a hub that is not.
    np.testing.assert_allclose(ByHand(1).fit(pair).transform([star(3)]), [[2 * 4 + 2 * 3, 3 * 4 + 2 * 3 + 3 / 2]])


def test_the_nearest_neighbour_finds_a_duplicate(families):
    """A test graph that is a training graph with its nodes in another order gets that graph's class, whatever it is."""
    twin = labelled([permuted(families[5], [4, 0, 2, 5, 1, 3])], [0])
    split = Split("s", 0, [0, 1, 4, 5], [2, 3], [12])
    odd = [*families[:5], *labelled([families[5]], [0]), *families[6:], *twin]  # a star in the class of paths
    assert methods.get("wl-1nn")().fit(odd, split).predict()[12] == 0


@pytest.mark.parametrize("name", METHODS)
def test_the_order_of_nodes_does_not_matter(name):
    graphs = small_graphs(15, seed=2)
    y = torch.cat([one.y for one in graphs])
    split = thirds(y, 1, stratified=True)
    generator = torch.Generator().manual_seed(0)
    moved = []
    for one in graphs:
        one.x = torch.ones(one.num_nodes, 1)
        moved.append(permuted(one, torch.randperm(one.num_nodes, generator=generator)))
        moved[-1].y = one.y
    ours, theirs = (made(name).fit(items, split, seed=3) for items in (list(graphs), moved))
    assert torch.equal(ours.predict(), theirs.predict())
    torch.testing.assert_close(ours.embeddings(), theirs.embeddings(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_what_training_never_saw(families, name):
    """A test graph of labels that no training graph has, and one without edges, get a class and change no other."""
    strange = labelled([path(4, x=[[7.0]] * 4), graph(2, x=[[1.0], [3.0]])], [0, 1])
    split = Split("s", 0, SPLIT.train, SPLIT.val, [8, 9, 10, 11, 12, 13])
    without, beside = made(name).fit(families, SPLIT), made(name).fit([*families, *strange], split)
    assert beside.predict()[:12].tolist() == without.predict().tolist()
    assert set(beside.predict().tolist()) <= {0, 1}


@pytest.mark.parametrize("name", METHODS)
def test_validation_chooses_and_test_labels_do_not(families, name):
    split = Split("s", 0, [0, 1, 4, 5], [2, 3], [6, 7, 8, 9, 10, 11])
    honest = made(name).fit(families, split).predict()
    turned = labelled(families, [0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0])
    assert torch.equal(made(name).fit(turned, split).predict(), honest)
    bare = Split("s", 0, split.train, [], split.test)
    assert made(name).fit(families, bare).predict().shape == (12,)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("struc2vec", {"walks": 0}, r"walks .*0"),
        ("struc2vec", {"neighbours": -1}, r"neighbours .*-1"),
        ("struc2vec", {"stay": 0.0}, r"stay .*0\.0"),
        ("graphwave", {"points": 1}, r"points .*1"),
        ("graphwave", {"kept": (0.5, 0.9)}, r"kept .*0\.5, 0\.9"),
        ("graphwave", {"orders": 3}, r"^graphwave .*'orders'.*scales, points"),
        ("rolx", {"share": 1.0}, r"share .*1\.0"),
        ("rolx", {"bits": ()}, "bits"),
        ("dcnn", {"hops": -1}, r"hops .*-1"),
        ("patchy-san", {"field": 16}, r"field .*\b15\b.*\b16\b"),
        ("diffpool", {"ratio": 1.5}, "ratio"),
        ("union", {"alpha": 0.0}, r"alpha .*0"),
        ("wl", {"rounds": ()}, "rounds"),
        ("wl-lr", {"rounds": (-1,)}, r"rounds .*0.*-1"),
        ("degree-wl", {"strengths": (0.0,)}, r"C .*0\.0"),
        ("deepwl", {"windows": (0,)}, r"windows .*0"),
    ],
)
def test_bad_settings(name, changes, message):
    with pytest.raises(DemonetError, match=message):
        methods.get(name)(**changes)


def test_gensim_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(DemonetError, match=r"deepwl.*gensim.*demonet\[paper\]"):
        DeepWLKernel().fit([path(2)])
    with pytest.raises(DemonetError, match=r"struc2vec.*gensim.*demonet\[paper\]"):
        methods.get("struc2vec")(walks=1, length=4).embed(role_graph(0, motifs=4))
