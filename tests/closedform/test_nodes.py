"""The degree-specific node kernel against its definition, term by term and pair by pair, in float64."""

import copy
from dataclasses import replace
from math import exp, log, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.kernels.graphs import drawn_graphs, graph, path, permuted, star
from torch_geometric.data import Data

from demonet.closedform.nodes import NodeInputs, NodeRows, NodeSetting, kappa, products
from demonet.features.structure import GivenSurroundings
from demonet.nn.hashing import hash_functions

FULL = NodeSetting(
    seed=0.7, shared=0.3, degree=0.4, bias=0.2, hop=0.5, structure=0.6, additive=0.5, constant=0.1, width=0.8
)


def gram(left, right, setting):
    return left.pair(right, torch.float64, "cpu").gram(setting).numpy()


def shared_of(d, e, s):
    """The definition of kappa for two degrees."""
    if s.scheme == "weight":
        return float(d == e)
    if s.scheme == "smooth":
        return exp(-((log(1 + d) - log(1 + e)) ** 2) / (2 * s.width**2))
    columns = torch.arange(256)
    (p, a), (q, b) = (
        hash_functions(torch.full((256,), x), columns, seed=s.hash_seed, size=s.hash_size) for x in (d, e)
    )
    return float((a * b * (p == q)).double().mean())


def kernel_of(left, u, right, v, s):
    """The definition of k(u, v)."""
    k = shared_of(int(left.degree[u]), int(right.degree[v]), s)
    near = left.near[0][u] @ right.near[0][v] + s.hop * (left.near[1][u] @ right.near[1][v])
    gap = np.square(left.structure[u] - right.structure[v]).mean()
    terms = s.seed * (left.own[u] @ right.own[v]), (s.shared + s.degree * k) * near
    apart = np.exp(-np.square(left.structure[u] - right.structure[v]) / (2 * 0.2**2)).mean()
    return sum(terms) + s.additive * apart + s.bias * k + s.structure * exp(-gap / (2 * s.reach**2)) + s.constant


@pytest.mark.parametrize("scheme", ["smooth", "weight", "hash"])
def test_the_kernel_is_its_definition_for_degree_0_a_hub_and_unseen_degrees(scheme):
    rng = np.random.default_rng(0)
    train = graph(6, [(0, 1), (0, 2), (0, 3), (1, 2)], rng.normal(size=(6, 3)))  # nodes 4 and 5 have degree 0
    other = star(9, rng.normal(size=(10, 3)))  # a hub of degree 9, which training has not
    inputs = NodeInputs().fit(train)
    left, right = inputs.transform(other), inputs.transform(train)
    assert 9 not in right.degree
    assert 0 in right.degree
    s = replace(FULL, scheme=scheme, hash_size=4)
    naive = [[kernel_of(left, u, right, v, s) for v in range(6)] for u in range(10)]
    np.testing.assert_allclose(gram(left, right, s), naive, rtol=1e-12, atol=1e-12)


def test_what_follows_from_edges_and_degrees_alone_is_computed_once(monkeypatch):
    described, compared = [], []
    columns, of_degrees = GivenSurroundings.columns, NodeSetting.kappa
    monkeypatch.setattr(GivenSurroundings, "columns", lambda *of: described.append(of) or columns(*of))
    monkeypatch.setattr(NodeSetting, "kappa", lambda *of: compared.append(of) or of_degrees(*of))
    train = graph(6, [(0, 1), (0, 2), (0, 3), (1, 2)], np.random.default_rng(0).normal(size=(6, 3)))
    inputs, other = NodeInputs().fit(train), copy.copy(train)
    rows, other.x = inputs.transform(train), train.x + 1
    np.testing.assert_array_equal(inputs.transform(other).structure, rows.structure)
    assert len(described) == 1
    other.edge_index = train.edge_index[:, 2:]
    assert (inputs.transform(other).structure != rows.structure).any()
    assert len(described) == 2
    pair = rows.pair(rows, torch.float64, "cpu")
    first = pair.gram(replace(FULL, height=0.0))
    assert len(compared) == 2  # of the task and of the bias
    assert not torch.equal(pair.gram(replace(FULL, height=0.0, degree=2.0)), first)
    assert torch.equal(pair.gram(replace(FULL, height=0.0)), first)
    assert len(compared) == 2


def test_a_narrow_smooth_kernel_is_the_delta_and_a_wide_one_shares_all():
    d = torch.tensor([0, 1, 5, 5, 80])
    assert torch.equal(kappa(d, d, "smooth", width=1e-3), kappa(d, d, "weight"))
    np.testing.assert_allclose(kappa(d, d, "smooth", width=1e6), 1.0)


@pytest.mark.parametrize("scheme", ["smooth", "weight", "hash"])
def test_kappa_is_positive_semidefinite_with_a_diagonal_of_ones(scheme):
    d = torch.tensor([0, 1, 2, 3, 10, 500])
    table = kappa(d, d, scheme, hash_size=3)
    assert torch.equal(table.diagonal(), torch.ones(6, dtype=torch.float64))
    assert torch.linalg.eigvalsh(table).min() > -1e-12


def test_kappa_refuses_an_unknown_scheme(refuses):
    refuses(lambda: kappa(torch.tensor([1]), torch.tensor([1]), "linear"), "linear", "smooth")


def test_a_setting_refuses_a_negative_variance(refuses):
    refuses(lambda: NodeSetting(degree=-0.1), "degree", "-0.1")


def test_the_map_is_the_exponential_of_the_normalised_kernel():
    data = path(4, [[1.0, 0.5], [0.2, 1.5], [-1.0, 0.0], [0.3, -0.8]])
    view = NodeInputs().fit(data).transform(data)
    inner = NodeSetting(seed=0.7, shared=0.3, degree=0.4, bias=0.0, constant=0.0)
    k = gram(view, view, inner)
    expected = [[exp((k[u, v] / sqrt(k[u, u] * k[v, v]) - 1) / 0.5) for v in range(4)] for u in range(4)]
    np.testing.assert_allclose(gram(view, view, replace(inner, height=0.5)), expected)
    beside = replace(inner, height=0.5, bias=0.2, constant=3.0)
    bias = kappa(*[torch.from_numpy(view.degree)] * 2, width=inner.width).numpy()
    np.testing.assert_allclose(gram(view, view, beside), expected + 0.2 * bias + 3.0)


@given(drawn_graphs(min_nodes=2, max_nodes=7, values=(0.0, 0.5, -1.25)), st.randoms(use_true_random=False))
def test_the_order_of_nodes_and_edges_does_not_matter(data, random):
    order = list(range(data.num_nodes))
    random.shuffle(order)
    other = permuted(data, order)
    view, moved = (NodeInputs().fit(d).transform(d) for d in (data, other))
    np.testing.assert_allclose(gram(moved, moved, FULL), gram(view, view, FULL)[np.ix_(order, order)], atol=1e-9)


def test_counts_become_sublinear_tf_idf_of_unit_length():
    data = graph(3, [(0, 1)], [[3.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    inputs = NodeInputs().fit(data)
    assert inputs.info["kind"] == "counts"
    view = inputs.transform(data)
    idf = [log(4 / 3) + 1, log(4 / 2) + 1]
    np.testing.assert_allclose(view.own.toarray(), [[1, 0], np.array(idf) / np.hypot(*idf), [0, 0]])
    np.testing.assert_allclose(view.near[0].toarray(), [view.own.toarray()[1], [1, 0], [0, 0]])


def test_numbers_are_standardised_labels_kept_and_degrees_stand_in_for_nothing():
    numbers = path(3, [[0.5], [1.5], [2.5]])
    inputs = NodeInputs().fit(numbers)
    assert inputs.info["kind"] == "numbers"
    high = np.array([sqrt(1.5), 1]) / sqrt(2.5)  # standardised, a one beside it, unit length
    np.testing.assert_allclose(inputs.transform(numbers).own, [high * [-1, 1], [0, 1], high])
    assert inputs.transform(numbers).near[0].tolist() == [[0.0], [0.0], [0.0]]
    labels = path(3, [[0, 1], [1, 0], [0, 0]])
    assert NodeInputs().fit(labels).transform(labels).own.tolist() == [[0, 1], [1, 0], [0, 0]]
    nothing = path(3)
    view = NodeInputs().fit(nothing).transform(nothing)
    np.testing.assert_allclose(np.linalg.norm(view.own, axis=1), 1)
    assert view.own[0].tolist() == view.own[2].tolist() != view.own[1].tolist()


def test_sparse_attributes_stay_sparse_and_give_the_same_kernel():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.poisson(0.3, size=(8, 12)).astype(np.float64))
    dense = graph(8, [(i, (3 * i + 1) % 8) for i in range(8)], x)
    view = NodeInputs().fit(dense).transform(dense)
    csr = Data(x=x.to_sparse_csr(), edge_index=dense.edge_index, num_nodes=8)
    other = NodeInputs().fit(csr).transform(csr)
    assert sparse.issparse(other.own)
    assert sparse.issparse(other.near[1])
    np.testing.assert_allclose(gram(other, other, FULL), gram(view, view, FULL))


def test_products_agree_whichever_way_they_are_computed(monkeypatch):
    rng = np.random.default_rng(0)
    left, right = (sparse.random_array((n, 40), density=0.2, rng=rng).tocsr() for n in (7, 5))
    expected = (left @ right.T).toarray()
    np.testing.assert_allclose(products(left, right, torch.float64, "cpu"), expected)
    monkeypatch.setattr("demonet.closedform.nodes._multiplications", lambda *_: 1e9)
    for dense, entries in ((0.1, 2**26), (0.1, 120), (0.5, 2**26), (0.5, 120)):  # dense blocks, or a sparse left side
        monkeypatch.setattr("demonet.closedform.nodes.DENSE", dense)
        monkeypatch.setattr("demonet.closedform.nodes.ENTRIES", entries)
        np.testing.assert_allclose(products(left, right, torch.float64, "cpu"), expected)
    np.testing.assert_allclose(products(left.toarray(), right.toarray(), torch.float64, "cpu"), expected)


def test_the_additive_kernel_that_is_kept_serves_every_setting(monkeypatch):
    data = graph(6, [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4), (4, 5)])
    view = NodeInputs().fit(data).transform(data)
    kept = view.pair(view, torch.float64, "cpu")
    settings = [replace(FULL, additive=a, structure=s) for a in (0.5, 3.0, 0.0) for s in (0.6, 0.0)]
    found = [kept.gram(setting).numpy() for setting in settings]
    monkeypatch.setattr("demonet.closedform.nodes.KEPT", 0)
    for setting, matrix in zip(settings, found, strict=True):
        np.testing.assert_allclose(matrix, gram(view, view, setting))


def test_shuffled_degrees_change_the_degree_term_alone():
    data = graph(6, [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4), (4, 5)], np.random.default_rng(0).normal(size=(6, 2)))
    view = NodeInputs().fit(data).transform(data)
    moved = view.shuffled(1)
    assert sorted(moved.task) == sorted(view.degree)
    terms, others = (dict(v.pair(v, torch.float64, "cpu").terms(FULL)) for v in (view, moved))
    assert {name for name in terms if not torch.equal(terms[name], others[name])} == {"degree"}


def test_views_and_inputs_survive_a_round_trip():
    rng = np.random.default_rng(0)
    for x in (rng.poisson(0.5, size=(6, 4)), rng.normal(size=(6, 2))):
        data = graph(6, [(0, 1), (0, 2), (3, 4)], x)
        inputs = NodeInputs().fit(data)
        view = NodeInputs.from_state(*inputs.state()).transform(data)
        back = NodeRows.from_state(view.state())
        np.testing.assert_array_equal(gram(back, view, FULL), gram(inputs.transform(data), view, FULL))


def test_a_graph_with_other_attributes_is_refused(refuses):
    inputs = NodeInputs().fit(path(3, [[0.5], [1.5], [2.5]]))
    refuses(lambda: inputs.transform(path(2, [[0.5, 1.0], [1.0, 2.0]])), "2", "1")
    refuses(lambda: inputs.transform(path(2)), "attributes")
