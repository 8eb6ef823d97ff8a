"""Splits by the name of a protocol, as used in tables of results."""

from __future__ import annotations

from torch import Tensor

from demonet.data.catalog import find
from demonet.data.splits import Split, fractions, nested_k_fold, thirds, train_fraction
from demonet.data.values import is_number
from demonet.errors import DemonetError

INNER = 10  # in a nested fold, a tenth of the items that are not tested is held out for validation
FRESH = "fresh:"  # before the name of a protocol: every run has a graph of its own, generated from its seed
FOLDS_SEED = 0  # the same folds for all methods


def split_by(protocol: str, y: Tensor, seed: int) -> Split:
    """The split of one run.

    Args:
        protocol: ``"thirds"``; ``"10/20/70"`` for training, validation and test; ``"train:0.3"``, see
            :func:`~demonet.data.train_fraction`; ``"nested:10"``, ten folds of which number ``seed`` is tested and a
            tenth of the rest is for validation; ``"fresh:thirds"`` as ``"thirds"``.
        y: Labels, -1 for unlabelled.
        seed: Seed of the split; for nested folds, the number of the fold.
    """
    protocol = protocol.removeprefix(FRESH)
    kind, _, amount = protocol.partition(":")
    if protocol == "thirds":
        return thirds(y, seed)
    if protocol == "10/20/70":
        return fractions(y, (0.1, 0.2, 0.7), seed)
    if kind == "train" and is_number(amount):
        return train_fraction(y, float(amount), seed)
    if folds := folds_of(protocol):
        if not 0 <= seed < folds:
            raise DemonetError(f"fold {seed} of {folds}", hint="folds are counted from 0")
        return nested_k_fold(y, folds, INNER, FOLDS_SEED)[seed][0]
    hint = "choose from 'thirds', '10/20/70', 'train:0.3', 'nested:10'"
    raise DemonetError(f"unknown protocol {protocol!r}", hint=hint)


def folds_of(protocol: str) -> int:
    """The number of folds of a nested protocol; 0 for any other.

    >>> folds_of("nested:10"), folds_of("thirds")
    (10, 0)
    """
    kind, _, amount = protocol.partition(":")
    return int(amount) if kind == "nested" and amount.isdigit() else 0


def train_share(protocol: str) -> float | None:
    """The share of training items in the name of a protocol, or None.

    >>> train_share("train:0.3"), train_share("thirds")
    (0.3, None)
    """
    kind, _, amount = protocol.partition(":")
    return float(amount) if kind == "train" and is_number(amount) else None


def paper_split(name: str, y: Tensor, seed: int) -> Split:
    """The paper's split of a data set: 10/20/70 for the social networks, thirds for the others."""
    return split_by(find(name).protocol, y, seed)
