"""What was printed of struc2vec, GraphWave and RolX on the airports: Jiao et al., 2021, Table 5.

The survey's own program (its repository is RONE) tells how: 20 times, 70 % of the nodes train one-vs-rest regressions
in which classes weigh the same, on the embedding as it is, and the others are tested. Of struc2vec it takes the
authors' program; of GraphWave too, with scales 19 and 20 for every graph; what it calls RolX is :mod:`.survey_rolx`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import cast

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from torch import Tensor
from torch_geometric.data import Data

from demonet import baselines
from demonet.baselines.base import labels
from demonet.baselines.embedding import Embedding, Float, classify
from demonet.baselines.graphwave import GraphWave, heat_exact, laplacian
from demonet.baselines.structural import simple_adjacency
from demonet.data import load
from demonet.data.splits import fractions
from demonet.experiments.published.claims import Claim
from demonet.experiments.published.survey_rolx import factored, quarters

SCALES = (19.0, 20.0)
RUNS = 20

# By the order of the columns of the table there.
SETS = ("brazil", "europe", "usa")
PRINTED = {"struc2vec": (0.766, 0.577, 0.599), "graphwave": (0.762, 0.526, 0.517), "rolx": (0.749, 0.556, 0.623)}


def their_way(method: str, dataset: str, _piece: int, runs: int = RUNS) -> list[float]:
    """The survey's protocol."""
    data = cast(Data, load(dataset))
    z = their_embedding(method, data)
    return [weighed(z, labels(data), seed) for seed in range(runs)]


def their_embedding(method: str, data: Data) -> Float:
    """A graph embedded with the survey's settings of a method."""
    adjacency = simple_adjacency(data)
    if method == "graphwave":
        kernels = heat_exact(laplacian(adjacency), SCALES)
        return np.hstack([GraphWave().characteristic(kernel) for kernel in kernels])
    if method == "rolx":
        return factored(quarters(adjacency), seed=0)
    return cast(Embedding, baselines.get(method)()).embed(data, seed=0)


def weighed(z: Float, y: Tensor, seed: int, share: float = 0.7) -> float:
    """Train on a share of the nodes, drawn without regard to their classes, and test on the rest."""
    target = y.numpy()
    train, test = np.split(np.random.default_rng(seed).permutation(target.size), [int(share * target.size)])
    regression = LogisticRegression(class_weight="balanced", solver="liblinear", max_iter=3000)
    return float(np.mean(OneVsRestClassifier(regression).fit(z[train], target[train]).predict(z[test]) == target[test]))


def our_way(method: str, dataset: str, _piece: int, runs: int = RUNS) -> list[float]:
    """The baselines as they are, on one embedding: columns scaled, C = 1 as nothing can choose one."""
    data = cast(Data, load(dataset))
    y = labels(data)
    z = cast(Embedding, baselines.get(method)()).embed(data, seed=0)
    splits = [fractions(y, (0.7, 0.0, 0.3), seed) for seed in range(runs)]
    return [float((classify(z, y, split)[split.test] == y[split.test]).double().mean()) for split in splits]


def only(answers: list[list[float]]) -> list[float]:
    """A graph is embedded once for all splits, so that there is a single piece."""
    (found,) = answers
    return found


CLAIMS = [
    Claim(method, dataset, protocol, printed, math.nan, 1, partial(measure, method, dataset), only)
    for protocol, measure in (
        ("70/30, logistic regression (survey of role-oriented embeddings, Table 5)", their_way),
        ("70/30, logistic regression, as in the table here", our_way),
    )
    for method, row in PRINTED.items()
    for dataset, printed in zip(SETS, row, strict=True)
]
