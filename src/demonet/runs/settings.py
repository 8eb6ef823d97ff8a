"""What a run is asked for: how files are read and how a model is trained, every choice with a default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from demonet.data.edges import SelfLoops
from demonet.errors import DemonetError

Task = Literal["auto", "nodes", "graphs"]
# What a run may cost unless the user says how many epochs: minutes on two cores. An epoch costs about as much as its
# arcs and a thirtieth of its features, so 100,000 nodes with a million edges and 40 degrees have 140 epochs, and up to
# 150,000 edges a preset has all of its 1,000.
WORK = 300_000_000
FEATURES_PER_ARC = 30


@dataclass(frozen=True)
class Reading:
    """How files become a graph; kept with a run, so that another graph is read in the same way.

    Attributes:
        task: What is classified; ``"auto"`` looks at the files.
        directed: Whether edges are one-way; None leaves it to the file.
        source, target, weight, graph: Columns of an edge list, by name or by place from 0; as
            :func:`~demonet.data.read_graph` finds them if None.
        add_isolated: Whether ids that only labels or features have become isolated nodes; else they are an error.
        self_loops: Whether loops are dropped or kept; as the preset says if None.
    """

    task: Task = "auto"
    directed: bool | None = None
    source: str | int | None = None
    target: str | int | None = None
    weight: str | int | None = None
    graph: str | int | None = None
    add_isolated: bool = False
    self_loops: SelfLoops | None = None


@dataclass(frozen=True)
class Settings:
    """How a model is made.

    Attributes:
        preset: ``"default"``, ``"paper"`` or ``"authors"``.
        scheme: ``"weight"``, ``"hash"`` or ``"smooth"``; as the preset says if None.
        seed: Of the split, the first weights and dropout.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        val, test: Shares of the labelled items that choose the epoch and that are tested.
        split: A split file, in place of these shares.
        class_weight: ``"balanced"``, or None for every item alike.
        epochs: At most this many; as the preset says if None, fewer on large graphs.
        cv: Number of random splits to repeat everything on.
        log: ``"tensorboard"``, or None.
    """

    preset: str = "default"
    scheme: str | None = None
    seed: int = 0
    device: str = "auto"
    val: float = 0.2
    test: float = 0.2
    split: Path | None = None
    class_weight: str | None = None
    epochs: int | None = None
    cv: int = 1
    log: str | None = None

    def __post_init__(self) -> None:
        if not (self.val > 0 and self.test >= 0 and self.val + self.test < 1):
            problem = f"validation {self.val:g} and test {self.test:g} of the labelled items"
            raise DemonetError(problem, hint="validation above 0, and something left to train on")
        if self.cv < 1:
            raise DemonetError(f"{self.cv} splits: at least 1 is needed")
        if self.cv > 1 and (self.split is not None or not self.test):
            problem = "a split file" if self.split is not None else "no test part"
            raise DemonetError(
                f"{problem}, and {self.cv} splits to test on", hint="repeated splits are drawn at random"
            )
        if self.device not in ("auto", "cpu", "cuda"):
            raise DemonetError(f"device {self.device!r}", hint="auto, cpu or cuda")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise DemonetError("no CUDA device is here", hint="device auto takes one where there is one")

    @property
    def uses(self) -> str:
        """The device that it comes to."""
        return "cuda" if self.device != "cpu" and torch.cuda.is_available() else "cpu"


def epoch_limit(epochs: int, arcs: int, features: int = 0) -> int:
    """The epochs of a preset, fewer where the graph is so large that they would take hours.

    Args:
        epochs: Of the preset.
        arcs: Of the graph, both of every edge.
        features: Of all nodes together; of sparse ones, those that are not zero.

    >>> epoch_limit(1000, 10_000), epoch_limit(1000, 2_000_000, 5_000_000), epoch_limit(1000, 10**9)
    (1000, 138, 50)
    """
    return min(epochs, max(50, WORK // max(arcs + features // FEATURES_PER_ARC, 1)))
