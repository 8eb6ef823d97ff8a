"""Degree to matrix, one scheme a file."""

from demonet.nn.weights.base import DegreeWeights
from demonet.nn.weights.hashed import HashedWeights
from demonet.nn.weights.independent import IndependentWeights
from demonet.nn.weights.smooth import SmoothWeights

__all__ = ["DegreeWeights", "HashedWeights", "IndependentWeights", "SmoothWeights"]
