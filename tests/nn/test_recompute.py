"""Layers that are computed again in the backward pass: less is kept, nothing else differs."""

import copy

import pytest
import torch
from tests.reference.graphs import features, from_arcs

from demonet import DegreeTasks, DEMOConv, DEMONet, GraphDEMONet, ModelConfig, NodeDEMONet
from demonet.nn.dropout import Dropout
from demonet.nn.recompute import recomputed
from demonet.ops import backend
from demonet.train.batches import step_values

GENERATOR = torch.Generator().manual_seed(0)
GRAPH = from_arcs(40, torch.randint(40, (160, 2), generator=GENERATOR).tolist(), undirected=True)
TASKS = DegreeTasks.exact(torch.bincount(GRAPH.edge_index[1], minlength=40))
X = features(40, 6, 1).float()
SHAPES = {
    "weight": {"scheme": "weight", "combine": "concat"},
    "smooth": {"scheme": "smooth", "combine": "add", "refine": True},
    "hash": {"scheme": "hash", "combine": "add", "norm": "layer"},
    "scale": {"residual": True, "norm": "batch", "activation": "relu"},
    "scale on a stem": {"stem": True},
}


def saved_bytes(compute):
    """The result, and the bytes that autograd keeps for the derivatives beside the parameters and the input."""
    kept = {}

    def pack(tensor):
        if not tensor.is_leaf:
            kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = compute()
    return out, sum(kept.values())


def made(kind, recompute, **options):
    torch.manual_seed(3)
    if kind == "nodes":
        return NodeDEMONet(6, 3, TASKS, hidden=16, layers=5, dropout=0.4, recompute=recompute, **options)
    if kind == "graphs":
        return GraphDEMONet(6, 3, TASKS, hidden=16, layers=5, dropout=0.4, recompute=recompute, **options)
    return DEMONet(6, 16, 5, 3, tasks=TASKS, dropout=0.4, recompute=recompute, **options)


def epochs(model, call, count=3):
    """The gradients of some epochs, what the model has learnt of its input, and the bytes that the last one kept."""
    optimizer, found = torch.optim.SGD(model.parameters(), lr=0.1), []
    torch.manual_seed(5)
    for _ in range(count):
        optimizer.zero_grad()
        out, size = saved_bytes(lambda: call(model))
        out.square().mean().backward()
        found += [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        optimizer.step()
    return found, dict(model.named_buffers()), size


def compare(kind, call, **options):
    (found, buffers, less), (wanted, others, more) = (
        epochs(made(kind, recompute, **options), call) for recompute in (True, False)
    )
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    for name, buffer in buffers.items():
        torch.testing.assert_close(buffer, others[name], rtol=1e-5, atol=1e-6)
    assert less < 0.6 * more


@pytest.mark.parametrize("kind", ["nodes", "graphs"])
@pytest.mark.parametrize("shape", SHAPES)
def test_models_keep_the_input_of_each_layer_alone(kind, shape):
    compare(kind, lambda model: model(model.prepare(X, GRAPH.edge_index)), **SHAPES[shape])


@pytest.mark.parametrize("scheme", ["weight", "smooth", "hash", "scale"])
@pytest.mark.parametrize("norm", [None, "batch", "graph_norm"])
def test_so_does_the_model_for_pyg(scheme, norm):
    more = {"scheme": scheme, "norm": norm, "cached": True, "residual": True, "jk": "cat"}
    compare("pyg", lambda model: model(X, GRAPH.edge_index), **more)


def test_a_key_of_dropout_is_read_again():
    """On a GPU the entries that are dropped follow from a key; no generator is set back for it."""
    pytest.importorskip("triton")
    h = torch.ones(30, 8, requires_grad=True)
    with backend.override(path="triton"):
        out = recomputed(Dropout(0.4), h, None, generators=False)
        (by,) = torch.autograd.grad(out.sum(), [h])
    assert 0 < int(out.count_nonzero()) < out.numel()
    torch.testing.assert_close(by, out)


def test_a_result_that_is_kept_meanwhile_changes_no_graph():
    """With ``cached``, the second call with the same features keeps their sums: the first one is repeated as it was."""
    torch.manual_seed(0)
    conv = DEMOConv(6, 4, TASKS, cached=True)
    wanted = torch.autograd.grad(conv(X.clone(), GRAPH.edge_index).sum(), [conv.weights.shared])
    first, second = (recomputed(lambda h: conv(h, GRAPH.edge_index), X, None, generators=True) for _ in range(2))
    for out in (first, second):
        torch.testing.assert_close(torch.autograd.grad(out.sum(), [conv.weights.shared]), wanted)


def test_derivatives_can_be_taken_twice():
    model = made("nodes", True, norm="batch")
    given, moved = model.prepare(X, GRAPH.edge_index), copy.deepcopy(model.layers[0].after[0].running_mean)
    loss = model(given).square().sum()
    after = model.layers[0].after[0].running_mean.clone()
    assert not torch.equal(after, moved)
    leaves = [parameter for parameter in model.parameters() if parameter.dim() == 2]
    first = torch.autograd.grad(loss, leaves, retain_graph=True)
    for one, other in zip(first, torch.autograd.grad(loss, leaves), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert torch.equal(model.layers[0].after[0].running_mean, after)
    assert model.layers[0].after[0].num_batches_tracked == 1


def test_one_convolution_from_input_to_scores():
    options = {"layers": 0, "head": "degree", "dropout": 0.0, "scheme": "weight", "combine": "add"}
    outs = []
    for recompute in (True, False):
        torch.manual_seed(0)
        model = NodeDEMONet(6, 3, TASKS, recompute=recompute, **options)
        outs.append(saved_bytes(lambda model=model: model(X, GRAPH.edge_index)))
    torch.testing.assert_close(outs[0][0], outs[1][0])
    assert outs[0][1] < outs[1][1]


def test_batches_are_decided_by_what_is_kept():
    config = ModelConfig(layers=12)
    assert step_values(config.changed(recompute=True)) < step_values(config) / 2
