"""A method of the tables by its name, with the settings of a cell; and a data set as it needs it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

from torch_geometric.data import Data

from demonet import methods
from demonet.data import load
from demonet.data.catalog import find
from demonet.errors import DemonetError, DemonetWarning
from demonet.methods.base import Items, Method
from demonet.methods.demonet import DemoNet
from demonet.train.presets import Family


def method(name: str, preset: str = "", options: Mapping[str, Any] | None = None) -> Method:
    """An unfitted method.

    Args:
        name: Its name in the registry.
        preset: For DEMO-Net, ``"paper"``, ``"authors"`` or ``"default"``.
        options: Changes to its settings.
    """
    found = methods.get(name)
    changes = {key: tuple(value) if isinstance(value, list) else value for key, value in (options or {}).items()}
    if preset or issubclass(found, DemoNet):
        changes["preset"] = preset
        if (name == "demonet-default") != (preset == "default"):
            hint = "demonet-default has the preset 'default', and no other method has it"
            raise DemonetError(f"{name} with preset {preset!r}", hint=hint)
    return found(**changes)


def read(made: Method, dataset: str, device: str) -> Items:
    """Load a data set with the self-loops of the method's preset, on the device if the method uses one."""
    loops = made.preset(family_in_catalog(dataset)).self_loops if isinstance(made, DemoNet) else "drop"
    return moved(load_quietly(dataset, loops), device if made.on_device else "cpu")


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


def load_quietly(dataset: str, self_loops: Literal["drop", "keep"] = "drop") -> Items:
    """Load a data set without warnings about what is dropped."""
    with warnings.catch_warnings():  # the docs say it; runs need not repeat it
        warnings.simplefilter("ignore", DemonetWarning)
        return load(dataset, self_loops=self_loops)
