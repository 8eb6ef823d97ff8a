"""Degree to matrix, one scheme a file."""

from __future__ import annotations

from demonet.degree.tasks import DegreeTasks
from demonet.nn.weights.base import DegreeWeights
from demonet.nn.weights.hashed import HashedWeights
from demonet.nn.weights.independent import IndependentWeights
from demonet.nn.weights.smooth import SmoothWeights

__all__ = ["DegreeWeights", "HashedWeights", "IndependentWeights", "SmoothWeights", "make_weights"]


def make_weights(
    scheme: str,
    in_channels: int,
    width: int,
    tasks: DegreeTasks,
    hash_size: int,
    seed: int,
    basis_size: int,
    degree_scale: float,
) -> DegreeWeights:
    """The weights of a scheme, with those of the options that it has."""
    if scheme == "hash":
        return HashedWeights(in_channels, width, tasks, hash_size=hash_size, seed=seed)
    if scheme == "smooth":
        return SmoothWeights(in_channels, width, tasks, basis_size=basis_size, degree_scale=degree_scale)
    return IndependentWeights(in_channels, width, tasks, degree_scale=degree_scale)
