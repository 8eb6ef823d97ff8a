"""Union and Intersection: walks against the closed form, who is added, what is never added."""

import pytest
import torch
from tests.reference.graphs import from_arcs
from torch_geometric.data import Data

from demonet import methods
from demonet.data.splits import Split
from demonet.data.synthetic import barbell, role_graph
from demonet.features.graph import adjacency
from demonet.train import TrainConfig
from demonet_study.methods.co_training import absorbing_walks, labels_per_class, most_confident


def closed_form(data, y, train, alpha):
    n = data.num_nodes
    a = torch.from_numpy(adjacency(data).toarray()).double()
    p = torch.linalg.inv(torch.diag(a.sum(1)) - a + alpha * torch.eye(n, dtype=torch.float64))
    return torch.stack([p[:, train[y[train] == label]].sum(1) for label in range(int(y.max()) + 1)], 1)


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-6])
def test_walks_against_the_closed_form(alpha):
    """Two components and an isolated node; what matters is the order, so constants are taken out for small α."""
    arcs, n = from_arcs(9, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (4, 5), (5, 6), (6, 7)], undirected=True)
    data = Data(edge_index=arcs, num_nodes=n)
    y, train = torch.tensor([0, 1, 0, 2, 0, 1, 2, 2, 0]), torch.tensor([0, 1, 3, 4, 7])
    found, expected = absorbing_walks(adjacency(data), y, train, alpha), closed_form(data, y, train, alpha)
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=0)
    for part in (slice(0, 4), slice(4, 8)):
        torch.testing.assert_close(
            found[part] - found[part].mean(0), expected[part] - expected[part].mean(0), rtol=1e-3, atol=1e-6
        )


def test_who_is_added():
    """Two of each class; node 1 stands first for both classes and goes to the lower one, node 4 may not be added."""
    sure = torch.tensor([[0.5, 0.0], [0.9, 0.9], [0.3, 0.8], [0.1, 0.7], [1.0, 1.0]])
    allowed = torch.tensor([True, True, True, True, False])
    assert most_confident(sure, allowed, 2).tolist() == [0, 0, 1, -1, -1]
    assert most_confident(sure, allowed, 9).tolist() == [0, 0, 1, 1, -1]


@pytest.mark.parametrize(("name", "expected"), [("union", [0, 1, -1, 2, -1]), ("intersection", [0, -1, -1, -1, -1])])
def test_joined(name, expected):
    walks, network = torch.tensor([0, 1, 2, -1, -1]), torch.tensor([0, -1, 1, 2, -1])
    assert methods.get(name)()._combine(walks, network).tolist() == expected


def test_how_many_are_needed():
    """100 nodes of mean degree 2: two layers reach 4, so 25 labels in all."""
    ring, n = from_arcs(100, [(i, (i + 1) % 100) for i in range(100)], undirected=True)
    assert labels_per_class(Data(edge_index=ring, num_nodes=n), 5) == 5
    assert labels_per_class(barbell(10, 10), 3) == 1


@pytest.mark.parametrize("name", ["union", "intersection"])
def test_labels_are_added_where_they_are_not_known(name):
    data = role_graph(0, motifs=8)
    n = data.num_nodes
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(n, generator=generator)
    split = Split("s", 0, order[:30], order[30:40], order[40:])
    data.y = data.y % 3
    method = methods.get(name)(train=TrainConfig(lr=0.01, epochs=30), added=6).fit(data, split)
    assert bool((method.added[split.train] == -1).all())
    assert bool((method.added[split.val] == -1).all())
    count = int((method.added >= 0).sum())
    assert count > 0
    assert count <= (36 if name == "union" else 18)
