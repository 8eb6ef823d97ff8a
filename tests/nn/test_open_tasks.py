"""A layer without tasks, and the model that stands beside PyTorch Geometric's basic models."""

import copy
import inspect
from dataclasses import asdict

import pytest
import torch
import torch.distributed as dist
from tests.distributed.processes import run
from torch_geometric.nn import GCN

from demonet import DegreeLayout, DegreeTasks, DEMOConv, DEMONet, DemonetError, ModelConfig
from demonet.data.synthetic import role_graph
from demonet.degree import OpenTasks

GRAPH = role_graph(motifs=6)
EDGES, N = GRAPH.edge_index, GRAPH.num_nodes
LAYOUT = DegreeLayout.from_edge_index(EDGES, N)
LARGEST = int(LAYOUT.degree.max())
X = torch.randn(N, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
def test_a_layer_without_tasks_is_the_layer_with_log2_buckets_of_the_first_graph(scheme):
    conv = DEMOConv(4, 8, scheme=scheme)
    given = DEMOConv(4, 8, DegreeTasks.log2(255), scheme=scheme)
    given.load_state_dict({name: value for name, value in conv.state_dict().items() if "tasks" not in name})
    given.tasks.max_degree = LARGEST
    assert torch.equal(conv(X, EDGES), given(X, EDGES))
    assert conv.tasks.max_degree == LARGEST
    assert torch.allclose(conv(X, LAYOUT), conv(X, EDGES), atol=1e-5)


def test_the_first_graph_decides_and_later_ones_do_not():
    conv = DEMOConv(4, 8)
    assert conv.tasks.is_open
    conv(X, LAYOUT)
    assert (conv.tasks.is_open, conv.tasks.max_degree) == (False, LARGEST)
    star = torch.stack([torch.arange(1, 40), torch.zeros(39, dtype=torch.long)])
    before = conv.degree_weight(torch.tensor([1, 2, 39]))
    conv(torch.randn(40, 4), star)
    assert torch.equal(conv.degree_weight(torch.tensor([1, 2, 39])), before)


def test_graphs_without_edges_leave_the_tasks_open():
    conv = DEMOConv(4, 8)
    conv(X, EDGES[:, :0])
    conv(X[:0], EDGES[:, :0])
    assert conv.tasks.is_open
    with pytest.raises(DemonetError, match="open"):
        conv.degree_weight(torch.tensor([1]))


def test_a_saved_layer_keeps_the_degrees_of_its_first_graph():
    conv = DEMOConv(-1, 8)
    conv(X, EDGES)
    loaded, other = DEMOConv(-1, 8), EDGES[:, EDGES[1] < 3]
    loaded.load_state_dict(conv.state_dict())
    assert torch.equal(loaded(X, other), conv(X, other))
    assert torch.equal(copy.deepcopy(conv)(X, other), conv(X, other))


def test_given_degrees_count_and_a_reset_layer_takes_those_of_its_next_graph():
    conv = DEMOConv(4, 8)
    conv(X, EDGES, degree=torch.full((N,), 77))
    assert conv.tasks.max_degree == 77
    conv.reset_parameters()
    conv(X, EDGES)
    assert conv.tasks.max_degree == LARGEST


def test_a_layer_made_without_memory():
    expected = DEMOConv(4, 8)
    expected(X, EDGES)
    with torch.device("meta"):
        conv = DEMOConv(4, 8)
    conv.to_empty(device="cpu").load_state_dict(expected.state_dict())
    assert torch.equal(conv(X, EDGES), expected(X, EDGES))


def test_a_layer_refuses_the_state_of_other_tasks():
    one, other = (DEMOConv(4, 8, DegreeTasks.exact(torch.tensor(d)), scheme="weight") for d in ([1, 2], [2, 3]))
    with pytest.raises(DemonetError, match="1, 2, unseen"):
        other.load_state_dict(one.state_dict())
    other.load_state_dict({name: value for name, value in one.state_dict().items() if "tasks" not in name})


def test_an_average_of_weights_made_before_the_first_call_is_of_the_same_function():
    model = DEMONet(4, 8, 2, 5)
    for conv in model.convs:
        torch.nn.init.normal_(conv.weights.gamma, std=30)
    average = torch.optim.swa_utils.AveragedModel(model)
    model(X, EDGES)
    average.update_parameters(model)
    few = EDGES[:, ::5]
    torch.testing.assert_close(average(X, few), model(X, few))
    copied = copy.deepcopy(copy.deepcopy(DEMOConv(4, 8)))
    copied(X, few)  # of what saw no graph: it takes its own
    assert 0 < copied.tasks.max_degree < LARGEST


def first_call(largest):
    """The largest degree that a layer takes."""
    edges = torch.stack([torch.arange(1, 1 + largest[dist.get_rank()]), torch.zeros(largest[dist.get_rank()]).long()])
    conv = DEMOConv(4, 8)
    conv(torch.zeros(9, 4), edges)
    return conv.tasks.max_degree


def test_ranks_take_the_largest_degree_of_all():
    assert run(2, first_call, [3, 5]) == [5, 5]
    assert run(2, first_call, [0, 4]) == [4, 4]


def test_compilation_needs_one_call_before():
    conv = DEMOConv(4, 8)
    with pytest.raises(Exception, match="once before"):
        torch.export.export(conv, (X, EDGES))
    expected = conv(X, EDGES)
    assert torch.allclose(torch.export.export(conv, (X, EDGES)).module()(X, EDGES), expected, atol=1e-5)


def test_open_tasks_have_a_bucket_for_every_degree():
    tasks = OpenTasks()
    assert tasks(torch.tensor([0, 1, 2, 3, 4, 127, 128, 2**31 - 1])).tolist() == [0, 1, 2, 2, 3, 7, 8, 8]
    assert sum(parameter.numel() for parameter in DEMOConv(4, 8, scheme="weight").parameters()) == (1 + 9) * 32 + 8


@pytest.mark.parametrize(
    "options", [{}, {"dropout": 0.5}, {"act": "elu", "norm": "batch"}, {"jk": "cat"}, {"num_layers": 1}]
)
def test_the_model_takes_what_a_gcn_takes(options):
    options = {"hidden_channels": 8, "num_layers": 3, "out_channels": 5} | options
    ours, theirs = DEMONet(4, **options), GCN(4, **options)
    assert ours(X, EDGES).shape == theirs(X, EDGES).shape
    assert [type(module) for module in ours.norms] == [type(module) for module in theirs.norms]
    assert (ours.jk_mode, ours.out_channels) == (theirs.jk_mode, theirs.out_channels)
    weight = torch.rand(EDGES.size(1))
    assert not torch.equal(ours.eval()(X, EDGES, edge_weight=weight), ours(X, EDGES))


def test_the_model_passes_options_to_its_layers():
    tasks = DegreeTasks.exact(LAYOUT.degree)
    model = DEMONet(4, 8, 3, 5, tasks=tasks, scheme="hash", aggr="sum")
    assert {(conv.scheme, conv.aggr, conv.tasks is tasks) for conv in model.convs} == {("hash", "sum", True)}
    assert len({conv.weights.hash_seed for conv in model.convs}) == 3
    assert torch.allclose(model(X, LAYOUT), model(X, EDGES), atol=1e-4)


def test_the_model_passes_true_degrees_on():
    """Also where PyG leaves out the nodes of the last hops."""
    model = DEMONet(4, 8, 2, 3, scheme="smooth", residual=True, stem=True).eval()
    model(X, EDGES)
    degree = LAYOUT.degree.flip(0)
    h = model.convs[0](model.stem(X).relu(), EDGES, degree=degree).relu()
    expected = model.convs[1](h, EDGES, degree=degree)
    torch.testing.assert_close(model(X, EDGES, degree=degree), expected)
    assert not torch.allclose(model(X, EDGES), expected)
    assert {conv.seed is None for conv in model.convs} == {False}


def test_layer_and_models_have_the_same_defaults():
    layer = {name: one.default for name, one in inspect.signature(DEMOConv.__init__).parameters.items()}
    config = asdict(ModelConfig())
    shared = (layer.keys() & config.keys()) - {"dropout"}
    assert shared >= {"scheme", "aggr", "combine", "bias", "residual", "basis_size"}
    assert {name: layer[name] for name in shared} == {name: config[name] for name in shared}
