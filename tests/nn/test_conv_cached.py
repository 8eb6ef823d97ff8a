"""DEMOConv with its activation inside, with what stays the same cached, and on edges that are sorted already."""

import copy
import gc
import io
import weakref

import pytest
import torch
import torch.nn.functional as F
from tests.reference.graphs import Graph, drawn_by_seed, features
from torch_geometric import EdgeIndex
from torch_geometric.utils import coalesce, to_torch_csr_tensor

import demonet.nn.convolve as module
from demonet import DegreeLayout, DegreeTasks, DEMOConv, DemonetError
from demonet.degree.keep import Memo
from demonet.nn.convolve import transform_first
from demonet.nn.edges import _SORTED, Edges

GRAPH, OTHER = (  # without parallel edges: an adjacency matrix adds them up
    Graph(coalesce(drawn_by_seed(20, 35, 0).edge_index), 20),
    Graph(coalesce(drawn_by_seed(20, 30, 5, undirected=False).edge_index).flip(1), 20),
)
TASKS = DegreeTasks.exact(torch.tensor([0, 1, 2, 3, 4, 9]))
FLOWS = ["source_to_target", "target_to_source"]
SCHEMES = ["weight", "hash", "smooth", "scale"]


def layer(scheme="weight", seed=0, **options):
    torch.manual_seed(seed)
    return DEMOConv(3, 8, TASKS, scheme=scheme, bias=True, **options).double()


def forms(graph):
    n = graph.num_nodes
    edges = EdgeIndex(graph.edge_index, sparse_size=(n, n))
    yield graph.edge_index
    yield DegreeLayout.from_edge_index(*graph)
    yield edges.sort_by("col")[0]
    yield edges.sort_by("row")[0]
    yield to_torch_csr_tensor(graph.edge_index.flip(0), size=(n, n), is_coalesced=False)


def gradients(conv, x, *edges):
    x = x.clone().requires_grad_()
    out = conv(x, *edges)
    return out, *torch.autograd.grad(out.sin().sum(), [x, *conv.parameters()])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("combine", "act"), [("concat", "elu"), ("add", "relu"), ("share", "relu")])
def test_the_activation_inside_is_the_one_outside(scheme, combine, act):
    x = features(20, 3, 0)
    plain, fused = layer(scheme, combine=combine, dropout=0.4), layer(scheme, combine=combine, dropout=0.4, act=act)
    outside = {"relu": F.relu, "elu": F.elu}[act]
    for edges in (GRAPH.edge_index, DegreeLayout.from_edge_index(*GRAPH)):
        for training in (True, False):
            found = []
            for conv, after in ((plain.train(training), outside), (fused.train(training), torch.nn.Identity())):
                torch.manual_seed(1)
                given = x.clone().requires_grad_()
                out = after(conv(given, edges))
                found.append([out, *torch.autograd.grad(out.sin().sum(), [given, *conv.parameters()])])
            torch.testing.assert_close(*found)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("graph", [GRAPH, OTHER], ids=["undirected", "directed"])
def test_every_form_of_edges_is_the_same_graph(scheme, graph):
    """Cached or not, values and derivatives are those of the plain edge_index."""
    x = features(20, 3, 0)
    plain, cached = layer(scheme, act="elu"), layer(scheme, act="elu", cached=True)
    expected = gradients(plain, x, graph.edge_index)
    for edges in forms(graph):
        for conv in (plain, cached, cached):
            torch.testing.assert_close(gradients(conv, x, edges), expected)


@pytest.mark.parametrize("flow", FLOWS)
def test_weights_of_sorted_edges(flow):
    conv = layer(flow=flow)
    edges = EdgeIndex(OTHER.edge_index, sparse_size=(20, 20)).sort_by("col" if flow == "source_to_target" else "row")[0]
    weight = features(OTHER.edge_index.size(1), 1, 3)[:, 0].requires_grad_()
    x = features(20, 3, 0).requires_grad_()
    found, expected = (
        torch.autograd.grad(conv(x, given, weight).sin().sum(), [x, weight]) for given in (edges, edges.as_tensor())
    )
    torch.testing.assert_close(found, expected)


def test_sorted_edges_are_not_sorted_again(monkeypatch):
    monkeypatch.setattr("demonet.nn.edges.neighbour_lists", None)
    by_target = EdgeIndex(OTHER.edge_index, sparse_size=(20, 20)).sort_by("col")[0]
    (pointer, neighbours), _ = Edges(by_target, None, (20, 20), "source_to_target").lists(back=False)
    assert neighbours.data_ptr() == by_target.as_tensor().data_ptr()
    assert pointer is by_target.get_indptr()
    with pytest.raises(TypeError):  # it is not known how many targets there are
        Edges(EdgeIndex(OTHER.edge_index).sort_by("col")[0], None, (20, 20), "source_to_target").lists(back=False)


@pytest.fixture
def built(monkeypatch):
    """How many layouts were built."""
    count = []
    build = DegreeLayout.from_edge_index

    def counting(*args, **options):
        count.append(1)
        return build(*args, **options)

    monkeypatch.setattr(module.DegreeLayout, "from_edge_index", counting)
    return count


def test_a_cached_edge_index_is_laid_out_once(built):
    conv, plain, x = layer(cached=True), layer(), features(20, 3, 0)
    edges = GRAPH.edge_index.clone()
    for _ in range(3):
        torch.testing.assert_close(conv(x, edges), plain(x, edges))
    assert len(built) == 1
    edges[:, 0] = torch.tensor([7, 8])
    torch.testing.assert_close(conv(x, edges), plain(x, edges))
    assert len(built) == 2


def test_layers_share_one_sort(built):
    """Also without ``cached``; a change that torch does not count is noticed, and nothing outlives the edges."""
    first, second, x = layer(), layer(), features(20, 3, 0)
    edges = GRAPH.edge_index.clone()
    for _ in range(3):
        first(x, edges), second(x, edges)
    assert len(built) == 1
    edges.numpy()[:, 0] = (7, 8)
    expected = second(x, edges.clone())
    assert len(built) == 2
    torch.testing.assert_close(first(x, edges), expected)
    assert len(built) == 3
    (layout,) = map(weakref.ref, _SORTED[edges].made.values())
    del edges
    gc.collect()
    assert layout() is None


@pytest.mark.parametrize("cached", [False, True])
def test_a_steady_call_checks_nothing_again(monkeypatch, cached):
    """Of its inputs; another layer, another width, and what was changed of a layer are noticed."""
    checks, check, edges = [], module.check_sides, GRAPH.edge_index.clone()
    monkeypatch.setattr(module, "check_sides", lambda *given: checks.append(1) or check(*given))
    first, second = (DEMOConv(-1, 4, scheme="scale", cached=cached).double() for _ in range(2))
    for k in range(4):
        first(features(20, 3, k), edges), second(features(20, 3, k), edges)
    assert len(checks) == 2
    with pytest.raises(DemonetError, match="5 feature columns"):
        first(features(20, 5, 0), edges)
    first.aggr, x = "mean", features(20, 3, 0)
    torch.testing.assert_close(first(x, edges), first(x, edges.clone()))


@pytest.mark.parametrize("cached", [False, True])
def test_layers_by_different_degrees_sort_once_each(built, cached):
    edges, x = OTHER.edge_index.clone(), features(20, 3, 0)
    tasks = [DegreeTasks.log2(9, by=by) for by in ("in", "out")]
    layers = [DEMOConv(3, 4, each, cached=cached, flow=flow).double() for each in tasks for flow in FLOWS]
    for _ in range(3):
        for conv in layers:
            conv(x, edges)
    assert len(built) == 4
    for conv in layers:
        torch.testing.assert_close(conv(x, edges), conv(x, edges.clone()))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("weighted", [False, True])
def test_constant_features_are_summed_once(monkeypatch, scheme, weighted):
    """With a layout, or with edges: from the second call on nothing is summed any more."""
    conv, plain = layer(scheme, cached=True, act="relu"), layer(scheme, act="relu")
    x, weight = features(20, 3, 0), features(GRAPH.edge_index.size(1), 1, 1)[:, 0] if weighted else None
    for edges in (DegreeLayout.from_edge_index(*GRAPH), GRAPH.edge_index):
        for _ in range(2):
            torch.testing.assert_close(conv(x, edges, weight), plain(x, edges, weight))
        with monkeypatch.context() as patch:
            patch.setattr(DEMOConv, "_summed", None)
            again = conv(x, edges, weight)
        torch.testing.assert_close(again, plain(x, edges, weight))
        grads = torch.autograd.grad(again.sin().sum(), list(conv.parameters()))
        expected = torch.autograd.grad(plain(x, edges, weight).sin().sum(), list(plain.parameters()))
        torch.testing.assert_close(grads, expected)


@pytest.mark.parametrize(("columns", "kept"), [(3, True), (400, False)])
def test_sums_of_wide_attributes_are_kept_where_that_is_cheaper(columns, kept):
    """Scheme smooth mixes a matrix for every degree to multiply kept sums by; the product of the rows needs none."""
    x, layout = features(20, columns, 0), DegreeLayout.from_edge_index(*GRAPH)
    cached, plain = (DEMOConv(columns, 8, TASKS, scheme="smooth", cached=each).double() for each in (True, False))
    plain.load_state_dict(cached.state_dict())
    for _ in range(3):
        out, wanted = cached(x, layout), plain(x, layout)
        torch.testing.assert_close(out, wanted)
        torch.testing.assert_close(
            torch.autograd.grad(out.sin().sum(), list(cached.parameters())),
            torch.autograd.grad(wanted.sin().sum(), list(plain.parameters())),
        )
    assert (cached._sums.value is not None) == kept


@pytest.mark.parametrize(
    ("rows", "edges", "columns", "width", "degrees", "balance", "first"),
    [(2708, 10556, 1433, 64, 37, 200.0, True), (18333, 163788, 6805, 64, 94, 200.0, True),
     (2708, 10556, 1433, 64, 37, 20.0, False), (2708, 10556, 1433, 16, 37, 20.0, False)],
)  # fmt: skip
def test_kept_sums_cost_less_on_a_cpu_and_more_on_a_gpu(rows, edges, columns, width, degrees, balance, first):
    """The graphs that were measured."""
    found = transform_first(rows, edges, columns, width, 6, 2, balance=balance, degrees=degrees)
    assert found == first


@pytest.mark.parametrize("change", ["x", "weight", "storage", "graph", "gradient"])
def test_changed_inputs_are_noticed(change):
    conv, plain = layer(cached=True), layer()
    x, weight = features(20, 3, 0), features(GRAPH.edge_index.size(1), 1, 1)[:, 0]
    layout = DegreeLayout.from_edge_index(*GRAPH)
    for _ in range(3):
        conv(x, layout, weight)
    if change == "x":
        x[3] += 1
    elif change == "weight":
        weight.mul_(2)
    elif change == "storage":
        x.set_(features(20, 3, 9))
    elif change == "graph":
        layout, weight = DegreeLayout.from_edge_index(*OTHER), None
    else:
        x.requires_grad_()
    out = conv(x, layout, weight)
    torch.testing.assert_close(out, plain(x, layout, weight))
    assert change != "gradient" or torch.autograd.grad(out.sum(), x)[0].abs().sum() > 0


def test_nothing_is_kept_of_features_that_come_once():
    conv, layout = layer(cached=True), DegreeLayout.from_edge_index(*GRAPH)
    x = features(20, 3, 0)
    with torch.no_grad():
        conv(x, layout)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None
    assert conv._sums.value is None


def test_copies_and_files_hold_no_cache():
    conv, x = layer(cached=True), features(20, 3, 0)
    for _ in range(2):
        conv(x, GRAPH.edge_index)
    buffer = io.BytesIO()
    torch.save(conv, buffer)
    buffer.seek(0)
    for other in (copy.deepcopy(conv), torch.load(buffer, weights_only=False)):
        assert other._sums.value is None
        torch.testing.assert_close(other(x, GRAPH.edge_index), conv(x, GRAPH.edge_index))


def test_inference_tensors_are_not_kept():
    conv, plain = layer(cached=True), layer()
    with torch.inference_mode():
        x, edges = features(20, 3, 0), GRAPH.edge_index.clone()
        for _ in range(3):
            torch.testing.assert_close(conv(x, edges), plain(x, edges))
        x.add_(1)
        torch.testing.assert_close(conv(x, edges), plain(x, edges))


@pytest.mark.parametrize("scheme", ["scale", "weight"])
@pytest.mark.parametrize("first", ["train", "evaluate"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("form", [0, 1, 4])
def test_evaluation_in_inference_mode_between_epochs(scheme, first, sparse, form):
    """Also before the first epoch, where it fixes the width: training goes on, nothing is kept that it cannot use."""
    x, edges = features(20, 3, 0), list(forms(Graph(GRAPH.edge_index.clone(), 20)))[form]
    x = x.to_sparse_csr() if sparse else x
    width = -1 if first == "evaluate" else 3
    for degree in (None, torch.arange(20)):
        net = [DEMOConv(width, 4, scheme=scheme, cached=True).double(), DEMOConv(4, 2, scheme=scheme).double()]
        for step in [first, "train", "evaluate", "train", "evaluate", "train"]:
            with torch.inference_mode(step == "evaluate"):
                out = net[1](net[0](x, edges, degree=degree), edges)
            if step == "train":
                out.sum().backward()
                assert all(parameter.grad is not None for conv in net for parameter in conv.parameters())


def test_memo_asks_again_for_a_new_tensor_at_the_old_address():
    memo, calls = Memo(), []
    x = torch.zeros(3)
    for _ in range(2):
        assert memo.get([x, None], lambda: calls.append(1) or len(calls)) == 1
    other = x.view(3)
    assert memo.get([other, None], lambda: calls.append(1) or len(calls)) == 2
    assert memo.get([other, x], lambda: calls.append(1) or len(calls)) == 3


def test_memo_gives_each_of_two_threads_its_own():
    memo, x, y = Memo(), torch.zeros(3), torch.ones(3)
    assert memo.get([x], lambda: memo.get([y], lambda: "of y") and "of x") == "of x"  # the other thread asks meanwhile
    assert memo.get([y], lambda: "of y") == "of y"
    assert memo.get([x], lambda: "of x") == "of x"
