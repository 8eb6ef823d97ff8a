"""The values of options, listed here so that help and completion need not import torch.

``tests/cli/test_choices.py`` compares each list with the package that defines it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

Items = Literal["auto", "nodes", "graphs"]  # demonet.runs.settings.Items
Task = Literal["auto", "classify", "regress", "multilabel"]  # demonet.train.objective.OBJECTIVES
Metric = Literal[  # demonet.train.metrics.METRICS
    "accuracy", "balanced", "macro-f1", "auc", "average-precision", "log-loss", "rmse", "mae", "r2"
]
Preset = Literal["default", "paper", "authors"]  # demonet.train.presets.PRESETS
Scheme = Literal["weight", "hash", "smooth"]  # demonet.nn.config.CHOICES["scheme"]
Device = Literal["auto", "cpu", "cuda"]
SelfLoops = Literal["drop", "keep"]  # demonet.data.edges.SelfLoops
ClassWeight = Literal["balanced"]
Log = Literal["tensorboard"]


class Engine(StrEnum):
    """Where experiments run."""

    LOCAL = "local"
    RAY = "ray"
