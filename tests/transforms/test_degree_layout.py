"""ToDegreeLayout: the same graph in degree order, and the way back; AddDegree: true degrees for sampled nodes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed, features, graphs
from tests.reference.layers import PAPER
from torch_geometric import EdgeIndex, typing
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import BaseTransform, Compose

from demonet import DemonetError
from demonet.data.synthetic import power_law
from demonet.degree import DegreeLayout, DegreeTasks, count_degree
from demonet.nn import DEMOConv, NodeDEMONet
from demonet.transforms import AddDegree, ToDegreeLayout

SIDES = st.sampled_from(["in", "out", "pair"])


def data_of(graph):
    """A graph with everything that a node or an edge may have."""
    n, m = graph.num_nodes, graph.edge_index.size(1)
    return Data(
        x=features(n, 3, 0),
        edge_index=graph.edge_index,
        edge_weight=features(m, 1, 1)[:, 0],
        y=torch.arange(n),
        train_mask=torch.arange(n) % 2 == 0,
        further=features(n, 2, 2),
        names=[f"node {v}" for v in range(n)],
        array=np.arange(n),
        num_nodes=n,
    )


@given(graph=graphs(min_nodes=0), by=SIDES)
def test_a_model_gives_the_same_rows(graph, by):
    data = data_of(graph)
    torch.manual_seed(0)
    tasks = DegreeTasks.exact(count_degree(graph.edge_index, graph.num_nodes, by), by=by)
    model = NodeDEMONet(3, 2, tasks, PAPER).double().eval()
    conv = DEMOConv(3, 4, tasks, bias=True, act="elu").double()
    ready = ToDegreeLayout(by)(data)
    torch.testing.assert_close(
        model(ready.x, ready.layout, ready.edge_weight)[ready.degree_rank],
        model(data.x, data.edge_index, data.edge_weight),
    )
    for edges in (ready.layout, ready.edge_index):
        out = conv(ready.x, edges, ready.edge_weight)
        torch.testing.assert_close(out[ready.degree_rank], conv(data.x, data.edge_index, data.edge_weight))


@given(graph=graphs(), by=SIDES)
def test_the_way_back(graph, by):
    data = data_of(graph)
    ready = ToDegreeLayout(by)(data)
    order, rank = ready.degree_order, ready.degree_rank
    assert torch.equal(order[rank], torch.arange(graph.num_nodes))
    for key in ("x", "y", "train_mask", "further"):
        assert torch.equal(ready[key], data[key][order])
        assert torch.equal(ready[key][rank], data[key])
    assert ready.names == [data.names[v] for v in order.tolist()]
    assert np.array_equal(ready.array, data.array[order.numpy()])
    before = sorted(zip(*data.edge_index.tolist(), data.edge_weight.tolist(), strict=True))
    after = sorted(zip(*order[ready.edge_index].tolist(), ready.edge_weight.tolist(), strict=True))
    assert before == after


@given(graph=graphs(), by=SIDES)
def test_rows_and_edges_are_in_the_layouts_order(graph, by):
    ready = ToDegreeLayout(by)(data_of(graph))
    layout = ready.layout
    assert layout.order is None
    assert layout.edge is None
    assert torch.equal(layout.key, count_degree(ready.edge_index, graph.num_nodes, by))
    assert torch.equal(layout.neighbours.long(), ready.edge_index[0])
    assert torch.equal(torch.repeat_interleave(layout.pointer.diff()), ready.edge_index[1])
    whole = DegreeLayout.from_edge_index(ready.edge_index, graph.num_nodes, by=by)
    assert torch.equal(whole.order, torch.arange(graph.num_nodes))


@given(graph=graphs())
def test_twice_is_once(graph):
    once = ToDegreeLayout()(data_of(graph))
    twice = ToDegreeLayout()(once)
    for key in ("x", "edge_index", "edge_weight", "degree_order", "degree_rank"):
        assert torch.equal(twice[key], once[key])


def test_node_ids_in_other_attributes_are_renumbered():
    graph = drawn_by_seed(9, 12, 3, undirected=False)
    pairs = torch.tensor([[0, 4, 8], [1, 1, 2]])
    data = Data(x=features(9, 2, 0), edge_index=graph.edge_index, edge_label_index=pairs, train_index=torch.arange(4))
    ready = ToDegreeLayout()(data)
    assert torch.equal(ready.degree_order[ready.edge_label_index], pairs)
    assert torch.equal(ready.degree_order[ready.train_index], torch.arange(4))


def test_the_input_stays_as_it_was():
    graph = drawn_by_seed(9, 12, 3)
    data = Data(x=features(9, 2, 0), edge_index=graph.edge_index)
    ToDegreeLayout()(data)
    assert "layout" not in data
    assert torch.equal(data.x, features(9, 2, 0))
    assert torch.equal(data.edge_index, graph.edge_index)


def test_sparse_features_and_edge_index_classes():
    graph = drawn_by_seed(9, 12, 3)
    edges = EdgeIndex(graph.edge_index, sparse_size=(9, 9))
    dense = features(9, 4, 0).relu()
    ready = ToDegreeLayout()(Data(x=dense.to_sparse_csr(), edge_index=edges, num_nodes=9))
    assert torch.equal(ready.x.to_dense(), dense[ready.degree_order])
    assert isinstance(ready.edge_index, EdgeIndex)
    ready.edge_index.validate()
    assert ready.edge_index.is_sorted_by_col


@pytest.mark.filterwarnings("ignore:Unable to accurately infer 'num_nodes'")
def test_nodes_known_by_their_edges_alone_keep_their_number():
    edge_index = torch.tensor([[2, 2, 1], [0, 0, 0]])  # by outgoing edges, the last row is a node without incoming ones
    ready = ToDegreeLayout("out")(Data(edge_index=edge_index))
    assert ready.num_nodes == ready.layout.num_nodes == 3


def test_what_has_no_order_is_refused(refuses):
    graph = drawn_by_seed(5, 6)
    data = Data(edge_index=graph.edge_index, num_nodes=5)
    refuses(lambda: ToDegreeLayout()(Batch.from_data_list([data, data])), "Batch")
    refuses(lambda: ToDegreeLayout()(HeteroData()), "HeteroData")
    refuses(lambda: ToDegreeLayout()(Data(num_nodes=3)), "edge_index")
    refuses(lambda: ToDegreeLayout("both"), "'both'")


GRAPH = power_law(200, 800, hub=80, seed=3)
DEGREE = count_degree(GRAPH.edge_index, 200)
X = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))


def test_degrees_are_attached():
    transform = AddDegree()
    assert isinstance(transform, BaseTransform)
    assert torch.equal(Compose([transform])(Data(edge_index=GRAPH.edge_index, num_nodes=200)).degree, DEGREE)
    pair = AddDegree(by="pair")(Data(edge_index=GRAPH.edge_index, num_nodes=200)).degree
    assert torch.equal(pair, count_degree(GRAPH.edge_index, 200, "pair"))
    with pytest.raises(DemonetError, match="by='both'"):
        AddDegree(by="both")
    for wrong in (None, torch.tensor([[0], [7]]), torch.tensor([[0.5], [0.5]])):
        with pytest.raises(DemonetError, match="edge_index"):
            AddDegree()(Data(edge_index=wrong, num_nodes=3))


@pytest.mark.skipif(not (typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE), reason="NeighborLoader needs pyg-lib")
def test_batches_of_neighbor_loader_carry_them():
    from torch_geometric.loader import NeighborLoader

    data = AddDegree()(Data(x=X, edge_index=GRAPH.edge_index, num_nodes=200))
    for batch in NeighborLoader(data, [5], batch_size=32):
        assert torch.equal(batch.degree, DEGREE[batch.n_id])
