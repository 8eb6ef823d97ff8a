"""The hyper-parameters of every method, as its own paper suggests them, and where that is written.

They are in the three files beside: those of networks, of structural embeddings and of kernels. Here is what they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from demonet.errors import DemonetError


@dataclass(frozen=True)
class Settings:
    """What every method has.

    Attributes:
        source: Where the values come from.
    """

    source: str


S = TypeVar("S", bound=Settings)


def at_least(least: int, **values: int) -> None:
    """Refuse settings that are not whole numbers of at least ``least``, by their names."""
    for name, value in values.items():
        if not isinstance(value, int) or value < least:
            raise DemonetError(f"{name.replace('_', ' ')} of {value!r}", hint=f"a whole number of at least {least}")


def not_empty(**choices: Sequence[object]) -> None:
    """Refuse a setting that leaves nothing to choose from, by its name."""
    for name, choice in choices.items():
        if not choice:
            raise DemonetError(f"no {name} to choose from")


def changed(settings: S, method: str, changes: dict[str, Any]) -> S:
    """The settings of a method with some of them changed; a name that they do not have is refused."""
    known = [field.name for field in fields(settings) if field.name != "source"]
    for name in changes:
        if name not in known:
            raise DemonetError(f"{method} has no setting {name!r}", hint=f"there are {', '.join(known)}")
    return replace(settings, **changes)
