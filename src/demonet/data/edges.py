"""Simple graphs from listed pairs: self-loops, duplicates and directions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from demonet.errors import DemonetError, DemonetWarning, Hint

SelfLoops = Literal["drop", "keep"]


def simple_edges(
    source: np.ndarray,
    target: np.ndarray,
    num_nodes: int,
    *,
    weight: np.ndarray | None = None,
    directed: bool = False,
    self_loops: SelfLoops = "drop",
    file: str | Path | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The simple graph of the listed pairs, as a sorted ``edge_index`` and the weight of each edge.

    An undirected edge is stored in both directions, whether it was listed in one direction or in both. Duplicate pairs
    are merged; if their weights differ, that is an error. A self-loop is dropped, or kept once, so that it counts once
    in the degree. Each kind of change is counted in one `DemonetWarning`.

    Args:
        source: Node indices, 0 to ``num_nodes - 1``, already checked.
        target: Node indices, as many as in ``source``.
        num_nodes: Number of nodes; a node without an edge is isolated.
        weight: One number per pair.
        directed: Whether (u, v) and (v, u) are different edges.
        self_loops: ``"drop"`` or ``"keep"``.
        file: The file to name in warnings and errors.
    """
    if self_loops not in ("drop", "keep"):
        raise DemonetError(f"{self_loops!r} is not 'drop' or 'keep'", argument="self_loops")
    keys = source.astype(np.int64)
    keys *= num_nodes
    keys += target
    loops = source == target
    del source, target  # frees memory for large graphs
    num_loops = int(np.count_nonzero(loops))
    if num_loops and self_loops == "drop":
        np.logical_not(loops, out=loops)
        keys = keys[loops]
        weight = None if weight is None else weight[loops]
        _warn(num_loops, "self-loop", "dropped", file, Hint("{self_loops} keeps them", self_loops="keep"))
    del loops
    listed = keys.size
    keys, weight, doubled = _merge(keys, weight, num_nodes, file)
    if doubled:
        _warn(keys.size, "edge", "listed twice, as all edges are, merged", file)
    elif listed > keys.size:
        _warn(listed - keys.size, "duplicate edge", "merged", file)
    if not directed:
        keys, weight, mirrored = _both_directions(keys, weight, num_nodes, file)
        if mirrored:
            _warn(mirrored, "edge", "listed in both directions, merged", file)
    edge_index = np.empty((2, keys.size), dtype=np.int64)
    np.floor_divide(keys, max(num_nodes, 1), out=edge_index[0])
    np.multiply(edge_index[0], num_nodes, out=edge_index[1])
    np.subtract(keys, edge_index[1], out=edge_index[1])
    return torch.from_numpy(edge_index), None if weight is None else torch.from_numpy(weight.astype(np.float32))


def _merge(
    keys: np.ndarray, weight: np.ndarray | None, num_nodes: int, file: str | Path | None
) -> tuple[np.ndarray, np.ndarray | None, bool]:
    """Sorted distinct keys ``u * n + v``, their weights, and whether each key occurred exactly twice.

    Sorting whole keys is several times faster than sorting an order of pairs.
    """
    if weight is None:
        keys.sort()
        first = _first_of_each(keys)
        return keys if first.all() else keys[first], None, _alternates(first)
    order = np.argsort(keys, kind="stable")
    keys, weight = keys[order], weight[order]
    first = _first_of_each(keys)
    clash = np.flatnonzero(~first[1:] & (weight[1:] != weight[:-1]))
    if clash.size:
        u, v = divmod(int(keys[clash[0]]), num_nodes)
        raise DemonetError(
            f"the edge between the nodes with index {u} and {v} (from 0, not their ids) has two weights, "
            f"{weight[clash[0]]} and {weight[clash[0] + 1]}",
            file=file,
            hint=Hint("merge them first, or use {directed} if the two directions differ", directed=True),
        )
    return keys[first], weight[first], _alternates(first)


def _both_directions(
    keys: np.ndarray, weight: np.ndarray | None, num_nodes: int, file: str | Path | None
) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Every edge in both directions, once; and how many edges were listed in both directions while others were not.

    If all edges are listed in both directions, that is a convention and counts as none.
    """
    listed = keys.size
    both = np.empty(2 * listed, dtype=np.int64)
    both[:listed] = keys
    source = np.floor_divide(keys, max(num_nodes, 1), out=keys)
    reverse = both[listed:]
    np.multiply(source, -num_nodes, out=reverse)
    reverse += both[:listed]  # the target, as u * n + v - u * n
    loops = int(np.count_nonzero(reverse == source))
    reverse *= num_nodes
    reverse += source
    del keys, source, reverse
    keys, weight, _ = _merge(both, None if weight is None else np.concatenate([weight, weight]), num_nodes, file)
    edges = (keys.size + loops) // 2
    return keys, weight, listed - edges if listed < keys.size else 0


def _first_of_each(ordered: np.ndarray) -> np.ndarray:
    first = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _alternates(first: np.ndarray) -> bool:
    return first.size > 1 and first.size % 2 == 0 and bool(first[::2].all()) and not first[1::2].any()


def _warn(count: int, what: str, done: str, file: str | Path | None, hint: str | None = None) -> None:
    message = f"{count} {what}{'s' if count != 1 else ''} {done}"
    warnings.warn(DemonetWarning(message, file=file, hint=hint), stacklevel=4)
