"""DEMOConv under torch.func, forward-mode derivatives, ONNX, and PyG's messages and their hooks."""

import logging

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features
from torch.export import Dim
from torch.func import functional_call, grad, jacfwd, jacrev, stack_module_state, vmap
from torch_geometric.nn import GCNConv

from demonet import DegreeLayout, DegreePooling, DegreeTasks, DEMOConv, DemonetError

GRAPH = drawn_by_seed(9, 16, 0)
FORMS = {"arcs": GRAPH.edge_index, "layout": DegreeLayout.from_edge_index(*GRAPH)}
SHAPES = [
    ("scale", "sym", "share"),
    ("scale", "mean", "concat"),
    ("smooth", "sum", "add"),
    ("weight", "mean", "add"),
    ("weight", "sym", "share"),
    ("hash", "sqrt", "concat"),
]


def layer(scheme, aggr, combine, **options):
    torch.manual_seed(0)
    tasks = DegreeTasks.exact(FORMS["layout"].degree)
    conv = DEMOConv(3, 4, tasks, scheme=scheme, aggr=aggr, combine=combine, act="elu", **options).double()
    for parameter in conv.parameters():  # splines start at zero
        torch.nn.init.normal_(parameter)
    return conv


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_transforms_equal_what_autograd_and_a_loop_give(shape, form):
    conv, graph, x = layer(*shape, cached=True), FORMS[form], features(9, 3, 0)
    parameters = dict(conv.named_parameters())

    def loss(given, rows):
        return functional_call(conv, given, (rows, graph)).sin().sum()

    expected = torch.autograd.grad(conv(x, graph).sin().sum(), list(parameters.values()))
    for found, want in zip(grad(loss)(parameters, x).values(), expected, strict=True):
        torch.testing.assert_close(found, want)
    jacobian = torch.autograd.functional.jacobian(lambda rows: conv(rows, graph), x)
    for found in (jacrev, jacfwd):
        torch.testing.assert_close(found(lambda rows: conv(rows, graph))(x), jacobian)
    many = torch.stack([x, 2 * x, x.sin()])
    torch.testing.assert_close(
        vmap(lambda rows: conv(rows, graph))(many), torch.stack([conv(rows, graph) for rows in many])
    )
    each = vmap(grad(loss), (None, 0))(parameters, many)
    for number, rows in enumerate(many):
        for found, want in zip(each.values(), grad(loss)(parameters, rows).values(), strict=True):
            torch.testing.assert_close(found[number], want)


def test_an_ensemble_of_layers_is_one_map():
    layers = [layer("scale", "sym", "share") for _ in range(3)]
    for number, one in enumerate(layers):
        torch.nn.init.constant_(one.bias, float(number))
    parameters, buffers = stack_module_state(layers)
    x = features(9, 3, 0)
    out = vmap(lambda p, b: functional_call(layers[0], (p, b), (x, GRAPH.edge_index)))(parameters, buffers)
    torch.testing.assert_close(out, torch.stack([one(x, GRAPH.edge_index) for one in layers]))


def test_forward_mode_and_pooling():
    conv, x = layer("smooth", "mean", "add"), features(9, 3, 0)
    pool = DegreePooling(conv.tasks)

    def read(rows):
        return pool(conv(rows, GRAPH.edge_index), FORMS["layout"].degree, None)

    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        tangent = torch.autograd.forward_ad.unpack_dual(read(dual)).tangent
    torch.testing.assert_close(tangent, torch.autograd.functional.jacobian(read, x).sum((2, 3)))


@pytest.mark.parametrize("shape", SHAPES[1:5])
def test_onnx_on_another_graph(shape, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    conv, shapes = layer(*shape).float().eval(), ({0: Dim("n", min=2)}, {1: Dim("m", min=2)})
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        given = (features(9, 3, 0, torch.float32), GRAPH.edge_index)
        torch.onnx.export(conv, given, dynamo=True, verbose=False, dynamic_shapes=shapes).save(tmp_path / "conv.onnx")
    finally:
        logging.disable(before)
    session = runtime.InferenceSession(str(tmp_path / "conv.onnx"), providers=["CPUExecutionProvider"])
    other = drawn_by_seed(20, 60, 1)
    x = features(20, 3, 1, torch.float32)
    (found,) = session.run(None, {"x": x.numpy(), "edge_index": other.edge_index.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), conv(x, other.edge_index))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_hooks_see_every_message_and_change_nothing(shape, form):
    conv, x, seen = layer(*shape, cached=True), features(9, 3, 0).requires_grad_(), []
    expected = conv(x, FORMS[form])
    for kind in ("propagate", "message", "aggregate"):
        hook = getattr(conv, f"register_{kind}_forward_hook")
        hook(lambda module, inputs, output, kind=kind: seen.append((kind, output.size(0))))
    out = conv(x, FORMS[form])
    torch.testing.assert_close(out, expected)
    assert seen == [("message", GRAPH.edge_index.size(1)), ("aggregate", 9), ("propagate", 9)]
    found, want = (torch.autograd.grad(y.sin().sum(), x)[0] for y in (out, expected))
    torch.testing.assert_close(found, want)


def test_an_overridden_message_is_used_as_in_gcn():
    class Masked(DEMOConv):
        def message(self, x_j, edge_weight):
            return super().message(x_j, edge_weight) * (x_j > 0)

    class MaskedGCN(GCNConv):
        def message(self, x_j, edge_weight):
            return super().message(x_j, edge_weight) * (x_j > 0)

    x = features(9, 3, 0, torch.float32)
    ours, theirs = Masked(3, 3), MaskedGCN(3, 3, add_self_loops=False)
    with torch.no_grad():
        ours.weights.shared.copy_(torch.eye(3))
        theirs.lin.weight.copy_(torch.eye(3))
    loops = torch.cat([GRAPH.edge_index, torch.arange(9).repeat(2, 1)], 1)
    torch.testing.assert_close(ours(x, loops), theirs(x, loops))
    with pytest.raises(DemonetError, match="sparse"):
        ours(x.to_sparse_csr(), loops)


def test_an_own_propagate_is_called():
    class Doubled(DEMOConv):
        def propagate(self, edge_index, size=None, **kwargs):
            return 2 * super().propagate(edge_index, size=size, **kwargs)

    x, edge_index = torch.randn(4, 3), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    torch.manual_seed(0)
    plain = DEMOConv(3, 4, aggr="sum", combine="add")
    torch.manual_seed(0)
    doubled = Doubled(3, 4, aggr="sum", combine="add")
    wanted = 2 * plain(x, edge_index) - plain.seed(x)  # the spline's bias is zero at the start
    torch.testing.assert_close(doubled(x, edge_index), wanted)
    doubled.explain = True
    doubled.explain = None  # PyG sets propagate anew, before and after an explanation
    torch.testing.assert_close(doubled(x, edge_index), wanted)


def test_message_and_aggregate_is_refused():
    class Fused(DEMOConv):
        def message_and_aggregate(self, edge_index):
            return edge_index

    with pytest.raises(DemonetError, match=r"Fused\.message_and_aggregate"):
        Fused(3, 4)
    conv = DEMOConv(3, 4)
    for kind in ("pre_hook", "hook"):
        with pytest.raises(DemonetError, match="message_and_aggregate"):
            getattr(conv, f"register_message_and_aggregate_forward_{kind}")(print)
