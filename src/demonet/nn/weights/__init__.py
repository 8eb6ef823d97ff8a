"""Schemes: how a degree gets its matrix. One file each; ``docs/extending/scheme.md`` shows how to add one."""

# Importing a scheme registers it.
from demonet.nn.weights.base import SCHEMES, DegreeWeights, make_weights, register
from demonet.nn.weights.hashed import HashedWeights
from demonet.nn.weights.independent import IndependentWeights
from demonet.nn.weights.scaled import ScaledWeights
from demonet.nn.weights.smooth import SmoothWeights

__all__ = [
    "SCHEMES",
    "DegreeWeights",
    "HashedWeights",
    "IndependentWeights",
    "ScaledWeights",
    "SmoothWeights",
    "make_weights",
    "register",
]
