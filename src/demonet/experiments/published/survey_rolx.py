"""What the survey of role-oriented embeddings calls RolX: another program, with neither roles nor a description length.

Local features and three rounds of sums and means, pruned by correlation; each feature as the quarter of all nodes that
a node is in, one-hot; those bits then explained by products of 128 numbers a node and 128 a feature, of any sign.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy import sparse

from demonet.baselines.rolx import recursive_features
from demonet.baselines.structural import two_steps

Float = NDArray[np.float64]

ROUNDS, ALIKE, QUARTERS = 3, 0.5, 4
DIMENSIONS, EPOCHS, BATCH = 128, 170, 16
RATES = (0.01, 0.001)  # of Adam, at the first and at the last step


def quarters(adjacency: sparse.csr_array) -> Float:
    """``[nodes, bits]``: for every feature of every round, the quarter that a node is in.

    A round keeps what is correlated by no more than one half with any feature of the round before. Features that do not
    split the nodes into four are left out.
    """
    rounds = [_local(adjacency)]
    for _ in range(ROUNDS):
        known, fresh = rounds[-1], recursive_features(adjacency, rounds[-1])
        with np.errstate(invalid="ignore", divide="ignore"):  # a constant feature is correlated with none
            alike = np.abs(np.corrcoef(known.T, fresh.T)[: known.shape[1], known.shape[1] :])
        rounds.append(fresh[:, ~(alike > ALIKE).any(0)])
    bits = []
    for feature in np.hstack(rounds).T:
        ends = np.quantile(feature, np.linspace(0, 1, QUARTERS + 1))
        if (np.diff(ends) > 0).all():
            bits.append(np.eye(QUARTERS)[np.searchsorted(ends[1:-1], feature)])
    return np.hstack(bits)


def _local(adjacency: sparse.csr_array) -> Float:
    """Edges inside the egonet, arcs of its nodes, the two shares of them, degree and clustering."""
    degree = np.diff(adjacency.indptr).astype(np.float64)
    triangles, _ = two_steps(adjacency)
    inside, arcs = degree + triangles, adjacency @ degree + degree
    share = inside / np.maximum(arcs, 1)
    clustering = 2 * triangles / np.maximum(degree * (degree - 1), 1)
    return np.column_stack([inside, arcs, share, 1 - share, degree, clustering])


def factored(bits: Float, seed: int, epochs: int = EPOCHS, dimensions: int = DIMENSIONS) -> Float:
    """``[nodes, dimensions]`` Z of the model ``sigmoid(Z Wᵀ)`` of the bits, by Adam with a rate that falls evenly."""
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
        for rows in order[: n - n % BATCH].split(BATCH):  # what does not fill a batch waits for the next shuffle
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(z[rows] @ w.T, target[rows]).backward()
            optimizer.step()
            schedule.step()
    return z.detach().double().numpy()
