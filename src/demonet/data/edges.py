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
    arcs = source.astype(np.int64)
    arcs *= num_nodes
    arcs += target
    loops = source == target
    del source, target  # frees memory for large graphs
    num_loops = int(np.count_nonzero(loops))
    if num_loops and self_loops == "drop":
        np.logical_not(loops, out=loops)
        arcs = arcs[loops]
        weight = None if weight is None else weight[loops]
        _warn(num_loops, "self-loop", "dropped", file, Hint("{self_loops} keeps them", self_loops="keep"))
    del loops
    listed = arcs.size
    arcs, weight, doubled = _merge(arcs, weight, num_nodes, file)
    if doubled:
        _warn(arcs.size, "edge", "listed twice, as all edges are, merged", file)
    elif listed > arcs.size:
        _warn(listed - arcs.size, "duplicate edge", "merged", file)
    if not directed:
        arcs, weight, mirrored = _both_directions(arcs, weight, num_nodes, file)
        if mirrored:
            _warn(mirrored, "edge", "listed in both directions, merged", file)
    edge_index = np.empty((2, arcs.size), dtype=np.int64)
    np.floor_divide(arcs, max(num_nodes, 1), out=edge_index[0])
    np.multiply(edge_index[0], num_nodes, out=edge_index[1])
    np.subtract(arcs, edge_index[1], out=edge_index[1])
    return torch.from_numpy(edge_index), None if weight is None else torch.from_numpy(weight.astype(np.float32))


def _merge(
    arcs: np.ndarray, weight: np.ndarray | None, num_nodes: int, file: str | Path | None
) -> tuple[np.ndarray, np.ndarray | None, bool]:
    """Sorted distinct keys ``u * n + v``, their weights, and whether each key occurred exactly twice.

    Sorting whole keys is several times faster than sorting an order of pairs.
    """
    if weight is None:
        arcs.sort()
        first = _first_of_each(arcs)
        return arcs if first.all() else arcs[first], None, _alternates(first)
    order = np.argsort(arcs, kind="stable")
    arcs, weight = arcs[order], weight[order]
    first = _first_of_each(arcs)
    clash = np.flatnonzero(~first[1:] & (weight[1:] != weight[:-1]))
    if clash.size:
        u, v = divmod(int(arcs[clash[0]]), num_nodes)
        raise DemonetError(
            f"the edge between nodes {u} and {v} has two weights, {weight[clash[0]]} and {weight[clash[0] + 1]}",
            file=file,
            hint=Hint("merge them first, or use {directed} if the two directions differ", directed=True),
        )
    return arcs[first], weight[first], _alternates(first)


def _both_directions(
    arcs: np.ndarray, weight: np.ndarray | None, num_nodes: int, file: str | Path | None
) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Every edge in both directions, once; and how many edges were listed in both directions while others were not.

    If all edges are listed in both directions, that is a convention and counts as none.
    """
    listed = arcs.size
    both = np.empty(2 * listed, dtype=np.int64)
    both[:listed] = arcs
    source = np.floor_divide(arcs, max(num_nodes, 1), out=arcs)
    reverse = both[listed:]
    np.multiply(source, -num_nodes, out=reverse)
    reverse += both[:listed]  # the target, as u * n + v - u * n
    loops = int(np.count_nonzero(reverse == source))
    reverse *= num_nodes
    reverse += source
    del arcs, source, reverse
    arcs, weight, _ = _merge(both, None if weight is None else np.concatenate([weight, weight]), num_nodes, file)
    edges = (arcs.size + loops) // 2
    return arcs, weight, listed - edges if listed < arcs.size else 0


def _first_of_each(ordered: np.ndarray) -> np.ndarray:
    first = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _alternates(first: np.ndarray) -> bool:
    return first.size > 1 and first.size % 2 == 0 and bool(first[::2].all()) and not first[1::2].any()


def _warn(count: int, what: str, done: str, file: str | Path | None, hint: str | None = None) -> None:
    message = f"{count} {what}{'s' if count != 1 else ''} {done}"
    warnings.warn(DemonetWarning(message, file=file, hint=hint), stacklevel=4)
