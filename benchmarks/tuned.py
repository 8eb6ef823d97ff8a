"""DEMOConv in the skeleton of tuned networks, beside GCN, GraphSAGE and GAT with their published settings.

The skeleton is that of "Classic GNNs are strong baselines" (Luo et al., NeurIPS 2024): convolution and a linear map of
the node, a norm, ReLU, dropout. Its settings for each set are those that its repository has for GCN, GraphSAGE and GAT
(one head). Ours is the same network with ``DEMOConv(scheme="scale")`` in place of the convolution, with GCN's sums or
with GraphSAGE's; ``shuffled`` has the degrees of other nodes, ``without`` no degree term. Test score at the best epoch
on validation; the masks of minesweeper are its ten splits (AUC), the other sets have one split and several seeds
(accuracy). That of Cora, CiteSeer and PubMed is the public one; the settings were published for random splits of the
same sizes. Rows are added to ``results/tuned.csv``::

    python benchmarks/tuned.py ../shared/data/public --device cuda

takes some minutes on an H200. ``page.py`` writes the table; differences are paired by split and seed.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import tables
import torch
import torch.nn.functional as F
from development import Problem, accuracy, auc, fit, load
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import add_self_loops

from demonet import DEMOConv
from demonet.degree import count_degree

METHODS = ("gcn", "sage", "gat", "ours-gcn", "ours-sage", "ours-gcn-without", "ours-sage-without", "ours-gcn-shuffled")
SPARSE = 0.05  # share of numbers that are not zero
COLUMNS = ("set", "method", "split", "seed", "epochs", "validation", "test", "seconds", "device")
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
    ("minesweeper", "gat"): Setting(64, 15, 0.2, 0.01, 0.0, 2000, nn.BatchNorm1d),
    ("amazon-photo", "gcn"): Setting(256, 6, 0.5, 0.001, 5e-5, 1000, nn.LayerNorm),
    ("amazon-photo", "sage"): Setting(64, 6, 0.2, 0.001, 5e-5, 1000, nn.LayerNorm),
    ("amazon-photo", "gat"): Setting(64, 3, 0.5, 0.001, 5e-5, 1000, nn.LayerNorm),
    ("cora", "gcn"): Setting(512, 3, 0.7, 0.001, 5e-4, 500, nn.Identity, residual=False),
    ("cora", "sage"): Setting(256, 3, 0.7, 0.001, 5e-4, 500, nn.Identity, residual=False),
    ("cora", "gat"): Setting(512, 3, 0.2, 0.001, 5e-4, 500, nn.Identity),
    ("citeseer", "gcn"): Setting(512, 2, 0.5, 0.001, 0.01, 500, nn.Identity, residual=False),
    ("citeseer", "sage"): Setting(512, 3, 0.2, 0.001, 0.01, 500, nn.Identity, residual=False),
    ("citeseer", "gat"): Setting(256, 3, 0.5, 0.001, 0.01, 500, nn.Identity),
    ("pubmed", "gcn"): Setting(256, 2, 0.7, 0.005, 5e-4, 500, nn.Identity, residual=False),
    ("pubmed", "sage"): Setting(512, 4, 0.7, 0.005, 5e-4, 500, nn.Identity, residual=False),
    ("pubmed", "gat"): Setting(512, 2, 0.5, 0.01, 5e-4, 500, nn.Identity, residual=False),
}


def setting_of(name: str, method: str) -> Setting:
    """That of the peer whose place a method takes."""
    return SETTINGS[name, method.removeprefix("ours-").split("-")[0]]


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
    if method == "gat":
        return GATConv(columns, width, add_self_loops=False, bias=False)
    conv = DEMOConv(columns, width, scheme="scale", bias=True, cached=True, **SHAPES[method.split("-")[1]])
    if method.endswith("without"):
        conv.remove_term("degree")
    return conv


def run(
    problem: Problem, name: str, method: str, split: int, seed: int, epochs: int | None = None
) -> tuple[float, float]:
    """Validation and test score of one training."""
    setting = setting_of(name, method)
    torch.manual_seed(seed)
    edges = add_self_loops(problem.edge_index, num_nodes=len(problem.y))[0]
    x = problem.x / problem.x.sum(1, keepdim=True).clamp(min=1) if name == "amazon-photo" else problem.x
    if method != "sage" and x.device.type == "cpu" and float((x != 0).float().mean()) < SPARSE:
        x = x.to_sparse_csr()  # the same product; SAGEConv does not take it
    inputs: tuple[Tensor, ...] = (x, edges)
    if method.endswith("shuffled"):
        degree = count_degree(edges, len(problem.y))
        order = torch.randperm(len(degree), generator=torch.Generator().manual_seed(seed))
        inputs += (degree[order.to(degree.device)],)
    model = Tuned(x.size(1), problem.num_classes, method, setting).to(x.device)
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
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--epochs", type=int, help="fewer than were published, to try it")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "tuned.csv")
    options = parser.parse_args()
    where = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    for name in options.sets:
        problem = load(options.folder, name).to(options.device)
        for number in range(options.first, options.first + options.runs):
            split, seed = (number, 0) if len(problem.splits) > 1 else (0, number)
            for method in options.methods:
                start = time.perf_counter()
                found = run(problem, name, method, split, seed, options.epochs)
                row = {"set": name, "method": method, "split": split, "seed": seed, "device": where}
                row |= {part: f"{score:.5f}" for part, score in zip(("validation", "test"), found, strict=True)}
                row["epochs"] = options.epochs or setting_of(name, method).epochs
                row["seconds"] = f"{time.perf_counter() - start:.1f}"
                print(row, flush=True)
                tables.write(options.out, [*tables.read(options.out), row], COLUMNS)


if __name__ == "__main__":
    main()
