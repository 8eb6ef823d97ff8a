"""AddDegree: a sampled subgraph through the models with the degrees of the whole graph."""

from __future__ import annotations

import pytest
import torch
from torch_geometric import typing
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform, Compose

from demonet import DegreeLayout, DEMOConv, DemonetError
from demonet.data.synthetic import power_law
from demonet.degree.count import count_degree
from demonet.degree.tasks import DegreeTasks
from demonet.nn.models import NodeDEMONet
from demonet.transforms import AddDegree

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


@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
@pytest.mark.parametrize("as_layout", [False, True])
def test_a_model_takes_the_degrees_of_the_whole_graph(scheme, as_layout):
    """All neighbours of the seeds are in the sample, but not all of their neighbours' neighbours."""
    data = AddDegree()(Data(x=X, edge_index=GRAPH.edge_index, num_nodes=200))
    seeds = torch.tensor([3, 150])
    inside = torch.isin(data.edge_index[1], seeds)
    nodes = torch.cat([seeds, data.edge_index[0][inside]]).unique()
    batch = data.subgraph(nodes)
    assert torch.equal(batch.degree, DEGREE[nodes])
    torch.manual_seed(0)
    model = NodeDEMONet(6, 3, DegreeTasks.exact(DEGREE), scheme=scheme, layers=1, hidden=8).eval()
    edges = DegreeLayout.from_edge_index(batch.edge_index, nodes.numel()) if as_layout else batch.edge_index
    rows = torch.searchsorted(nodes, seeds)
    with torch.no_grad():
        whole = model(data.x, data.edge_index)[seeds]
        assert torch.allclose(model(batch.x, edges, degree=batch.degree)[rows], whole, atol=1e-5)
        conv = DEMOConv(6, 8, DegreeTasks.exact(DEGREE), scheme=scheme)
        found = conv(batch.x, edges, degree=batch.degree)[rows]
        assert torch.allclose(found, conv(data.x, data.edge_index)[seeds], atol=1e-5)


def test_without_them_the_sample_decides():
    data = AddDegree()(Data(x=X, edge_index=GRAPH.edge_index, num_nodes=200))
    half = data.edge_subgraph(torch.arange(data.edge_index.size(1)) % 2 == 0)
    model = NodeDEMONet(6, 3, DegreeTasks.exact(DEGREE), scheme="weight", layers=1, hidden=8).eval()
    with torch.no_grad():
        scores = model(half.x, half.edge_index, degree=half.degree)
        assert not torch.allclose(scores, model(half.x, half.edge_index), atol=1e-3)


@pytest.mark.skipif(not (typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE), reason="NeighborLoader needs pyg-lib")
def test_batches_of_neighbor_loader_carry_them():
    from torch_geometric.loader import NeighborLoader

    data = AddDegree()(Data(x=X, edge_index=GRAPH.edge_index, num_nodes=200))
    for batch in NeighborLoader(data, [5], batch_size=32):
        assert torch.equal(batch.degree, DEGREE[batch.n_id])
