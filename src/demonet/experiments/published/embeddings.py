"""What was printed of struc2vec, GraphWave and RolX on the airports."""

from __future__ import annotations

import math
from functools import partial
from typing import cast

from torch_geometric.data import Data

from demonet import baselines
from demonet.baselines.base import labels
from demonet.baselines.embedding import Embedding, classify
from demonet.data import load
from demonet.data.splits import fractions
from demonet.experiments.published.claims import Claim

PROTOCOL = "70/30, logistic regression (survey of role-oriented embeddings, Table 5)"

# By the order of the columns of the table there.
SETS = ("brazil", "europe", "usa")
PRINTED = {"struc2vec": (0.766, 0.577, 0.599), "graphwave": (0.762, 0.526, 0.517), "rolx": (0.749, 0.556, 0.623)}


def seventy_thirty(method: str, dataset: str, runs: int = 10) -> list[float]:
    """One embedding, ten splits: 70 % of the nodes train a regression with C = 1, the others are tested.

    There is no validation part, so nothing is chosen. The survey printed no deviations.
    """
    data = cast(Data, load(dataset))
    y = labels(data)
    z = cast(Embedding, baselines.get(method)()).embed(data, seed=0)
    found = []
    for seed in range(runs):
        split = fractions(y, (0.7, 0.0, 0.3), seed)
        found.append(float((classify(z, y, split)[split.test] == y[split.test]).double().mean()))
    return found


CLAIMS = [
    Claim(method, dataset, PROTOCOL, printed, math.nan, partial(seventy_thirty, method, dataset))
    for method, row in PRINTED.items()
    for dataset, printed in zip(SETS, row, strict=True)
]
