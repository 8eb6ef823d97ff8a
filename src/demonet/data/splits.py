"""Splits into training, validation and test items: objects with a name, a seed and indices; their checks.

Only labelled items (``y >= 0``) are in a split. A split that is not stratified is drawn again, from the same
generator, until every class is in the training part; where that cannot be, the draw with most of them is taken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.atomic import check_no_device, replacing
from demonet.checks import labelled
from demonet.errors import DemonetError, DemonetWarning, warn

_PARTS = ("train", "val", "test")
_DRAWS = 1000
TOLD = 5  # classes that a warning names


@dataclass(frozen=True, eq=False)
class Split:
    """Sorted, disjoint int64 indices for training, validation and test, with the name and seed of the split."""

    name: str
    seed: int
    train: Tensor
    val: Tensor
    test: Tensor

    def __post_init__(self) -> None:
        for part in _PARTS:
            index = torch.as_tensor(getattr(self, part), dtype=torch.int64).cpu()
            object.__setattr__(self, part, index.sort().values)
        everyone = torch.cat([self.train, self.val, self.test])
        if everyone.numel() and int(everyone.min()) < 0:
            raise DemonetError(f"index {int(everyone.min())} in split {self.name}", hint="indices start at 0")
        items, times = everyone.unique(return_counts=True)
        if bool((times > 1).any()):
            raise DemonetError(f"item {int(items[times > 1][0])} is in split {self.name} more than once")

    @property
    def hash(self) -> str:
        """Twelve hex digits that change with the name, the seed or any index."""
        digest = hashlib.sha256(f"{self.name}|{self.seed}".encode())
        for part in _PARTS:
            digest.update(f"|{part}|".encode() + getattr(self, part).numpy().astype("<i8").tobytes())
        return digest.hexdigest()[:12]

    @classmethod
    def from_masks(cls, data: Data, number: int = 0) -> Split:
        """The split in the ``train_mask``, ``val_mask`` and ``test_mask`` of a PyG Data; a missing mask is empty.

        Args:
            data: The graph.
            number: Which split, if masks are tables ``[n, splits]``.
        """
        parts = {part: _masked(data, part, number) for part in _PARTS}
        if not parts["train"].numel():
            raise DemonetError("train_mask is missing or empty", hint="set it to the training nodes, as booleans")
        return cls("masks" if number == 0 else f"masks {number}", 0, **parts)

    def joined(self) -> Split:
        """Training and validation part together for training, none for validation; the same test part."""
        return Split(self.name, self.seed, torch.cat([self.train, self.val]), self.val[:0], self.test)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Split) and self.hash == other.hash

    def __hash__(self) -> int:
        return int(self.hash, 16)

    def __repr__(self) -> str:
        sizes = "/".join(str(getattr(self, part).numel()) for part in _PARTS)
        return f"Split({self.name!r}, seed={self.seed}, {sizes}, hash={self.hash})"

    def save(self, path: str | Path) -> None:
        """Write as JSON, atomically."""
        record = {"name": self.name, "seed": self.seed, "hash": self.hash}
        record |= {part: getattr(self, part).tolist() for part in _PARTS}
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(record), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Split:
        """Read what `save` wrote; a file that was changed since is an error."""
        try:
            check_no_device(Path(path))
            content = Path(path).read_bytes()
        except FileNotFoundError:
            raise DemonetError("no such split file", file=path) from None
        except OSError as error:
            raise DemonetError(f"not a split file: {error!r}", file=path) from None
        return cls.from_json(content, path)

    @classmethod
    def from_json(cls, content: bytes, path: str | Path) -> Split:
        """The split in the content of a file; ``path`` is for errors."""
        try:
            record = json.loads(content.decode("utf-8"))
            parts = {part: [int(i) for i in record[part]] for part in _PARTS}
            name, seed, stored = str(record["name"]), int(record["seed"]), record["hash"]
            split = cls(
                name, seed, **{part: torch.from_numpy(np.array(index, np.int64)) for part, index in parts.items()}
            )
            found = split.hash
        except DemonetError as error:
            raise DemonetError(error.message, file=path, hint=error.hint) from None
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise DemonetError(f"not a split file: {error!r}", file=path) from None
        if found != stored:
            raise DemonetError(f"the indices hash to {found}, the file says {stored}", file=path)
        return split


def _masked(data: Data, part: str, number: int) -> Tensor:
    """The items of one mask."""
    mask = data.get(f"{part}_mask")
    if mask is None:
        return torch.empty(0, dtype=torch.int64)
    if mask.dtype != torch.bool or mask.dim() not in (1, 2) or mask.size(0) != data.num_nodes:
        problem = f"{part}_mask is {mask.dtype} of shape {list(mask.shape)} for {data.num_nodes} nodes"
        raise DemonetError(problem, hint="one boolean per node, or one column of them per split")
    if mask.dim() == 2 and not 0 <= number < mask.size(1):
        raise DemonetError(f"split {number} of {mask.size(1)} in {part}_mask")
    return (mask if mask.dim() == 1 else mask[:, number]).nonzero().view(-1)


def check_split(split: Split, y: Tensor, *, names: Sequence[Any] | None = None, file: str | Path | None = None) -> None:
    """Check a split against targets ``y``.

    Indices must be in range, and every item must have a target. If ``y`` are classes, two of them must be in the
    training part. Errors have the names of classes and the file of the split, if they are given.
    """
    missing = ~labelled(y.cpu())
    for part in _PARTS:
        index = getattr(split, part)
        outside = index[index >= y.size(0)]
        if outside.numel():
            problem = f"{part} index {int(outside[0])} of split {split.name}: there are {y.size(0)} items"
            raise DemonetError(problem, file=file)
        unlabelled = index[missing[index]]
        if unlabelled.numel():
            raise DemonetError(f"item {int(unlabelled[0])} in {part} of split {split.name} has no label", file=file)
    if split.train.numel() == 0:
        raise DemonetError(f"the training part of split {split.name} is empty", file=file)
    if y.is_floating_point():
        return
    present = torch.unique(y.cpu()[split.train])
    if present.numel() == 1 and bool((y.cpu()[labelled(y.cpu())] != present).any()):
        told = int(present) if names is None else repr(names[int(present)])
        problem = f"all items in the training part of split {split.name} have the class {told}"
        raise DemonetError(problem, file=file, hint="use stratified=True, or a larger training part")


def warn_of_rare(
    splits: Sequence[Split], y: Tensor, *, names: Sequence[Any] | None = None, file: str | Path | None = None
) -> None:
    """One warning about the classes of which a training part has one item, or none; of the first split with such ones.

    Arguments are those of :func:`check_split`.
    """
    if y.is_floating_point():
        return
    y, size = y.cpu(), int(y.max()) + 1
    for split in splits:
        count = torch.stack([y[part].bincount(minlength=size) for part in (split.train, split.val, split.test)], 1)
        rare = ((count[:, 0] < 2) & (count.sum(1) > 0)).nonzero().view(-1).tolist()
        told = [
            "class {} ({:,} to train, {:,} to validate, {:,} to test)".format(
                label if names is None else repr(names[label]), *count[label].tolist()
            )
            for label in rare
        ]
        if told:
            more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
            problem = f"too few items in the training part of split {split.name}: {', '.join(told[:TOLD])}{more}"
            hint = "what has no item there is not predicted: use a larger training part, or leave its labels empty"
            return warn(DemonetWarning(problem, file=file, hint=hint))


def thirds(y: Tensor, seed: int, stratified: bool = False) -> Split:
    """A third each for training, validation and test: the paper's protocol for airports and graph sets."""
    return _cut("thirds", y, (1 / 3, 1 / 3, 1 / 3), seed, stratified)


def fractions(y: Tensor, parts: tuple[float, float, float], seed: int, stratified: bool = False) -> Split:
    """Fractions for training, validation and test, such as ``(.1, .2, .7)``, the paper's for social networks."""
    if min(parts) < 0 or abs(sum(parts) - 1) > 1e-6:
        raise DemonetError(f"fractions {parts} do not sum to 1 or are negative")
    return _cut("/".join(f"{100 * part:.4g}" for part in parts), y, parts, seed, stratified)


def train_fraction(y: Tensor, fraction: float, seed: int, stratified: bool = False, validation: float = 0.2) -> Split:
    """``fraction`` of the items to train, the rest to test: the paper's sweep from 10 % to 90 %.

    Early stopping needs a validation part apart from the test items: the share ``validation`` of the training items is
    held out, so ``fraction * (1 - validation)`` of all items are trained on.
    """
    if not (0 < fraction < 1 and 0 < validation < 1):
        raise DemonetError(f"training fraction {fraction}, validation share {validation}: both must be inside (0, 1)")
    parts = (fraction * (1 - validation), fraction * validation, 1 - fraction)
    return _cut(f"train-{100 * fraction:.4g}%", y, parts, seed, stratified)


def k_fold(y: Tensor, k: int, seed: int, stratified: bool = True) -> list[Split]:
    """``k`` splits: fold i tests, fold i + 1 validates, the others train. Each item is tested exactly once."""
    folds = _folds(_labelled(y), y, k, seed, stratified, at_least=3)
    name = _named(f"{k}-fold", stratified)
    splits = []
    for i, test in enumerate(folds):
        val = folds[(i + 1) % k]
        splits.append(_split(f"{name}/{i}", seed, _without(folds, test, val), val, test))
    return splits


def nested_k_fold(y: Tensor, outer: int, inner: int, seed: int, stratified: bool = True) -> list[list[Split]]:
    """For each of ``outer`` test folds, ``inner`` splits of all other items into training and validation."""
    tests = _folds(_labelled(y), y, outer, seed, stratified, at_least=2)
    name = _named(f"{outer}x{inner}-fold", stratified)
    nested = []
    for i, test in enumerate(tests):
        folds = _folds(np.sort(_without(tests, test)), y, inner, seed, stratified, at_least=2)
        nested.append([_split(f"{name}/{i}/{j}", seed, _without(folds, val), val, test) for j, val in enumerate(folds)])
    return nested


def half(data: Data, seed: int) -> Split:
    """The first half of the nodes is for training; the others are divided at random into validation and test."""
    n = int(data.num_nodes or 0)
    other = n // 2 + torch.randperm(n - n // 2, generator=torch.Generator().manual_seed(seed))
    return Split("half", seed, torch.arange(n // 2), other[: len(other) // 2], other[len(other) // 2 :])


def _cut(name: str, y: Tensor, parts: tuple[float, float, float], seed: int, stratified: bool) -> Split:
    items, labels = _labelled(y), y.cpu().numpy()
    bounds = np.rint(np.cumsum(parts) * items.size).astype(int)[:2]
    generator = np.random.default_rng(seed)
    classes, most, best = np.unique(labels[items]).size, -1, list[np.ndarray]()
    for _ in range(1 if stratified else _DRAWS):
        order = generator.permutation(items)
        if stratified:
            order = _interleave(order, labels[order])
        drawn = np.split(order, bounds)
        present = np.unique(labels[drawn[0]]).size
        if present > most:
            most, best = present, drawn
        if most == min(classes, bounds[0]):
            break
    if most < min(classes, 2):
        raise DemonetError(
            f"split {name}: {best[0].size} training items have {most} of {classes} classes",
            hint="use a larger training part" if stratified else "use stratified=True, or a larger training part",
        )
    return _split(_named(name, stratified), seed, *best)


def _interleave(order: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Order items so that every prefix holds each class in proportion, within one item.

    The r-th of the s items of a class has position r / s, so the first of every class comes before all seconds.
    """
    position = np.empty(order.size)
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        position[mine] = np.arange(mine.size) / mine.size
    return order[np.argsort(position, kind="stable")]


def _folds(items: np.ndarray, y: Tensor, k: int, seed: int, stratified: bool, at_least: int) -> list[np.ndarray]:
    if not at_least <= k <= items.size:
        raise DemonetError(f"{k} folds of {items.size} labelled items", hint=f"at least {at_least} folds, no empty one")
    order = np.random.default_rng(seed).permutation(items)
    if stratified:  # class by class, so that fold sizes and class counts differ by at most one
        order = order[np.argsort(y.cpu().numpy()[order], kind="stable")]
    return [order[i::k] for i in range(k)]


def _without(folds: list[np.ndarray], *left_out: np.ndarray) -> np.ndarray:
    return np.concatenate([fold for fold in folds if not any(fold is other for other in left_out)])


def _labelled(y: Tensor) -> np.ndarray:
    items = np.flatnonzero(y.cpu().numpy() >= 0)
    if items.size == 0:
        raise DemonetError("no item has a label")
    return items


def _named(name: str, stratified: bool) -> str:
    return f"{name}, stratified" if stratified else name


def _split(name: str, seed: int, train: np.ndarray, val: np.ndarray, test: np.ndarray) -> Split:
    return Split(name, seed, *(torch.from_numpy(index.astype(np.int64)) for index in (train, val, test)))
