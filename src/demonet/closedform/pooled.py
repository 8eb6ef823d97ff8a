r"""The degree-specific kernel between graphs: degree pooling (Eq. 11) of the node kernel, with WL histograms beside it.

.. math::
    K(G, H) = \sum_{u \in G} \sum_{v \in H} \bigl(1 - p + p\, \kappa(d_u, d_v)\bigr)\, k(u, v)

With p = 1 and :math:`\kappa = \delta` nodes meet where their degrees are equal, as in Eq. 11; with p = 0 it is sum
pooling. Nodes of equal degree are summed first, and :math:`\kappa` over the distinct degrees is factorised, so the cost
does not grow with pairs of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from demonet.closedform.nodes import (
    Array,
    NodeInputs,
    NodeRows,
    NodeSetting,
    Pair,
    dense,
    products,
    ranked,
    ranks,
    squares,
)
from demonet.data.rows import Rows
from demonet.errors import DemonetError
from demonet.features.graph import GraphUnion
from demonet.features.structure import settled
from demonet.kernels import WLSubtreeKernel
from demonet.schema import Array as Stored
from demonet.schema import check_arrays

ROUNDS = 3
Table = Callable[[Tensor, Tensor], Tensor]  # a kernel of degrees


@dataclass(frozen=True)
class GraphSetting(NodeSetting):
    """A node setting (``hop`` is not used), and how graphs are compared.

    Attributes:
        pooled: Weight of the pooled node kernel, normalised to K(G, G) = 1.
        pooling: The share p of degree pooling in it; 0 is sum pooling.
        height: Above 0, the pooled kernel becomes ``exp(-D / height)``, with D the distance of graphs in its feature
            space over the root mean square of the training graphs' norms.
        wl: Weight of ``exp(-L1 / reach)`` on WL histograms of levels 0 to ``rounds``, L1 over the mean number of nodes.
        structure: Weight of the radial kernel of ranked graph descriptors.
    """

    pooled: float = 1.0
    pooling: float = 0.5
    wl: float = 1.0
    rounds: int = 2
    structure: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 <= self.pooling <= 1 and 0 <= self.rounds <= ROUNDS and self.reach > 0):
            raise DemonetError(
                f"pooling={self.pooling}, rounds={self.rounds}, reach={self.reach} in a kernel setting",
                hint=f"a share, 0 to {ROUNDS} rounds, and a positive number",
            )

    def canonical(self) -> Self:
        """The same kernel, with fields that it does not read at their defaults."""
        unread: dict[str, Any] = {}
        if not self.pooled:
            names = ("seed", "shared", "degree", "bias", "pooling", "width", "height")
            unread |= {name: getattr(GraphSetting, name) for name in names}
        elif not (self.degree or self.bias or self.pooling):
            unread["width"] = 0.6
        if not self.wl:
            unread |= {"rounds": 0, "reach": 1.0}
        return replace(self, **unread)


class Cells(NamedTuple):
    """Sums over the nodes of one degree in one graph."""

    graph: Array
    degree: Tensor
    own: Rows
    near: Rows
    ones: Array


@dataclass(frozen=True, eq=False)
class GraphRows:
    """The inputs of some graphs.

    Attributes:
        nodes: The view of their nodes, all graphs together.
        owner: ``[nodes]`` which graph a node belongs to.
        histograms: For each WL level a CSR array in which a colour that occurs c times has c ones, so that inner
            products are histogram intersections.
        totals: ``[graphs]`` nodes of each graph.
        structure: ``[graphs, p]`` ranks of the graph descriptors.
    """

    nodes: NodeRows
    owner: Array
    histograms: tuple[Rows, ...]
    totals: Array
    structure: Array

    def __len__(self) -> int:
        return len(self.totals)

    def take(self, rows: Array) -> GraphRows:
        """The view of some of the graphs."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        order = np.argsort(self.owner, kind="stable")
        first = np.searchsorted(self.owner[order], rows)
        sizes = self.totals[rows].astype(np.int64)
        owner = np.repeat(np.arange(len(rows)), sizes)
        index = order[np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(first, sizes)]
        histograms = tuple(level[rows] for level in self.histograms)
        return GraphRows(self.nodes.take(index), owner, histograms, self.totals[rows], self.structure[rows])

    def shuffled(self, seed: int) -> GraphRows:
        """The degree-specific maps read the degrees of random other nodes; all else stays."""
        return GraphRows(self.nodes.shuffled(seed), self.owner, self.histograms, self.totals, self.structure)

    def pair(self, other: GraphRows, dtype: torch.dtype, device: torch.device | str) -> GraphPair:
        """The kernels between these graphs and others."""
        return GraphPair(self, other, dtype, device)

    def mean_log_degree(self) -> Array:
        """``[graphs]`` the mean of log(1 + degree) over the nodes."""
        total = np.bincount(self.owner, self.nodes.mean_log_degree(), minlength=len(self))
        return total / np.maximum(self.totals, 1)

    @cached_property
    def cells(self) -> Cells:
        """Sums over the nodes of equal degree in each graph."""
        task = self.nodes.task
        span = int(task.max(initial=0)) + 1
        cells, cell = np.unique(self.owner * span + task, return_inverse=True)
        shape = len(cells), len(task)
        members = sparse.csr_array((np.ones(len(task)), (cell, np.arange(len(task)))), shape=shape)
        graph, degree = np.divmod(cells, span)
        sums = members @ self.nodes.own, members @ self.nodes.near[0]
        return Cells(graph, torch.from_numpy(degree), *sums, np.asarray(members.sum(axis=1)).reshape(-1, 1))

    def features(self, block: str, degrees: Tensor, factors: Array) -> Iterator[Rows]:
        """Explicit features ``[graphs, width]`` of the pooled kernel, a block for each column of ``factors``."""
        factor = factors[torch.searchsorted(degrees, self.cells.degree).numpy()]
        for column in factor.T:
            weights = (column, (self.cells.graph, np.arange(len(column))))
            yield sparse.csr_array(weights, shape=(len(self), len(column))) @ getattr(self.cells, block)

    def space(self, degree: bool, linear: bool) -> tuple[GraphSetting, list[tuple[str, list[Any]]]]:
        """Where the search for a setting starts, and the values of each field that it tries in turn."""
        start = GraphSetting(shared=1.0, degree=1.0 if degree else 0.0, pooling=0.5 if degree else 0.0)
        wl = [{"wl": w, "rounds": r} for w in (0.3, 1.0, 3.0) for r in range(ROUNDS + 1)]
        choices: list[tuple[str, list[Any]]] = [("wl", [{"wl": 0.0, "rounds": 0}, *wl])]
        choices += [("reach", [0.2, 0.5, 1.0, 2.0]), ("structure", [0.0, 0.3, 1.0])]
        if degree:
            choices += [("pooling", [0.0, 0.3, 0.7, 1.0]), ("degree", [0.0, 1.0]), ("width", [0.15, 0.6])]
        if not linear:
            choices.append(("height", [0.0, 0.3, 1.0]))
        return start, [*choices, ("pooled", [0.0, 0.3, 1.0]), ("shared", [0.3, 1.0, 3.0]), ("bias", [0.0, 0.1, 1.0])]


class GraphPair(Pair):
    """Kernels between graphs."""

    def terms(self, s: GraphSetting) -> Iterator[tuple[str, Tensor]]:
        """The kernel term by term: seed, shared, degree, bias (``map`` under a map), structure, wl, constant."""
        if s.pooled and s.height:
            yield "map", s.pooled * torch.exp(-self._gaps(s) / s.height)
        elif s.pooled:
            scale = [self._self_kernels(view, s).clamp(min=1e-12).rsqrt() for view in (self.left, self.right)]
            for name, term in self._pooled(s).items():
                yield name, s.pooled * scale[0][:, None] * scale[1] * term
        if s.structure:
            yield "structure", s.structure * torch.exp(-self._once("structure", self._structure))
        if s.wl:
            yield "wl", s.wl * torch.exp(-self._once(s.rounds, lambda: self._distance(s.rounds)) / s.reach)
        yield from self._constant(s)

    def _gaps(self, s: GraphSetting) -> Tensor:
        left, right = (self._self_kernels(view, s) for view in (self.left, self.right))
        inner = sum(self._pooled(s).values())
        squared = (left[:, None] + right - 2 * inner).clamp(min=0) / right.mean().clamp(min=1e-12)
        return squared.sqrt()

    def _pooled(self, s: GraphSetting) -> dict[str, Tensor]:
        """The pooled kernel, term by term, not normalised."""
        terms = {}
        for name, (variance, table, block) in _tables(s).items():
            if not variance:
                continue
            key = (name if name == "degree" else block, s.pooling, s.scheme, s.width, s.hash_size, s.hash_seed)
            make = partial(pooled_products, self.left, self.right, block, table, self.dtype, self.device)
            terms[name] = variance * self._once(key, make)
        return terms

    def _self_kernels(self, view: GraphRows, s: GraphSetting) -> Tensor:
        total = torch.zeros(len(view), dtype=self.dtype, device=self.device)
        for name, (variance, table, block) in _tables(s).items():
            if variance:
                key = (id(view), name, s.pooling, s.scheme, s.width, s.hash_size, s.hash_seed)
                make = partial(pooled_norms, view, block, table, self.dtype, self.device)
                total += variance * self._once(key, make)
        return total

    def _structure(self) -> Tensor:
        """Half the mean squared difference of the ranked descriptors."""
        left, right = (dense(view.structure, self.dtype, self.device) for view in (self.left, self.right))
        return 0.5 * torch.cdist(left, right).square() / left.size(1)

    def _distance(self, rounds: int) -> Tensor:
        """L1 distance of WL histograms of levels 0 to ``rounds``, over the mean number of nodes of ``right``."""
        left, right = (dense(view.totals, self.dtype, self.device) for view in (self.left, self.right))
        levels = zip(self.left.histograms[: rounds + 1], self.right.histograms[: rounds + 1], strict=True)
        total = (rounds + 1) * (left[:, None] + right) - 2 * sum(self._products(a, b) for a, b in levels)
        return total / ((rounds + 1) * right.mean().clamp(min=1))


def _tables(s: GraphSetting) -> dict[str, tuple[float, Table, str]]:
    """For each term its variance, its kernel of degrees, and which sums it multiplies."""

    def pool(left: Tensor, right: Tensor) -> Tensor:
        return (1 - s.pooling) + s.pooling * s.kappa(left, right, torch.float64)

    def specific(left: Tensor, right: Tensor) -> Tensor:
        return pool(left, right) * s.kappa(left, right, torch.float64)

    return {
        "seed": (s.seed, pool, "own"),
        "shared": (s.shared, pool, "near"),
        "degree": (s.degree, specific, "near"),
        "bias": (s.bias, specific, "ones"),
    }


def degree_factors(table: Table, degrees: Tensor) -> Array:
    """L ``[degrees, rank]`` with ``L L' = table``: the exact factorisation of a kernel over distinct degrees."""
    values, vectors = torch.linalg.eigh(table(degrees, degrees))
    kept = values > 1e-14 * values[-1]
    return (vectors[:, kept] * values[kept].sqrt()).numpy()


def pooled_products(
    left: GraphRows, right: GraphRows, block: str, table: Table, dtype: torch.dtype, device: torch.device | str
) -> Tensor:
    """``[left, right]``: the sum over nodes of both graphs of ``table(degrees)`` times the product of their rows."""
    degrees = torch.unique(torch.cat([left.cells.degree, right.cells.degree]))
    factors = degree_factors(table, degrees)
    sides = zip(left.features(block, degrees, factors), right.features(block, degrees, factors), strict=True)
    zero = torch.zeros(len(left), len(right), dtype=dtype, device=device)
    return sum((products(a, b, dtype, device) for a, b in sides), start=zero)


def pooled_norms(view: GraphRows, block: str, table: Table, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """``[graphs]``: the same of every graph with itself."""
    degrees = torch.unique(view.cells.degree)
    features = view.features(block, degrees, degree_factors(table, degrees))
    return dense(sum((squares(rows) for rows in features), start=np.zeros(len(view))), dtype, device)


class GraphInputs:
    """Preprocessing of graphs, learned from the training graphs and applied to any others.

    Nodes as :class:`~demonet.closedform.nodes.NodeInputs` describes them; WL colours start from the rows of ``data.x``
    where these are labels or counts. Graph descriptors: nodes, edges, mean and deviation of the log-degree, mean
    squared degree, shares of nodes of degree 0, 1 and above 3, mean clustering; each replaced by its rank.
    """

    def __init__(self) -> None:
        self.nodes = NodeInputs(hops=1)

    def fit(self, graphs: Iterable[Data]) -> Self:
        """Learn from the training graphs."""
        graphs = list(graphs)
        self.graphs = [Data(x=graph.x, edge_index=graph.edge_index, num_nodes=graph.num_nodes) for graph in graphs]
        union = GraphUnion.of(self.graphs)
        whole = union.whole
        view = self.nodes.fit(whole).transform(whole)
        self.ranks = [np.stack(ranks(column)) for column in self._descriptors(view, union).T]
        self.wl = WLSubtreeKernel(n_iter=ROUNDS).fit(self._coloured(self.graphs))
        self.caps = np.asarray(self.wl.features_.max(axis=0).todense()).ravel().astype(np.int64)
        return self

    def transform(self, graphs: Iterable[Data]) -> GraphRows:
        """The inputs of every graph."""
        graphs = list(graphs)
        union = GraphUnion.of(graphs)
        view, totals = self.nodes.transform(union.whole), np.array(union.sizes, np.float64)
        counts = sparse.csr_array(self.wl.features(self._coloured(graphs)))
        histograms, start = [], 0
        for index in self.wl.indexes_:
            stop = start + index.size
            histograms.append(unary(sparse.csr_array(counts[:, start:stop]), self.caps[start:stop]))
            start = stop
        structure = ranked(self._descriptors(view, union), self.ranks)
        return GraphRows(view, union.graph, tuple(histograms), totals, structure)

    def _coloured(self, graphs: list[Data]) -> list[Data]:
        if self.nodes.info["kind"] in ("labels", "counts"):
            return graphs
        return [Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes) for graph in graphs]

    def _descriptors(self, view: NodeRows, union: GraphUnion) -> Array:
        nodes = np.maximum(union.sizes, 1)
        degree, t = view.degree.astype(np.float64), view.mean_log_degree()
        clustering = view.structure[:, -1]

        def mean(value: Array) -> Array:
            return np.bincount(union.graph, value, minlength=len(nodes)) / nodes

        spread = np.sqrt(np.maximum(mean(t**2) - mean(t) ** 2, 0))
        edges = np.log1p(mean(degree) * nodes)
        shares = mean(degree == 0), mean(degree == 1), mean(degree > 3)
        columns = [np.log(nodes), edges, mean(t), spread, mean(degree**2), *shares, mean(clustering)]
        return settled(np.stack(columns, 1))

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The training graphs, from which everything is learned again."""
        union = GraphUnion.of(self.graphs)
        whole = union.whole
        arrays = {"edge_index": whole.edge_index, "owner": torch.from_numpy(union.graph)}
        if whole.x is not None:
            arrays["x"] = whole.x
        return {"graphs": len(self.graphs)}, arrays

    @classmethod
    def from_state(cls, info: Mapping[str, Any], arrays: Mapping[str, Tensor]) -> Self:
        """The fitted inputs that gave this state."""
        owner, edges, count = arrays["owner"], arrays["edge_index"], info["graphs"]
        check_arrays(arrays, {"owner": Stored("i", ("nodes",), 0, "graphs")}, {"graphs": min(count, owner.numel())})
        sizes, edge_owner = torch.bincount(owner), owner[edges[1]]
        if len(sizes) != count or not bool(sizes.all()):
            raise DemonetError(f"{int((sizes > 0).sum())} graphs have nodes, there are {count}")
        parts = edges[:, edge_owner.argsort(stable=True)].split(torch.bincount(edge_owner, minlength=count).tolist(), 1)
        starts, rows = (sizes.cumsum(0) - sizes).tolist(), arrays["x"].split(sizes.tolist()) if "x" in arrays else None
        graphs = []
        for i, (start, size, part) in enumerate(zip(starts, sizes.tolist(), parts, strict=True)):
            graphs.append(Data(x=None if rows is None else rows[i], edge_index=part - start, num_nodes=size))
        return cls().fit(graphs)


def unary(counts: sparse.csr_array, caps: Array) -> sparse.csr_array:
    """A count c becomes c ones, so that products of rows are sums of minima; counts above ``caps`` meet no more."""
    start = np.cumsum(caps) - caps
    entries = counts.tocoo()
    amount = np.minimum(entries.data.astype(np.int64), caps[entries.col])
    row, column = np.repeat(entries.row, amount), np.repeat(start[entries.col], amount)
    column = column + np.arange(amount.sum()) - np.repeat(np.cumsum(amount) - amount, amount)
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=(counts.shape[0], int(caps.sum())))
