"""What the degree term of the default layer adds: beside no such term, and beside the degrees of other nodes.

``default`` is ``DEMOConv``, ``without`` the same with a rate of 0, and ``shuffled`` has a random permutation of the
degrees as ``degree=``. The three have the same initial weights and dropout masks. Test score at the best epoch on
validation (accuracy; AUC on minesweeper). Networks are small, and their settings were chosen for no set:

- Cora, CiteSeer, PubMed and amazon-photo have PyG's example script, see ``swap.py``;
- airports and generated graphs have two layers of width 64, dropout .5 between them, no weight decay, 400 epochs and
  splits into thirds (on generated graphs, a graph for each seed); airports and roles a constant and the log-degree as
  inputs;
- minesweeper has three layers of width 32, batch norm, dropout .2, no weight decay, 300 epochs and its own masks::

    python benchmarks/degree_term.py FOLDER [--sets cora ...]

Rows go to ``results/degree_term.csv``, in place of earlier rows of the same set. All seeds of a set are trained at
once, with only those rows that labelled nodes can reach. Before that, the variants of the first seed are trained one by
one for five epochs as well, in double precision; outputs that differ by more than 1e-5 are an error.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tables
import torch
import torch.nn.functional as F
from development import Problem, accuracy, auc, fit, load
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.data import Data
from tuned import SHAPES, SPARSE

from demonet import DEMOConv
from demonet.data import load as load_dataset
from demonet.data.splits import thirds
from demonet.data.synthetic import flip_graph, role_graph
from demonet.degree import count_degree

VARIANTS = ("default", "without", "shuffled")
COLUMNS = ("set", "width", "aggr", "variant", "split", "seed", "validation", "test", "seconds", "command")
AT_ONCE = 2_000_000  # numbers of a hidden layer
CHECKED = 5  # epochs
AGGRS = {"sym": SHAPES["gcn"], "mean": SHAPES["sage"]}


@dataclass(frozen=True)
class Recipe:
    """A network and its training."""

    seeds: int
    widths: tuple[int, ...]
    aggrs: tuple[str, ...] = ("sym", "mean")
    hidden: int = 1
    dropout: float = 0.5
    decay: float = 0.0  # of the first layer
    drop_input: bool = False
    norm: bool = False
    epochs: int = 200
    metric: Callable[[Tensor, Tensor], Tensor] = accuracy


SCRIPT = Recipe(30, (16, 64), ("sym",), drop_input=True, decay=5e-4)
SMALL = Recipe(20, (64,), epochs=400)
RECIPES = {
    "brazil": replace(SMALL, seeds=40),
    "cora": SCRIPT,
    "citeseer": SCRIPT,
    "europe": replace(SMALL, seeds=30),
    "flip": replace(SMALL, seeds=6),
    "roles": replace(SMALL, seeds=6),
    "usa": SMALL,
    "pubmed": replace(SCRIPT, seeds=10),
    "minesweeper": Recipe(2, (32,), hidden=2, dropout=0.2, norm=True, epochs=300, metric=auc),
    "amazon-photo": replace(SCRIPT, seeds=3, widths=(64,)),
}
GENERATED: dict[str, Callable[[int], Data]] = {"flip": flip_graph, "roles": role_graph}


def problems(folder: Path, name: str, seeds: int) -> Iterator[tuple[Problem, list[int]]]:
    """Graphs and their seeds, which are also the numbers of splits where there are several."""
    if name in GENERATED:
        for seed in range(seeds):
            yield structural(GENERATED[name](seed), [seed]), [seed]
    elif name in ("brazil", "europe", "usa"):
        data = load_dataset(name)
        assert isinstance(data, Data)
        yield structural(data, range(seeds)), list(range(seeds))
    else:
        problem = load(folder, name)
        if RECIPES[name].drop_input:
            problem = replace(problem, x=problem.x / problem.x.sum(1, keepdim=True).clamp(min=1))
        yield problem, list(range(seeds))


def structural(data: Data, seeds: Sequence[int]) -> Problem:
    """Thirds of a graph; without attributes, the inputs are a constant and the log-degree."""
    degree = count_degree(data.edge_index, len(data.y)).float()
    x = torch.stack([torch.ones_like(degree), degree.log1p()], 1) if data.x is None else data.x
    splits = [thirds(data.y, seed, stratified=True) for seed in seeds]
    return Problem(x, data.edge_index, data.y, [(split.train, split.val, split.test) for split in splits])


class Net(nn.Module):
    """One network, as it is trained alone."""

    def __init__(self, problem: Problem, recipe: Recipe, width: int, aggr: str, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        widths = [problem.x.size(1), *[width] * recipe.hidden, problem.num_classes]
        pairs = list(pairwise(widths))
        self.convs = nn.ModuleList(DEMOConv(*pair, **AGGRS[aggr]) for pair in pairs)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) if recipe.norm else nn.Identity() for _ in pairs[1:])
        self.recipe, self.noise = recipe, torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor, edge_index: Tensor, degree: Tensor | None, field: Field) -> Tensor:
        """Scores of classes; entries are dropped in rows that the field has."""
        for layer, conv in enumerate(self.convs):
            if self.training and (layer or self.recipe.drop_input):
                rows, given = field.rows[layer], x[field.rows[layer]] if layer else field.x
                kept = dropped(given, self.recipe.dropout, self.noise).to_dense()
                x = torch.zeros_like(x).index_put((rows,), kept)
            x = conv(x, edge_index, degree=degree)
            x = self.norms[layer](x).relu() if layer < len(self.norms) else x
        return x


def dropped(x: Tensor, rate: float, noise: torch.Generator) -> Tensor:
    """The rows with entries dropped; of sparse rows, those that are not zero."""
    values = x.values() if x.layout == torch.sparse_csr else x
    values = values * (torch.rand(values.shape, generator=noise) >= rate) / (1 - rate)
    if x.layout != torch.sparse_csr:
        return values
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)


class Field:
    """What outputs of some nodes are computed from: rows of every layer, and the operator that leads to the next.

    Args:
        problem, nodes: Whose outputs.
        layers: Of the network.
        aggr: As the layer has it.
        whole: Take all rows, for the statistics of a norm.
    """

    def __init__(self, problem: Problem, nodes: Tensor, layers: int, aggr: str, *, whole: bool) -> None:
        n = len(problem.y)
        adjacency = sparse.csr_array((np.ones(problem.edge_index.size(1)), problem.edge_index.numpy()), shape=(n, n)).T
        sums = sparse.csr_array(adjacency + sparse.eye_array(n)) if aggr == "sym" else sparse.csr_array(adjacency)
        total = np.maximum(sums.sum(1), 1)
        scale = sparse.diags_array(total**-0.5)
        sums = scale @ sums @ scale if aggr == "sym" else sparse.diags_array(1 / total) @ sums
        place = np.arange(n) if whole else nodes.unique().numpy()
        places = [place]
        for _ in range(layers):
            places.append(np.union1d(places[-1], sparse.csr_array(sums)[places[-1]].indices))
        places.reverse()
        self.rows = [torch.from_numpy(place) for place in places]
        self.sums, self.own = [], []
        for inner, outer in pairwise(places):
            part = sparse.csr_array(sparse.csr_array(sums)[outer][:, inner])
            parts = (torch.from_numpy(one) for one in (part.indptr, part.indices, part.data))
            self.sums.append(torch.sparse_csr_tensor(*parts, part.shape, dtype=problem.x.dtype))
            self.own.append(torch.from_numpy(np.searchsorted(inner, outer)))
        self.x = problem.x[self.rows[0]]
        if float((self.x != 0).float().mean()) < SPARSE:
            self.x = self.x.to_sparse_csr()

    def at(self, nodes: Tensor) -> Tensor:
        """Where the outputs of nodes are."""
        return torch.searchsorted(self.rows[-1], nodes)


class Stack(nn.Module):
    """The networks of some seeds, three of each, as one module; run r is variant r % 3 of seed r // 3."""

    def __init__(self, problem: Problem, nets: Sequence[Net], degrees: Sequence[Tensor]) -> None:
        super().__init__()
        self.recipe, self.noise = nets[0].recipe, [net.noise for net in nets]
        weights = nets[0].convs[0].weights
        nets[0].convs[0].tasks.see(degrees[0])
        given, *others = (weights.rate * weights.basis(degree).to(problem.x.dtype) for degree in degrees)
        self.basis = torch.stack([one for other in others for one in (given, torch.zeros_like(given), other)])
        self.faster = [conv.weights.faster(conv.weights.in_channels) for conv in nets[0].convs]
        self.layers = nn.ModuleList()
        for convs in zip(*(net.convs for net in nets), strict=True):
            each = [dict(conv.named_parameters()) for conv in convs]
            stacked = {name: torch.stack([one[name].detach() for one in each]) for name in each[0]}
            if "seed.weight" in stacked:
                stacked["seed.weight"] = stacked["seed.weight"].transpose(1, 2)
            own = {name.removeprefix("weights.").removesuffix(".weight"): value for name, value in stacked.items()}
            runs = {name: nn.Parameter(value.repeat_interleave(len(VARIANTS), 0)) for name, value in own.items()}
            self.layers.append(nn.ParameterDict(runs))
        columns = len(self.basis) * nets[0].convs[0].weights.width
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(columns) if self.recipe.norm else nn.Identity() for _ in nets[0].norms
        )

    def forward(self, field: Field) -> Tensor:
        """``[runs, nodes, classes]``."""
        rate, seeds = self.recipe.dropout, len(self.noise)
        h: Tensor | list[Tensor] = [field.x]
        if self.training and self.recipe.drop_input:
            h = [dropped(field.x, rate, noise) for noise in self.noise]
        for layer, own in enumerate(self.layers):
            if self.training and layer:
                each = zip(h.unflatten(0, (seeds, -1)), self.noise, strict=True)
                ones = torch.ones(h.shape[1:], dtype=h.dtype)
                h = torch.cat([runs * dropped(ones, rate, noise) for runs, noise in each])
            y = self._by_run(field.sums[layer] @ product(h, own["shared"]))
            basis, shift = self.basis[:, field.rows[layer + 1]], self.faster[layer] * own["shift"]
            y = y * (1 + basis @ own["gamma"]) + basis @ shift + own["bias"][:, None]
            if "seed" in own:
                mine = field.own[layer]
                rows = [x[mine] for x in h] if isinstance(h, list) else h[:, mine]
                y = y + self._by_run(product(rows, own["seed"]))
            if layer < len(self.norms):
                y = self._by_run(self.norms[layer](y.transpose(0, 1).flatten(1))) if self.recipe.norm else y
                y = y.relu()
            h = y
        return h

    def _by_run(self, y: Tensor) -> Tensor:
        """``[rows, runs * width]`` as ``[runs, rows, width]``."""
        return y.unflatten(1, (len(self.basis), -1)).transpose(0, 1)


def product(h: Tensor | list[Tensor], matrices: Tensor) -> Tensor:
    """Rows times the matrix of each run, side by side; a list has the inputs of as many groups of runs."""
    if isinstance(h, list):
        groups = matrices.unflatten(0, (len(h), -1)).transpose(1, 2).flatten(2)
        return torch.cat([x @ matrix for x, matrix in zip(h, groups, strict=True)], 1)
    return torch.bmm(h, matrices).transpose(0, 1).flatten(1)


def decayed(layers: nn.ModuleList, decay: float) -> list[dict[str, Any]]:
    """Groups of parameters: weight decay on the first layer alone."""
    first = list(layers[0].parameters())
    return [{"params": first, "weight_decay": decay}, {"params": list(layers[1:].parameters())}]


def fit_all(
    stack: Stack, problem: Problem, splits: Sequence[tuple[Tensor, ...]], fields: Sequence[Field], epochs: int
) -> Tensor:
    """:func:`development.fit` for all runs: ``[runs, 2]``, the scores of the best epoch on validation."""
    runs = len(VARIANTS)
    nodes = [torch.stack(part).repeat_interleave(runs, 0) for part in zip(*splits, strict=True)]
    places = [field.at(part) for field, part in zip((fields[0], fields[1], fields[1]), nodes, strict=True)]
    goals = [problem.y[part] for part in nodes]
    optimizer = torch.optim.Adam(
        [*decayed(stack.layers, stack.recipe.decay), {"params": stack.norms.parameters()}], lr=0.01
    )
    history = []
    for _ in range(epochs):
        stack.train()
        optimizer.zero_grad()
        out = chosen(stack(fields[0]), places[0])
        (F.cross_entropy(out.flatten(0, 1), goals[0].flatten(), reduction="sum") / places[0].size(1)).backward()
        optimizer.step()
        stack.eval()
        with torch.no_grad():
            out = stack(fields[1])
            parts = [zip(chosen(out, at), goal, strict=True) for at, goal in zip(places[1:], goals[1:], strict=True)]
            history.append([[float(stack.recipe.metric(*one)) for one in part] for part in parts])
    scores = torch.tensor(history)
    best = scores[:, 0].argmax(0)
    return scores[best, :, torch.arange(len(best))]


def chosen(out: Tensor, places: Tensor) -> Tensor:
    """Rows of each run."""
    return out.gather(1, places[..., None].expand(-1, -1, out.size(2)))


def train(problem: Problem, recipe: Recipe, width: int, aggr: str, seeds: list[int], *, check: bool) -> Tensor:
    """Scores of all runs; with ``check``, train them one by one as well, and compare."""
    splits = [problem.splits[at if len(problem.splits) > 1 else 0] for at in range(len(seeds))]
    if check:
        problem = replace(problem, x=problem.x.double())
    nets = [Net(problem, recipe, width, aggr, seed).to(problem.x.dtype) for seed in seeds]
    degree = count_degree(problem.edge_index, len(problem.y))
    orders = [torch.randperm(len(degree), generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    degrees = [degree, *(degree[order] for order in orders)]
    labelled = [torch.cat([split[0] for split in splits]), torch.cat([part for split in splits for part in split[1:]])]
    fields = [Field(problem, nodes, recipe.hidden + 1, aggr, whole=recipe.norm) for nodes in labelled]
    stack = Stack(problem, nets, degrees).to(problem.x.dtype)
    found = fit_all(stack, problem, splits, fields, CHECKED if check else recipe.epochs)
    if not check:
        return found
    outputs = stack(fields[1])
    for at, variant in enumerate(VARIANTS):
        net = Net(problem, recipe, width, aggr, seeds[0]).double()
        if variant == "without":
            for conv in net.convs:
                conv.remove_term("degree")
        given = (problem.x, problem.edge_index, degrees[1] if variant == "shuffled" else None, fields[0])
        groups = [*decayed(net.convs, recipe.decay), {"params": net.norms.parameters(), "weight_decay": 0.0}]
        fit(net, given, problem.y, splits[0], groups, CHECKED, 0.01, recipe.metric)
        torch.testing.assert_close(outputs[at], net(*given)[fields[1].rows[-1]], rtol=1e-5, atol=1e-5)
    return found


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=RECIPES, choices=RECIPES)
    parser.add_argument("--seeds", type=int, help="in place of those of the set")
    parser.add_argument("--widths", type=int, nargs="+", help="in place of those of the set")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "degree_term.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    command = tables.command(options.folder, out=options.out)
    for name in options.sets:
        recipe = RECIPES[name]
        for width in options.widths or recipe.widths:
            for aggr in recipe.aggrs:
                told = {"set": name, "width": str(width), "aggr": aggr}
                rows = []
                for problem, seeds in problems(options.folder, name, options.seeds or recipe.seeds):
                    step = max(1, AT_ONCE // (len(VARIANTS) * width * len(problem.y)))
                    if not rows:
                        train(problem, recipe, width, aggr, seeds[:1], check=True)
                    for first in range(0, len(seeds), step):
                        part = range(first, min(first + step, len(seeds)))
                        several = len(problem.splits) > 1
                        given = replace(problem, splits=[problem.splits[at] for at in part]) if several else problem
                        start = time.process_time()
                        found = train(given, recipe, width, aggr, [seeds[at] for at in part], check=False)
                        seconds = (time.process_time() - start) / len(found)
                        for run, (validation, test) in enumerate(found.tolist()):
                            seed = seeds[first + run // len(VARIANTS)]
                            row = told | {"variant": VARIANTS[run % len(VARIANTS)], "seed": seed}
                            row |= {"split": seed if several or name in GENERATED else 0, "seconds": f"{seconds:.2f}"}
                            rows.append(row | {"validation": f"{validation:.5f}", "test": f"{test:.5f}"})
                means = [np.mean([float(row["test"]) for row in rows if row["variant"] == one]) for one in VARIANTS]
                print(*told.values(), *(f"{mean:.4f}" for mean in means), flush=True)
                kept = [row for row in tables.read(options.out) if told.items() - row.items()]
                tables.write(options.out, [*kept, *(row | {"command": command} for row in rows)], COLUMNS)


if __name__ == "__main__":
    main()
