"""What must not matter to DEMOConv: numbering, order, batching, and what lies outside a neighbourhood."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed, features, graphs, seeds
from torch_geometric.data import Batch, Data

from demonet.degree import DegreeLayout, DegreeTasks
from demonet.nn import DEMOConv
from demonet.nn import weights as schemes

SCHEMES = sorted(schemes.SCHEMES)


def layer(scheme, *, aggr="sum", combine="concat", in_channels=3, seed=0, **options):
    torch.manual_seed(seed)
    tasks = DegreeTasks.exact(torch.tensor([0, 1, 2, 3]))
    return DEMOConv(in_channels, 6, tasks, scheme=scheme, aggr=aggr, combine=combine, hash_size=4, **options)


@pytest.mark.parametrize("scheme", SCHEMES)
@given(graph=graphs(), seed=seeds, data=st.data())
def test_renumbering_nodes_permutes_the_output(scheme, graph, seed, data):
    conv = layer(scheme, aggr="sqrt").double()
    place = torch.tensor(data.draw(st.permutations(range(graph.num_nodes))))
    x = features(graph.num_nodes, 3, seed)
    renumbered = torch.empty_like(x)
    renumbered[place] = x
    out, edge_index = conv(x, graph.edge_index), place[graph.edge_index]
    torch.testing.assert_close(conv(renumbered, edge_index)[place], out)
    layout = DegreeLayout.from_edge_index(edge_index, graph.num_nodes)
    torch.testing.assert_close(conv(renumbered, layout)[place], out)


@pytest.mark.parametrize("scheme", SCHEMES)
@given(graph=graphs(max_nodes=12), seed=seeds, data=st.data())
def test_reordering_arcs_changes_not_one_bit(scheme, graph, seed, data):
    """In float32, forward and backward; weights on simple arcs: between parallel ones the order decides."""
    conv = layer(scheme, aggr="mean")
    weighted = data.draw(st.booleans())
    edge_index = torch.unique(graph.edge_index, dim=1) if weighted else graph.edge_index
    shuffle = torch.tensor(data.draw(st.permutations(range(edge_index.size(1)))), dtype=torch.long)
    x = features(graph.num_nodes, 3, seed, torch.float32).requires_grad_()
    weight = features(edge_index.size(1), 1, seed, torch.float32)[:, 0] if weighted else None

    def run(edge_index, weight, form):
        given = form(edge_index)
        out = conv(x, given, weight)
        return out, *torch.autograd.grad(out.sin().sum(), [x, *conv.parameters()])

    for form in (lambda e: e, lambda e: DegreeLayout.from_edge_index(e, graph.num_nodes)):
        one, other = (
            run(edge_index, weight, form),
            run(edge_index[:, shuffle], weight if weight is None else weight[shuffle], form),
        )
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("scheme", SCHEMES)
@given(parts=st.lists(graphs(), min_size=1, max_size=4), seed=seeds)
def test_a_batch_equals_its_graphs_one_by_one(scheme, parts, seed):
    conv = layer(scheme).double()
    data = [Data(x=features(n, 3, seed + i), edge_index=e) for i, (e, n) in enumerate(parts)]
    alone = torch.cat([conv(d.x, d.edge_index) for d in data])
    batch = Batch.from_data_list(data)
    torch.testing.assert_close(conv(batch.x, batch.edge_index), alone)
    torch.testing.assert_close(conv(batch.x, DegreeLayout.from_edge_index(batch.edge_index, len(batch.x))), alone)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_dropout_acts_on_the_halves_and_not_on_the_bias(scheme):
    conv = layer(scheme, dropout=0.5, bias=True)
    torch.nn.init.constant_(conv.bias, 100.0)
    graph = drawn_by_seed(50, 200, 0)
    x = features(50, 3, 0, torch.float32)
    torch.manual_seed(1)
    ratio = (conv(x, graph.edge_index) - 100) / (conv.eval()(x, graph.edge_index) - 100)
    kept = ratio.abs() > 1e-2
    torch.testing.assert_close(ratio[kept], torch.full_like(ratio[kept], 2.0), rtol=1e-2, atol=1e-2)
    assert 0.35 < kept[:, :3].float().mean() < 0.65
    assert 0.35 < kept[:, 3:].float().mean() < 0.65
