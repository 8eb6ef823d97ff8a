"""The values of options, listed here so that help and completion need not import torch.

``tests/cli/test_choices.py`` compares each list with the package that defines it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

Task = Literal["auto", "nodes", "graphs"]  # demonet.runs.settings.Task
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
