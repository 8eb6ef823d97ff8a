"""DEMOConv under torch.compile and torch.export: one whole graph, for graphs of any size."""

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features
from torch.export import Dim

import demonet.nn.edges
from demonet import DegreeLayout, DegreeTasks, DEMOConv, DemonetError

SCHEMES = [
    ("weight", 256),
    ("hash", 256),
    ("hash", 2),
    ("smooth", 256),
    ("scale", 256),
]  # a hash of 2 is shorter than the features
SMALL, LARGE = drawn_by_seed(12, 20, 0), drawn_by_seed(700, 900, 1)


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def layer(scheme, hash_size, **options):
    return DEMOConv(3, 6, DegreeTasks.log2(8), scheme=scheme, hash_size=hash_size, bias=True, **options)


def run(conv, module, x, graph, weight=None):
    """The output, and the derivatives by the features and every parameter."""
    x = x.clone().requires_grad_()
    out = module(x, graph, weight)
    return out.detach(), *torch.autograd.grad(out.sin().sum(), [x, *conv.parameters()])


def assert_traced(conv, module, graphs, form, weighted=False):
    for graph in graphs:
        x = features(graph.num_nodes, 3, 0, torch.float32)
        weight = torch.rand(graph.edge_index.size(1)) if weighted else None
        given = DegreeLayout.from_edge_index(*graph) if form == "layout" else graph.edge_index
        torch.testing.assert_close(
            run(conv, module, x, given, weight), run(conv, conv, x, given, weight), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize(("scheme", "hash_size"), SCHEMES)
@pytest.mark.parametrize("form", ["arcs", "layout"])
def test_compile_in_one_graph(scheme, hash_size, form):
    conv = layer(scheme, hash_size, aggr="sqrt" if scheme == "hash" else "sym", combine="share")
    assert_traced(conv, torch.compile(conv, fullgraph=True, backend="aot_eager"), [SMALL, LARGE], form)


def test_compile_with_dynamic_sizes_traces_once():
    conv, count = layer("weight", 256), 0

    def counting(graph, inputs):
        nonlocal count
        count += 1
        return graph

    compiled = torch.compile(conv, fullgraph=True, backend=counting, dynamic=True)
    for nodes in (12, 30, 80, 200):
        graph = drawn_by_seed(nodes, 2 * nodes, nodes)
        x = features(nodes, 3, 0, torch.float32)
        torch.testing.assert_close(compiled(x, graph.edge_index), conv(x, graph.edge_index))
    assert count == 1


def test_compiled_calls_sort_the_same_edges_once(monkeypatch):
    conv, edges, nodes, sorts = layer("scale", 256), LARGE.edge_index.clone(), LARGE.num_nodes, []
    x, sort = features(nodes, 3, 0, torch.float32), demonet.nn.edges.neighbour_lists
    expected, compiled = run(conv, conv, x, edges), torch.compile(conv, fullgraph=True, backend="aot_eager")
    monkeypatch.setattr(demonet.nn.edges, "neighbour_lists", lambda *given: sorts.append(1) or sort(*given))
    for _ in range(3):
        torch.testing.assert_close(run(conv, compiled, x, edges), expected, rtol=1e-4, atol=1e-4)
    assert len(sorts) == 1
    changed = edges.clone()
    torch.testing.assert_close(compiled(x, changed), conv(x, changed))
    changed[:, :7] = 0
    torch.testing.assert_close(compiled(x, changed), conv(x, changed))


def test_compile_with_weights_degrees_and_a_training_step():
    conv = layer("smooth", 256, dropout=0.2)
    compiled = torch.compile(conv.eval(), fullgraph=True, backend="aot_eager")
    assert_traced(conv, compiled, [SMALL], "arcs", weighted=True)
    assert_traced(conv, compiled, [SMALL], "layout", weighted=True)
    x, degree = features(12, 3, 0, torch.float32), torch.arange(12)
    torch.testing.assert_close(compiled(x, SMALL.edge_index, degree=degree), conv(x, SMALL.edge_index, degree=degree))
    assert torch.isfinite(torch.compile(conv.train(), fullgraph=True, backend="aot_eager")(x, SMALL.edge_index)).all()


def test_an_exported_program_still_refuses_bad_arcs():
    conv = layer("weight", 256)
    x = features(12, 3, 0, torch.float32)
    shapes = {"x": {0: Dim("n", min=2)}, "edge_index": {1: Dim("m", min=2)}}
    program = torch.export.export(conv, (x, SMALL.edge_index), dynamic_shapes=shapes).module()
    with pytest.raises(ValueError, match=r"\b12\b.*edge_index\[1, 0\]"):
        program(x, torch.tensor([[0, 1], [12, 0]]))


@pytest.mark.parametrize("scheme", ["scale", "weight"])
def test_torch_jit_trace_is_refused(scheme):
    """It would record the sorted edges of one graph as constants."""
    conv = layer(scheme, 256).eval()
    with torch.no_grad(), pytest.raises(DemonetError, match=r"torch\.jit\.trace.*torch\.export"):
        torch.jit.trace(conv, (features(12, 3, 0, torch.float32), SMALL.edge_index))
