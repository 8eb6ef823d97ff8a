"""What a PyG user gets who swaps GCNConv for DEMOConv: the canonical script on Cora, CiteSeer and PubMed.

Two layers, rows of x divided by their sum, dropout .5 before both, weight decay 5e-4 on the first, Adam .01, 200
epochs, the public split, test accuracy at the best epoch on validation; widths 16 and 64; only the layer changes::

    python benchmarks/swap.py ../shared/data/public --layers gcn sage > benchmarks/results/swap.csv

``degree_term.py`` has the default layer in this script beside itself without a degree term: ``GCNConv``, with the same
initial weights and masks. The defaults were chosen on these sets. On a CPU, x is sparse for layers that take it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

import torch
import torch.nn.functional as F
from development import fit, load
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv

from demonet import DEMOConv

SETS = ("cora", "citeseer", "pubmed")
PAPER = {"scheme": "weight", "aggr": "sum", "combine": "concat"}
LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "gcn": partial(GCNConv, cached=True),
    "sage": SAGEConv,
    "default": DEMOConv,
    "scale": partial(DEMOConv, scheme="scale", aggr="sym", combine="share", bias=True),
    "scale-3": partial(DEMOConv, scheme="scale", aggr="sym", combine="share", bias=True, basis_size=3),
    "scale-2": partial(DEMOConv, scheme="scale", aggr="sym", combine="share", bias=True, basis_size=2),
    "scale-mean": partial(DEMOConv, scheme="scale", aggr="mean", combine="add", bias=True),
    "scale-mean-share": partial(DEMOConv, scheme="scale", aggr="mean", combine="share", bias=True),
    "smooth": partial(DEMOConv, scheme="smooth", aggr="mean", combine="add"),
    "smooth-share": partial(DEMOConv, scheme="smooth", aggr="sym", combine="share", bias=True),
    "paper": partial(DEMOConv, **PAPER),
}


class Net(nn.Module):
    """The canonical two layers."""

    def __init__(self, make: Callable[[int, int], nn.Module], columns: int, width: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = make(columns, width), make(width, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of classes."""
        x = self.first(dropped(x, self.training), edge_index).relu()
        return self.second(F.dropout(x, 0.5, self.training), edge_index)


def dropped(x: Tensor, training: bool) -> Tensor:
    """Dropout; of sparse rows, of the entries that are not zero."""
    if x.layout != torch.sparse_csr:
        return F.dropout(x, 0.5, training)
    values = F.dropout(x.values(), 0.5, training)
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--widths", nargs="+", type=int, default=[16, 64])
    parser.add_argument("--layers", nargs="+", default=["gcn", "sage", "default", "paper"], choices=LAYERS)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    print("set,width,layer,seed,validation,test", flush=True)
    for name in options.sets:
        problem = load(options.folder, name).to(options.device)
        x = problem.x / problem.x.sum(1, keepdim=True).clamp(min=1)
        for width in options.widths:
            for layer in options.layers:
                found = []
                given = x.to_sparse_csr() if options.device == "cpu" and layer != "sage" else x
                for seed in range(options.seeds):
                    torch.manual_seed(seed)
                    model = Net(LAYERS[layer], x.size(1), width, problem.num_classes).to(options.device)
                    groups = [
                        {"params": model.first.parameters(), "weight_decay": 5e-4},
                        {"params": model.second.parameters(), "weight_decay": 0.0},
                    ]
                    scores = fit(model, (given, problem.edge_index), problem.y, problem.splits[0], groups, 200, 0.01)
                    print(f"{name},{width},{layer},{seed},{scores[0]:.4f},{scores[1]:.4f}", flush=True)
                    found.append(scores[1])
                spread = stdev(found) if len(found) > 1 else 0.0
                print(f"{name} {width} {layer}: {fmean(found):.4f} +- {spread:.4f}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
