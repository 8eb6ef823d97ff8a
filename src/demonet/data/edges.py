"""Simple graphs from listed pairs: self-loops, repeated edges and their weights, directions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.options import Merge, SelfLoops

_DONE = {
    "sum": "added",
    "mean": "replaced by their mean",
    "max": "replaced by the largest",
    "last": "replaced by the last",
}


def simple_edges(
    source: np.ndarray,
    target: np.ndarray,
    num_nodes: int,
    *,
    weight: np.ndarray | None = None,
    directed: bool | None = False,
    self_loops: SelfLoops = "drop",
    merge: Merge | None = None,
    file: str | Path | None = None,
    tell_direction: Callable[[DemonetWarning], None] = warn,
) -> tuple[Tensor, Tensor | None]:
    """The simple graph of the listed pairs, as a sorted ``edge_index`` and the weight of each edge.

    An undirected edge is stored in both directions, whether it was listed in one direction or in both. Repeated pairs
    are merged. By default, repetitions are copies if no edge has two different weights; otherwise the pairs are events,
    and the weights of all repetitions are added. A self-loop is dropped, or kept once, so that it counts once in the
    degree. Each kind of change is counted in one `DemonetWarning`.

    Args:
        source: Node indices, 0 to ``num_nodes - 1``, already checked.
        target: Node indices, as many as in ``source``.
        num_nodes: Number of nodes; a node without an edge is isolated.
        weight: One number per pair.
        directed: Whether (u, v) and (v, u) are different edges; None if nobody has said so: then they are one, and a
            warning says so, unless every edge is listed in both directions.
        self_loops: ``"drop"`` or ``"keep"``.
        merge: The weight of a repeated edge: ``"sum"``, ``"mean"``, ``"max"`` or ``"last"`` of the listed ones. With
            ``"sum"`` and no weights, an edge that is listed three times has the weight 3.
        file: The file to name in warnings and errors.
        tell_direction: What is done with that warning.
    """
    for argument, value, known in (("self_loops", self_loops, ("drop", "keep")), ("merge", merge, (None, *_DONE))):
        if value not in known:
            raise DemonetError(f"{value!r} is not one of {', '.join(filter(None, known))}", argument=argument)
    if merge == "sum" and weight is None:
        weight = np.ones(source.size)
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
    merged = None if weight is None else _merge_weights(keys, weight, num_nodes, bool(directed), merge, file)
    listed = keys.size
    keys, doubled = _distinct(keys)
    if doubled:
        _warn(keys.size, "edge", "listed twice, as all edges are, merged", file)
    elif listed > keys.size:
        _warn(listed - keys.size, "duplicate edge", "merged", file)
    if not directed:
        listed = keys.size
        keys, mirrored = _both_directions(keys, num_nodes)
        if directed is None and listed < keys.size:
            tell_direction(_direction(mirrored, listed - mirrored, file))
        elif mirrored:
            _warn(mirrored, "edge", "listed in both directions, merged", file)
    edge_weight = None
    if merged is not None:
        pairs, values = merged
        own = keys if directed else _undirected(keys, num_nodes)
        with np.errstate(over="ignore"):
            edge_weight = torch.from_numpy(values[np.searchsorted(pairs, own)].astype(np.float32))
        if not bool(edge_weight.isfinite().all()):
            largest = float(np.abs(values).max())
            raise DemonetError(f"weight {largest:g} is too large for a float32", file=file, hint="use another unit")
    edge_index = np.empty((2, keys.size), dtype=np.int64)
    np.floor_divide(keys, max(num_nodes, 1), out=edge_index[0])
    np.multiply(edge_index[0], num_nodes, out=edge_index[1])
    np.subtract(keys, edge_index[1], out=edge_index[1])
    return torch.from_numpy(edge_index), edge_weight


def _merge_weights(
    keys: np.ndarray,
    weight: np.ndarray,
    num_nodes: int,
    directed: bool | None,
    merge: Merge | None,
    file: str | Path | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct keys ``u * n + v`` (of undirected edges, u <= v), sorted, and the weight of each."""
    pairs = keys if directed else _undirected(keys, num_nodes)
    order = np.argsort(pairs, kind="stable")
    pairs, weight = pairs[order], weight[order]
    starts = np.flatnonzero(_first_of_each(pairs))
    if starts.size == pairs.size:
        return pairs, weight
    differ = np.count_nonzero(np.minimum.reduceat(weight, starts) != np.maximum.reduceat(weight, starts))
    how = merge or ("sum" if differ else "last")
    counts = np.diff(starts, append=pairs.size)
    if how == "max":
        values = np.maximum.reduceat(weight, starts)
    elif how == "last":
        values = weight[starts + counts - 1]
    else:
        values = np.add.reduceat(weight, starts) / (counts if how == "mean" else 1)
    if differ:
        others = Hint("{merge} chooses another rule: sum, mean, max or last", merge=...)
        _warn(int(differ), "edge", f"listed with different weights, which were {_DONE[how]}", file, others)
    return pairs[starts], values


def _undirected(keys: np.ndarray, num_nodes: int) -> np.ndarray:
    """The key of each edge with the smaller node first."""
    source, target = np.divmod(keys, max(num_nodes, 1))
    return np.minimum(source, target) * num_nodes + np.maximum(source, target)


def _distinct(keys: np.ndarray) -> tuple[np.ndarray, bool]:
    """Sorted distinct keys ``u * n + v``, and whether each key occurred exactly twice.

    Sorting whole keys is several times faster than sorting an order of pairs.
    """
    keys.sort()
    first = _first_of_each(keys)
    return keys if first.all() else keys[first], _alternates(first)


def _both_directions(keys: np.ndarray, num_nodes: int) -> tuple[np.ndarray, int]:
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
    keys, _ = _distinct(both)
    edges = (keys.size + loops) // 2
    return keys, listed - edges if listed < keys.size else 0


def _first_of_each(ordered: np.ndarray) -> np.ndarray:
    first = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _alternates(first: np.ndarray) -> bool:
    return first.size > 1 and first.size % 2 == 0 and bool(first[::2].all()) and not first[1::2].any()


def _direction(mirrored: int, edges: int, file: str | Path | None) -> DemonetWarning:
    """The warning that directions are dropped; where some edges have both and others not, they may mean something."""
    said = f": {mirrored:,} of {edges:,} are listed in both directions" if mirrored else ""
    hint = Hint("{directed} keeps the direction", directed=True)
    return DemonetWarning(f"edges are read as undirected{said}", file=file, hint=hint)


def _warn(count: int, what: str, done: str, file: str | Path | None, hint: str | None = None) -> None:
    message = f"{count} {what}{'s' if count != 1 else ''} {done}"
    warn(DemonetWarning(message, file=file, hint=hint))
