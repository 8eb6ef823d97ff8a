"""Input at the edges of use: forms that models take, and what layers and models refuse by name."""

import pytest
import torch
from torch_geometric.utils import degree as pyg_degree

from demonet import DegreeTasks, DEMOConv, DemonetError, GraphDEMONet, NodeDEMONet
from demonet.nn import weights as schemes

EDGES = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 1]])
TASKS = DegreeTasks.exact(torch.tensor([0, 1, 3]))


def features(seed: int = 0) -> torch.Tensor:
    return torch.randn(5, 4, generator=torch.Generator().manual_seed(seed))


def adjacency() -> torch.Tensor:
    return torch.sparse_coo_tensor(EDGES.flip(0), torch.ones(5), (5, 5)).to_sparse_csr()


@pytest.mark.parametrize("model", [NodeDEMONet, GraphDEMONet])
def test_models_take_a_sparse_adjacency(model):
    torch.manual_seed(0)
    net = model(4, 3, TASKS).eval()
    expected = net(features(), EDGES)
    torch.testing.assert_close(net(features(), adjacency()), expected)
    torch.testing.assert_close(net(net.prepare(features(), adjacency())), expected)


@pytest.mark.parametrize("model", [NodeDEMONet, GraphDEMONet])
def test_models_refuse_nan(model):
    x = features()
    x[3, 2] = float("nan")
    with pytest.raises(DemonetError, match=r"\bnan\b.*row 3\b.*column 2\b"):
        model(4, 3, TASKS)(x, EDGES)
    weight = torch.tensor([1.0, 1.0, float("nan"), 1.0, 1.0])
    with pytest.raises(DemonetError, match=r"weight\b.*\bnan\b.*edge 2\b"):
        model(4, 3, TASKS).prepare(features(), EDGES, edge_weight=weight)


def test_a_layer_refuses_a_size_that_does_not_fit():
    conv = DEMOConv(4, 8, TASKS)
    assert conv(features(), EDGES, size=(5, 5)).shape == (5, 8)
    with pytest.raises(DemonetError, match=r"\b5\b.*size=\(9, 9\)"):
        conv(features(), EDGES, size=(9, 9))


@pytest.mark.parametrize("scheme", sorted(schemes.SCHEMES))
def test_an_open_width_with_sparse_features(scheme):
    conv = DEMOConv(-1, 8, TASKS, scheme=scheme)
    sparse = conv(features().to_sparse_csr(), EDGES)
    torch.testing.assert_close(sparse, conv(features(), EDGES))


def test_degrees_as_pyg_counts_them():
    assert DegreeTasks.exact(pyg_degree(EDGES[1], 5)).state() == DegreeTasks.exact(torch.tensor([1, 3, 1, 0])).state()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DEMOConv(-2, 8, TASKS), "in_channels=-2"),
        (lambda: DEMOConv(4, 8, 5), r"\btasks\b.*\bint\b"),
        (lambda: DEMOConv(4, 8, TASKS)(features().long(), EDGES), r"torch\.int64"),
        (lambda: DEMOConv(4, 8, TASKS)(features()[:, 0], EDGES), r"\[5\]"),
        (lambda: DEMOConv(4, 8, TASKS)(features(), EDGES, torch.ones(5, 1)), r"weights\b.*\[5, 1\]"),
        (lambda: DEMOConv(4, 8, TASKS)(features(), EDGES, degree=torch.ones(5, 1)), r"degrees\b.*\[5, 1\]"),
        (lambda: DegreeTasks.exact([1, 2]), r"degrees\b.*\blist\b"),
        (lambda: DegreeTasks.exact(torch.tensor([1.0, 2.5])), r"degree\b.*\b2\.5"),
        (lambda: DegreeTasks.exact(torch.tensor([1, -2])), r"degree\b.*-2\b"),
    ],
)
def test_refusals_name_the_value(make, message):
    with pytest.raises(DemonetError, match=message):
        make()
