"""What the options of commands may be, so that shells complete them."""

from __future__ import annotations

from enum import StrEnum


class Task(StrEnum):
    """What is classified."""

    AUTO = "auto"
    NODES = "nodes"
    GRAPHS = "graphs"


class Preset(StrEnum):
    """Features, model and training together."""

    DEFAULT = "default"
    PAPER = "paper"
    AUTHORS = "authors"


class Scheme(StrEnum):
    """How a degree gets its weights."""

    WEIGHT = "weight"
    HASH = "hash"
    SMOOTH = "smooth"


class Device(StrEnum):
    """Where a network trains."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class SelfLoops(StrEnum):
    """What becomes of an edge from a node to itself."""

    DROP = "drop"
    KEEP = "keep"


class ClassWeight(StrEnum):
    """How much an item of each class counts."""

    BALANCED = "balanced"


class Log(StrEnum):
    """Where the curves of training go."""

    TENSORBOARD = "tensorboard"


class Engine(StrEnum):
    """Where runs are done."""

    LOCAL = "local"
    RAY = "ray"
