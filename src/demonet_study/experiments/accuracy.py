"""One run of kind ``accuracy``: a method on a split, tested once.

Under a nested protocol a method may have a grid of settings. Each is fitted without the test part; the best on
validation (the first of equals) is fitted once more and tested. Methods without a grid either select on validation by
themselves (kernels, simple baselines) or have fixed settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from typing import Any

import torch
from torch import Tensor

from demonet.data.splits import Split
from demonet.methods.base import Items, Method, labels
from demonet.runs.measure import Meter
from demonet_study.experiments.methods import method, read
from demonet_study.ledger.job import Cell, Job, Outcome
from demonet_study.methods.embedding import Embedding
from demonet_study.protocol import folds_of, split_by

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
