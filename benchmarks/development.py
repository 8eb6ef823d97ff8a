"""Public sets to develop on: what the ensemble scores there, and a training loop for modules as PyG's users write them.

    python benchmarks/development.py FOLDER [--sets pubmed ...] [--effort quick] [--splits 1] [--time-limit 60]
    python benchmarks/development.py FOLDER --rivals [--sets pubmed ...] [--splits 1]
    python benchmarks/development.py FOLDER --refits [--sets europe-airports ...] [--splits 1]

The sets lie in one folder as ``cora/cora.npz``, ``minesweeper/minesweeper.npz`` and so on, with matrices in CSR. Rows
are added to ``results/development.csv``, with seconds of processor time; with ``--rivals``, those of networks and
simple baselines under the same two rules to ``results/development_rivals.csv``. Split 0 and on are those that come with
a set; splits from 5,000 on are drawn with that seed, of the same sizes. On a GPU a whole epoch of the training loop is
one CUDA graph: training step, evaluation, and the scores, which are read after the last epoch.

With ``--refits``, rows of the ensemble's networks go to ``results/development_refits.csv``: accuracy and log-loss after
a second fit, with the weights of the chosen epoch (``one``) and their mean over the epochs around it (``mean``). The
sets are then some of the paper's and generated ones, in thirds; the folder is not read.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tables
import torch
import torch.nn.functional as F
from other_sets import neighbour_roles, two_hops
from other_sets_default import rivals
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, to_undirected

from demonet.data import load as load_paper
from demonet.data.splits import Split, thirds
from demonet.ensemble import Ensemble, Progress
from demonet.ensemble.ensemble import portfolio
from demonet.ensemble.selection import soften
from demonet.features.views import view_of
from demonet.methods import Labelled, get
from demonet.progress import candidate_line
from demonet.train import loop
from demonet.train.metrics import find_metric
from demonet.train.objective import Classify, value_of
from demonet.train.problem import fitted_objective, labels

CAPTURED_AFTER = 3  # epochs
SETS = ("cora", "citeseer", "pubmed", "minesweeper", "amazon-photo")
REFITS: dict[str, Callable[[int], Any]] = {
    **{name: lambda _, name=name: load_paper(name) for name in ("brazil", "europe", "MUTAG", "PTC_MR")},
    "neighbour roles": partial(neighbour_roles, n=3300),
    "two hops": partial(two_hops, n=3300),
}
METRIC = {"minesweeper": "auc"}  # in place of accuracy
RIVAL_COLUMNS = ("set", "split", "method", "metric", "strict", "refit", "seconds", "command")
REFIT_COLUMNS = ("set", "split", "network", "epochs", "strict", "one", "mean", "loss_one", "loss_mean", "command")
COLUMNS = ("set", "split", "effort", "metric", "validation", "strict", "refit", "log_loss", "seconds", "command")


@dataclass(frozen=True)
class Problem:
    """A graph with classes, and its splits into training, validation and test nodes."""

    x: Tensor
    edge_index: Tensor
    y: Tensor
    splits: list[tuple[Tensor, ...]]

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1

    def to(self, device: str) -> Problem:
        """The same on a device."""
        splits = [tuple(part.to(device) for part in split) for split in self.splits]
        return Problem(self.x.to(device), self.edge_index.to(device), self.y.to(device), splits)


def load(folder: Path, name: str) -> Problem:
    """One of the sets: cora, citeseer, pubmed, minesweeper, amazon-photo."""
    with np.load(folder / name / f"{name}.npz", allow_pickle=False) as found:
        file = dict(found)
    if "edges" in file:
        edges = torch.from_numpy(file["edges"]).long().t()
        x, y = torch.from_numpy(file["node_features"]), torch.from_numpy(file["node_labels"])
        masks = [file["train_masks"], file["val_masks"], file["test_masks"]]
    else:
        adjacency = _matrix(file, "adj").tocoo()
        edges = torch.from_numpy(np.stack([adjacency.row, adjacency.col])).long()
        x, y = torch.from_numpy(_matrix(file, "attr").toarray()), torch.from_numpy(file["labels"])
        masks = [file[f"{part}_mask"][None] for part in ("train", "val", "test") if f"{part}_mask" in file]
    if masks:
        splits = [tuple(torch.from_numpy(mask).nonzero()[:, 0] for mask in split) for split in zip(*masks, strict=True)]
    else:
        with np.load(folder / name / f"{name}_split.npz", allow_pickle=False) as split:
            splits = [tuple(torch.from_numpy(split[part]) for part in ("train", "valid", "test"))]
    edges = coalesce(to_undirected(edges[:, edges[0] != edges[1]], num_nodes=len(y)))
    return Problem(x.float(), edges, y.long(), splits)


def _matrix(file: dict[str, Any], name: str) -> sparse.csr_array:
    parts = tuple(file[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_array(parts, shape=tuple(file[f"{name}_shape"]))


def accuracy(scores: Tensor, y: Tensor) -> Tensor:
    """The share of right classes."""
    return (scores.argmax(1) == y).float().mean()


def auc(scores: Tensor, y: Tensor) -> Tensor:
    """The area under the ROC curve of two classes; equal scores count half."""
    value = scores[:, 1] - scores[:, 0]
    ordered = value.sort().values
    rank = (torch.searchsorted(ordered, value) + torch.searchsorted(ordered, value, right=True) + 1).double() / 2
    positive = (y == 1).double()
    count = positive.sum()
    return ((rank * positive).sum() - count * (count + 1) / 2) / (count * (len(y) - count))


def fit(
    model: nn.Module,
    inputs: tuple[Any, ...],
    y: Tensor,
    split: tuple[Tensor, ...],
    groups: Iterable[Any],
    epochs: int,
    lr: float,
    metric: Callable[[Tensor, Tensor], Tensor] = accuracy,
) -> tuple[float, float]:
    """Train with Adam; the validation and the test score of the first epoch with the best validation score."""
    train, validation, test = split
    on_gpu = y.device.type == "cuda"
    optimizer = torch.optim.Adam(list(groups), lr=lr, capturable=on_gpu, foreach=True)
    history = torch.zeros(epochs, 2, dtype=torch.float64, device=y.device)
    place = torch.zeros(1, dtype=torch.long, device=y.device)
    goal = [y[part] for part in split]

    def epoch() -> None:
        model.train()
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(model(*inputs)[train], goal[0]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(*inputs)
            found = [metric(out[part], want) for part, want in zip((validation, test), goal[1:], strict=True)]
            history.index_copy_(0, place, torch.stack(found).double()[None])
            place.add_(1)

    def several(count: int) -> None:
        for _ in range(count):
            epoch()

    if not on_gpu:
        several(epochs)
    else:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            several(CAPTURED_AFTER)
        torch.cuda.current_stream().wait_stream(side)
        if graph := _captured(epoch):
            for _ in range(epochs - CAPTURED_AFTER):
                graph.replay()
        else:
            several(epochs - CAPTURED_AFTER)
    best = int(history[:, 0].argmax())
    return float(history[best, 0]), float(history[best, 1])


def _captured(epoch: Callable[[], None]) -> torch.cuda.CUDAGraph | None:
    """An epoch as a CUDA graph, or None where a layer waits for the device."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            epoch()
    except RuntimeError as error:
        print(f"not captured: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
        torch.cuda.synchronize()
        return None
    return graph


def split_of(problem: Problem, number: int) -> Split:
    """A split that comes with the set; from 5,000 on a random one, of the same sizes and shares of classes in training.

    Where each class has as many training nodes as the others, so it has in a random split.
    """
    if number < 5000:
        train, val, test = problem.splits[number]
        return Split("public", number, train, val, test)
    sizes = [len(part) for part in problem.splits[0]]
    rng, y = np.random.default_rng(number), problem.y.numpy()
    counts = np.bincount(y[problem.splits[0][0].numpy()], minlength=problem.num_classes)
    order = rng.permutation(len(y))
    train = np.concatenate([order[y[order] == label][:count] for label, count in enumerate(counts)])
    rest = np.setdiff1d(order, train)
    val, test = np.split(rng.permutation(rest)[: sizes[1] + sizes[2]], [sizes[1]])
    return Split("random", number, *(torch.from_numpy(np.sort(part)) for part in (train, val, test)))


def measure(problem: Problem, name: str, number: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row: the ensemble on a split, strict and refitted."""
    data, split = Data(problem.x, problem.edge_index, y=problem.y), split_of(problem, number)
    metric = find_metric(METRIC.get(name, "accuracy"), "classify")

    def tell(progress: Progress) -> None:
        if progress.stage == "done":
            print(f"  {candidate_line(progress.candidate)}", file=sys.stderr, flush=True)

    start = time.process_time()
    chosen = metric.name if metric.name != "accuracy" else None
    found = Ensemble.fit(
        data,
        split,
        effort=options.effort,
        time_limit=options.time_limit,
        seed=number,
        metric=chosen,
        on_progress=tell,
        device=options.device,
    )
    seconds, y = time.process_time() - start, problem.y.numpy()
    for row in sorted(found.candidates, key=lambda row: -row.weight):
        if row.weight:
            print(f"  {row.weight:.2f} {row.name} {row.seconds:.1f} + {row.refit_seconds:.1f} s", file=sys.stderr)
    val, test = split.val.numpy(), split.test.numpy()
    strict, refitted = found.strict_outputs, found.fitted_outputs
    assert strict is not None
    assert refitted is not None
    loss = find_metric("log-loss", "classify")
    scores = {
        "validation": value_of(metric, "classify", y[val], strict[val]),
        "strict": value_of(metric, "classify", y[test], strict[test]),
        "refit": value_of(metric, "classify", y[test], refitted[test]),
        "log_loss": value_of(loss, "classify", y[test], refitted[test]),
    }
    told = {"set": name, "split": number, "effort": options.effort, "metric": metric.name, "seconds": f"{seconds:.1f}"}
    yield told | {key: f"{value:.4f}" for key, value in scores.items()}


def measure_rivals(problem: Problem, name: str, number: int) -> Iterator[dict[str, Any]]:
    """A row a method: fitted on the training part, and fitted again with what it has chosen."""
    data, split = Data(problem.x, problem.edge_index, y=problem.y), split_of(problem, number)
    metric, y, test = find_metric(METRIC.get(name, "accuracy"), "classify"), problem.y.numpy(), split.test.numpy()
    for method in rivals(data):
        start = time.process_time()
        fitted = get(method)().fit(data, split, number)
        told = {"set": name, "split": number, "method": method, "metric": metric.name}
        told["seconds"] = f"{time.process_time() - start:.1f}"
        for rule, each in (("strict", fitted), ("refit", fitted.refit(data, split, number))):
            told[rule] = f"{value_of(metric, 'classify', y[test], each.predict_proba().numpy()[test]):.4f}"
        yield told


def measure_refits(name: str, number: int) -> Iterator[dict[str, Any]]:
    """A row a network: refitted with the weights of the chosen epoch, and with the mean over those around it."""
    data = REFITS[name](number)
    given = labels(data)
    split, y = thirds(given, number, stratified=True), given.numpy()
    labelled = Labelled.of(given, fitted_objective(Classify(), given, split), split, number)
    view, test, loss = view_of(data), split.test.numpy(), find_metric("log-loss", "classify")
    for network in (each for each in portfolio(view, labelled) if each.kind == "network"):
        fitted, around = network.fit_on(view, labelled), loop.AROUND
        told = {"set": name, "split": number, "network": network.name, "epochs": fitted.chosen["epochs"]}
        told["strict"] = f"{(fitted.outputs(view).argmax(1) == y)[test].mean():.4f}"
        for column, loop.AROUND in (("one", 0), ("mean", around)):
            found = soften(fitted.refit_on(view, labelled).outputs(view)[test])
            told[column] = f"{(found.argmax(1) == y[test]).mean():.4f}"
            told[f"loss_{column}"] = f"{value_of(loss, 'classify', y[test], found):.4f}"
        yield told


def main() -> None:
    """Add the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", choices=(*SETS, *REFITS))
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first split; from 5,000 on they are random")
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rivals", action="store_true", help="other methods, not the ensemble")
    parser.add_argument("--out", type=Path, help="a CSV file, in place of the one in results/")
    parser.add_argument("--refits", action="store_true", help="the ensemble's networks, fitted again in two ways")
    options = parser.parse_args()
    file, columns = ("development_rivals.csv", RIVAL_COLUMNS) if options.rivals else ("development.csv", COLUMNS)
    if options.refits:
        file, columns = "development_refits.csv", REFIT_COLUMNS
    path = options.out or Path(__file__).parent / "results" / file
    warnings.simplefilter("ignore")
    command = tables.command(options.folder, out=options.out)
    for name in options.sets or (REFITS if options.refits else SETS):
        problem = None if options.refits else load(options.folder, name)
        for number in range(options.first, options.first + options.splits):
            rows = measure_rivals if options.rivals else partial(measure, options=options)
            for row in measure_refits(name, number) if problem is None else rows(problem, name, number):
                print(row, flush=True)
                tables.write(path, [*tables.read(path), row | {"command": command}], columns)


if __name__ == "__main__":
    main()
