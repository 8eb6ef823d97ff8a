"""Ids and class names as users write them, and the integers 0, 1, 2, ... that stand for them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.values import as_integer, is_missing, is_number, number_value
from demonet.errors import DemonetError, DemonetWarning, Hint, warn


@dataclass
class Coded:
    """Strings, each stored once: the i-th is ``names[codes[i]]``."""

    codes: np.ndarray
    names: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)

    def code(self, name: str) -> int:
        """The code of a name, -1 if it is unknown."""
        return next(iter(np.flatnonzero(self.names == name).tolist()), -1)


Ids = np.ndarray | Coded  # int64, or strings
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")  # what is pasted from pages and documents


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Several columns of labels for each item.

    Attributes:
        names: The names of the columns.
        values: ``[items, columns]`` float64, NaN where the label is unknown; None if they are not all numbers.
        error: Why they are not.
        beside_classes: Whether these are not the labels by default, because the items have classes as well.
    """

    names: list[str]
    values: np.ndarray | None
    error: DemonetError | None = None
    beside_classes: bool = False


def id_at(ids: Ids, row: int) -> int | str:
    """One id, as the user would write it."""
    return str(ids.names[ids.codes[row]]) if isinstance(ids, Coded) else int(ids[row])


def take(ids: Ids, numbers: np.ndarray) -> Ids:
    """The ids with these numbers."""
    return ids[numbers] if isinstance(ids, np.ndarray) else Coded(ids.codes[numbers], ids.names)


def warn_of_forms(names: Iterable[Any], what: str, *, words: bool = False, **where: Any) -> None:
    """Warn of names that differ only in form, and are kept apart: ``7``, ``007`` and ``7.0``, or one that is not seen.

    Args:
        names: The names.
        what: What they are, for the warning.
        words: Whether those that differ in small and capital letters count, too.
        where: The file, for the warning.
    """
    texts, first, pairs = list(map(str, names)), dict[Any, str](), []
    others = [(name, form) for name in texts if as_integer(name) is None and (form := _form(name, words)) is not None]
    known = set(texts) if others else set()
    for name, form in others:
        same = form if form in known else first.setdefault(form, name)
        if same != name:
            pairs.append(f"{same!r} and {name!r}")
    if pairs:
        rest = f" ({len(pairs)} such pairs)" if len(pairs) > 1 else ""
        warn(DemonetWarning(f"{what} {pairs[0]} differ only in form and are kept apart{rest}", **where))


def _form(name: str, words: bool) -> str | None:
    """What names that differ only in form have in common: a plain form of all that is seen; None of other names."""
    if not name.isascii() and _INVISIBLE.search(name):
        seen = _INVISIBLE.sub("", name)
        return _form(seen, words) or seen
    value = number_value(name)
    if value is not None:
        return str(value)
    if name[:1] in "+-.0123456789" and is_number(name) and abs(float(name)) < 1e40:
        whole, _, rest = f"{Decimal(name):f}".partition(".")  # exact, unlike a float
        return whole.removeprefix("+") + (f".{rest.rstrip('0')}" if rest.strip("0") else "")
    return name.casefold() if words else None


def as_attribute(ids: np.ndarray) -> Tensor | list[str]:
    """Ids in the two forms that PyG selects and batches: an int64 tensor, or a list of strings."""
    return ids.tolist() if ids.dtype == object else torch.from_numpy(ids)


def ids_of(data: Data) -> list[Any]:
    """The ids of a graph's nodes as Python integers or strings; 0, 1, 2, ... if it has none."""
    ids = data.get("node_ids")
    if ids is None:
        return list(range(int(data.num_nodes)))
    return ids.tolist() if isinstance(ids, Tensor) else list(ids)


def without_missing(labels: Iterable[Any], **where: Any) -> list[Any]:
    """Labels with None for those that are missing; where labels are words, words for a missing value are counted.

    Args:
        labels: Labels of any type.
        where: The file, for the warning.
    """
    labels, words = list(labels), Counter[str]()
    for row, label in enumerate(labels):
        if is_missing(label):
            if isinstance(label, str) and label.strip():
                words[label.strip()] += 1
            labels[row] = None
    if words and any(isinstance(label, str) and not is_number(label.replace(",", ".")) for label in labels):
        count = ", ".join(f"{times} {word!r}" for word, times in sorted(words.items()))
        hint = "if it is the name of a class, write another word"
        warn(DemonetWarning(f"labels read as unlabelled: {count}", hint=hint, **where))
    return labels


def warn_of_codes(names: Iterable[Any], **where: Any) -> None:
    """Warn if -1 is read as a class although all other classes are whole numbers from 0 on, as codes are."""
    names = list(names)
    integers = all(isinstance(name, int | np.integer) and not isinstance(name, bool) for name in names)
    if integers and len(names) > 2 and -1 in names and sorted(names)[1] == 0:
        hint = "for unlabelled, leave it empty in a file, or use None or NaN; only in a torch tensor -1 is unlabelled"
        warn(DemonetWarning("-1 is read as a class", hint=hint, **where))


def encode_classes(labels: Iterable[Any]) -> tuple[np.ndarray, list[Any]]:
    """The class index of each label, -1 for one that is missing, and the class names in order."""
    values = [None if is_missing(label) else label for label in labels]
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    try:
        names = sorted({value for value in values if value is not None})
    except TypeError:  # mixed types: by type, then by text
        try:
            names = sorted({v for v in values if v is not None}, key=lambda v: (type(v).__name__, str(v)))
        except TypeError as error:
            raise DemonetError(f"a label cannot be a class name: {error}") from None
    number = {name: i for i, name in enumerate(names)}
    return np.array([-1 if value is None else number[value] for value in values], dtype=np.int64), names


def make_ids(values: Iterable[Any], kind: str = "auto") -> Ids:
    """Any Python ids: int64 if all are integers, or written as integers, else strings; ``kind`` as in `read_graph`."""
    values = list(values)
    names: dict[str, int] = {}
    codes = np.fromiter((names.setdefault(str(value), len(names)) for value in values), np.int64, len(values))
    distinct = len(dict.fromkeys(values))
    if len(names) < distinct:
        raise DemonetError(f"{distinct - len(names)} ids differ only in their type, such as 1 and '1'")
    strangers = [name for name in names if as_integer(name) is None]
    if kind != "str" and not strangers:
        return np.array([int(name) for name in names], dtype=np.int64)[codes]
    if kind == "int":
        hint = Hint("{ids} accepts any text", ids="str")
        raise DemonetError(f"node id {strangers[0]!r} is not an integer", hint=hint)
    return Coded(codes, _strings(names))


class Numbering:
    """The index of each id: ``node_ids[index]`` is the id."""

    def __init__(self, node_ids: np.ndarray) -> None:
        self.node_ids = node_ids
        self.kind = "str" if node_ids.dtype == object else "int"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.node_ids)}

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.node_ids, kind="stable")

    def find(self, ids: Ids) -> np.ndarray:
        """The index of each id, -1 for an unknown id."""
        if ids is self.node_ids:
            return np.arange(self.node_ids.size)
        if self.kind == "str":
            coded = _as_coded(ids) if isinstance(ids, np.ndarray) else ids
            known = np.fromiter((self._numbers.get(name, -1) for name in coded.names), np.int64, len(coded.names))
            return known[coded.codes] if len(coded) else np.empty(0, np.int64)
        if isinstance(ids, Coded):
            found = [as_integer(name) for name in ids.names]
            numbers = np.full(len(ids.names), -1)
            numbers[[value is not None for value in found]] = self.find(
                np.array([value for value in found if value is not None], dtype=np.int64)
            )
            return numbers[ids.codes]
        if not self.node_ids.size:
            return np.full(len(ids), -1)
        place = np.searchsorted(self.node_ids, ids, sorter=self._order).clip(max=self.node_ids.size - 1)
        number = self._order[place]
        return np.where(self.node_ids[number] == ids, number, -1)

    def extended(self, ids: Ids) -> Numbering:
        """A numbering with the unknown ids added at the end."""
        missing = self.find(ids) < 0
        if self.kind == "int" and isinstance(ids, np.ndarray):
            return Numbering(np.concatenate([self.node_ids, np.unique(ids[missing])]))
        ids = _as_coded(ids)
        new = sorted(set(ids.names[ids.codes[missing]]))
        return Numbering(_strings([*map(str, self.node_ids.tolist()), *new]))


def number_listed(nodes: Ids) -> Numbering:
    """Number nodes in the given order."""
    if isinstance(nodes, Coded):
        numbering = Numbering(nodes.names[nodes.codes])
        distinct = len(nodes.names)
    else:
        numbering = Numbering(nodes)
        distinct = np.unique(nodes).size
    if distinct < len(nodes):
        raise DemonetError(f"{len(nodes) - distinct} node ids are listed more than once")
    return numbering


def number_ends(source: Ids, target: Ids) -> tuple[Numbering, np.ndarray, np.ndarray]:
    """Number the ends of edges in the order of their ids; return the indices of both ends, too."""
    if isinstance(source, Coded) or isinstance(target, Coded):
        source, target = _as_coded(source), _as_coded(target)
        if source.names is target.names:  # columns of one table share their names
            used = np.zeros(source.names.size, dtype=bool)
            used[source.codes] = used[target.codes] = True
            order = np.flatnonzero(used)
            order = order[np.argsort(source.names[order])]
            place = np.empty(used.size, dtype=np.int64)
            place[order] = np.arange(order.size)
            return Numbering(source.names[order]), place[source.codes], place[target.codes]
        numbering = Numbering(_strings(sorted({*source.names, *target.names})))
        return numbering, numbering.find(source), numbering.find(target)
    if not len(source):
        return Numbering(np.empty(0, np.int64)), source, target
    low = min(int(source.min()), int(target.min()))
    span = max(int(source.max()), int(target.max())) - low + 1
    if span > 8 * len(source) + 1_000_000:  # sparse ids: sort them
        node_ids = np.unique(np.concatenate([source, target]))
        return Numbering(node_ids), np.searchsorted(node_ids, source), np.searchsorted(node_ids, target)
    if low:
        source, target = source - low, target - low
    present = np.zeros(span, dtype=bool)  # dense ids: mark them, without sorting
    present[source] = True
    present[target] = True
    node_ids = np.flatnonzero(present) + low
    if node_ids.size == span:
        return Numbering(node_ids), source, target
    number = np.cumsum(present) - 1
    return Numbering(node_ids), number[source], number[target]


def _as_coded(ids: Ids) -> Coded:
    if isinstance(ids, Coded):
        return ids
    values, codes = np.unique(ids, return_inverse=True)
    return Coded(codes, _strings([str(value) for value in values.tolist()]))


def _strings(names: Iterable[str]) -> np.ndarray:
    names = list(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array
