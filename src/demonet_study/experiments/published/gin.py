"""Published results of GIN."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import cast

import numpy as np
import torch
from torch_geometric.data import Data

from demonet.data import load
from demonet.data.splits import Split, k_fold, nested_k_fold
from demonet.methods.base import labels
from demonet_study.experiments.published.results import PublishedResult
from demonet_study.methods.gin import GIN

FOLDS = 10
NONE = torch.empty(0, dtype=torch.int64)


def epoch_by_epoch(dataset: str, batch_size: int, fold: int, folds: int = FOLDS, epochs: int = 350) -> list[float]:
    """Xu et al.: train on nine folds, test on the tenth after every epoch.

    One pass over the training graphs is an epoch here; of their widths, 32.
    """
    data = load(dataset)
    train = replace(GIN.defaults.train, epochs=epochs, patience=epochs, batch_size=batch_size)
    split = k_fold(labels(data), folds, seed=0)[fold]
    rest = torch.cat([split.train, split.val])
    gin = GIN(hidden=32, train=train).fit(data, Split(split.name, 0, rest, split.test, NONE), seed=0)
    return gin.history.val_metric


def best_epoch(curves: list[list[float]]) -> list[float]:
    """All folds at the epoch of the best mean test accuracy: they have no validation set."""
    by_epoch = np.array(curves)
    found: list[float] = by_epoch[:, by_epoch.mean(0).argmax()].tolist()
    return found


def nested(
    dataset: str, fold: int, folds: int = FOLDS, runs: int = 3, grid: Sequence[tuple[int, float]] | None = None
) -> float:
    """Errica et al.: in each fold, a tenth of the rest selects width and dropout; then three runs, tested once.

    Their grid has more of everything. Attributes stand beside the node labels, scaled by the fold's training graphs.
    """
    data = cast(Sequence[Data], load(dataset))
    inner = nested_k_fold(labels(data), folds, 10, seed=0)[fold]
    scaled = _with_attributes(data, inner[0])
    made = [GIN(hidden=hidden, dropout=dropout) for hidden, dropout in grid or product((32, 64), (0.0, 0.5))]
    best = max(made, key=lambda gin: gin.fit(scaled, inner[0], seed=0).history.best_metric)
    y = labels(scaled)
    return statistics.mean(best.fit(scaled, inner[run], seed=run).score(inner[run].test, y) for run in range(runs))


def _with_attributes(data: Sequence[Data], split: Split) -> list[Data]:
    seen = torch.cat([data[i].attributes for i in split.train.tolist()])
    mean, deviation = seen.mean(0), seen.std(0).clamp(min=1e-6)
    return [
        Data(
            x=torch.cat([graph.x, (graph.attributes - mean) / deviation], 1),
            edge_index=graph.edge_index,
            num_nodes=graph.num_nodes,
            y=graph.y,
        )
        for graph in data
    ]


_BY_EPOCH = "10-fold, epoch by mean test (Xu et al. 2019)"
_NESTED = "nested 10-fold, attributes (Errica et al. 2020)"

RESULTS = [
    PublishedResult("gin", "MUTAG", _BY_EPOCH, 0.894, 0.056, FOLDS, partial(epoch_by_epoch, "MUTAG", 32), best_epoch),
    PublishedResult(
        "gin", "PROTEINS", _BY_EPOCH, 0.762, 0.028, FOLDS, partial(epoch_by_epoch, "PROTEINS", 128), best_epoch
    ),
    PublishedResult("gin", "ENZYMES", _NESTED, 0.596, 0.045, FOLDS, partial(nested, "ENZYMES")),
]
