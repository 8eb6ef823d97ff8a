"""The arguments of a run: how files are read and how a model is trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from demonet.data.edges import Merge, SelfLoops
from demonet.distributed.partition import METHODS
from demonet.ensemble.portfolio import EFFORTS
from demonet.errors import DemonetError, Hint
from demonet.train.metrics import METRICS
from demonet.train.objective import OBJECTIVES

Items = Literal["auto", "nodes", "graphs"]
# The budget of a run without a given number of epochs: minutes on two cores. The cost of an epoch is about the number
# of edges (both directions) plus a thirtieth of the number of feature values. 100,000 nodes with a million edges and 40
# degrees get 140 epochs; up to 150,000 edges, a preset gets all of its 1,000 epochs.
WORK = 300_000_000
# Read by networks alone.
NETWORK_OPTIONS = (
    *("preset", "scheme", "epochs", "batch_size", "neighbours", "class_weight", "log"),
    *("engine", "workers", "partition"),
)
ENGINES = ("local", "torchrun", "ray")
AUTO_OPTIONS = ("effort", "time_limit")  # read by the ensemble alone
FEATURES_PER_EDGE = 30
MOST_SPLITS = 1000


@dataclass(frozen=True)
class Reading:
    """How files are read; saved with a run, so that another graph is read in the same way.

    Attributes:
        items: What the items are; ``"auto"`` depends on the files.
        directed: Whether edges are directed; None for what the file says.
        source, target, weight, graph: Columns of an edge list, by name or by position from 0; None for the defaults of
            :func:`~demonet.data.read_graph`.
        add_isolated: Whether ids that occur only in labels or features become isolated nodes; otherwise they are an
            error.
        self_loops: Whether self-loops are dropped or kept; None for the preset's choice.
        id_column, label_column: Columns of the tables of labels and attributes, by name or by position from 0.
        ignore: Columns of the table of attributes that are left out.
        merge: The weight of an edge that is listed several times; None for the default of
            :func:`~demonet.data.read_graph`.
    """

    items: Items = "auto"
    directed: bool | None = None
    source: str | int | None = None
    target: str | int | None = None
    weight: str | int | None = None
    graph: str | int | None = None
    add_isolated: bool = False
    self_loops: SelfLoops | None = None
    id_column: str | int | None = None
    label_column: str | int | None = None
    ignore: list[str | int] | None = None
    merge: Merge | None = None


@dataclass(frozen=True)
class Settings:
    """How a model is trained.

    Attributes:
        task: ``"classify"``, ``"multilabel"`` or ``"regress"``; ``"auto"`` depends on the labels, see
            :func:`~demonet.runs.targets.with_targets`.
        model: ``"auto"``: several candidates, weighted on validation; ``"kernel"``; ``"network"``; None for ``"auto"``,
            or for ``"network"`` where an option is given that only networks read: ``preset``, ``scheme``, ``epochs``,
            ``batch_size``, ``neighbours``, ``class_weight`` or ``log``. See :func:`~demonet.runs.models.decide_model`.
        effort: Of ``"auto"``: ``"quick"``, ``"standard"`` (the default) or ``"best"``.
        time_limit: Of ``"auto"``: seconds, a rough limit on the fit of a split.
        metric: The metric that is reported and that chooses weights or the epoch, one of
            :data:`~demonet.train.metrics.METRICS` that fits the task; None for the task's default.
        positive: The positive one of two classes, for a metric that has one; None for the rarer, of equals the last.
        preset: ``"strong"``, ``"default"``, ``"paper"`` or ``"authors"``.
        scheme: ``"weight"``, ``"hash"`` or ``"smooth"``; None for the preset's choice.
        seed: Seed of the split, the initial weights and dropout.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        val, test: Shares of the labelled items for validation (choosing the epoch) and for the test.
        split: A split file, used instead of these shares.
        class_weight: ``"balanced"``, or None for equal weights; only for classes.
        epochs: The largest number of epochs; None for the preset's number, less on large graphs.
        batch_size, neighbours: Training nodes of a batch, and how many neighbours of each are drawn; None for all,
            unless they do not fit into memory. See :func:`~demonet.train.recipes.train_nodes`.
        cv: Number of random splits on which everything is repeated.
        log: ``"tensorboard"``, or None.
        engine: ``"torchrun"`` or ``"ray"`` for exact training over processes, see :mod:`demonet.distributed`;
            ``"local"`` or None for one process.
        workers: Number of these processes.
        partition: How the graph is cut for them: ``"balanced"`` (the default), ``"hash"`` or ``"metis"``.
    """

    task: str = "auto"
    model: str | None = None
    effort: str | None = None
    time_limit: float | None = None
    metric: str | None = None
    positive: str | None = None
    preset: str = "strong"
    scheme: str | None = None
    seed: int = 0
    device: str = "auto"
    val: float = 0.2
    test: float = 0.2
    split: Path | None = None
    class_weight: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    neighbours: int | None = None
    cv: int = 1
    log: str | None = None
    engine: str | None = None
    workers: int | None = None
    partition: str | None = None

    def __post_init__(self) -> None:
        if not (self.val > 0 and self.test >= 0 and self.val + self.test < 1):
            problem = f"shares of {self.val:g} for validation and {self.test:g} for the test"
            hint = Hint("{val} must be above 0, {test} at least 0, and their sum below 1", val=..., test=...)
            raise DemonetError(problem, hint=hint)
        for argument, known in (
            ("task", ["auto", *OBJECTIVES]),
            ("metric", [None, *METRICS]),
            ("model", [None, "auto", "kernel", "network"]),
            ("effort", [None, *EFFORTS]),
            ("engine", [None, *ENGINES]),
            ("partition", [None, *METHODS]),
        ):
            if getattr(self, argument) not in known:
                choices = ", ".join(filter(None, known))
                raise DemonetError(f"{getattr(self, argument)!r} is unknown", argument=argument, hint=f"use {choices}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise DemonetError(f"{self.time_limit:g} seconds", argument="time_limit", hint="a number above 0")
        self._check_model()
        for argument in ("batch_size", "neighbours"):
            if getattr(self, argument) is not None and getattr(self, argument) < 1:
                raise DemonetError(f"{getattr(self, argument)}; at least 1 is needed", argument=argument)
        self._check_engine()
        if not 1 <= self.cv <= MOST_SPLITS:
            raise DemonetError(f"{self.cv:,} splits", argument="cv", hint=f"1 to {MOST_SPLITS:,}")
        if self.cv > 1 and (self.split is not None or not self.test):
            problem = "a split file" if self.split is not None else "no test part"
            need = "repeated splits are random and need a test part"
            raise DemonetError(f"{self.cv} splits with {problem}", argument="cv", hint=need)
        if self.device not in ("auto", "cpu", "cuda"):
            raise DemonetError(f"{self.device!r} is not 'auto', 'cpu' or 'cuda'", argument="device")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise DemonetError("no CUDA device is available", argument="device")

    def _check_model(self) -> None:
        """Refuse options that the model does not read."""
        given = network_options(self)
        if self.model in ("auto", "kernel") and given:
            name = next(iter(given))
            hint = Hint("only networks read it: use {model}", model="network")
            raise DemonetError(f"{given[name]!r} with the model {self.model!r}", argument=name, hint=hint)
        for name in AUTO_OPTIONS:
            if getattr(self, name) is None or (self.model in (None, "auto") and not given):
                continue
            other = f"the model {self.model!r}" if self.model else f"{next(iter(given))}, which chooses a network"
            hint = Hint("only {model} reads it", model="auto")
            raise DemonetError(f"{getattr(self, name)!r} with {other}", argument=name, hint=hint)

    def _check_engine(self) -> None:
        """Refuse options that the engine does not read."""
        if self.workers is not None and self.workers < 1:
            raise DemonetError(f"{self.workers}; at least 1 is needed", argument="workers")
        over = self.engine in ("torchrun", "ray")
        for argument in ("workers", "partition") if not over else ("batch_size", "neighbours"):
            if (value := getattr(self, argument)) is not None:
                engine = f"the engine {self.engine or 'local'!r}"
                hint = "it trains on the whole graph" if over else Hint("use {engine}", engine="torchrun")
                raise DemonetError(f"{value!r} with {engine}", argument=argument, hint=hint)

    @property
    def uses(self) -> str:
        """The device that is used."""
        return "cuda" if self.device != "cpu" and torch.cuda.is_available() else "cpu"


def network_options(settings: Settings) -> dict[str, Any]:
    """The options that only networks read and that differ from their defaults."""
    defaults = {"preset": "strong"}
    given = {name: getattr(settings, name) for name in NETWORK_OPTIONS}
    return {name: value for name, value in given.items() if value != defaults.get(name)}


def epoch_limit(epochs: int, edges: int, features: int = 0) -> int:
    """The epochs of a preset, fewer on graphs so large that training would take hours.

    Args:
        epochs: The preset's number.
        edges: Number of edges, both directions counted.
        features: Number of feature values of all nodes; of sparse features, those that are not zero.

    >>> epoch_limit(1000, 10_000), epoch_limit(1000, 2_000_000, 5_000_000), epoch_limit(1000, 10**9)
    (1000, 138, 50)
    """
    return min(epochs, max(50, WORK // max(edges + features // FEATURES_PER_EDGE, 1)))
