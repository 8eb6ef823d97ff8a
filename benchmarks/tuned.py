"""DEMOConv in the skeleton of tuned networks, beside GCN and GraphSAGE with their published settings.

The skeleton is that of "Classic GNNs are strong baselines" (Luo et al., NeurIPS 2024): convolution and a linear map of
the node, a norm, ReLU, dropout. Its settings for each set are those that were published for GCN and for GraphSAGE. Ours
is the same network with ``DEMOConv(scheme="scale")`` in place of the convolution, with GCN's sums or with GraphSAGE's;
``shuffled`` has the degrees of other nodes, ``without`` no degree term. Test score at the best epoch on validation; the
masks of minesweeper are its ten splits (AUC), the other sets have one split and several seeds (accuracy). That of Cora,
CiteSeer and PubMed is the public one; the settings were published for random splits of the same sizes::

    python benchmarks/tuned.py ../shared/data/public --device cuda > benchmarks/results/tuned.csv

takes some minutes on an H200. Differences to GCN and to GraphSAGE are paired by split and seed.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev

import torch
import torch.nn.functional as F
from development import Problem, accuracy, auc, fit, load
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.utils import add_self_loops

from demonet import DEMOConv
from demonet.degree import count_degree

METHODS = ("gcn", "sage", "ours-gcn", "ours-sage", "ours-gcn-without", "ours-sage-without", "ours-gcn-shuffled")
SHAPES = {"gcn": {"aggr": "sym", "combine": "share"}, "sage": {"aggr": "mean", "combine": "add"}}


@dataclass(frozen=True)
class Setting:
    """The published settings of one network on one set."""

    hidden: int
    layers: int
    dropout: float
    lr: float
    weight_decay: float
    epochs: int
    norm: type[nn.Module]
    residual: bool = True


SETTINGS = {
    ("minesweeper", "gcn"): Setting(64, 12, 0.2, 0.01, 0.0, 2000, nn.BatchNorm1d),
    ("minesweeper", "sage"): Setting(64, 15, 0.2, 0.01, 0.0, 2000, nn.BatchNorm1d),
    ("amazon-photo", "gcn"): Setting(256, 6, 0.5, 0.001, 5e-5, 1000, nn.LayerNorm),
    ("amazon-photo", "sage"): Setting(64, 6, 0.2, 0.001, 5e-5, 1000, nn.LayerNorm),
    ("cora", "gcn"): Setting(512, 3, 0.7, 0.001, 5e-4, 500, nn.Identity, residual=False),
    ("cora", "sage"): Setting(256, 3, 0.7, 0.001, 5e-4, 500, nn.Identity, residual=False),
    ("citeseer", "gcn"): Setting(512, 2, 0.5, 0.001, 0.01, 500, nn.Identity, residual=False),
    ("citeseer", "sage"): Setting(512, 3, 0.2, 0.001, 0.01, 500, nn.Identity, residual=False),
    ("pubmed", "gcn"): Setting(256, 2, 0.7, 0.005, 5e-4, 500, nn.Identity, residual=False),
    ("pubmed", "sage"): Setting(512, 4, 0.7, 0.005, 5e-4, 500, nn.Identity, residual=False),
}


class Tuned(nn.Module):
    """The skeleton."""

    def __init__(self, columns: int, classes: int, method: str, setting: Setting) -> None:
        super().__init__()
        self.dropout = setting.dropout
        widths = [columns] + [setting.hidden] * setting.layers
        pairs = list(pairwise(widths))
        self.convs = nn.ModuleList(convolution(method, *pair) for pair in pairs)
        self.maps = nn.ModuleList(nn.Linear(*pair) for pair in pairs) if setting.residual else [None] * len(pairs)
        self.norms = nn.ModuleList(setting.norm(setting.hidden) for _ in pairs)
        self.head = nn.Linear(setting.hidden, classes)

    def forward(self, x: Tensor, edge_index: Tensor, degree: Tensor | None = None) -> Tensor:
        """Scores of classes."""
        options = {} if degree is None else {"degree": degree}
        for conv, residual, norm in zip(self.convs, self.maps, self.norms, strict=True):
            y = conv(x, edge_index, **options)
            x = F.dropout(norm(y if residual is None else y + residual(x)).relu(), self.dropout, self.training)
        return self.head(x)


def convolution(method: str, columns: int, width: int) -> nn.Module:
    """The convolution of a method."""
    if method == "gcn":
        return GCNConv(columns, width, cached=True)
    if method == "sage":
        return SAGEConv(columns, width)
    conv = DEMOConv(columns, width, scheme="scale", bias=True, cached=True, **SHAPES[method.split("-")[1]])
    if method.endswith("without"):
        conv.remove_term("degree")
    return conv


def run(
    problem: Problem, name: str, method: str, split: int, seed: int, epochs: int | None = None
) -> tuple[float, float]:
    """Validation and test score of one training."""
    setting = SETTINGS[name, method.removeprefix("ours-").split("-")[0]]
    torch.manual_seed(seed)
    edges = add_self_loops(problem.edge_index, num_nodes=len(problem.y))[0]
    inputs: tuple[Tensor, ...] = (problem.x, edges)
    if method.endswith("shuffled"):
        degree = count_degree(edges, len(problem.y))
        order = torch.randperm(len(degree), generator=torch.Generator().manual_seed(seed))
        inputs += (degree[order.to(degree.device)],)
    model = Tuned(problem.x.size(1), problem.num_classes, method, setting).to(problem.x.device)
    groups = [{"params": model.parameters(), "weight_decay": setting.weight_decay}]
    metric = auc if name == "minesweeper" else accuracy
    return fit(model, inputs, problem.y, problem.splits[split], groups, epochs or setting.epochs, setting.lr, metric)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sets", nargs="+", default=list(dict.fromkeys(name for name, _ in SETTINGS)))
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--runs", type=int, default=10, help="splits of minesweeper, seeds of the others")
    parser.add_argument("--epochs", type=int, help="fewer than were published, to try it")
    options = parser.parse_args()
    print("set,method,split,seed,validation,test,seconds", flush=True)
    for name in options.sets:
        problem = load(options.folder, name).to(options.device)
        scores: dict[str, list[float]] = {}
        for number in range(options.runs):
            split, seed = (number, 0) if len(problem.splits) > 1 else (0, number)
            for method in options.methods:
                start = time.perf_counter()
                validation, test = run(problem, name, method, split, seed, options.epochs)
                seconds = time.perf_counter() - start
                print(f"{name},{method},{split},{seed},{validation:.5f},{test:.5f},{seconds:.1f}", flush=True)
                scores.setdefault(method, []).append(test)
        for method, found in scores.items():
            parts = [f"{name} {method}: {fmean(found):.4f}"]
            for other in ("gcn", "sage"):
                gaps = [a - b for a, b in zip(found, scores.get(other, []), strict=False)]
                if method != other and len(gaps) > 1:
                    parts.append(f"{fmean(gaps):+.4f} +- {1.96 * stdev(gaps) / len(gaps) ** 0.5:.4f} to {other}")
            print(", ".join(parts), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
