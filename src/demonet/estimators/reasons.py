r"""Why a model of any kind answers as it does: what moved one prediction, and what matters on the whole.

A reason is an occlusion. One thing is taken away (a column is set to its usual value, an edge or a known label is
removed) and its effect is the difference, in the units of the prediction:

.. math:: \text{effect} = f_k(v) - f_k(v \text{ without it})

Importance is a permutation: a column is shuffled among nodes, or items change places in the graph, and what the metric
loses is reported.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data

from demonet.checks import labelled
from demonet.data.columns import Columns
from demonet.data.ids import ids_of
from demonet.data.rows import to_rows, to_torch
from demonet.train.metrics import Task

Array = NDArray[Any]
COSTS = {"column": 1 / 3, "columns": 1 / 3, "label": 0.1}  # of a prediction with the same edges, beside one with others
Predict = Callable[[Any, Array | None], Array]  # from a graph or graphs, and some items or None for all, to outputs
Go = Callable[[int, int], bool]  # told how many of how many predictions or baselines are done: whether to go on
MOST = 8  # columns, neighbours and labels each that are tried for one item
SHOWN, LITTLE = 3, 0.2  # reasons in a sentence, and the share of all columns that makes a single one worth telling
LEAST = 1e-3  # change of a probability that is told
SIMILAR = 5  # items of similar degree that change places
_WORDS = {"column": "{name} {value}", "neighbour": "joined to {name}", "label": "{name} is {value}"}
_WORDS |= {"node": "edges of {name}", "columns": "all columns", "neighbours": "its {value} neighbours together"}


class Reason(NamedTuple):
    """One thing that moved a prediction.

    Attributes:
        kind: ``"column"``, ``"neighbour"`` (the edges between both), ``"label"`` (the known label of a neighbour), or
            of a graph ``"node"`` (the edges of a node). ``"columns"`` and ``"neighbours"`` are all of them at once.
        name: The column, or the id of the node; ``"all"``.
        value: The value of the column, the known label, the number of neighbours, or None.
        effect: The prediction less the prediction without it.
    """

    kind: Literal["column", "columns", "neighbour", "neighbours", "label", "node"]
    name: str
    value: Any
    effect: float

    @property
    def words(self) -> str:
        """As text, such as ``age 71 (+0.12)`` or ``rooms 7 (+84,000)``."""
        value = f"{self.value:.6g}" if isinstance(self.value, float) else self.value
        effect = f"{self.effect:+.2g}"  # two digits, with no exponent
        effect = f"{float(effect):+,.0f}" if abs(self.effect) >= 10 else effect
        return f"{_WORDS[self.kind].format(name=self.name, value=value)} ({effect})"


def in_words(reasons: Sequence[Reason], task: Task, of: str = "") -> str:
    """The strongest reasons as text; all columns or neighbours at once only where single ones matter little.

    Args:
        reasons: What moved a prediction, the strongest first.
        task: What is predicted.
        of: The label or target, where there are several.

    >>> in_words([Reason("column", "age", 71.0, 0.123), Reason("label", "k7", "fraud", -0.04)], "classify")
    'age 71 (+0.12); k7 is fraud (-0.04)'
    >>> in_words([Reason("column", "rooms", 7.0, 84_312.5)], "regress", "price")
    'price: rooms 7 (+84,000)'
    """
    single = [reason for reason in reasons if reason.name != "all"]
    most = abs(single[0].effect) if single else 0.0
    told = [reason for reason in reasons if reason.name != "all" or LITTLE * abs(reason.effect) > most]
    least = max(LITTLE / 2 * abs(told[0].effect), 0.0 if task == "regress" else LEAST) if told else 0.0
    words = "; ".join(reason.words for reason in told[:SHOWN] if abs(reason.effect) > least)
    return f"{of}: {words}" if of and words else words


class Column(NamedTuple):
    """A column of a table of attributes: its name, its columns of ``x``, and whether it has categories or dates.

    >>> Column("since", [0, 1, 2], is_date=True).value(np.array([15418.0, 3.0, 0.0]))
    '2012-03-19'
    """

    name: str
    slots: list[int]
    categories: tuple[str, ...] = ()
    is_date: bool = False

    def value(self, row: Array) -> Any:
        """The value in one row of ``x``."""
        if self.is_date:
            return str(np.floor(row[self.slots[0]]).astype("datetime64[D]"))
        if not self.categories:
            return float(row[self.slots[0]])
        chosen = np.flatnonzero(row[self.slots[: len(self.categories)]])
        return self.categories[int(chosen[0])] if chosen.size else "none"


def columns_of(data: Data, names: Sequence[str] | None = None) -> list[Column]:
    """The columns of the attributes of a graph, as its user knows them."""
    if data.x is None:
        return []
    table: Columns | None = data.get("columns")
    if table is None:
        return [Column(names[slot] if names else f"column {slot + 1}", [slot]) for slot in range(data.x.size(1))]
    found, at = [], 0
    for column in table.columns:
        if width := len(column.encoded):
            found.append(Column(column.name, list(range(at, at + width)), column.categories, column.kind == "date"))
        at += width
    return found


@dataclass
class _Edit:
    """What is taken away from one item in a prediction."""

    reason: Reason
    item: int
    slots: list[int] | None = None
    values: Array | None = None
    other: int = -1

    @property
    def changes_edges(self) -> bool:
        return self.reason.kind in ("neighbour", "neighbours", "node")


def unlimited(done: int, total: int) -> bool:
    """A :data:`Go` that always goes on."""
    return True


def explain_items(
    predict: Predict,
    items: Any,
    rows: Sequence[int],
    outputs: Sequence[int],
    *,
    names: Sequence[str] | None = None,
    known: Array | None = None,
    labels: Callable[[int, int], Any] = lambda item, output: None,
    with_edges: bool = True,
    most: int = MOST,
    budget: float | None = None,
    go: Go = unlimited,
) -> list[list[Reason]]:
    """For each item, what moved its prediction, the largest effect first; what has no effect is left out.

    Items that are more than two edges apart share a prediction.

    Args:
        predict: ``[items, outputs]`` for a graph or for graphs, or of some of its items.
        items, rows, outputs: The graph or the graphs, the items to explain, and the output to explain for each of them.
        names: The names of attributes, if the graph has none.
        known: The targets that predictions start from, -1 or NaN for unknown; None if there are none.
        labels: The known target of an item for an output, as its user writes it; None where it is unknown.
        with_edges: Whether the model has an answer for other edges.
        most: How many columns, neighbours and labels are tried for an item.
        budget: How many predictions with other edges this may take; others count as in :data:`COSTS`.
        go: Asked before each prediction.
    """
    nodes, wanted = isinstance(items, Data), dict(zip(map(int, rows), outputs, strict=True))
    left = math.inf if budget is None else budget
    if not wanted:  # there is no test part
        return []
    if not nodes:
        items, wanted = [items[row] for row in wanted], dict(enumerate(wanted.values()))
    columns = columns_of(items if nodes else items[0], names)
    usual = _usual(items if nodes else _pooled(items), columns)
    given = columns, usual, known, labels, most
    edits = {item: _edits(items, item, output, *given) for item, output in wanted.items()}
    groups = _apart(items, list(wanted)) if nodes else [list(wanted)]
    turns: list[list[_Edit]] = []
    for other_edges in (False, True) if with_edges else (False,):
        for group in groups:
            asked = [[edit for edit in edits[item] if edit.changes_edges == other_edges] for item in group]
            for turn in ([edit for edit in turn if edit] for turn in zip_longest(*asked)):
                left -= max(COSTS.get(edit.reason.kind, 1.0) for edit in turn)
                turns += [turn] if left >= 0 else []
    found = {item: list[Reason]() for item in wanted}
    if not go(0, len(turns)):
        return list(found.values())
    base = predict(items, np.array(list(wanted), int))
    before = {item: base[place, output] for place, (item, output) in enumerate(wanted.items())}
    for done, turn in enumerate(turns):
        if done and not go(done, len(turns)):
            break
        without = predict(_without(items, turn, known), np.array([edit.item for edit in turn]))
        for edit, outputs in zip(turn, without, strict=True):
            effect = before[edit.item] - outputs[wanted[edit.item]]
            found[edit.item].append(edit.reason._replace(effect=float(effect)))
    least = 1e-6 * np.abs(base).max(0, initial=1e-12)
    kept = ([one for one in reasons if abs(one.effect) > least[wanted[item]]] for item, reasons in found.items())
    return [sorted(reasons, key=lambda reason: -abs(reason.effect)) for reasons in kept]


def _edits(
    items: Any,
    row: int,
    output: int,
    columns: list[Column],
    usual: Array,
    known: Array | None,
    labels: Callable[[int, int], Any],
    most: int,
) -> list[_Edit]:
    """What to take away from an item, one after the other."""
    graph, inside = (items, [row]) if isinstance(items, Data) else (items[row], slice(None))
    edits = []
    if columns:
        own = to_rows(graph.x)[inside]
        own = own if isinstance(own, np.ndarray) else own.toarray()
        starts = [column.slots[0] for column in columns]  # all columns of x, one after the other
        far = np.add.reduceat(np.abs(own - usual).mean(0), starts) / [len(column.slots) for column in columns]
        for place in np.argsort(-_in_deviations(graph, starts, far), kind="stable")[:most]:
            column = columns[place]
            if far[place]:
                reason = Reason("column", column.name, column.value(own.mean(0)), 0.0)
                edits.append(_Edit(reason, row, column.slots, usual[column.slots]))
        if len(edits) > 1:
            edits.append(_Edit(Reason("columns", "all", None, 0.0), row, list(range(len(usual))), usual))
    ids, (source, target) = ids_of(graph), graph.edge_index.cpu().numpy()
    degree = np.bincount(target, minlength=len(ids))
    if not isinstance(items, Data):
        busiest = np.argsort(-degree, kind="stable")[:most]
        return edits + [_Edit(Reason("node", str(ids[u]), None, 0.0), row, other=int(u)) for u in busiest if degree[u]]
    near = np.setdiff1d(np.concatenate([source[target == row], target[source == row]]), [row])
    if len(near) > 1:
        edits.append(_Edit(Reason("neighbours", "all", len(near), 0.0), row))
    told = np.zeros(len(ids), bool) if known is None else labelled(torch.as_tensor(known)).numpy()
    near = near[np.lexsort((degree[near], ~told[near]))][:most]
    edits += [_Edit(Reason("neighbour", str(ids[u]), None, 0.0), row, other=int(u)) for u in near]
    values = ((u, labels(int(u), output)) for u in near[told[near]])
    edits += [_Edit(Reason("label", str(ids[u]), v, 0.0), row, other=int(u)) for u, v in values if v is not None]
    return edits


def _without(items: Any, edits: list[_Edit], known: Array | None) -> Any:
    """The graph, or the graphs, as they are without what the edits take away."""
    nodes = isinstance(items, Data)
    changed: dict[int, Data] = {}
    for edit in edits:
        at = 0 if nodes else edit.item
        graph = items if nodes else items[at]
        kind, new = edit.reason.kind, changed.setdefault(at, copy.copy(graph))
        if kind in ("column", "columns"):
            if new.x is graph.x:
                new.x = graph.x.clone()
            new.x = _replaced(new.x, [edit.item] if nodes else range(new.x.size(0)), edit.slots, edit.values)
        elif kind == "label":
            if new.get("known_targets") is graph.get("known_targets"):
                new.known_targets = torch.as_tensor(known).clone()
            new.known_targets[edit.other] = float("nan") if new.known_targets.is_floating_point() else -1
        else:
            (u, v), one = new.edge_index, edit.item if nodes else edit.other
            gone = (u == one) | (v == one)
            if kind == "neighbour":
                gone &= (u == edit.other) | (v == edit.other)
            new.edge_index = new.edge_index[:, ~gone]
            if new.get("edge_weight") is not None:
                new.edge_weight = new.edge_weight[~gone]
    return changed[0] if nodes else [changed.get(place, graph) for place, graph in enumerate(items)]


def _replaced(x: torch.Tensor, rows: Any, slots: list[int] | None, values: Any) -> torch.Tensor:
    """The attributes with other values in a block; sparse ones stay sparse."""
    values = np.asarray(values, dtype=np.float32)
    if x.layout == torch.strided:
        x[np.ix_(list(rows), slots or [])] = torch.from_numpy(values).to(x)
        return x
    matrix, item, column = to_rows(x), np.array(list(rows), int), np.array(slots or [], int)
    owner = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    matrix.data[np.isin(owner, item) & np.isin(matrix.indices, column)] = 0.0
    matrix.eliminate_zeros()
    block = np.broadcast_to(values, (len(item), len(column)))
    i, j = np.nonzero(block)
    new = sparse.csr_array((block[i, j], (item[i], column[j])), shape=matrix.shape)
    return to_torch(matrix + new, x.dtype)


def _pooled(graphs: Sequence[Data]) -> Data:
    """All nodes of graphs, for their attributes."""
    if graphs[0].x is None:
        return Data()
    return Data(x=torch.cat([graph.x.to_dense() for graph in graphs]))


def _usual(data: Data, columns: list[Column]) -> Array:
    """``[x columns]`` the medians; of categories, the most common one."""
    if not columns:
        return np.zeros(0)
    rows = to_rows(data.x)
    if not isinstance(rows, np.ndarray):
        return np.zeros(rows.shape[1])
    usual = np.median(rows, axis=0)
    for column in columns:
        if column.categories:
            usual[column.slots] = np.eye(len(column.slots))[int(rows[:, column.slots].mean(0).argmax())]
    return usual


def _in_deviations(data: Data, starts: list[int], far: Array) -> Array:
    rows = to_rows(data.x)
    deviation = rows.std(0) if isinstance(rows, np.ndarray) else np.ones(rows.shape[1])
    most = np.maximum.reduceat(deviation, starts)
    return far / np.where(most > 0, most, 1.0)


def _apart(data: Data, rows: list[int]) -> list[list[int]]:
    """Groups of nodes that are more than two edges apart from each other."""
    n = int(data.num_nodes or 0)
    u, v = data.edge_index.cpu().numpy()
    near = sparse.csr_array((np.ones(len(u), np.float32), (u, v)), shape=(n, n))
    near = sparse.csr_array(near + near.T)[rows]
    close = near + sparse.csr_array((np.ones(len(rows), np.float32), (range(len(rows)), rows)), shape=near.shape)
    meets = sparse.csr_array(close @ close.T).toarray() > 0
    groups: list[list[int]] = []
    for place in range(len(rows)):
        free = next((group for group in groups if not meets[place, group].any()), None)
        if free is None:
            groups.append([place])
        else:
            free.append(place)
    return [[rows[place] for place in group] for group in groups]


class Shuffled(NamedTuple):
    """Outputs with one thing shuffled: what it is, and an array for each repetition."""

    name: str
    kind: Literal["column", "attributes", "structure", "neighbours"]
    outputs: list[Array]


def shuffles(
    predict: Predict,
    items: Any,
    rows: Array,
    columns: Sequence[Column],
    *,
    repeats: int = 3,
    seed: int = 0,
    edges: bool = True,
) -> Iterator[Shuffled]:
    """``[rows, outputs]`` of some items with their places in the graph shuffled, and with one column shuffled.

    ``"structure"``: items change places in the graph with each other and keep their attributes. ``"neighbours"``: they
    do so among items of similar degree, so that the degree stays. Graphs keep their nodes: their edges are drawn anew
    in place of ``"structure"``, and with the same degrees in place of ``"neighbours"``. A column is shuffled among all
    nodes, so that neighbours have other values, too; of several columns, all of them together come first. Each is
    permuted ``repeats`` times. Without ``edges``, places are not shuffled.
    """
    nodes = isinstance(items, Data)
    subject = items if nodes else [items[row] for row in rows]

    def outputs(change: Callable[[np.random.Generator], Any]) -> list[Array]:
        changed = (change(np.random.default_rng([seed, number])) for number in range(repeats))
        return [predict(each, rows if nodes else None) for each in changed]

    for kind in ("structure", "neighbours") if edges else ():
        moved = _moved if nodes else _rewired
        yield Shuffled(kind, kind, outputs(lambda g, kind=kind, moved=moved: moved(subject, rows, kind, g)))  # type: ignore[misc]
    every = [slot for column in columns for slot in column.slots]
    together = [Column("all columns", every)] if len(columns) > 1 else []
    for place, column in enumerate([*together, *columns]):
        name: Any = "attributes" if together and not place else "column"
        yield Shuffled(column.name, name, outputs(lambda g, c=column: _shuffled_columns(subject, c.slots, g)))  # type: ignore[misc]


def _moved(data: Data, rows: Array, kind: str, generator: np.random.Generator) -> Data:
    """The graph with items in each other's places; with ``"neighbours"``, those of similar degree."""
    place = np.arange(int(data.num_nodes or 0))
    order = generator.permutation(rows)
    if kind == "neighbours":
        degree = np.bincount(data.edge_index[1].cpu().numpy(), minlength=len(place))
        order = order[np.argsort(degree[order], kind="stable")]
    size = SIMILAR if kind == "neighbours" else max(1, len(order))
    for start in range(0, len(order), size):
        some = order[start : start + size]
        place[some] = np.roll(some, 1)
    moved = copy.copy(data)
    moved.edge_index = torch.from_numpy(place).to(data.edge_index.device)[data.edge_index]
    moved.nodes_moved = data.edge_index, place  # structural features need not be computed again
    return moved


def _rewired(graphs: list[Data], rows: Array, kind: str, generator: np.random.Generator) -> list[Data]:
    """Graphs with as many edges between random nodes; with ``"neighbours"``, nodes keep their degrees, nearly."""
    found = []
    for graph in graphs:
        once = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].numpy()
        if kind == "neighbours":
            ends = generator.permutation(once.ravel()).reshape(2, -1)
        else:
            ends = generator.integers(0, int(graph.num_nodes or 1), once.shape)
        ends = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
        new = copy.copy(graph)
        new.edge_index = torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1))
        new.pop("edge_weight", None)
        found.append(new)
    return found


def _shuffled_columns(items: Any, slots: list[int], generator: np.random.Generator) -> Any:
    """The graph, or the graphs, with columns of the attributes shuffled among all nodes."""
    graphs = [items] if isinstance(items, Data) else items
    sizes = [int(graph.num_nodes or 0) for graph in graphs]
    order = generator.permutation(sum(sizes))
    if len(graphs) == 1 and graphs[0].x.layout != torch.strided:
        rows = sparse.csc_array(to_rows(graphs[0].x))
        kept = np.setdiff1d(np.arange(rows.shape[1]), slots)
        pick = [sparse.diags_array(np.isin(np.arange(rows.shape[1]), part).astype(float)) for part in (kept, slots)]
        mixed = sparse.csr_array(rows @ pick[0]) + sparse.csr_array(rows @ pick[1])[order]
        blocks = [to_torch(mixed, graphs[0].x.dtype)]
    else:
        x = torch.cat([graph.x.to_dense() for graph in graphs])
        x[:, slots] = x[torch.from_numpy(order)][:, slots]
        blocks = list(x.split(sizes))
    found = []
    for graph, block in zip(graphs, blocks, strict=True):
        new = copy.copy(graph)
        new.x = block
        found.append(new)
    return found[0] if isinstance(items, Data) else found
