"""NodeDEMONet and GraphDEMONet against loops over nodes (Eq. 5-12), and in every form in which a graph comes."""

from dataclasses import fields
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed, features, from_arcs, graphs, seeds
from tests.reference.layers import PAPER, node_degrees
from tests.reference.models import levels, node_scores, readout
from torch_geometric.data import Batch, Data

from demonet import DegreeLayout, DegreeTasks, DemonetError, GraphDEMONet, ModelConfig, NodeDEMONet
from demonet.nn import weights as schemes
from demonet.train import preset

SCHEMES = sorted(schemes.SCHEMES)
SMALL = {"hidden": 6, "hash_size": 4, "basis_size": 3, "dropout": 0.0}
TASKS = DegreeTasks.exact(torch.tensor([0, 1, 2, 4]))  # degree 3 and all above 4 are unseen
# A degree is used twice, once is unseen, one node is isolated, one has a loop, one arc is there twice.
GRAPH = from_arcs(7, [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4), (3, 4), (5, 5), (2, 4)], undirected=True)


def made(kind, seed=0, **changes):
    """A small model; biases and the moments of norms are away from their trivial first values."""
    torch.manual_seed(seed)
    model = kind(3, 4, TASKS, PAPER, **SMALL | changes).double()
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith(("bias", "running_mean")):
            torch.nn.init.normal_(value.detach(), std=0.3)
        elif name.endswith("running_var"):
            torch.nn.init.uniform_(value, 0.5, 2.0)
    return model.eval()


node_model, graph_model = partial(made, NodeDEMONet), partial(made, GraphDEMONet)


def assert_same(found, expected, tolerance=1e-10):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def assert_same_with_gradients(model, found, expected, x):
    assert_same(found, expected)
    inputs = [x, *(p for p in model.parameters() if p.requires_grad)]
    pairs = zip(
        torch.autograd.grad(found.sin().sum(), inputs, allow_unused=True, materialize_grads=True),
        torch.autograd.grad(expected.sin().sum(), inputs, allow_unused=True, materialize_grads=True),
        strict=True,
    )
    for mine, theirs in pairs:
        assert_same(mine, theirs, 1e-8)


SHAPES = [
    {},  # the paper's
    {"aggr": "mean", "combine": "add", "bias": True, "head": "degree"},  # the authors'
    {"combine": "add", "bias": True, "activation": "relu", "refine": True, "aggr": "sqrt"},
    {"head": "mlp", "layers": 1},
    {"stem": True, "norm": "batch", "combine": "add", "aggr": "mean", "layers": 1, "head": "degree"},  # strong
    {"stem": True, "norm": "layer"},
    {"stem": True, "bias": True},
]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("shape", SHAPES, ids=["paper", "authors", "refined", "mlp", "strong", "layer norm", "stem"])
def test_a_node_model_is_its_equations(scheme, shape):
    model = node_model(scheme=scheme, **shape)
    x = features(7, 3, 1).requires_grad_()
    expected = node_scores(model, x, GRAPH.edge_index)
    layout = DegreeLayout.from_edge_index(*GRAPH)
    assert expected.shape == (7, 4)
    assert_same_with_gradients(model, model(x, GRAPH.edge_index), expected, x)
    assert_same_with_gradients(model, model(x, layout), node_scores(model, x, GRAPH.edge_index), x)
    assert_same(model(model.prepare(x.detach(), GRAPH.edge_index)), expected)
    assert_same(model(model.prepare(x.detach(), layout)), expected)


@given(graphs(), seeds, st.booleans())
def test_a_node_model_on_any_graph(graph, seed, weighted):
    model = node_model(seed, scheme=SCHEMES[seed % len(SCHEMES)], **SHAPES[seed % len(SHAPES)])
    x = features(graph.num_nodes, 3, seed)
    weight = features(graph.edge_index.size(1), 1, seed + 1)[:, 0].abs() if weighted else None
    layout = DegreeLayout.from_edge_index(*graph)
    expected = node_scores(model, x, graph.edge_index, weight)
    assert_same(model(x, graph.edge_index, weight), expected)
    assert_same(model(x, layout, weight), expected)
    assert_same(model(model.prepare(x, graph.edge_index, edge_weight=weight)), expected)
    degree = torch.randint(0, 9, (graph.num_nodes,), generator=torch.Generator().manual_seed(seed))  # of a whole graph
    expected = node_scores(model, x, graph.edge_index, weight, degree.tolist())
    for edges in (graph.edge_index, layout):
        assert_same(model(x, edges, weight, degree=degree), expected)


@pytest.mark.parametrize("make", [node_model, graph_model])
def test_a_sparse_adjacency(make):
    model, x, edge_index = make(), features(7, 3, 1), torch.unique(GRAPH.edge_index, dim=1)
    adj_t = torch.sparse_coo_tensor(edge_index.flip(0), torch.ones(edge_index.size(1)), (7, 7)).to_sparse_csr()
    for given_as in ((x, adj_t), (model.prepare(x, adj_t),)):
        assert_same(model(*given_as), model(x, edge_index))


def test_embeddings_and_representations_are_the_levels():
    model = node_model(refine=True)
    x = features(7, 3, 1)
    expected = levels(model, x, GRAPH.edge_index)
    for given_as in ((x, GRAPH.edge_index), (x, DegreeLayout.from_edge_index(*GRAPH))):
        for found, level in zip(model.representations(*given_as), expected, strict=True):
            assert_same(found, level)
        assert_same(model.embed(*given_as), expected[-1])
    prepared = model.prepare(x, GRAPH.edge_index)
    assert_same(model.representations(prepared)[0], x)
    assert_same(model.embed(prepared), expected[-1])
    assert_same(node_model().embed(x, GRAPH.edge_index), levels(node_model(), x, GRAPH.edge_index)[-1])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "shape", [{}, {"refine": True, "head": "degree"}, {"stem": True}], ids=["plain", "refined", "stem"]
)
def test_sparse_features_equal_dense_ones(scheme, shape):
    model = node_model(scheme=scheme, **shape)
    x = features(7, 3, 1) * (features(7, 3, 2) > 0)
    for given_as in (GRAPH.edge_index, DegreeLayout.from_edge_index(*GRAPH)):
        assert_same(model(x.to_sparse_csr(), given_as), model(x, given_as))
        assert_same(model(x.to_sparse_coo(), given_as), model(x, given_as))
        assert_same(model(model.prepare(x.to_sparse_coo(), given_as)), model(x, given_as))
    assert_same(model.representations(model.prepare(x.to_sparse_csr(), GRAPH.edge_index))[0].to_dense(), x)


# A triangle with a tail, a star, one node, two nodes without an edge, and a hub of an unseen degree.
PIECES = [
    from_arcs(4, [(0, 1), (1, 2), (2, 0), (2, 3)], undirected=True),
    from_arcs(5, [(0, i) for i in range(1, 5)], undirected=True),
    from_arcs(1, []),
    from_arcs(2, []),
    from_arcs(8, [(0, i) for i in range(1, 8)], undirected=True),
]


def union(pieces):
    data = [Data(x=features(n, 3, i), edge_index=arcs, num_nodes=n) for i, (arcs, n) in enumerate(pieces)]
    return Batch.from_data_list(data)


POOLINGS = ("degree", "mean", "sum", "sum+degree")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_readout_is_equation_12(scheme, pooling):
    model, batch = graph_model(scheme=scheme, pooling=pooling), union(PIECES)
    x = batch.x.clone().requires_grad_()
    expected = readout(model, x, batch.edge_index, batch.batch.tolist(), 5)
    blocks = {"degree": 5, "mean": 1, "sum": 1, "sum+degree": 6}[pooling]  # four degrees and the unseen ones
    assert expected.shape == (5, blocks * (3 + 6 + 6))
    assert_same_with_gradients(model, model.embed(x, batch.edge_index, batch.batch), expected, x)
    layout = DegreeLayout.from_edge_index(batch.edge_index, batch.num_nodes)
    assert_same(model.embed(batch.x, layout, batch.batch), expected)
    prepared = model.prepare(batch.x, batch.edge_index, batch=batch.batch, num_graphs=5)
    assert_same(model.embed(prepared), expected)
    assert_same(model(prepared), expected @ model.head.weight.T + model.head.bias)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("shape", [{}, {"refine": True, "head": "mlp", "pooling": "sum+degree"}], ids=["paper", "mlp"])
def test_a_batch_equals_its_graphs_one_by_one(scheme, shape):
    model, batch = graph_model(scheme=scheme, **shape), union(PIECES)
    together = model(model.prepare(batch.x, batch.edge_index, batch=batch.batch, num_graphs=5))
    alone = [model(graph.x, graph.edge_index) for graph in batch.to_data_list()]
    assert_same(together, torch.cat(alone))


@pytest.mark.parametrize("by", ["out", "pair"])
def test_directed_tasks_go_through_both_forms(by):
    graph = drawn_by_seed(20, 40, 5, undirected=False)
    degree = torch.tensor(node_degrees(*graph, by))
    torch.manual_seed(0)
    tasks = DegreeTasks.exact(degree, by=by)
    nodes = NodeDEMONet(3, 4, tasks, PAPER, **SMALL).double()
    whole = GraphDEMONet(3, 4, tasks, PAPER, **SMALL).double()
    x = features(20, 3, 1)
    for model in (nodes, whole):
        assert_same(model(model.prepare(x, graph.edge_index)), model(x, graph.edge_index))
    with pytest.raises(DemonetError, match=f"'in'.*'{by}'"):
        nodes(nodes.prepare(x, DegreeLayout.from_edge_index(*graph)))


def test_entries_of_sparse_features_are_dropped_before_the_stem():
    model = node_model(stem=True, input_dropout=0.5).train()
    x = torch.ones(7, 3).double().to_sparse_csr()
    seen = set()
    for _ in range(20):
        seen |= {round(value, 6) for value in (model.stem(x) - model.stem.linear.bias).flatten().tolist()}
    weight = 2 * model.stem.linear.weight
    sums = {
        tuple(keep): weight @ torch.tensor(keep).double()
        for keep in torch.cartesian_prod(*[torch.arange(2)] * 3).tolist()
    }
    expected = torch.stack(list(sums.values())).flatten()
    assert all((expected - value).abs().min() < 1e-5 for value in seen)
    assert len(seen) > 6, "more than one value a unit"
    assert_same(model.eval().stem(x), model.stem.linear(x.to_dense()))


def test_a_model_with_a_stem_or_a_norm_has_the_loss_of_its_scores():
    """The fused losses are for plain convolutions."""
    for shape in ({"stem": True}, {"norm": "layer"}, {"norm": "batch", "stem": True}):
        model = node_model(**shape)
        x, target, share = features(7, 3, 1), torch.arange(7) % 4, torch.full((7,), 1 / 7)
        expected = torch.nn.functional.cross_entropy(model(x, GRAPH.edge_index), target)
        assert_same(model.loss(model.prepare(x, GRAPH.edge_index), target, share), expected, 1e-6)


def test_two_seeds_draw_other_hash_functions_and_so_do_two_layers():
    one, two = (NodeDEMONet(6, 2, TASKS, PAPER, hidden=6, scheme="hash", combine="add", seed=seed) for seed in (0, 7))
    degree = torch.tensor([1, 2, 4])
    hashes = [m.layers[k].conv.weights.hashes(degree)[0] for m in (one, two) for k in (0, 1)]
    assert not any(torch.equal(a, b) for i, a in enumerate(hashes) for b in hashes[:i])


BAD_OPTIONS = [  # those of a layer are in test_conv_errors.py
    ({"shceme": "hash"}, "'shceme'.*scheme"),
    ({"activation": "tanh"}, "activation='tanh'"),
    ({"head": "none"}, "head='none'"),
    ({"pooling": "max"}, "pooling='max'"),
    ({"hidden": 1}, "hidden=1"),
    ({"hidden": 6.5}, "hidden=6.5"),
    ({"layers": 0}, "layers=0"),
    ({"dropout": 1.5, "refine": True}, "dropout=1.5"),
    ({"dropout": float("nan")}, "dropout=nan"),
    ({"degree_scale": float("nan")}, "degree_scale=nan"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS, ids=[message for _, message in BAD_OPTIONS])
def test_options_that_do_not_exist_or_are_out_of_range(options, message):
    for model in (NodeDEMONet, GraphDEMONet):
        with pytest.raises(DemonetError, match=message):
            model(3, 2, TASKS, **options)


def test_a_graph_has_no_degree_to_choose_a_head_by():
    with pytest.raises(DemonetError, match=r"head='degree'.*'linear'"):
        GraphDEMONet(3, 2, TASKS, PAPER, head="degree")


def test_a_configuration_goes_through_plain_values():
    config = PAPER.changed(scheme="hash", hidden=8, refine=True)
    state = {field.name: getattr(config, field.name) for field in fields(config)}
    assert ModelConfig.from_state(state) == config
    assert NodeDEMONet(3, 2, TASKS, config, hidden=10).config == config.changed(hidden=10)
    with pytest.raises(DemonetError, match="'depth'"):
        ModelConfig.from_state(state | {"depth": 3})


def test_a_readout_of_sparse_features_says_what_to_do():
    model = graph_model()
    with pytest.raises(DemonetError, match="dense"):
        model(features(7, 3, 0).to_sparse_csr(), GRAPH.edge_index)


@pytest.mark.parametrize("preset_name", ["default", "strong"])
@pytest.mark.parametrize("hidden", [8, 5])
def test_one_function_or_layer_by_layer(monkeypatch, preset_name, hidden):
    """While a graph model trains: the same numbers are drawn, statistics kept and derivatives found."""
    some = [drawn_by_seed(9, 12, seed) for seed in range(3)]
    listed = [Data(x=features(graph.num_nodes, 5, k), edge_index=graph.edge_index) for k, graph in enumerate(some)]
    batch = Batch.from_data_list(listed)
    config, found = preset(preset_name, "graphs").model.changed(hidden=hidden), []
    for fused in (True, False):
        torch.manual_seed(0)
        model = GraphDEMONet(5, 3, DegreeTasks.log2(8), config).double()
        inputs = model.prepare(batch.x, batch.edge_index, batch=batch.batch, num_graphs=3)
        with monkeypatch.context() as patch:
            if not fused:
                patch.setattr("demonet.nn.fused._is_deep", lambda *given: False)
            torch.manual_seed(1)
            out = model(inputs)
            grads = torch.autograd.grad(out.square().sum(), list(model.parameters()))
        found.append([out, torch.rand(1), *grads, *(buffer.double() for buffer in model.buffers())])
    torch.testing.assert_close(*found)
