"""The GCN that Wang et al. (AM-GCN, KDD'20) compare with: Kipf's PyTorch program, which differs from his paper.

It averages over neighbours, ``(D + I)^-1 (A + I)``, where the paper's matrix is symmetric; forgets hidden units alone,
not attributes; decays every parameter; and goes on for 200 epochs, whatever a validation part would say.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.utils import add_self_loops, degree

from demonet.baselines.layers import Product

WIDTH, DROPOUT, RATE, DECAY, EPOCHS = 16, 0.5, 0.01, 5e-4, 200


def neighbour_mean(edge_index: Tensor, num_nodes: int) -> Product:
    """``(D + I)^-1 (A + I)``."""
    arcs, _ = add_self_loops(edge_index, num_nodes=num_nodes)
    share = 1 / degree(arcs[0], num_nodes)[arcs[0]]
    matrix = torch.sparse_coo_tensor(arcs, share, (num_nodes, num_nodes), check_invariants=False)
    return Product.of(matrix.coalesce().to_sparse_csr())


class PyGCN(nn.Module):
    """``P dropout(relu(P X W_1 + b_1)) W_2 + b_2``; all parameters uniform, up to one over the root of the width."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        widths = ((in_channels, WIDTH), (WIDTH, num_classes))
        self.weights = nn.ParameterList(torch.empty(a, b).uniform_(-(b**-0.5), b**-0.5) for a, b in widths)
        self.biases = nn.ParameterList(torch.empty(b).uniform_(-(b**-0.5), b**-0.5) for _, b in widths)

    def forward(self, x: Product, arcs: Product) -> Tensor:
        """``[nodes, classes]`` scores."""
        hidden = F.relu(arcs @ (x @ self.weights[0]) + self.biases[0])
        return arcs @ (F.dropout(hidden, DROPOUT, self.training) @ self.weights[1]) + self.biases[1]


def train(x: Product, arcs: Product, y: Tensor, rows: Tensor, seed: int, epochs: int = EPOCHS) -> Tensor:
    """Scores of all nodes after the last epoch on some labelled rows."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = PyGCN(x.matrix.size(1), int(y.max()) + 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE, weight_decay=DECAY)
        for _ in range(epochs):
            optimizer.zero_grad()
            F.cross_entropy(model(x, arcs)[rows], y[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        scores: Tensor = model.eval()(x, arcs)
    return scores
