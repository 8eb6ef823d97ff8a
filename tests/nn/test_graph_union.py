"""A batch put together from kept pieces is the batch that would have been prepared by itself, number for number."""

from dataclasses import fields

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import features, graphs
from tests.reference.layers import PAPER
from torch_geometric.data import Batch, Data

from demonet import DegreeTasks, GraphDEMONet
from demonet.nn.prepared import GraphUnion

TASKS = {by: DegreeTasks.log2(8, by=by) for by in ("in", "out", "pair")}


def prepared(model, chosen):
    batch = Batch.from_data_list(chosen)
    options = {"batch": batch.batch, "num_graphs": batch.num_graphs, "edge_weight": batch.get("edge_weight")}
    return model.prepare(batch.x, batch.edge_index, **options)


def as_data(drawn, *, weighted):
    listed = []
    for number, (edge_index, num_nodes) in enumerate(drawn):
        data = Data(x=features(num_nodes, 3, number, torch.float32), edge_index=edge_index, num_nodes=num_nodes)
        if weighted:
            data.edge_weight = features(edge_index.size(1), 1, number, torch.float32)[:, 0]
        listed.append(data)
    return listed


@pytest.mark.parametrize("by", TASKS)
@pytest.mark.parametrize("weighted", [False, True])
@given(drawn=st.lists(graphs(), min_size=1, max_size=5), choose=st.data())
def test_equal_in_every_number(by, weighted, drawn, choose):
    data = as_data(drawn, weighted=weighted)
    model = GraphDEMONet(3, 2, TASKS[by], PAPER, scheme="smooth")
    sizes = ([graph.num_nodes for graph in data], [graph.edge_index.size(1) for graph in data])
    kept = GraphUnion(prepared(model, data), *sizes)
    rows = choose.draw(st.lists(st.integers(0, len(data) - 1), min_size=1, unique=True))
    cut = choose.draw(st.integers(0, len(rows) - 1))  # one batch, or two of them assembled together
    batches = [part for part in (rows[:cut], rows[cut:]) if part]
    for batch, found in zip(batches, kept.take([torch.tensor(part) for part in batches]), strict=True):
        same_numbers(found, prepared(model, [data[row] for row in batch]))


def same_numbers(found, expected):
    for name in ("x", "neighbourhood", "edge_weight", "batch"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None and other is None) or torch.equal(one, other), name
    assert found.num_graphs == expected.num_graphs
    for field in fields(found.layout):
        one, other = getattr(found.layout, field.name), getattr(expected.layout, field.name)
        same = torch.equal(one, other) and one.dtype == other.dtype if isinstance(one, torch.Tensor) else one == other
        assert same, field.name
