"""Probabilities of a model as they are, and calibrated: log-loss, calibration error and accuracy on test items.

    python benchmarks/calibration.py [--model auto] [--sets roles-60 ...] [--first 5000] [--splits 2]
        [--folder ../shared/data/public] [--out benchmarks/results/calibration.csv] [--work FOLDER]

A row is a set, a split and a way to calibrate. With `--model auto` it is the average of the refitted members, by the
items that the weights were chosen on; with `network` or `kernel` the model that was fitted on the training part, by the
validation part. `average` is none, `ensemble` what the ensemble does. `judged` is the number of these items, and `ap`
the average precision of the rarer of two classes. Sets whose name ends in a number have so many validation items; more
than the training items are judged by cross-validation over both. The first split of cora and citeseer is the public
one, 0. The calibration error is the mean distance, over 15 bins, between the probability of the predicted class and how
often it is right.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import later
import numpy as np
import tables
import torch
from development import load, split_of
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import average_precision_score
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from demonet.data.load import load as load_dataset
from demonet.data.splits import Split, fractions
from demonet.data.synthetic import flip_graph, role_graph, small_graphs
from demonet.ensemble import Ensemble
from demonet.ensemble.calibration import Calibration
from demonet.estimators import DEMONetClassifier, DEMONetGraphClassifier
from demonet.estimators.core import fit_checked
from demonet.estimators.models import KernelModel, NetworkModel
from demonet.methods.selection import item_losses

Array = NDArray[Any]
Made = tuple[Any, Any, Split]  # the graph or graphs, their classes, and a split
BINS = 15
COLUMNS = ("set", "split", "judged", "tested", "way", "method", "log_loss", "error", "accuracy", "ap", "command")


def calibration_error(outputs: Array, y: Array) -> float:
    """The expected calibration error."""
    sure, right = outputs.max(1), outputs.argmax(1) == y
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(place, sure - right, BINS)).sum() / len(y))


def isotonic(outputs: Array, y: Array) -> Callable[[Array], Array]:
    """A rising step function for each class, brought to a sum of one, with a share 1/(n + 1) of the uniform one."""
    fitted = [IsotonicRegression(out_of_bounds="clip").fit(p, y == number) for number, p in enumerate(outputs.T)]
    share = 1 / (len(y) + 1)

    def apply(given: Array) -> Array:
        found = np.stack([each.predict(p) for each, p in zip(fitted, given.T, strict=True)], 1) + 1e-12
        return (1 - share) * found / found.sum(1, keepdims=True) + share / given.shape[1]

    return apply


def averages(number: int, data: Any, y: Array, split: Split) -> dict[str, Array]:
    """What the ensemble averages before it is calibrated: for the items that weights were chosen on, and for tests."""
    found = Ensemble.fit(data, split, effort="quick", seed=number)
    assert found.judged is not None
    assert found.fitted_member_outputs is not None
    weights = {row.name: row.weight for row in found.candidates}
    judged = np.tensordot([weights[name] for name in found.judged], np.stack(list(found.judged.values())), 1)
    average = np.tensordot(found.weights, np.stack(found.fitted_member_outputs), 1)
    test, items = split.test.numpy(), found.judged_items
    return {"judged": judged, "y": y[items], "average": average[test], "tested": y[test]}


def single(model: str, number: int, data: Any, y: Array, split: Split) -> dict[str, Array]:
    """The same of one model, fitted on the training part; a network also chooses its epoch on the validation part."""
    kind = DEMONetClassifier if isinstance(data, Data) else DEMONetGraphClassifier
    used = split if model == "network" else replace(split, val=split.val[:0])
    fitted = fit_checked(kind(model=model, random_state=number), data, used, np.arange(y.max() + 1)).model
    assert isinstance(fitted, NetworkModel | KernelModel)
    outputs, val, test = fitted.outputs(data), split.val.numpy(), split.test.numpy()
    return {"judged": outputs[val], "y": y[val], "average": outputs[test], "tested": y[test]}


def measure(name: str, number: int, judged: Array, y: Array, average: Array, tested: Array) -> list[dict[str, Any]]:
    """The rows of a split."""
    chosen, rows = Calibration.choose(judged, y, number), []
    ways = {"average": average, "isotonic": isotonic(judged, y)(average)}
    ways["temperature"] = Calibration.fit("temperature", judged, y).apply(average)
    ways["ensemble"] = chosen.apply(average)
    for way, outputs in ways.items():
        row = {"set": name, "split": number, "judged": len(y), "tested": len(tested), "way": way}
        row["method"] = chosen.method if way == "ensemble" else ""
        scores = {
            "log_loss": item_losses("classify", outputs, tested).mean(),
            "error": calibration_error(outputs, tested),
        }
        scores["accuracy"] = (outputs.argmax(1) == tested).mean()
        if outputs.shape[1] == 2:
            rarer = int(np.bincount(y).argmin())
            scores["ap"] = average_precision_score(tested == rarer, outputs[:, rarer])
        rows.append(row | {key: f"{score:.4f}" for key, score in scores.items()})
    return rows


def sized(made: Callable[[int], Any], train: int, val: int) -> Callable[[int], Made]:
    """A generated set with so many items to train and to validate; all others are tested."""

    def problem(seed: int) -> Made:
        data = made(seed)
        data = graph_of(data) if isinstance(data, later.Growing) else data
        y = torch.cat([graph.y for graph in data]) if isinstance(data, list) else data.y
        shares = (train / len(y), val / len(y), 1 - (train + val) / len(y))
        return data, y.numpy(), fractions(y, shares, seed, stratified=True)

    return problem


def graph_of(growing: later.Growing) -> Data:
    """All of a growing graph, undirected."""
    x = None if growing.x is None else torch.from_numpy(growing.x).float()
    edges = to_undirected(torch.from_numpy(growing.edges.T.copy()), num_nodes=len(growing.y))
    return Data(x, edges, y=torch.from_numpy(np.unique(growing.y, return_inverse=True)[1]), num_nodes=len(growing.y))


def airports(name: str) -> Callable[[int], Made]:
    """Thirds of the airports of a country."""

    def problem(seed: int) -> Made:
        data = load_dataset(name)
        assert isinstance(data, Data)
        return data, data.y.numpy(), fractions(data.y, (1 / 3, 1 / 3, 1 / 3), seed, stratified=True)

    return problem


def public(name: str, folder: Path) -> Callable[[int], Made]:
    """Documents: split 0 is the public one, those from 5,000 on have its sizes."""

    def problem(seed: int) -> Made:
        found = load(folder, name)
        return Data(found.x, found.edge_index, y=found.y), found.y.numpy(), split_of(found, seed)

    return problem


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("../shared/data/public"))
    parser.add_argument("--model", choices=("auto", "kernel", "network"), default="auto")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--first", type=int, default=5000)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/calibration.csv"))
    parser.add_argument("--work", type=Path, help="keep averages here, and use those that are there")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    made: dict[str, Callable[[int], Made]] = {name: airports(name) for name in ("brazil", "europe", "usa")}
    for val in (60, 150, 500):
        made |= {f"{each.__name__}-{val}": sized(each, 200, val) for each in (later.planted, later.mixed)}
        made[f"roles-{val}"] = sized(lambda seed: role_graph(seed, motifs=200), 250, val)
        made[f"flip-{val}"] = sized(flip_graph, 400, val)
    made |= {"bank-300": sized(later.bank, 1000, 300), "bank-780": sized(later.bank, 2340, 780)}
    made["families-60"] = sized(lambda seed: small_graphs(400, seed, noise=0.3), 100, 60)
    made |= {name: public(name, options.folder) for name in ("cora", "citeseer")}
    command, rows = tables.command(options.folder, out=options.out, work=options.work), []
    for name in options.sets or made:
        seeds = range(options.first, options.first + options.splits)
        for seed in [0, *seeds[:-1]] if name in ("cora", "citeseer") else seeds:
            kept = None if options.work is None else options.work / f"{name}-{seed}.npz"
            if kept is None or not kept.exists():
                fit = averages if options.model == "auto" else partial(single, options.model)
                found = fit(seed, *made[name](seed))
                if kept is not None:
                    np.savez(kept, **found)
            else:
                with np.load(kept) as file:
                    found = dict(file)
            rows += measure(name, seed, **found)
            print(*(list(row.values()) for row in rows[-4:]), sep="\n", flush=True)
            tables.write(options.out, [{"ap": ""} | row | {"command": command} for row in rows], COLUMNS)


if __name__ == "__main__":
    main()
