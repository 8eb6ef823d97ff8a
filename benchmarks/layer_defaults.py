"""Which defaults a single layer should have: two layers as a PyG user writes them, on generated citation networks.

20 labels a class, 500 nodes to validate, test accuracy at the best validation epoch; means over seeds.
``python benchmarks/layer_defaults.py`` prints the table: minutes on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import fmean

import torch
import torch.nn.functional as F
from other_sets import citations, few_labels
from torch import nn
from torch_geometric.nn import GCNConv

from demonet import DegreeTasks, DEMOConv
from demonet.degree import count_degree

SEEDS, EPOCHS, HIDDEN = (0, 1, 2), 100, 16
LAYERS = [
    {"scheme": "weight", "aggr": "sum", "combine": "concat"},  # the paper's
    {"scheme": "smooth", "aggr": "sum", "combine": "concat"},
    {"scheme": "smooth", "aggr": "mean", "combine": "concat"},
    {"scheme": "smooth", "aggr": "mean", "combine": "add"},  # the default
    {"scheme": "smooth", "aggr": "mean", "combine": "add", "bias": True},
    {"scheme": "weight", "aggr": "mean", "combine": "add"},
    {"scheme": "hash", "aggr": "mean", "combine": "add"},
]


def accuracy(make: Callable[[int, int], nn.Module], seed: int) -> float:
    """Test accuracy of two layers with the settings of Planetoid's GCN."""
    data = citations(seed)
    split, x = few_labels(data.y, seed), data.x.to_dense()
    x = x / x.sum(1, keepdim=True).clamp(min=1)
    torch.manual_seed(seed)
    first, second = make(x.size(1), HIDDEN), make(HIDDEN, int(data.y.max()) + 1)
    groups = [{"params": first.parameters(), "weight_decay": 5e-4}, {"params": second.parameters()}]
    optimizer, best = torch.optim.Adam(groups, lr=0.01), (0.0, 0.0)

    def scores(drop: float) -> torch.Tensor:
        h = F.relu(first(F.dropout(x, drop), data.edge_index))
        return second(F.dropout(h, drop), data.edge_index)

    for _ in range(EPOCHS):
        optimizer.zero_grad()
        F.cross_entropy(scores(0.5)[split.train], data.y[split.train]).backward()
        optimizer.step()
        with torch.no_grad():
            right = (scores(0.0).argmax(1) == data.y).float()
        best = max(best, (right[split.val].mean().item(), right[split.test].mean().item()))
    return best[1]


def main() -> None:
    print(f"{fmean(accuracy(GCNConv, seed) for seed in SEEDS):.3f}  GCNConv")
    for options in LAYERS:
        values = []
        for seed in SEEDS:
            data = citations(seed)
            tasks = DegreeTasks.exact(count_degree(data.edge_index, data.num_nodes))
            values.append(accuracy(partial(DEMOConv, tasks=tasks, **options), seed))
        print(f"{fmean(values):.3f}  {options}", flush=True)


if __name__ == "__main__":
    main()
