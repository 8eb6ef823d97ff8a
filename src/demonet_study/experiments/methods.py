"""One interface for all methods of the tables, baselines and ours: load a data set, fit, score."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from demonet import methods
from demonet.data import load
from demonet.data.catalog import find
from demonet.data.splits import Split
from demonet.errors import DemonetError, DemonetWarning
from demonet.methods.base import Items, labels
from demonet.methods.base import Method as Registered
from demonet.methods.embedding import Embedding
from demonet.methods.network import Network
from demonet.methods.ours import OURS
from demonet.train import TrainConfig, family_of, train_graphs, train_nodes
from demonet.train import preset as find_preset
from demonet.train.presets import Family, Preset


@dataclass(frozen=True)
class Fit:
    """The result of a fit: test and validation accuracy (NaN for an empty part), and the epochs of a network.

    ``earlier`` are the processor seconds of the part that an earlier run had already computed.
    """

    test: float
    validation: float
    epochs: int | None
    earlier: float = 0.0


class Method(ABC):
    """A method with its settings."""

    @abstractmethod
    def read(self, dataset: str, device: str) -> Items:
        """Load a data set as the method needs it, on its device."""

    @abstractmethod
    def fit(self, data: Items, split: Split, seed: int) -> Fit:
        """Train, select on validation, and score the validation and test parts."""


class BaselineMethod(Method):
    """A baseline; ``options`` are changes to its settings."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._class, self._options = methods.get(name), dict(options)
        self.make()  # fails early on a wrong setting

    def make(self) -> Registered:
        """The baseline, unfitted."""
        options: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in self._options.items()}
        if "train" in options and issubclass(self._class, Network):
            options["train"] = trained_otherwise(self._class.defaults.train, options["train"])
        return self._class(**options)

    def read(self, dataset: str, device: str) -> Items:
        """Networks use the device, all others the CPU."""
        return moved(load_quietly(dataset), device if issubclass(self._class, Network) else "cpu")

    def fit(self, data: Items, split: Split, seed: int) -> Fit:
        """Fit and score the baseline."""
        y, fitted = labels(data), self.make().fit(data, split, seed)
        epochs = fitted.history.epochs if isinstance(fitted, Network) else None
        return Fit(fitted.score(split.test, y), fitted.score(split.val, y), epochs)


class EmbeddingMethod(BaselineMethod):
    """An embedding of the graph alone. It is the same for every split, so the last one is cached for the next run."""

    _cache: ClassVar[tuple[Any, NDArray[np.float64], float] | None] = None

    def fit(self, data: Items, split: Split, seed: int) -> Fit:
        """Classify the embedding; the time to compute it counts in every run."""
        made, graph = cast(Embedding, self.make()), cast(Data, data)
        key = (made.name, made.settings, graph.num_nodes, graph.edge_index.numpy().tobytes(), seed)
        cached, earlier = EmbeddingMethod._cache, 0.0
        if cached is not None and cached[0] == key:
            z, earlier = cached[1:]
        else:
            start = time.process_time()
            z = made.embed(graph, seed)
            EmbeddingMethod._cache = key, z, time.process_time() - start
        y, fitted = labels(data), made.given(z).fit(data, split, seed)
        return Fit(fitted.score(split.test, y), fitted.score(split.val, y), None, earlier)


class DemoNet(Method):
    """A preset of DEMO-Net, with scheme and pooling as in the name of the method.

    ``options`` are further changes: ``model`` and ``train`` (fields of those), ``features`` and ``tasks``.
    """

    def __init__(self, name: str, preset: str, options: Mapping[str, Any]) -> None:
        if (name == "demonet-default") != (preset == "default"):
            raise DemonetError(
                f"{name} with preset {preset!r}",
                hint="demonet-default has the preset 'default', and no other method has it",
            )
        for option in options:
            if option not in ("model", "train", "features", "tasks"):
                raise DemonetError(f"{name} has no option {option!r}", hint="expected model, train, features or tasks")
        self._name, self._preset, self._options = name, preset, options
        self.chosen("graphs")  # fails early on a wrong name

    def chosen(self, family: Family) -> Preset:
        """The preset for a family of problems, with the changes."""
        base = find_preset(self._preset, family)
        return replace(
            base,
            model=base.model.changed(**OURS[self._name] | self._options.get("model", {})),
            train=trained_otherwise(base.train, self._options.get("train", {})),
            features=self._options.get("features", base.features),
            tasks=self._options.get("tasks", base.tasks),
        )

    def read(self, dataset: str, device: str) -> Items:
        """Load with or without self-loops, as in the preset."""
        return moved(load_quietly(dataset, find_preset(self._preset, family_in_catalog(dataset)).self_loops), device)

    def fit(self, data: Items, split: Split, seed: int) -> Fit:
        """Train and score the network."""
        chosen = self.chosen(family_of(data))
        if isinstance(data, Data):
            if self._name.startswith("demonet-m-"):
                raise DemonetError(f"{self._name} classifies graphs, not nodes")
            done = train_nodes(data, split, chosen, seed=seed)
        else:
            done = train_graphs(data, split, chosen, seed=seed)
        return Fit(done.test_metric, done.val_metric, done.history.epochs)


def method(name: str, preset: str = "", options: Mapping[str, Any] | None = None) -> Method:
    """A method by its name.

    Args:
        name: A baseline's, or one of :data:`OURS`.
        preset: For ours, ``"paper"``, ``"authors"`` or ``"default"``.
        options: Changes to its settings.
    """
    if name in OURS:
        return DemoNet(name, preset, options or {})
    if name not in methods.names():
        raise DemonetError(f"unknown method {name!r}", hint=f"expected one of {', '.join([*OURS, *methods.names()])}")
    if preset:
        raise DemonetError(f"{name} with preset {preset!r}", hint="baselines have no presets")
    found = EmbeddingMethod if issubclass(methods.get(name), Embedding) else BaselineMethod
    return found(name, options or {})


def family_in_catalog(dataset: str) -> Family:
    """The family of problems of a data set, from the catalog."""
    entry = find(dataset)
    if entry.task == "graphs":
        return "graphs"
    return "attributes" if entry.statistics.attributes else "nodes"


def moved(data: Items, device: str) -> Items:
    """Move graphs to a device."""
    if device == "cpu":
        return data
    return data.to(device) if isinstance(data, Data) else [graph.to(device) for graph in data]


def trained_otherwise(train: TrainConfig, changes: Mapping[str, Any]) -> TrainConfig:
    """Training settings with some fields changed; an unknown field is an error."""
    known = [field.name for field in fields(train) if field.name != "seed"]  # the seed is that of the run
    for name in changes:
        if name not in known:
            raise DemonetError(f"unknown training option {name!r}", hint=f"expected one of {', '.join(known)}")
    return replace(train, **changes)


def load_quietly(dataset: str, self_loops: Literal["drop", "keep"] = "drop") -> Items:
    """Load a data set without warnings about what is dropped."""
    with warnings.catch_warnings():  # the docs say it; runs need not repeat it
        warnings.simplefilter("ignore", DemonetWarning)
        return load(dataset, self_loops=self_loops)
