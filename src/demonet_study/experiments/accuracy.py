"""Runs of kind ``accuracy`` and ``default``: a method on a split, tested once, or once under each of two rules.

Under a nested protocol a method may have a grid of settings. Each is fitted without the test part; the best on
validation (the first of equals) is fitted once more and tested. Methods without a grid either select on validation by
themselves (kernels, simple baselines) or have fixed settings.

The rules of kind ``default`` are ``strict`` (fitted on the training part alone; settings, epochs and weights of an
average are chosen on the validation part) and ``refit`` (what was chosen is kept, and the method is fitted again on
both parts together). One run has both, as the choice is the same.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet import methods
from demonet.data import load
from demonet.data.catalog import find
from demonet.data.splits import Split
from demonet.data.synthetic import flip_graph
from demonet.ensemble.auto import Auto
from demonet.errors import DemonetError, DemonetWarning
from demonet.methods.base import Items, Method, labels
from demonet.methods.closed_form import Kernel
from demonet.methods.demonet import DemoNet
from demonet.runs.measure import Meter
from demonet.train.presets import Family
from demonet_study.ledger.job import Cell, Job, Outcome
from demonet_study.methods.embedding import Embedding
from demonet_study.protocol import folds_of, split_by


def method(name: str, preset: str = "", options: Mapping[str, Any] | None = None) -> Method:
    """An unfitted method with some settings changed; DEMO-Net has the preset "paper", "authors" or "default"."""
    found = methods.get(name)
    changes = {key: tuple(value) if isinstance(value, list) else value for key, value in (options or {}).items()}
    if preset or issubclass(found, DemoNet):
        changes["preset"] = preset
        if (name == "demonet-default") != (preset == "default"):
            hint = "demonet-default has the preset 'default', and no other method has it"
            raise DemonetError(f"{name} with preset {preset!r}", hint=hint)
    return found(**changes)


def read(made: Method, dataset: str, device: str) -> Items:
    """Load a data set with the self-loops of the method's preset, on the device if the method uses one."""
    loops = made.preset(family_in_catalog(dataset)).self_loops if isinstance(made, DemoNet) else "drop"
    return moved(load_quietly(dataset, loops), device if made.on_device else "cpu")


def family_in_catalog(dataset: str) -> Family:
    """The family of problems of a data set, from the catalog."""
    entry = find(dataset)
    if entry.task == "graphs":
        return "graphs"
    return "attributes" if entry.statistics.attributes else "nodes"


def moved(data: Items, device: str) -> Items:
    """Move graphs to a device."""
    if device == "cpu":
        return data
    return data.to(device) if isinstance(data, Data) else [graph.to(device) for graph in data]


def load_quietly(dataset: str, self_loops: Literal["drop", "keep"] = "drop") -> Items:
    """Load a data set without warnings about what is dropped."""
    with warnings.catch_warnings():  # the docs say it; runs need not repeat it
        warnings.simplefilter("ignore", DemonetWarning)
        return load(dataset, self_loops=self_loops)


Options = dict[str, Any]
# Width and dropout, the same for both networks; Errica et al. (ICLR'20) have a larger grid.
_WIDTHS, _DROPOUTS = (32, 64), (0.0, 0.5)
GRIDS: dict[str, list[Options]] = {
    "gin": [{"hidden": hidden, "dropout": dropout} for hidden, dropout in product(_WIDTHS, _DROPOUTS)],
    "demonet-default": [
        {"model": {"hidden": hidden, "dropout": dropout}} for hidden, dropout in product(_WIDTHS, _DROPOUTS)
    ],
}


def accuracy(job: Job, device: str = "cpu") -> Outcome:
    """Run ``seed`` of a cell: split (or fold) ``seed`` and seed ``seed``.

    The value is the test accuracy. The extra values are the validation accuracy, the hash of the split, the epochs of a
    network, and the settings selected from a grid. The time includes reading the data.
    """
    meter, cell = Meter(), job.cell
    options = json.loads(cell.options)
    data = read(method(cell.method, cell.preset, options), cell.dataset, device)
    y = labels(data)
    split = split_by(cell.split, y, job.seed)
    grid = GRIDS.get(cell.method, []) if folds_of(cell.split) else []
    chosen = _best(cell, options, grid, data, split, job.seed) if grid else {}
    done = _with(cell, options, chosen).fit(data, split, job.seed)
    seconds = meter.seconds + (done.earlier if isinstance(done, Embedding) else 0.0)
    return Outcome(done.score(split.test, y), seconds, meter.peak_memory_mb, _beside(done, y, split, chosen))


def _best(cell: Cell, options: Options, grid: list[Options], data: Items, split: Split, seed: int) -> Options:
    blind = Split(split.name, split.seed, split.train, split.val, torch.empty(0, dtype=torch.int64))
    y = labels(data)
    return max(grid, key=lambda changes: _with(cell, options, changes).fit(data, blind, seed).score(split.val, y))


def _with(cell: Cell, options: Options, changes: Options) -> Method:
    """The cell's method with some settings changed; options of the cell take precedence."""
    return method(cell.method, cell.preset, joined(changes, options))


def joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> Options:
    """Merge nested options; the second argument takes precedence.

    >>> joined({"model": {"hidden": 32, "dropout": 0.5}}, {"model": {"hidden": 8}, "tasks": "log2"})
    {'model': {'hidden': 8, 'dropout': 0.5}, 'tasks': 'log2'}
    """
    both = dict(one) | dict(other)
    for name in one.keys() & other.keys():
        if isinstance(one[name], Mapping) and isinstance(other[name], Mapping):
            both[name] = joined(one[name], other[name])
    return both


def _beside(done: Method, y: Tensor, split: Split, chosen: Options) -> dict[str, Any]:
    validation = done.score(split.val, y) if split.val.numel() else None
    epochs = None if done.history is None else done.history.epochs
    found = {"validation": validation, "epochs": epochs, "split": split.hash, "chosen": chosen}
    return {name: value for name, value in found.items() if value not in (None, {})}


AUTO, KERNEL = Auto.name, Kernel.name


def both_rules(job: Job, device: str = "cpu") -> Outcome:
    """Run ``seed`` of a cell: split ``seed`` and seed ``seed``. Networks and the closed form use the device.

    The value is the test accuracy under ``strict``; ``extra["refit"]`` is that under ``refit``. Further extra values:
    validation accuracy, the hash of the split, the epochs of a network, and for the ensemble the log-loss on the test
    part under both rules, the weight of each member, and the seconds of each fit and refit.
    """
    meter, cell = Meter(), job.cell
    made = rule_method(cell, device)
    data = GENERATED[cell.dataset](job.seed) if cell.dataset in GENERATED else read(made, cell.dataset, device)
    y = labels(data)
    split = split_by(cell.split, y, job.seed)
    fitted = made.fit(data, split, job.seed)
    extra: dict[str, Any] = {"validation": fitted.score(split.val, y), "split": split.hash}
    if isinstance(fitted, Kernel):
        settings = fitted.chosen["settings"]
        # A graph kernel without its pooled part (WL and structure alone) does not read the other fields.
        extra["degree"] = float(np.mean([s["degree"] if s.get("pooled", 1.0) else 0.0 for s in settings]))
        extra["task"] = fitted.chosen["task"]
    if isinstance(fitted, Kernel) and fitted.settings.degree != "best":  # the arms are compared under strict alone
        return Outcome(fitted.score(split.test, y), meter.seconds, meter.peak_memory_mb, extra)
    again = fitted.refit(data, split, job.seed)
    extra["refit"] = again.score(split.test, y)
    if isinstance(fitted, Auto):
        rows = [row for row in fitted.ensemble.candidates if row.status == "fitted"]
        extra |= {
            "validation": fitted.ensemble.validation["score"],
            "log_loss": {"strict": _log_loss(fitted, y, split), "refit": _log_loss(again, y, split)},
            "weights": {row.name: round(row.weight, 6) for row in rows},
            "seconds": {row.name: [round(row.seconds, 3), round(row.refit_seconds, 3)] for row in rows},
            "left_out": {row.name: row.reason for row in fitted.ensemble.candidates if row.status != "fitted"},
        }
    elif fitted.history is not None:
        extra["epochs"] = fitted.chosen
    return Outcome(fitted.score(split.test, y), meter.seconds, meter.peak_memory_mb, extra)


def rule_method(cell: Cell, device: str = "cpu") -> Method:
    """The unfitted method of a cell."""
    options = json.loads(cell.options)
    if hasattr(methods.get(cell.method).defaults, "device"):
        options["device"] = device
    return method(cell.method, cell.preset, options)


GENERATED: dict[str, Callable[[int], Data]] = {"flip": flip_graph}  # whose rule changes with the degree


def _log_loss(fitted: Method, y: Tensor, split: Split) -> float:
    probability = fitted.predict_proba()[split.test].gather(1, y[split.test, None]).numpy()
    return float(-np.log(np.maximum(probability, 1e-12)).mean())
