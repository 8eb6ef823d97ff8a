"""DegreeLayout: the same graph, in degree order."""

import copy
import pickle
from dataclasses import fields

import pytest
import torch
import torch.utils._pytree as pytree
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import Graph, drawn_by_seed, from_arcs, graphs
from tests.reference.layers import node_degrees
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from demonet import AddDegreeLayout, DegreeLayout, DegreeTasks, DEMOConv, DEMONet, DemonetError, GraphDEMONet

SIDES = st.sampled_from(["in", "out", "pair"])


def lists(pointer, neighbours):
    """Every list on its own."""
    return [neighbours[pointer[v] : pointer[v + 1]].tolist() for v in range(pointer.numel() - 1)]


def assert_equal_layouts(a, b):
    for field in fields(DegreeLayout):
        x, y = getattr(a, field.name), getattr(b, field.name)
        assert torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y, field.name


@given(graph=graphs(min_nodes=0), by=SIDES)
def test_rows_are_nodes_by_degree_and_every_degree_is_a_slice(graph, by):
    """Ties are settled by in-degree, then by id: the layout is a function of the graph alone."""
    layout, everyone = DegreeLayout.from_edge_index(*graph, by=by), torch.arange(graph.num_nodes)
    incoming, key = node_degrees(*graph), node_degrees(*graph, by)
    assert layout.order.tolist() == sorted(range(graph.num_nodes), key=lambda v: (key[v], incoming[v], v))
    assert torch.equal(layout.order[layout.rank], everyone)
    assert torch.equal(layout.leave(layout.enter(everyone)), everyone)
    assert (layout.num_nodes, layout.num_edges) == (graph.num_nodes, graph.edge_index.size(1))
    found, degrees = (
        [tuple(d) if by == "pair" else d for d in values.tolist()] for values in (layout.degree, layout.degrees)
    )
    assert found == key
    assert degrees == sorted(set(key))
    bounds = layout.offsets.tolist()
    assert (bounds[0], bounds[-1]) == (0, graph.num_nodes)
    for degree, start, end in zip(degrees, bounds[:-1], bounds[1:], strict=True):
        assert {key[v] for v in layout.order[start:end].tolist()} == {degree}


@given(graph=graphs(min_nodes=0), by=SIDES)
def test_lists_hold_each_nodes_neighbours_and_lead_back_to_the_edges(graph, by):
    layout = DegreeLayout.from_edge_index(*graph, by=by)
    expected = [[] for _ in range(graph.num_nodes)]
    for source, target in graph.edge_index.t().tolist():
        expected[layout.rank[target]].append(int(layout.rank[source]))
    assert lists(layout.pointer, layout.neighbours) == [sorted(row) for row in expected]
    owner = torch.repeat_interleave(layout.pointer.diff())
    edge, entry = layout.edge.long(), layout.back_entry.long()
    assert sorted(edge.tolist()) == sorted(entry.tolist()) == list(range(layout.num_edges))
    assert torch.equal(layout.rank[graph.edge_index][:, edge], torch.stack([layout.neighbours.long(), owner]))
    # The reversed lists are the transpose.
    assert torch.equal(layout.neighbours[entry].long(), torch.repeat_interleave(layout.back_pointer.diff()))
    assert torch.equal(owner[entry], layout.back_neighbours.long())


@given(graph=graphs(min_nodes=0))
def test_undirected_graphs_share_their_lists_and_only_they(graph):
    layout = DegreeLayout.from_edge_index(*graph)
    arcs = graph.edge_index.t().tolist()
    symmetric = sorted(arcs) == sorted([v, u] for u, v in arcs)
    assert layout.is_undirected == symmetric
    assert (layout.back_neighbours is layout.neighbours) == symmetric
    assert (layout.back_pointer is layout.pointer) == symmetric


@given(graph=graphs(), by=SIDES, data=st.data())
def test_the_order_of_the_arcs_leaves_no_trace(graph, by, data):
    shuffle = data.draw(st.permutations(range(graph.edge_index.size(1))))
    shuffled = graph.edge_index[:, list(shuffle)]
    one, other = (DegreeLayout.from_edge_index(e, graph.num_nodes, by=by) for e in (graph.edge_index, shuffled))
    for name in ("order", "rank", "key", "degrees", "offsets", "pointer", "neighbours"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    assert torch.equal(graph.edge_index[:, one.edge.long()], shuffled[:, other.edge.long()])


@given(graph=graphs(), by=SIDES)
def test_sorted_is_the_same_graph_numbered_by_row(graph, by):
    layout = DegreeLayout.from_edge_index(*graph, by=by)
    relabelled = DegreeLayout.from_edge_index(layout.rank[graph.edge_index], graph.num_nodes, by=by)
    inside = layout.sorted()
    assert inside.order is None
    assert inside.rank is None
    rows = torch.arange(graph.num_nodes)
    assert inside.enter(rows) is rows
    assert inside.leave(rows) is rows
    assert torch.equal(relabelled.order, rows)
    for name in ("key", "degrees", "offsets", "pointer", "neighbours", "back_pointer", "back_neighbours"):
        assert torch.equal(getattr(inside, name), getattr(relabelled, name)), name
    assert inside.is_undirected == layout.is_undirected


def test_a_batch_is_the_disjoint_union_of_its_graphs():
    parts = [drawn_by_seed(5, 4, 0), from_arcs(1, []), drawn_by_seed(7, 9, 1, undirected=False)]
    data = [Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes) for graph in parts]
    layout = AddDegreeLayout()(Batch.from_data_list(data)).layout
    shift, arcs = 0, []
    for graph in parts:
        arcs += [(u + shift, v + shift) for u, v in graph.edge_index.t().tolist()]
        shift += graph.num_nodes
    assert_equal_layouts(layout, DegreeLayout.from_edge_index(*from_arcs(shift, arcs)))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.int8, torch.uint8])
def test_node_ids_of_any_integer_type(dtype):
    graph = drawn_by_seed(9, 12)
    layout = DegreeLayout.from_edge_index(graph.edge_index.to(dtype), 9)
    assert_equal_layouts(layout, DegreeLayout.from_edge_index(*graph))


def test_edge_index_class_and_counted_nodes():
    graph = drawn_by_seed(9, 30)
    assert int(graph.edge_index.max()) == 8
    wrapped = EdgeIndex(graph.edge_index, sparse_size=(9, 9))
    assert_equal_layouts(DegreeLayout.from_edge_index(wrapped), DegreeLayout.from_edge_index(*graph))
    assert DegreeLayout.from_edge_index(torch.empty(2, 0, dtype=torch.long)).num_nodes == 0


def test_to_copies_of_every_kind_keep_what_is_shared():
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(6, 9))
    layout.cache["derived"] = 1
    assert layout.sorted().cache is layout.cache
    leaves, spec = pytree.tree_flatten(layout)
    copies = [
        layout.to("cpu"),
        copy.deepcopy(layout),
        pickle.loads(pickle.dumps(layout)),
        pytree.tree_unflatten(leaves, spec),
        Data(layout=layout).to("cpu").layout,
    ]
    for other in copies:
        assert_equal_layouts(layout, other)
        assert other.is_undirected
        assert other.cache == {}
    assert len([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]) == 11


def test_to_another_device_moves_every_tensor_once():
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(6, 9)).to("meta")
    tensors = [value for field in fields(layout) if isinstance(value := getattr(layout, field.name), torch.Tensor)]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert layout.is_undirected
    moved = Data(layout=DegreeLayout.from_edge_index(*drawn_by_seed(6, 9))).to("meta").layout
    assert moved.key.device.type == "meta"


@pytest.mark.parametrize("by", ["in", "out", "pair"])
def test_transform_attaches_the_layout(by):
    graph = drawn_by_seed(6, 7, undirected=False)
    data = Data(edge_index=graph.edge_index, num_nodes=6)
    out = AddDegreeLayout(by)(data)
    assert_equal_layouts(out.layout, DegreeLayout.from_edge_index(*graph, by=by))
    assert "layout" not in data, "a transform leaves its input as it was"


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "named"),
    [
        ([[0, 3], [1, 0]], 3, r"\b3\b.*edge_index\[0, 1\]"),
        ([[0.0, 1.0], [1.0, 0.0]], 2, "float32"),
        ([[0], [-1]], None, "-1"),
    ],
)
def test_bad_arcs_are_refused_by_name(edge_index, num_nodes, named):
    with pytest.raises(DemonetError, match=named):
        DegreeLayout.from_edge_index(torch.tensor(edge_index), num_nodes)


def test_unknown_side_is_refused():
    with pytest.raises(DemonetError, match="'both'"):
        DegreeLayout.from_edge_index(*Graph(torch.tensor([[0], [0]]), 1), by="both")


def test_pyg_takes_an_attached_layout_along(monkeypatch):
    # PyG calls .cpu() and .cuda() on what it does not know, and drops the error where there is no such method.
    asked = []
    monkeypatch.setattr(DegreeLayout, "to", lambda self, device, non_blocking=False: asked.append(str(device)))
    data = AddDegreeLayout()(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
    data.clone().cpu()
    data.layout.cuda()
    data.layout.cuda(1)
    assert asked == ["cpu", "cuda", "1"]


def test_a_loader_of_graphs_with_layouts():
    """PyG makes a list of them; layer and models take it as the layout of the batch."""
    graphs = [drawn_by_seed(nodes, 2 * nodes, nodes, undirected=False) for nodes in (5, 9, 3, 6)]
    data = [Data(x=torch.randn(n, 4), edge_index=edges, edge_weight=torch.rand(edges.size(1))) for edges, n in graphs]
    conv, model = DEMOConv(4, 3), DEMONet(4, 8, 2, 3)
    for batch in DataLoader([AddDegreeLayout()(one) for one in data], batch_size=2):
        assert isinstance(batch.layout, list)
        weight = batch.edge_weight
        torch.testing.assert_close(conv(batch.x, batch.layout, weight), conv(batch.x, batch.edge_index, weight))
        torch.testing.assert_close(model(batch.x, batch.layout), model(batch.x, batch.edge_index))
        whole = GraphDEMONet(4, 2, DegreeTasks.log2(8)).eval()
        torch.testing.assert_close(
            whole(batch.x, batch.layout, batch.batch), whole(batch.x, batch.edge_index, batch.batch)
        )
