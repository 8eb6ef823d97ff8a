"""Published results of struc2vec, GraphWave and RolX on the airports: Jiao et al., 2021, Table 5.

The protocol is that of the survey's program (repository RONE): 20 times, one-vs-rest regressions with balanced classes
are trained on 70 % of the nodes, on the embedding without scaling, and tested on the others. The programs of struc2vec
and GraphWave are those of their authors, the latter with scales 19 and 20 for every graph. What the survey calls RolX
(:func:`quarters`, :func:`factored`) is another method, without roles and description length: local features and three
rounds of sums and means, pruned by correlation; each feature as the quartile of a node, one-hot; and these bits
factored into 128 numbers per node and 128 per feature, of any sign.
"""

from __future__ import annotations

import math
from functools import partial
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from torch import Tensor
from torch_geometric.data import Data

from demonet import methods
from demonet.data import load
from demonet.data.splits import fractions
from demonet.features.graph import simple_adjacency
from demonet.features.structure import triangle_counts
from demonet.methods.base import labels
from demonet_study.experiments.published.results import PublishedResult
from demonet_study.methods.embedding import Embedding, Float, classify
from demonet_study.methods.graphwave import GraphWave, heat_exact, laplacian
from demonet_study.methods.rolx import recursive_features

SCALES = (19.0, 20.0)
RUNS = 20

# In the order of the columns of that table.
SETS = ("brazil", "europe", "usa")
PRINTED = {"struc2vec": (0.766, 0.577, 0.599), "graphwave": (0.762, 0.526, 0.517), "rolx": (0.749, 0.556, 0.623)}


def their_way(method: str, dataset: str, _piece: int, runs: int = RUNS) -> list[float]:
    """The survey's protocol."""
    data = cast(Data, load(dataset))
    z = their_embedding(method, data)
    return [weighed(z, labels(data), seed) for seed in range(runs)]


def their_embedding(method: str, data: Data) -> Float:
    """Embed a graph with the survey's settings of a method."""
    adjacency = simple_adjacency(data)
    if method == "graphwave":
        kernels = heat_exact(laplacian(adjacency), SCALES)
        return np.hstack([GraphWave().characteristic(kernel) for kernel in kernels])
    if method == "rolx":
        return factored(quarters(adjacency), seed=0)
    return cast(Embedding, methods.get(method)()).embed(data, seed=0)


def weighed(z: Float, y: Tensor, seed: int) -> float:
    """Train on 70 % of the nodes, not stratified, and test on the rest."""
    target = y.numpy()
    train, test = np.split(np.random.default_rng(seed).permutation(target.size), [int(0.7 * target.size)])
    regression = LogisticRegression(class_weight="balanced", solver="liblinear", max_iter=3000)
    return float(np.mean(OneVsRestClassifier(regression).fit(z[train], target[train]).predict(z[test]) == target[test]))


def our_way(method: str, dataset: str, _piece: int, runs: int = RUNS) -> list[float]:
    """Our baselines on one embedding: columns scaled, and C = 1 because there is no validation part."""
    data = cast(Data, load(dataset))
    y = labels(data)
    z = cast(Embedding, methods.get(method)()).embed(data, seed=0)
    splits = [fractions(y, (0.7, 0.0, 0.3), seed) for seed in range(runs)]
    return [float((classify(z, y, split)[split.test] == y[split.test]).double().mean()) for split in splits]


def only(answers: list[list[float]]) -> list[float]:
    """The answer of the single piece: a graph is embedded once for all splits."""
    (found,) = answers
    return found


ROUNDS, ALIKE, QUARTERS = 3, 0.5, 4
DIMENSIONS, EPOCHS, BATCH = 128, 170, 16
RATES = (0.01, 0.001)  # learning rate of Adam at the first and the last step


def quarters(adjacency: sparse.csr_array) -> Float:
    """``[nodes, bits]``: for every feature of every round, the quartile of each node, one-hot.

    A round keeps features whose correlation with every feature of the previous round is at most one half. Features
    without four distinct quartiles are left out.
    """
    rounds = [_local(adjacency)]
    for _ in range(ROUNDS):
        known, fresh = rounds[-1], recursive_features(adjacency, rounds[-1])
        with np.errstate(invalid="ignore", divide="ignore"):  # the correlation of a constant feature is NaN
            alike = np.abs(np.corrcoef(known.T, fresh.T)[: known.shape[1], known.shape[1] :])
        rounds.append(fresh[:, ~(alike > ALIKE).any(0)])
    bits = []
    for feature in np.hstack(rounds).T:
        ends = np.quantile(feature, np.linspace(0, 1, QUARTERS + 1))
        if (np.diff(ends) > 0).all():
            bits.append(np.eye(QUARTERS)[np.searchsorted(ends[1:-1], feature)])
    return np.hstack(bits)


def _local(adjacency: sparse.csr_array) -> Float:
    """Edges inside the egonet, edges of its nodes, the two shares of these, degree and clustering coefficient."""
    degree = np.diff(adjacency.indptr).astype(np.float64)
    triangles = triangle_counts(adjacency)
    inside, every = degree + triangles, adjacency @ degree + degree
    share = inside / np.maximum(every, 1)
    clustering = 2 * triangles / np.maximum(degree * (degree - 1), 1)
    return np.column_stack([inside, every, share, 1 - share, degree, clustering])


def factored(bits: Float, seed: int, epochs: int = EPOCHS, dimensions: int = DIMENSIONS) -> Float:
    """``[nodes, dimensions]`` Z of the model ``sigmoid(Z Wᵀ)`` of the bits, by Adam with a linearly decreasing rate."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.from_numpy(bits).float()
    n, steps = len(target), len(target) * epochs / BATCH
    z, w = (((2 * torch.rand(size, dimensions, generator=generator) - 1) * 0.1 / dimensions) for size in target.shape)
    optimizer = torch.optim.Adam([z.requires_grad_(), w.requires_grad_()], lr=RATES[0])
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 1 - min(step / steps, 1.0) * (1 - RATES[1] / RATES[0])
    )
    for _ in range(epochs):
        order = torch.randperm(n, generator=generator)
        for rows in order[: n - n % BATCH].split(BATCH):  # an incomplete batch is dropped
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(z[rows] @ w.T, target[rows]).backward()
            optimizer.step()
            schedule.step()
    return z.detach().double().numpy()


RESULTS = [
    PublishedResult(method, dataset, protocol, printed, math.nan, 1, partial(measure, method, dataset), only)
    for protocol, measure in (
        ("70/30, logistic regression (survey of role-oriented embeddings, Table 5)", their_way),
        ("70/30, logistic regression, as in the table here", our_way),
    )
    for method, row in PRINTED.items()
    for dataset, printed in zip(SETS, row, strict=True)
]
