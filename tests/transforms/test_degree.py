"""AddDegree: a sampled subgraph through the models with the degrees of the whole graph."""

from __future__ import annotations

import pytest
import torch
from tests.reference.layers import PAPER
from torch_geometric import typing
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform, Compose

from demonet import DegreeLayout, DemonetError
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


def sampled(data, seeds, fanouts, generator):
    """A batch as ``NeighborLoader`` makes it: the seeds first, some incoming edges of each node hop by hop."""
    source, target = data.edge_index
    nodes, drawn, hop = seeds.tolist(), [], seeds.tolist()
    for fanout in fanouts:
        found = []
        for node in hop:
            own = (target == node).nonzero().view(-1)
            own = own[torch.randperm(own.numel(), generator=generator)[:fanout]]
            drawn += own.tolist()
            found += source[own].tolist()
        hop = [node for node in dict.fromkeys(found) if node not in nodes]
        nodes += hop
    n_id = torch.tensor(nodes)
    place = torch.full((data.num_nodes,), -1)
    place[n_id] = torch.arange(n_id.numel())
    edges = place[data.edge_index[:, torch.tensor(drawn)]]
    values = {name: data[name][n_id] for name in ("x", "degree")}
    return Data(edge_index=edges, n_id=n_id, batch_size=seeds.numel(), **values)


@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
@pytest.mark.parametrize("as_layout", [False, True])
def test_a_sampled_batch_of_two_hops_has_the_scores_of_the_whole_graph(scheme, as_layout):
    """Where all neighbours of a node are alike, as in complete bipartite graphs, the mean of some is that of all."""
    left, right, first = [], [], 0
    for a, b in ((3, 8), (5, 2), (9, 4)):
        pairs = torch.cartesian_prod(torch.arange(a), torch.arange(b)).T
        left.append(first + pairs[0])
        right.append(first + a + pairs[1])
        first += a + b
    ends = torch.cat(left), torch.cat(right)
    edges = torch.stack([torch.cat(ends), torch.cat(ends[::-1])])
    data = AddDegree()(Data(x=torch.ones(first, 4), edge_index=edges, num_nodes=first))
    torch.manual_seed(0)
    options = {"scheme": scheme, "layers": 2, "hidden": 8, "aggr": "mean", "hash_size": 8}
    model = NodeDEMONet(4, 3, DegreeTasks.exact(data.degree), PAPER, **options).eval()
    seeds = torch.arange(0, first, 3)
    batch = sampled(data, seeds, [2, 2], torch.Generator().manual_seed(0))
    assert bool((count_degree(batch.edge_index, batch.n_id.numel()) <= 2).all())
    edges = DegreeLayout.from_edge_index(batch.edge_index, len(batch.x)) if as_layout else batch.edge_index
    with torch.no_grad():
        whole = model(data.x, data.edge_index)[seeds]
        found = model(batch.x, edges, degree=batch.degree)[: batch.batch_size]
        assert torch.allclose(found, whole, atol=1e-5)
        assert not torch.allclose(model(batch.x, edges)[: batch.batch_size], whole, atol=1e-3)


@pytest.mark.skipif(not (typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE), reason="NeighborLoader needs pyg-lib")
def test_batches_of_neighbor_loader_carry_them():
    from torch_geometric.loader import NeighborLoader

    data = AddDegree()(Data(x=X, edge_index=GRAPH.edge_index, num_nodes=200))
    for batch in NeighborLoader(data, [5], batch_size=32):
        assert torch.equal(batch.degree, DEGREE[batch.n_id])
