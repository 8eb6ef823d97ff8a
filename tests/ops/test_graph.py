"""Schedules are made once for a graph, also where operators get its tensors only, and go with it."""

import gc
import weakref

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

from demonet import DegreeLayout, DegreeTasks, DEMOConv
from demonet.ops import graph as module
from demonet.ops.graph import Graph, tensors_of


def test_the_same_tensors_are_the_same_schedules():
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(30, 60, 0))
    x = features(30, 3, 0)
    one, other = Graph(*tensors_of(layout, x)), Graph(*tensors_of(layout.sorted(), x))
    assert one.blocks is other.blocks is Graph.of(layout).blocks
    assert one.buffers is other.buffers


def test_schedules_go_with_the_graph():
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(30, 60, 0))
    graph = Graph.of(layout)
    for name in ("blocks", "tiles", "back_tiles", "groups", "buffers"):
        getattr(graph, name)
    graph.pieces_for(torch.zeros(30, 1))
    assert layout.offsets in module._SCHEDULES
    alive = [weakref.ref(layout.offsets), weakref.ref(graph.buffers)]
    del layout, graph
    gc.collect()
    assert [each() for each in alive] == [None, None]


@pytest.mark.parametrize("cut", ["cut_blocks", "cut_pieces"])
def test_a_compiled_layer_makes_its_schedule_once(monkeypatch, override, cut):
    override(piece_graph_rows=1 if cut == "cut_pieces" else 10**9)
    count, make = [], getattr(module, cut)
    monkeypatch.setattr(module, cut, lambda *given: count.append(1) or make(*given))
    torch._dynamo.reset()
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(40, 90, 0))
    conv = DEMOConv(3, 6, DegreeTasks.log2(8), scheme="weight", aggr="sum", combine="concat", act="relu", dropout=0.3)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    x = features(40, 3, 0, torch.float32).requires_grad_()
    for _ in range(3):
        compiled(x, layout).sum().backward()
    assert len(count) == 1


def test_a_compiled_layer_drops_the_same_entries():
    torch._dynamo.reset()
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(40, 90, 0))
    conv = DEMOConv(3, 6, DegreeTasks.log2(8), bias=True, act="elu", dropout=0.3)
    x = features(40, 3, 0, torch.float32)
    found = []
    for call in (conv, torch.compile(conv, fullgraph=True, backend="aot_eager")):
        torch.manual_seed(3)
        found.append(call(x, layout))
    torch.testing.assert_close(*found)
