"""DEMOConv is its equations in every scheme, in values and gradients, however the graph is given."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed, features, graphs, seeds
from tests.reference.layers import convolution, drawn, node_degrees

from demonet import DegreeLayout, DegreeTasks, DEMOConv
from demonet.nn import convolve as module
from demonet.nn import weights as schemes
from demonet.nn.convolve import transform_first

SCHEMES = sorted(schemes.SCHEMES)
AGGRS, COMBINES = st.sampled_from(["sum", "mean", "sqrt", "sym"]), st.sampled_from(["concat", "add", "share"])
KINDS = st.sampled_from(["coo", "csr", "csc"])


@pytest.fixture(autouse=True)
def _restore(monkeypatch):
    monkeypatch.setattr(module, "transform_first", module.transform_first)


@st.composite
def drawn_tasks(draw, by="in"):
    """Exact tasks for degrees that need not be the graph's, or buckets."""
    if draw(st.booleans()):
        return DegreeTasks.buckets(sorted(draw(st.sets(st.integers(1, 6), max_size=3))), by=by)
    side = st.integers(0, 5)
    item = st.tuples(side, side) if by == "pair" else side
    seen = draw(st.lists(item, min_size=1, max_size=6))
    return DegreeTasks.exact(torch.tensor(seen), by=by)


def layer(tasks, scheme, seed, aggr="sum", combine="concat", **options):
    """A layer whose seed also decides whether products or sums come first."""
    torch.manual_seed(seed)
    module.transform_first = lambda *given, **cost: seed % 2 == 0
    options = {"hash_size": 4, "basis_size": 3, "hash_seed": seed, "bias": True} | options
    conv = drawn(DEMOConv(3, 5, tasks, scheme=scheme, aggr=aggr, combine=combine, **options).double())
    if conv.bias is not None:
        torch.nn.init.normal_(conv.bias)
    return conv


def gradients(conv, out, *inputs):
    """The derivatives of a fixed random functional of the output, by every parameter and every input."""
    probe = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
    wanted = [*conv.parameters(), *(i for i in inputs if i is not None)]
    found = torch.autograd.grad((out * probe).sum(), wanted, allow_unused=True, retain_graph=True)
    return [torch.zeros_like(w) if g is None else g for w, g in zip(wanted, found, strict=True)]


def assert_same(conv, out, expected, *inputs):
    torch.testing.assert_close(out, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        gradients(conv, out, *inputs), gradients(conv, expected, *inputs), rtol=1e-10, atol=1e-11
    )


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=40)
@given(
    graph=graphs(),
    tasks=drawn_tasks(),
    aggr=AGGRS,
    combine=COMBINES,
    options=st.fixed_dictionaries({"residual": st.booleans(), "hash_size": st.sampled_from([2, 4])}),
    seed=seeds,
    weighted=st.booleans(),
)
def test_plain_arcs_and_layout_equal_the_loops(scheme, graph, tasks, aggr, combine, options, seed, weighted):
    """hash_size 2 is smaller than the three features, so that the hash is folded; 4 is larger."""
    conv = layer(tasks, scheme, seed, aggr, combine, **options)
    x = features(graph.num_nodes, 3, seed).requires_grad_()
    weight = (features(graph.edge_index.size(1), 1, seed + 1)[:, 0].abs() + 0.1).requires_grad_() if weighted else None
    expected = convolution(conv, x, graph.edge_index, weight)
    layout = DegreeLayout.from_edge_index(*graph)
    assert_same(conv, conv(x, graph.edge_index, weight), expected, x, weight)
    assert_same(conv, conv(x, layout, weight), expected, x, weight)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("by", ["out", "pair"])
@settings(max_examples=15)
@given(graph=graphs(), data=st.data(), seed=seeds)
def test_tasks_by_out_degree_and_by_pair(scheme, by, graph, data, seed):
    conv = layer(data.draw(drawn_tasks(by)), scheme, seed, data.draw(AGGRS), data.draw(COMBINES))
    x = features(graph.num_nodes, 3, seed).requires_grad_()
    expected = convolution(conv, x, graph.edge_index)
    assert_same(conv, conv(x, graph.edge_index), expected, x)
    assert_same(conv, conv(x, DegreeLayout.from_edge_index(*graph, by=by)), expected, x)


@pytest.mark.parametrize("scheme", SCHEMES)
@given(graph=graphs(max_nodes=12), seed=seeds, data=st.data())
def test_reordering_arcs_changes_not_one_bit(scheme, graph, seed, data):
    """In float32, forward and backward; weights on simple arcs: between parallel ones the order decides."""
    conv = layer(DegreeTasks.exact(torch.arange(4)), scheme, seed, aggr="mean").float()
    weighted = data.draw(st.booleans())
    edge_index = torch.unique(graph.edge_index, dim=1) if weighted else graph.edge_index
    shuffle = torch.tensor(data.draw(st.permutations(range(edge_index.size(1)))), dtype=torch.long)
    x = features(graph.num_nodes, 3, seed, torch.float32).requires_grad_()
    weight = features(edge_index.size(1), 1, seed, torch.float32)[:, 0] if weighted else None
    orders = (edge_index, weight), (edge_index[:, shuffle], None if weight is None else weight[shuffle])
    for form in (lambda arcs: arcs, lambda arcs: DegreeLayout.from_edge_index(arcs, graph.num_nodes)):
        outs = [conv(x, form(arcs), weights) for arcs, weights in orders]
        ways = [(out, *torch.autograd.grad(out.sin().sum(), [x, *conv.parameters()])) for out in outs]
        assert all(torch.equal(a, b) for a, b in zip(*ways, strict=True))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_dropout_acts_on_the_halves_and_not_on_the_bias(scheme):
    conv = layer(DegreeTasks.exact(torch.arange(4)), scheme, 0, dropout=0.5)
    torch.nn.init.constant_(conv.bias, 100.0)
    graph = drawn_by_seed(50, 200, 0)
    x = features(50, 3, 0)
    torch.manual_seed(1)
    ratio = (conv(x, graph.edge_index) - 100) / (conv.eval()(x, graph.edge_index) - 100)
    kept = ratio.abs() > 1e-6
    torch.testing.assert_close(ratio[kept], torch.full_like(ratio[kept], 2.0))
    assert all(0.35 < half.double().mean() < 0.65 for half in (kept[:, :2], kept[:, 2:]))


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=15)
@given(graph=graphs(), tasks=drawn_tasks(), seed=seeds, kind=KINDS)
def test_torch_sparse_adjacency_carries_the_edge_weights(scheme, graph, tasks, seed, kind):
    edge_index = torch.unique(graph.edge_index, dim=1)  # a matrix has no parallel arcs
    conv = layer(tasks, scheme, seed, aggr="sqrt")
    x = features(graph.num_nodes, 3, seed).requires_grad_()
    weight = features(edge_index.size(1), 1, seed + 1)[:, 0]
    adj_t = torch.sparse_coo_tensor(edge_index.flip(0), weight, (graph.num_nodes,) * 2).coalesce()
    adj_t = {"coo": adj_t.coalesce, "csr": adj_t.to_sparse_csr, "csc": adj_t.to_sparse_csc}[kind]()
    assert_same(conv, conv(x, adj_t), convolution(conv, x, edge_index, weight), x)


def test_gradients_reach_the_values_of_a_coo_adjacency():
    conv = layer(DegreeTasks.log2(4), "weight", 0)
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x, weight = features(3, 3, 0), features(4, 1, 1)[:, 0].requires_grad_()
    adj_t = torch.sparse_coo_tensor(edge_index.flip(0), weight, (3, 3))
    assert_same(conv, conv(x, adj_t), convolution(conv, x, edge_index, weight), weight)


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=25)
@given(
    graph=graphs(), tasks=drawn_tasks(), aggr=AGGRS, combine=COMBINES, seed=seeds, weighted=st.booleans(), kind=KINDS
)
def test_sparse_features_equal_dense_ones(scheme, graph, tasks, aggr, combine, seed, weighted, kind):
    conv = layer(tasks, scheme, seed, aggr, combine, hash_size=2 + seed % 3)
    x = features(graph.num_nodes, 3, seed)
    x = x * (x > 0)
    sparse = {"csr": x.to_sparse_csr, "coo": x.to_sparse_coo, "csc": x.to_sparse_csc}[kind]()
    weight = features(graph.edge_index.size(1), 1, seed + 1)[:, 0].abs() if weighted else None
    expected = convolution(conv, x, graph.edge_index, weight)
    assert_same(conv, conv(sparse, graph.edge_index, weight), expected)
    layout = DegreeLayout.from_edge_index(*graph)
    assert_same(conv, conv(sparse, layout, weight), expected)
    degree = torch.tensor(node_degrees(*graph))
    assert_same(conv, conv(sparse, layout, weight, degree=degree), expected)


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=25)
@given(graph=graphs(), tasks=drawn_tasks(), seed=seeds, data=st.data())
def test_given_degrees_choose_the_task_and_nothing_else(scheme, graph, tasks, seed, data):
    """The scale of 'mean' still counts the arcs that are summed."""
    conv = layer(tasks, scheme, seed, aggr="mean")
    x = features(graph.num_nodes, 3, seed).requires_grad_()
    degree = data.draw(st.lists(st.integers(0, 9), min_size=graph.num_nodes, max_size=graph.num_nodes))
    expected = convolution(conv, x, graph.edge_index, degree=degree)
    assert_same(conv, conv(x, graph.edge_index, degree=torch.tensor(degree)), expected, x)
    layout = DegreeLayout.from_edge_index(*graph)
    assert_same(conv, conv(x, layout, degree=torch.tensor(degree)), expected, x)
    sorted_layout = layout.sorted()
    inside = conv(layout.enter(x), sorted_layout, degree=layout.enter(torch.tensor(degree)))
    assert_same(conv, layout.leave(inside), expected, x)


def test_by_hand():
    """A path 0 - 1 - 2 with one feature: everything worked out on paper."""
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    conv = DEMOConv(1, 2, DegreeTasks.exact(torch.tensor([1])), scheme="weight", aggr="sum", combine="concat")
    with torch.no_grad():
        conv.seed.weight.fill_(10.0)
        conv.weights.shared.fill_(2.0)
        conv.weights.own.fill_(3.0)
    x = torch.tensor([[1.0], [5.0], [7.0]])
    # Degree 1 was seen: (2 + 3) * 5. Degree 2 was not: 2 * (1 + 7).
    assert conv(x, edge_index).tolist() == [[10.0, 25.0], [50.0, 16.0], [70.0, 25.0]]
    assert conv(x, edge_index, torch.tensor([1.0, 1.0, 0.5, 0.0])).tolist() == [[10, 25], [50, 2], [70, 12.5]]


def test_products_come_first_where_they_read_less():
    """At the width where both orders read and write as much, sums come first; one column more, and products do."""
    columns = 2 * (100 + 300) * 8 // (300 + 2 * 100)
    assert not transform_first(100, 300, columns, 8)
    assert transform_first(100, 300, columns + 1, 8)
    assert not transform_first(100, 300, columns + 1, 8, matrices=2), "more matrices, more products"
    wide = 100 * columns
    assert transform_first(100, 300, wide, 8, matrices=6, reads=2, balance=200)
    assert not transform_first(100, 300, wide, 8, matrices=6, reads=2, balance=1)
    assert transform_first(100, 300, 8, 8, fused=True), "sums are not read again"
    assert not transform_first(100, 300, 7, 8, fused=True)


@pytest.mark.parametrize("cached", [True, False])
def test_a_large_graph_in_degree_order_has_a_matrix_for_each_degree(override, cached):
    """The same values and derivatives as in the caller's order, where rows are scaled one by one."""
    override(piece_graph_rows=20, piece_rows=16, rows_per_scale=2)
    edge_index, n = drawn_by_seed(40, 90, 0)
    layout = DegreeLayout.from_edge_index(edge_index, n)
    conv = DEMOConv(3, 6, act="elu", cached=cached).double()
    for parameter in conv.parameters():
        torch.nn.init.normal_(parameter)
    x = features(n, 3, 0, torch.float64)
    found = []
    for rows, graph in ((x, edge_index), (layout.enter(x), layout.sorted())):
        for _ in range(3):  # what is cached is known in the third call
            given = rows.clone().requires_grad_() if not cached else rows
            out = conv(given, graph)
            leaves = [*conv.parameters(), *([] if cached else [given])]
            by = torch.autograd.grad(out.square().sum(), leaves)
        found.append((out, *by))
    (out, *by), (sorted_out, *sorted_by) = found
    torch.testing.assert_close(sorted_out, layout.enter(out))
    for one, other in zip(by, sorted_by, strict=True):
        torch.testing.assert_close(other, layout.enter(one) if one.shape == x.shape else one)
    assert any(getattr(kept, "both", None) and kept.both.offsets is not None for kept in layout.sorted().cache.values())
