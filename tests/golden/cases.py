"""Seeded small fits of every model, task and estimator, through the public interface alone.

A case is a function without arguments that returns plain values by name: words and whole numbers, which are compared
exactly, and numbers with a fraction, which are compared within the tolerance of the case. Inputs come from NumPy's
generators, which give the same bits on every processor. Attributes and targets have noise, so that no two settings are
equally good and rounding cannot choose between them.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.runs.files import write_graphs, write_problem, write_tasks
from torch_geometric.data import Data

from demonet import (
    DegreeWLKernel,
    DEMONetClassifier,
    DEMONetGraphClassifier,
    DEMONetGraphRegressor,
    DEMONetRegressor,
    MeanWLKernel,
    WLSubtreeKernel,
    methods,
)
from demonet.data.splits import Split
from demonet.data.synthetic import power_law, small_graphs
from demonet.degree.count import count_degree
from demonet.ensemble import Ensemble
from demonet.errors import DemonetWarning
from demonet.methods.network import Network
from demonet.report.page import Facts
from demonet.report.run import run_page
from demonet.runs import Run, Settings, fit_run
from demonet.train import preset, train_graphs, train_nodes
from demonet.train.presets import PRESETS

NODES, GRAPHS, SHOWN = 80, 30, 6
CLOSED, TRAINED, CHOSEN = 1e-4, 1e-2, 5e-2  # closed forms; networks after some epochs; averages over chosen models
# The forest takes two seconds, and which strength the other one selects depends on rounding.
LEFT_OUT = (("structural-rf", "graphs"), ("structural-lr", "nodes"))
QUICK = {"wl-rf": {"trees": 20, "rounds": (1,)}, "deepwl": {"dimensions": (5,), "windows": (5,)}}


@dataclass(frozen=True)
class Case:
    """What is computed; the tolerance of its numbers; and the share of classes that has to agree."""

    compute: Callable[[], dict[str, Any]]
    tolerance: float
    agreement: float = 1.0


def nodes(task: str = "classify", attributes: bool = True) -> Data:
    """A power-law graph; targets depend on degree and attributes, with noise."""
    random = np.random.default_rng(0)
    data = power_law(NODES, 220, hub=14, seed=1)
    degree, x = count_degree(data.edge_index, NODES).numpy(), random.normal(size=(NODES, 4))
    number = np.log1p(degree) * (1 + x[:, 0]) + random.normal(scale=0.2, size=NODES)
    if attributes:
        data.x = torch.from_numpy(x).float()
    data.y = _targets(task, number, x[:, 1])
    return data


def graphs(task: str = "classify", attributes: bool = True) -> list[Data]:
    """Five families of graphs; numbers depend on the family and the size, with noise."""
    random = np.random.default_rng(1)
    found = small_graphs(GRAPHS, 0, largest=16, noise=0.1)
    sizes = np.array([graph.num_nodes for graph in found])
    number = np.arange(GRAPHS) % 5 + sizes / 8 + random.normal(scale=0.2, size=GRAPHS)
    targets = _targets(task, number, random.normal(size=GRAPHS))
    for graph, target in zip(found, targets, strict=True):
        graph.y = target.view(1) if task == "classify" else target.view(1, -1)
        if attributes:
            graph.x = torch.eye(3)[torch.from_numpy(random.integers(3, size=graph.num_nodes))]
    return found


def _targets(task: str, number: np.ndarray, other: np.ndarray) -> torch.Tensor:
    if task == "regress":
        return torch.from_numpy(number).float().view(-1, 1)
    classes = np.digitize(number, np.quantile(number, [1 / 3, 2 / 3]))
    if task == "multilabel":
        return torch.from_numpy(np.stack([classes == 0, classes == 2, other > 0], axis=1).astype(np.float32))
    return torch.from_numpy(classes)


def split_of(count: int) -> Split:
    """A half, a quarter, a quarter."""
    order = torch.from_numpy(np.random.default_rng(2).permutation(count))
    return Split("golden", 0, *order.split([count // 2, count // 4, count - count // 2 - count // 4]))


def numbers(values: Any) -> list[Any]:
    """The first rows, with six digits."""
    return np.round(np.asarray(values, dtype=np.float64)[:SHOWN], 6).tolist()


def estimator(items: str, task: str, model: str, attributes: bool) -> dict[str, Any]:
    """Predictions, embedding and validation of an estimator."""
    kinds = {
        ("nodes", False): DEMONetClassifier,
        ("nodes", True): DEMONetRegressor,
        ("graphs", False): DEMONetGraphClassifier,
        ("graphs", True): DEMONetGraphRegressor,
    }
    data = nodes(task, attributes) if items == "nodes" else graphs(task, attributes)
    options = {"epochs": 3, "hidden": 8} if model == "network" else {"effort": "quick"} if model == "auto" else {}
    made = kinds[items, task == "regress"](model=model, **options)
    if items == "graphs" and task != "classify":
        made.fit(data, np.concatenate([graph.y.numpy() for graph in data]))
    elif task == "classify":
        made.fit(data)
    else:
        made.set_params(graph=data).fit(range(NODES), data.y.numpy())
    given = data if items == "graphs" or task == "classify" else None
    if task == "regress":
        return {"prediction": numbers(made.predict(given))}
    probability = made.predict_proba(given)
    return {
        "probability": numbers(probability),
        "classes": np.asarray(made.predict(given)).astype(int).ravel().tolist(),
    }


def training(name: str, family: str, **model: Any) -> dict[str, Any]:
    """Losses before and after steps of a preset, and the size of its parameters; without dropout."""
    base = preset(name, family)
    whole = {"dropout": 0.0, "input_dropout": 0.0, **model}
    chosen = replace(base, model=base.model.changed(**whole), train=replace(base.train, epochs=3))
    if family == "graphs":
        done = train_graphs(graphs(), split_of(GRAPHS), chosen)
    else:
        data = nodes(attributes=family == "attributes")
        if data.x is not None:
            data.x = data.x.abs()  # tf-idf needs counts
        done = train_nodes(data, split_of(NODES), chosen)
    parameters = list(done.model.parameters())
    return {
        "train_loss": numbers(done.history.train_loss),
        "val_loss": numbers(done.history.val_loss),
        "parameters": sum(parameter.numel() for parameter in parameters),
        "size": round(float(sum(parameter.detach().double().abs().sum() for parameter in parameters)), 4),
    }


def baseline(name: str, items: str) -> dict[str, Any]:
    """The classes that a baseline predicts."""
    kind = methods.get(name)
    data, count = (nodes(), NODES) if items == "nodes" else (graphs(), GRAPHS)
    options: dict[str, Any] = {"train": replace(kind.defaults.train, epochs=10)} if issubclass(kind, Network) else {}
    options |= QUICK.get(name, {})
    return {"classes": kind(**options).fit(data, split_of(count), 0).predict().tolist()}


def ensemble(items: str, attributes: bool) -> dict[str, Any]:
    """Every candidate of a quick ensemble: its probabilities on validation items."""
    data, count = (nodes(attributes=attributes), NODES) if items == "nodes" else (graphs(attributes=attributes), GRAPHS)
    fitted = Ensemble.fit(data, split_of(count), effort="quick")
    found = {f"candidate {name}": numbers(probability) for name, probability in (fitted.judged or {}).items()}
    return found | {
        "names": [row.name for row in fitted.candidates],
        "status": [row.status for row in fitted.candidates],
    }


def gram(kernel: Any) -> dict[str, Any]:
    """A corner of the Gram matrix."""
    return {"gram": numbers(kernel.fit_transform(graphs())[:, :SHOWN])}


def page(task: str, model: str) -> dict[str, Any]:
    """What a run's page and ``metrics.json`` say, without what depends on the clock."""
    files = {"classify": "labels.csv", "regress": "scores.csv", "multilabel": "tags.csv", "graphs": "kinds.csv"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_problem(folder)
        write_graphs(folder)
        write_tasks(folder)
        edges = folder / ("graphs.csv" if task == "graphs" else "edges.csv")
        settings = Settings(model=model, epochs=12 if model == "network" else None)
        run = fit_run(edges, folder / files[task], out=folder / "run", settings=settings, page=lambda run, path: None)
        return _facts(run)


def _facts(run: Run) -> dict[str, Any]:
    sections = run_page(run).sections
    facts = [(name, value) for one in sections if isinstance(one, Facts) for name, value in one.facts.items()]
    scores = {name: value for name, value in facts if isinstance(value, float)}
    floors = {name: one if isinstance(one, float) else one["value"] for name, one in run.metrics["floors"].items()}
    return {
        "sections": [f"{one.kind}: {one.title}" for one in sections],
        "facts": [name for name, _ in facts],
        "metrics": sorted(run.metrics),
        "split": run.metrics["split"],
        "class_names": run.class_names,
        **{f"score {name}": value for name, value in scores.items()},
        **{f"floor {name}": value for name, value in floors.items()},
    }


def _cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for items in ("nodes", "graphs"):
        for attributes in (True, False):
            what = items if attributes else f"bare {items}"
            for task in ("classify", "regress"):
                found[f"estimator kernel {task} {what}"] = Case(
                    partial(estimator, items, task, "kernel", attributes), CLOSED
                )
            for task in ("classify", "regress", "multilabel"):
                tolerance = CHOSEN if task == "regress" else TRAINED  # the epoch is chosen by a nearly flat loss
                found[f"estimator network {task} {what}"] = Case(
                    partial(estimator, items, task, "network", attributes), tolerance, 0.95
                )
        found[f"ensemble {items}"] = Case(partial(ensemble, items, items == "graphs"), TRAINED)
    found["estimator auto classify nodes"] = Case(partial(estimator, "nodes", "classify", "auto", True), CHOSEN, 0.9)
    for name, family in PRESETS:
        found[f"steps {name} {family}"] = Case(partial(training, name, family), TRAINED)
    for scheme in ("weight", "hash", "smooth"):
        for aggr in ("sum", "mean"):
            found[f"steps {scheme} {aggr}"] = Case(
                partial(training, "paper", "nodes", scheme=scheme, aggr=aggr), TRAINED
            )
    for name in [name for name in methods.names() if methods.get(name).group != "DEMO-Net"]:
        for items in methods.get(name).kinds:
            if (name, items) not in LEFT_OUT:
                found[f"baseline {name} {items}"] = Case(partial(baseline, name, items), TRAINED, 0.9)
    for kernel in (DegreeWLKernel(), MeanWLKernel(), WLSubtreeKernel()):
        found[f"gram {type(kernel).__name__}"] = Case(partial(gram, kernel), CLOSED)
    for task, model in (("classify", "kernel"), ("regress", "kernel"), ("multilabel", "network"), ("graphs", "kernel")):
        found[f"page {task} {model}"] = Case(partial(page, task, model), TRAINED if model == "network" else CLOSED)
    return found


CASES = _cases()


def compute(name: str) -> dict[str, Any]:
    """The values of a case, without warnings about what small problems lack."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        return CASES[name].compute()
