"""The models under torch.compile and torch.export: one whole graph, for graphs of any size."""

from dataclasses import fields

import pytest
import torch
from tests.nn.test_models import PIECES, SCHEMES, SHAPES, assert_same, graph_model, node_model, union
from tests.reference.graphs import drawn_by_seed, features
from tests.reference.layers import PAPER
from torch.export import Dim

from demonet import DegreeLayout, DegreeTasks, NodeDEMONet

TRACED = drawn_by_seed(12, 20, 0), drawn_by_seed(700, 900, 1)  # on either side of every choice by cost


@pytest.mark.parametrize(("number", "form"), [(0, "arcs"), (1, "prepared"), (2, "layout")], ids=SCHEMES[:3])
def test_node_models_compile_in_one_graph(number, form):
    torch._dynamo.reset()
    model = node_model(scheme=SCHEMES[number], **SHAPES[number])
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x = features(12, 3, 0)
    layout = DegreeLayout.from_edge_index(*TRACED[0])
    given_as = {"arcs": (x, TRACED[0].edge_index), "layout": (x, layout), "prepared": (model.prepare(x, layout),)}
    assert_same(compiled(*given_as[form]), model(*given_as[form]))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_matrix_for_every_degree_at_hand_compiles_in_one_graph(scheme):
    torch._dynamo.reset()
    layout = DegreeLayout.from_edge_index(*TRACED[0])
    model = NodeDEMONet(3, 2, DegreeTasks.exact(layout.degree), PAPER, scheme=scheme).double().eval()
    prepared = model.prepare(features(12, 3, 0), layout)
    assert_same(torch.compile(model, fullgraph=True, backend="aot_eager")(prepared), model(prepared))


@pytest.mark.parametrize("pooling", ["degree", "mean"])
def test_graph_models_compile_in_one_graph(pooling):
    torch._dynamo.reset()
    model, batch = graph_model(pooling=pooling, scheme="smooth"), union(PIECES)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    if pooling == "degree":
        found = compiled(batch.x, batch.edge_index, batch.batch, num_graphs=5)
        assert_same(found, model(batch.x, batch.edge_index, batch.batch, num_graphs=5))
    else:
        prepared = model.prepare(batch.x, batch.edge_index, batch=batch.batch, num_graphs=5)
        assert_same(compiled(prepared), model(prepared))


MODELS = [*(node_model(scheme=scheme, head="degree") for scheme in SCHEMES), graph_model()]


@pytest.mark.parametrize("model", MODELS, ids=[*SCHEMES, "graphs"])
def test_models_export_for_graphs_of_any_size(model):
    inputs = [(features(graph.num_nodes, 3, 0), graph.edge_index) for graph in TRACED]
    shapes = {"x": {0: Dim("n", min=2)}, "edge_index": {1: Dim("m", min=2)}}
    program = torch.export.export(model, inputs[0], dynamic_shapes=shapes).module()
    for pair in inputs:
        assert_same(program(*pair), model(*pair))
    layouts = [(features(graph.num_nodes, 3, 0), DegreeLayout.from_edge_index(*graph)) for graph in TRACED]
    values = [value for field in fields(DegreeLayout) if (value := getattr(layouts[0][1], field.name)) is not None]
    shapes = ({0: Dim.AUTO}, [{0: Dim.AUTO} if isinstance(value, torch.Tensor) else None for value in values])
    program = torch.export.export(model, layouts[0], dynamic_shapes=shapes).module()
    for pair in layouts:
        assert_same(program(*pair), model(*pair))
