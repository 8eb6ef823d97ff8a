"""DEMOConv as a citizen of PyTorch Geometric."""

import copy
from functools import partial

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features
from torch_geometric.data import HeteroData
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import GCNConv, GINConv, GraphConv, SAGEConv, to_hetero
from torch_geometric.testing import assert_module
from torch_geometric.utils import coalesce

from demonet import DegreeLayout, DegreeTasks, DEMOConv, DEMONet, DemonetError
from demonet.nn import weights as schemes

GRAPH = drawn_by_seed(20, 35, 0)
EDGE_INDEX = coalesce(GRAPH.edge_index)
BIPARTITE = torch.tensor([[0, 1, 2, 2, 3, 4], [0, 0, 1, 0, 2, 2]])
TASKS = DegreeTasks.exact(torch.tensor([1, 2, 3, 4, 9]))
X = features(20, 3, 0, torch.float32)


@pytest.fixture(params=sorted(schemes.SCHEMES))
def scheme(request):
    torch.manual_seed(0)
    return request.param


@pytest.mark.parametrize(("aggr", "combine"), [("sum", "concat"), ("mean", "add"), ("sqrt", "share"), ("sym", "share")])
def test_pygs_own_assertions(scheme, aggr, combine):
    conv = DEMOConv(3, 8, TASKS, scheme=scheme, aggr=aggr, combine=combine, bias=True)
    assert_module(conv, X, EDGE_INDEX, expected_size=(20, 8), atol=1e-6)


ARCS = torch.cat([drawn_by_seed(20, 60, 3, undirected=False).edge_index, torch.tensor([[3, 7], [3, 7]])], 1)
ARCS = coalesce(ARCS)  # directed, with loops and isolated nodes
LAYERS = {
    "GCN": (GCNConv, {"aggr": "sym", "combine": "share"}, lambda conv: (conv.lin, None, conv.bias)),
    "GCN without loops": (
        partial(GCNConv, add_self_loops=False),
        {"aggr": "sym", "combine": "add"},
        lambda conv: (conv.lin, None, conv.bias),
    ),
    "SAGE": (SAGEConv, {"aggr": "mean", "combine": "add"}, lambda conv: (conv.lin_l, conv.lin_r, conv.lin_l.bias)),
    "GraphConv": (
        GraphConv,
        {"aggr": "sum", "combine": "add"},
        lambda conv: (conv.lin_rel, conv.lin_root, conv.lin_rel.bias),
    ),
    "GIN": (
        lambda *widths: GINConv(torch.nn.Linear(*widths)),
        {"aggr": "sum", "combine": "share"},
        lambda conv: (conv.nn, None, conv.nn.bias),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("columns", [3, 40])
def test_with_its_degree_term_at_zero_it_is_pygs_layer(name, columns):
    """In values and in the derivatives by features and edge weights."""
    make, options, parts = LAYERS[name]
    theirs = make(columns, 8).double()
    neighbour, seed, bias = parts(theirs)
    ours = DEMOConv(columns, 8, scheme="scale", bias=True, **options).double()
    with torch.no_grad():
        torch.nn.init.normal_(bias)
        ours.weights.shared.copy_(neighbour.weight.t())
        ours.bias.copy_(bias)
        if ours.seed is not None:
            ours.seed.weight.copy_(torch.zeros_like(neighbour.weight) if seed is None else seed.weight)
    # A graph with loops differs for GIN: PyG counts the loop and the node itself.
    arcs = ARCS if name != "GIN" else ARCS[:, ARCS[0] != ARCS[1]]
    x = features(20, columns, 0).requires_grad_()
    takes_weights = name in ("GCN", "GCN without loops", "GraphConv")
    for weight in (None, torch.rand(arcs.size(1), dtype=torch.float64).requires_grad_())[: 1 + takes_weights]:
        inputs = [x] if weight is None else [x, weight]
        expected = theirs(x, arcs) if weight is None else theirs(x, arcs, weight)
        derivatives = torch.autograd.grad(expected.sin().sum(), inputs)
        for given in (arcs, DegreeLayout.from_edge_index(arcs, 20)):
            out = ours(x, given, weight)
            torch.testing.assert_close(out, expected, atol=1e-10, rtol=1e-8)
            torch.testing.assert_close(torch.autograd.grad(out.sin().sum(), inputs), derivatives, atol=1e-8, rtol=1e-6)


def test_one_matrix_for_both_sides_of_a_bipartite_graph(scheme):
    """The target is one more neighbour; without targets only the neighbours count."""
    source, target = features(5, 3, 0, torch.float32), features(4, 3, 1, torch.float32)
    conv = DEMOConv((3, 3), 8, TASKS, scheme=scheme, aggr="sum", combine="share")
    degree = BIPARTITE[1].bincount(minlength=4)
    a = torch.zeros(4, 3).index_add(0, BIPARTITE[1], source[BIPARTITE[0]])
    matrices = conv.degree_weight(degree)
    expected = torch.bmm((a + target)[:, None], matrices)[:, 0]
    torch.testing.assert_close(conv((source, target), BIPARTITE), expected)
    alone = torch.bmm(a[:, None], matrices)[:, 0]
    torch.testing.assert_close(conv((source, None), BIPARTITE, size=(5, 4)), alone)
    with pytest.raises(DemonetError, match=r"\(3, 5\)"):
        DEMOConv((3, 5), 8, combine="share")


def test_pygs_own_assertions_on_bipartite_input(scheme):
    conv = DEMOConv((3, 5), 8, TASKS, scheme=scheme, combine="add")
    source, target = features(5, 3, 0, torch.float32), features(4, 5, 1, torch.float32)
    assert_module(conv, (source, target), BIPARTITE, expected_size=(4, 8), atol=1e-6)
    assert_module(conv, (source, None), BIPARTITE, size=(5, 4), expected_size=(4, 8), atol=1e-6)


def test_without_targets_the_seeds_half_is_zero(scheme):
    conv = DEMOConv((3, 5), 8, TASKS, scheme=scheme, combine="concat")
    source, target = features(5, 3, 0, torch.float32), features(4, 5, 1, torch.float32)
    both, alone = conv((source, target), BIPARTITE), conv((source, None), BIPARTITE, size=(5, 4))
    assert torch.equal(alone[:, :4], torch.zeros(4, 4))
    assert torch.equal(alone[:, 4:], both[:, 4:])
    assert torch.equal(both[:, :4], conv.seed(target))


def test_the_same_nodes_on_both_sides_are_one_graph(scheme):
    conv = DEMOConv((3, 3), 8, TASKS, scheme=scheme)
    out = conv(X, EDGE_INDEX)
    assert torch.equal(conv((X, X), EDGE_INDEX), out)
    layout = DegreeLayout.from_edge_index(EDGE_INDEX, 20)
    torch.testing.assert_close(conv((X, X), layout), out)


def test_flow(scheme):
    """target_to_source reads every arc the other way round, explained or not."""
    arcs = drawn_by_seed(20, 40, 3, undirected=False).edge_index
    conv = DEMOConv(3, 8, TASKS, scheme=scheme, aggr="mean")
    back = copy.deepcopy(conv)
    back.flow = "target_to_source"
    weight = torch.rand(40)
    out = conv(X, arcs.flip(0), weight)
    assert torch.equal(back(X, arcs, weight), out)
    assert not torch.allclose(conv(X, arcs, weight), out)
    set_masks(back, torch.ones(40), arcs, apply_sigmoid=False)
    torch.testing.assert_close(back(X, arcs, weight), out)


@pytest.mark.parametrize(("aggr", "combine"), [("mean", "add"), ("sym", "share")])
def test_explain_mode_changes_no_value(scheme, aggr, combine):
    conv = DEMOConv(3, 8, TASKS, scheme=scheme, aggr=aggr, combine=combine)
    weight = torch.rand(EDGE_INDEX.size(1))
    adj_t = torch.sparse_coo_tensor(EDGE_INDEX.flip(0), weight, (20, 20)).coalesce()
    pair = (features(5, 3, 0, torch.float32), features(4, 3, 1, torch.float32))
    calls = [(X, EDGE_INDEX), (X, EDGE_INDEX, weight), (X, adj_t), (pair, BIPARTITE)]
    plain = [conv(*call) for call in calls]
    for call, expected in zip(calls, plain, strict=True):
        arcs = call[1].indices() if call[1].is_sparse else call[1]
        set_masks(conv, torch.ones(arcs.size(1)), arcs, apply_sigmoid=False)
        torch.testing.assert_close(conv(*call), expected)


class Net(torch.nn.Module):
    def __init__(self, *channels, **options):
        super().__init__()
        self.one = DEMOConv(channels[0], 8, **options)
        self.two = DEMOConv(channels[1], 4, **options)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def test_explainer_finds_the_arcs_that_matter(scheme):
    """Only arcs within two hops of the explained node get a mask, and they do not all get the same."""
    model = Net(3, 8, tasks=TASKS, scheme=scheme, aggr="mean").eval()
    before = model(X, EDGE_INDEX)
    explainer = Explainer(
        model,
        algorithm=GNNExplainer(epochs=5),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    node = int(EDGE_INDEX[1].bincount(minlength=20).argmax())
    explanation = explainer(X, EDGE_INDEX, index=node)
    mask = explanation.edge_mask
    assert mask.shape == (EDGE_INDEX.size(1),)
    direct = EDGE_INDEX[1] == node
    assert (mask[direct] > 0).all()
    assert mask[direct].unique().numel() > 1
    near = torch.zeros(20, dtype=torch.bool)
    near[node] = near[EDGE_INDEX[0, direct]] = True
    assert (mask[~near[EDGE_INDEX[1]]] == 0).all()
    torch.testing.assert_close(model(X, EDGE_INDEX), before)


def test_a_mask_of_zero_removes_an_arc_and_keeps_the_degree(scheme):
    conv = DEMOConv(3, 8, TASKS, scheme=scheme, aggr="mean")
    mask = torch.ones(EDGE_INDEX.size(1))
    mask[:5] = 0
    set_masks(conv, mask, EDGE_INDEX, apply_sigmoid=False)
    masked = conv(X, EDGE_INDEX)
    clear_masks(conv)
    torch.testing.assert_close(masked, conv(X, EDGE_INDEX, mask))


def hetero():
    data = HeteroData()
    data["paper"].x, data["author"].x = features(6, 3, 0, torch.float32), features(4, 5, 1, torch.float32)
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1, 2, 5], [1, 0, 1, 1]])
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 3, 3], [0, 0, 1, 5]])
    data["paper", "rev_writes", "author"].edge_index = data["author", "writes", "paper"].edge_index.flip(0)
    return data


def test_to_hetero(scheme):
    """Lazy widths and one layer an edge type."""
    data = hetero()
    net = Net((-1, -1), (-1, -1), tasks=DegreeTasks.log2(8), scheme=scheme, combine="add")
    model = to_hetero(net, data.metadata(), aggr="sum")
    out = model(data.x_dict, data.edge_index_dict)
    assert {name: tuple(h.shape) for name, h in out.items()} == {"paper": (6, 4), "author": (4, 4)}
    sum(h.sum() for h in out.values()).backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("options", [{}, {"jk": "cat", "dropout": 0.5}])
def test_the_model_to_hetero(options):
    """As PyG's own models; each type of nodes has its degrees, or none."""
    data = hetero()
    model = to_hetero(DEMONet((-1, -1), 8, 2, 4, combine="add", **options), data.metadata()).eval()
    out = model(data.x_dict, data.edge_index_dict)
    assert {name: h.shape[1] for name, h in out.items()} == {"paper": 4, "author": 4}
    for conv in model.modules():
        if isinstance(conv, DEMOConv):
            torch.nn.init.normal_(conv.weights.gamma, std=30)
    before = model(data.x_dict, data.edge_index_dict)
    degree = {name: torch.full((len(h),), 3) for name, h in data.x_dict.items()}
    given = model(data.x_dict, data.edge_index_dict, degree=degree)
    assert all(not torch.allclose(given[name], before[name]) for name in before)


def test_copies_and_state_dicts(scheme):
    conv = DEMOConv(3, 8, TASKS, scheme=scheme, bias=True)
    out = conv(X, EDGE_INDEX)
    assert torch.equal(copy.deepcopy(conv)(X, EDGE_INDEX), out)
    torch.manual_seed(9)
    other = DEMOConv(3, 8, TASKS, scheme=scheme, bias=True)
    assert not torch.equal(other(X, EDGE_INDEX), out)
    other.load_state_dict(conv.state_dict())
    assert torch.equal(other(X, EDGE_INDEX), out)
    conv.reset_parameters()
    assert not torch.equal(conv(X, EDGE_INDEX), out)


def test_lazy_width_of_sparse_features(scheme):
    conv = DEMOConv(-1, 8, TASKS, scheme=scheme)
    torch.testing.assert_close(conv(X.to_sparse_csr(), EDGE_INDEX), conv(X, EDGE_INDEX))


@pytest.mark.parametrize("pair", [False, True])
def test_lazy_width(scheme, pair):
    """An open width is read from the first input, or from a state; copied and saved while still open."""
    channels, eager_channels = ((-1, -1), (3, 5)) if pair else (-1, 3)
    x = (X[:5], features(4, 5, 1, torch.float32)) if pair else X
    arcs = BIPARTITE if pair else EDGE_INDEX
    combine = "add" if pair else "share"
    eager = DEMOConv(eager_channels, 8, TASKS, scheme=scheme, combine=combine)
    lazy = DEMOConv(channels, 8, TASKS, scheme=scheme, combine=combine)
    lazy.load_state_dict(copy.deepcopy(lazy).state_dict())
    loaded = copy.deepcopy(lazy)
    optimizer = torch.optim.SGD(lazy.parameters(), lr=1.0)
    out = lazy(x, arcs)
    assert out.shape == eager(x, arcs).shape
    assert {k: v.shape for k, v in lazy.state_dict().items()} == {k: v.shape for k, v in eager.state_dict().items()}
    out.sum().backward()
    optimizer.step()
    assert not torch.equal(lazy(x, arcs), out), "an optimizer made before the first input holds the same parameters"
    loaded.load_state_dict(eager.state_dict())
    assert torch.equal(loaded(x, arcs), eager(x, arcs))
    assert loaded.degree_weight(torch.tensor([1])).shape == (1, 3, 8)


@pytest.mark.parametrize("form", ["arcs", "layout", "sparse features"])
def test_autocast(scheme, form):
    """bfloat16 products under autocast, gradients in float32, near the full result."""
    conv = DEMOConv(3, 8, TASKS, scheme=scheme)
    given = DegreeLayout.from_edge_index(EDGE_INDEX, 20) if form == "layout" else EDGE_INDEX
    x = X.to_sparse_csr() if form == "sparse features" else X
    exact = conv(x, given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = conv(x, given)
    torch.testing.assert_close(out.float(), exact, rtol=0.05, atol=0.1)
    if form != "sparse features":
        assert out.dtype == torch.bfloat16
    out.float().square().sum().backward()
    found = [p.grad.clone() for p in conv.parameters()]
    conv.zero_grad()
    exact.square().sum().backward()
    for ours, p in zip(found, conv.parameters(), strict=True):
        assert ours.dtype == torch.float32
        assert (ours - p.grad).norm() < 0.05 * p.grad.norm()


def test_float32_weights_of_edges_keep_the_layers_dtype(scheme):
    conv = DEMOConv(3, 8, TASKS, scheme=scheme, bias=True).bfloat16()
    for given in (EDGE_INDEX, DegreeLayout.from_edge_index(EDGE_INDEX, 20)):
        assert conv(X.bfloat16(), given, torch.rand(EDGE_INDEX.size(1))).dtype == torch.bfloat16


def test_no_nodes_at_all(scheme):
    conv = DEMOConv(3, 8, TASKS, scheme=scheme)
    for given in (EDGE_INDEX[:, :0], DegreeLayout.from_edge_index(EDGE_INDEX[:, :0], 0)):
        out = conv(X[:0], given)
        assert out.shape == (0, 8)
        out.sum().backward()
