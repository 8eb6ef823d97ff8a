"""One file for each method that a result is compared with, one interface: ``get(name)().fit(data, split, seed)``."""

from __future__ import annotations

from demonet.baselines.base import Baseline
from demonet.baselines.degree_knn import DegreeKNN
from demonet.baselines.gcn import GCN
from demonet.baselines.majority import Majority
from demonet.errors import DemonetError

__all__ = ["Baseline", "get", "names"]

_METHODS: dict[str, type[Baseline]] = {method.name: method for method in (Majority, DegreeKNN, GCN)}


def names() -> list[str]:
    """The names of all methods."""
    return list(_METHODS)


def get(name: str) -> type[Baseline]:
    """The method of that name."""
    if name not in _METHODS:
        raise DemonetError(f"no baseline {name!r}", hint=f"there are {', '.join(_METHODS)}")
    return _METHODS[name]
