"""What models read of a graph, or of a list of graphs: computed once, when first asked for, and shared by all.

A view that is made from data alone learns its scales from that data; one that is made with the state of another view
reuses them. So a model that was fitted on one view predicts on any other with the same state.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize
from torch_geometric.data import Data

from demonet.data.ids import Numbering, make_ids
from demonet.data.rows import Rows, to_rows
from demonet.degree.count import count_degree
from demonet.degree.keep import Memo
from demonet.errors import DemonetError
from demonet.features.attributes import document_weights, matrix_kind, term_rows
from demonet.features.graph import GraphUnion, neighbour_mean, simple_adjacency, sum_rows
from demonet.features.structure import GROUPS, Surroundings, affordable_groups, radial, settled, triangle_counts
from demonet.schema import Array, check_arrays, checked_csr
from demonet.tensorfile import pack_texts, unpack_texts

Float = NDArray[np.float64]
Int = NDArray[np.int64]
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]

RANKS = 101  # quantiles kept of each structural feature
QUANTILE_ITEMS = 200_000  # nodes that they are taken from, evenly, where there are more
ROUNDS = 3  # of Weisfeiler-Lehman refinement, at most
EIGENVECTORS = 32  # of the adjacency matrix
EIGEN_RESTARTS = 30  # of the search for them on a large graph, at most: some graphs need thousands
LARGE = 20_000  # items from which on memory counts more than the last bit of a result
WIDE = 256  # attributes beyond which they are projected before they are diffused
AXES = 2**25  # entries of a projection, 256 MiB: with more than 131,072 attributes it has fewer than 256 columns
TAILS, FEW_VALUES = 15.0, 20  # kurtosis from which on a column of more than so many values is replaced by its ranks
# The seed of restarts; SciPy has it since 1.17.
_SEEDED: dict[str, Any] = {"rng": 0} if "rng" in signature(eigsh).parameters else {}
FEW_COLUMNS = 64  # attributes up to which their mean and deviation describe a graph
SHARED_IDS, SHARED_EDGES = 0.25, 0.25  # from which on a graph is the fitted one, changed
_LAST: Memo[Float] = Memo()  # structural features of the last graph, for the same edges with other attributes
SHORT = 1e-9  # rows of eigenvectors that are shorter are zero up to rounding


class NodeView:
    """The nodes of one graph.

    Args:
        data: The graph.
        state: What another view learned, as its ``facts`` and ``arrays``.
    """

    family = "nodes"

    def __init__(self, data: Data, state: State | None = None) -> None:
        self.data = data
        self.num_items = int(data.num_nodes or 0)
        self.kept: dict[str, Any] = {}  # what others derive from this graph, by name
        self._fitted = state is None
        self._state: State | None = None if state is None else (dict(state[0]), dict(state[1]))
        self._diffused: dict[float, Float] = {}  # by restart
        given = 0 if data.x is None else int(data.x.size(1))
        if state is not None and given != state[0]["columns"]:
            raise DemonetError(f"the graph has {given} attributes a node, training had {state[0]['columns']}")

    @property
    def facts(self) -> dict[str, Any]:
        """What was learned from the fitted graph, in plain values; on that graph, when it is first asked for."""
        return self._learned[0]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned from the fitted graph, in arrays."""
        return self._learned[1]

    @property
    def _learned(self) -> State:
        if self._state is None:
            self._state = {}, {}
            self._learn()
        return self._state

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """Symmetric, without loops."""
        return simple_adjacency(self.data)

    @cached_property
    def raw_log_degree(self) -> Float:
        """``log(1 + d)``, d the number of incoming edges."""
        return np.log1p(count_degree(self.data.edge_index, self.num_items).cpu().numpy().astype(np.float64))

    @cached_property
    def log_degree(self) -> Float:
        """``[n, 1]`` log-degree in deviations from its mean."""
        return self._standardised(self.raw_log_degree[:, None], "degree")

    @cached_property
    def structure(self) -> Float:
        """``[n, features]`` structural features in deviations from their means."""
        return np.clip(self._standardised(self._raw_structure, "structure"), -8.0, 8.0)

    @cached_property
    def ranks(self) -> Float:
        """``[n, features]`` the same features as ranks among those of the fitted graph, scaled to variance one."""
        quantiles = self._array("structure.quantiles", RANKS, self._raw_structure.shape[1])
        return (_shares(self._raw_structure, quantiles) - 0.5) * np.sqrt(12)

    @cached_property
    def radial(self) -> Float:
        """``[n, 24]`` means over neighbours, and over two hops, of radial functions of log-degree."""
        return self._raw_radial() / self.facts["radial_scale"]

    @cached_property
    def own(self) -> Rows:
        """``[n, columns]`` attributes: tf-idf rows of unit length for words, standardised otherwise."""
        rows = to_rows(self.data.x)
        if self.facts["attributes"] == "numbers":
            if isinstance(rows, np.ndarray):
                return np.clip(self._standardised(self._even(rows), "attributes"), -8.0, 8.0)
            scale = self._array("attributes.scale", rows.shape[1])
            return sparse.csr_array(rows.multiply(1 / scale))  # centred, it would be dense
        return term_rows(rows, self._array("attributes.idf", rows.shape[1]), self.facts.get("terms", "counts"))

    @cached_property
    def neighbours(self) -> Rows:
        """``[n, columns]`` the mean of ``own`` over neighbours, brought to unit length for words."""
        mean = neighbour_mean(self.adjacency, self.own)
        return normalize(mean) if self.facts["attributes"] == "counts" else mean

    @cached_property
    def description(self) -> Float:
        """``[n, columns]`` structural features beside attributes, own and of neighbours; of wide ones, projections."""
        if not self.facts["attributes"]:
            return self.structure
        axes = self.arrays.get("attributes.axes")
        blocks = [rows if axes is None else rows @ axes for rows in (self.own, self.neighbours)]
        dense = [rows if isinstance(rows, np.ndarray) else rows.toarray() for rows in blocks]
        return np.hstack([self.structure, *dense])

    def diffused(self, restart: float) -> Float:
        r"""``[n, columns]`` attributes after ten steps of :math:`Z \leftarrow (1 - \rho) S Z + \rho X`, of unit length.

        S is the adjacency matrix with loops, normalised by the root of degrees on both sides, as GCN's. Attributes of
        more than 256 columns are first projected on their leading singular vectors.
        """
        if restart not in self._diffused:
            loops = sparse.csr_array(self.adjacency + sparse.eye_array(self.num_items))
            scale = sparse.diags_array(1 / np.sqrt(np.diff(loops.indptr)))
            step = sparse.csr_array(scale @ loops @ scale)
            start = self.own
            if "attributes.axes" in self.arrays:
                start = start @ self._array("attributes.axes", start.shape[1], "axes")
            start = start if isinstance(start, np.ndarray) else start.toarray()
            found = start
            for _ in range(10):
                found = (1 - restart) * (step @ found) + restart * start
            if self.num_items >= LARGE:
                self._diffused.clear()
            self._diffused[restart] = normalize(found)
        return self._diffused[restart]

    @cached_property
    def known(self) -> Int | None:
        """``[n]`` the index of each node in the fitted graph, -1 for a new node; None if this is another graph.

        Nodes are recognised by their ids. Ids that merely count nodes (0, 1, 2, ...) are the same in many graphs, so
        there the edges must agree, too.
        """
        if self._fitted:
            return np.arange(self.num_items)
        if "graph.indptr" not in self.arrays:
            return None
        own, fitted = _ids(self.data), self._fitted_ids()
        found = Numbering(fitted).find(make_ids(own.tolist()) if own.dtype == object else own)
        if (found >= 0).sum() < max(1.0, SHARED_IDS * min(self.num_items, len(fitted))):
            return None
        counted = _count_nodes(own) and _count_nodes(fitted)
        return None if counted and self._edge_agreement(found) < SHARED_EDGES else found

    def remember_graph(self) -> None:
        """Add ids and edges to the state, so that :attr:`known` finds the nodes of this graph in another one."""
        ids, adjacency = _ids(self.data), self.adjacency
        self.arrays.update({"graph.indptr": adjacency.indptr, "graph.indices": adjacency.indices})
        if ids.dtype == object:
            self.arrays.update({f"graph.{name}": part.numpy() for name, part in pack_texts(ids.tolist()).items()})
        else:
            self.arrays["graph.ids"] = ids

    def _fitted_ids(self) -> NDArray[Any]:
        if "graph.ids" in self.arrays:
            return self.arrays["graph.ids"]
        packed = {name: torch.from_numpy(self.arrays[f"graph.{name}"]) for name in ("bytes", "offsets")}
        return np.array(unpack_texts(packed), dtype=object)

    def _edge_agreement(self, found: Int) -> float:
        """How far the edges are those of the fitted graph: 1 for the same, 0 for as many in common as by chance.

        Cohen's kappa; by chance is what two random graphs of these degrees have in common.
        """
        pointer, index = self.arrays["graph.indptr"], self.arrays["graph.indices"]
        fitted = checked_csr(np.ones(len(index)), index, pointer, (len(pointer) - 1,) * 2)
        pick = _columns(found, fitted.shape[0])
        here = sparse.csr_array(pick.T @ self.adjacency @ pick)
        shared, most = float(fitted.multiply(here).sum()), max(self.adjacency.nnz, fitted.nnz)
        degrees = np.diff(here.indptr) * np.diff(fitted.indptr).astype(np.float64)
        chance = (degrees.sum() ** 2 - (degrees**2).sum()) / max(1.0, float(here.nnz) * fitted.nnz)
        return 1.0 if shared == most else (shared - chance) / max(most - chance, 1.0)

    @cached_property
    def neighbourhood(self) -> sparse.csr_array:
        """``[n, fitted nodes]`` who of the fitted graph a node is joined to, as rows of unit length."""
        if self._fitted:
            return normalize(self.adjacency)
        assert self.known is not None
        return normalize(sparse.csr_array(self.adjacency @ _columns(self.known, len(self.arrays["graph.indptr"]) - 1)))

    @cached_property
    def eigenvectors(self) -> Float:
        """``[n, k]`` leading eigenvectors of the normalised adjacency matrix, for :meth:`spectral_rows`.

        Of a large graph, those that are found in :data:`EIGEN_RESTARTS` restarts; a column of zeros if there is none.
        """
        k = min(EIGENVECTORS, self.num_items - 2)
        if k < 1:
            return np.zeros((self.num_items, 1))
        scale = sparse.diags_array(self._root_scale(self.mean_degree))
        matrix, start = sparse.csr_array(scale @ self.adjacency @ scale), np.sqrt(np.diff(self.adjacency.indptr) + 1.0)
        most = EIGEN_RESTARTS if self.num_items >= LARGE else None
        try:
            return eigsh(matrix, k, which="LM", v0=start, maxiter=most, **_SEEDED)[1]
        except ArpackNoConvergence as error:
            found = np.asarray(error.eigenvectors, np.float64)
            return found if found.size else np.zeros((self.num_items, 1))

    @property
    def mean_degree(self) -> float:
        """The regulariser of the normalised adjacency matrix, so that low degrees do not dominate."""
        return float(np.diff(self.adjacency.indptr).mean())

    def spectral_rows(self, vectors: Float, mean_degree: float) -> Float:
        r"""``[n, k]`` rows of :math:`M V` of unit length, V the eigenvectors of the fitted graph by node.

        On that graph :math:`M V = V \Lambda`. V is kept with a model: computed again, eigenvectors of equal eigenvalues
        would come out rotated. New nodes have zeros in V.
        """
        assert self.known is not None
        scale, there = self._root_scale(mean_degree)[:, None], np.zeros((self.num_items, vectors.shape[1]))
        there[self.known >= 0] = vectors[self.known[self.known >= 0]]
        rows = scale * (self.adjacency @ (scale * there))
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.where(length > SHORT, rows / np.maximum(length, SHORT), 0.0)

    def _root_scale(self, mean_degree: float) -> Float:
        return 1 / np.sqrt(np.maximum(np.diff(self.adjacency.indptr) + mean_degree, 1e-9))

    def _learn(self) -> None:
        self.facts.update(groups=affordable_groups(self.adjacency), attributes=None, columns=0)
        self._learn_scale(self.raw_log_degree[:, None], "degree")
        self.facts["largest"] = float(self.raw_log_degree.max(initial=0.0))
        self._learn_scale(self._raw_structure, "structure")
        some = self._raw_structure[:: -(-self.num_items // QUANTILE_ITEMS) or 1]
        self.arrays["structure.quantiles"] = np.quantile(some, np.linspace(0, 1, RANKS), axis=0)
        self.facts["radial_scale"] = float(np.sqrt(self._raw_radial().var(0).sum())) or 1.0
        if self.data.x is None or self.data.x.size(1) == 0:
            return
        rows = to_rows(self.data.x)
        found = matrix_kind([self.data])
        kind = "numbers" if found == "numbers" else "counts"
        self.facts.update(attributes=kind, columns=int(rows.shape[1]))
        if self.facts["attributes"] == "counts":
            self.facts["terms"] = found
            self.arrays["attributes.idf"] = document_weights(rows, found)
        elif isinstance(rows, np.ndarray):
            tailed = np.flatnonzero(heavy_tails(rows))
            if tailed.size:
                self.arrays["attributes.tailed"] = tailed
                self.arrays["attributes.quantiles"] = np.quantile(rows[:, tailed], np.linspace(0, 1, RANKS), axis=0)
            self._learn_scale(self._even(rows), "attributes")
        else:
            second = np.asarray(rows.power(2).mean(0)).ravel()
            deviation = np.sqrt(np.maximum(second - np.asarray(rows.mean(0)).ravel() ** 2, 0))
            self.arrays["attributes.scale"] = np.where(deviation > 0, deviation, 1.0)
        if rows.shape[1] > WIDE:
            axes = min(WIDE, self.num_items, max(1, AXES // rows.shape[1]))
            projection = TruncatedSVD(axes, random_state=0).fit(self.own)
            self.arrays["attributes.axes"] = projection.components_.T

    def _even(self, rows: Float) -> Float:
        """Rows whose columns with heavy tails, such as amounts of money, are ranks among those of the fitted graph."""
        if "attributes.tailed" not in self.arrays:
            return rows
        rows, tailed = rows.copy(), self._array("attributes.tailed", "tailed", below=rows.shape[1])
        rows[:, tailed] = _shares(rows[:, tailed], self._array("attributes.quantiles", RANKS, len(tailed)))
        return rows

    @cached_property
    def _raw_structure(self) -> Float:
        names = [name for group in self.facts["groups"] for name in GROUPS[group]]
        edges, place = self.data.get("nodes_moved") or (self.data.edge_index, slice(None))

        def make() -> Float:
            before = Data(edge_index=edges, num_nodes=self.num_items)
            adjacency = self.adjacency if edges is self.data.edge_index else simple_adjacency(before)
            return settled(Surroundings(adjacency).columns(names))

        found = _LAST.get([edges], make, facts=(self.num_items, names))
        assert found is not None
        result = np.empty_like(found)
        result[place] = found
        return result

    def _raw_radial(self) -> Float:
        first = neighbour_mean(self.adjacency, radial(self.raw_log_degree, self.facts["largest"]))
        return np.hstack([first, neighbour_mean(self.adjacency, first)])

    def _learn_scale(self, rows: Float, name: str) -> None:
        deviation = rows.std(0)
        self.arrays[f"{name}.mean"] = rows.mean(0)
        self.arrays[f"{name}.scale"] = np.where(deviation > 1e-9, deviation, 1.0)

    def _standardised(self, rows: Float, name: str) -> Float:
        mean, scale = (self._array(f"{name}.{part}", rows.shape[1]) for part in ("mean", "scale"))
        return (rows - mean) / scale

    def _array(self, name: str, *shape: str | int, below: int | None = None) -> NDArray[Any]:
        """What was learned from the fitted graph; that of a stored model is checked, as its file may be forged."""
        numbers = Array("f", shape, finite=True) if below is None else Array("i", shape, 0, below)
        check_arrays(self.arrays, {name: numbers})
        return self.arrays[name]


class GraphView:
    """A list of graphs.

    Nodes are labelled by their row of ``x`` where rows repeat, by their degree otherwise.

    Args:
        data: The graphs.
        state: What another view learned.
    """

    family = "graphs"

    def __init__(self, data: Sequence[Data], state: State | None = None) -> None:
        self.data = list(data)
        self.num_items = len(self.data)
        self.union = GraphUnion.of(self.data)
        self.sizes, self.graph = np.array(self.union.sizes), self.union.graph
        self.arrays: dict[str, NDArray[Any]] = {}
        self.kept: dict[str, Any] = {}
        self.facts: dict[str, Any] = {"columns": 0, "label": "degree"} if state is None else dict(state[0])
        if state is None and all(graph.x is not None for graph in self.data):
            self.facts["columns"] = int(self.data[0].x.size(1))
            distinct = len(np.unique(_hash_rows(self._attributes)))
            self.facts["label"] = "x" if distinct <= max(64, len(self.graph) // 20) else "degree"
        for number, graph in enumerate(self.data):
            given = 0 if graph.x is None else int(graph.x.size(1))
            if self.facts["columns"] and given != self.facts["columns"]:
                raise DemonetError(
                    f"graph {number} has {given} attributes a node, training had {self.facts['columns']}"
                )

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """Of the disjoint union of the graphs."""
        return simple_adjacency(self.union)

    @cached_property
    def degree(self) -> Int:
        """Of every node of the union."""
        return np.diff(self.adjacency.indptr).astype(np.int64)

    @cached_property
    def _attributes(self) -> Float:
        rows = [(g.x if g.x.layout == torch.strided else g.x.to_dense()) for g in self.data]
        return torch.cat(rows).double().cpu().numpy()

    @cached_property
    def colours(self) -> list[NDArray[np.uint64]]:
        """Weisfeiler-Lehman colours of all nodes after 0 to 3 rounds, as 64-bit hashes.

        A hash has the same value for every list of graphs, so colours of new graphs need no stored dictionary. Two of a
        million colours collide with probability 3e-8.
        """
        first = self._attributes if self.facts["label"] == "x" else self.degree[:, None].astype(np.float64)
        found = [_hash_rows(first)]
        source, owner = self.adjacency.indices, np.repeat(np.arange(len(self.degree)), self.degree)
        for number in range(1, ROUNDS + 1):
            total = np.zeros(len(self.degree), np.uint64)
            np.add.at(total, owner, _mix(found[-1])[source])
            found.append(_mix(found[-1] * np.uint64(0x9E3779B97F4A7C15) + _mix(total) + np.uint64(number)))
        return found

    @cached_property
    def alike(self) -> tuple[Int, Int]:
        """One graph of each multiset of colours of the last round, and which of these a graph has.

        Earlier rounds follow from the last one.
        """
        key = np.zeros(self.num_items, np.uint64)
        np.add.at(key, self.graph, _mix(self.colours[-1]))
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        return first, place

    def histogram(self, first: int, last: int) -> tuple[Int, sparse.csr_array]:
        """The colours of rounds ``first`` to ``last``, sorted, and ``[graphs, colours]`` how many nodes have each."""
        chosen = self.colours[first : last + 1]
        ids, column = np.unique(np.concatenate(chosen).view(np.int64), return_inverse=True)
        place = (np.tile(self.graph, len(chosen)), column)
        return ids, sparse.csr_array((np.ones(len(column)), place), (self.num_items, len(ids)))

    def counts(self, first: int, last: int, known: Int) -> sparse.csr_array:
        """``[graphs, known]`` how many nodes have each of the known colours of those rounds."""
        ids, counts = self.histogram(first, last)
        place = np.minimum(np.searchsorted(known, ids), max(0, len(known) - 1))
        found = known[place] == ids if len(known) else np.zeros(len(ids), bool)
        pick = (np.ones(found.sum()), (np.flatnonzero(found), place[found]))
        inside = sparse.csr_array(counts @ sparse.csr_array(pick, shape=(len(ids), len(known))))
        inside.sum_duplicates()
        return inside

    @cached_property
    def descriptors(self) -> Float:
        """``[graphs, 17 ...]`` numbers about each graph; beside them the attributes' mean and deviation, if few.

        Nodes, edges, mean squared degree, triangles, leaves; density, the largest degree, the deviation of degrees,
        transitivity, mean clustering, components; means and deviations of log-degree, of the neighbours' mean
        log-degree and of the two hops' mean.
        """
        adjacency, degree = self.adjacency, self.degree.astype(np.float64)
        triangles = triangle_counts(adjacency)
        pairs = degree * (degree - 1) / 2
        size = np.maximum(self.sizes, 1)
        edges, square = self._sum(degree) / 2, self._sum(degree**2) / size
        part = connected_components(adjacency, directed=False)[1]
        columns = [self.sizes, edges, square, self._sum(triangles) / 3, self._sum((degree == 1).astype(np.float64))]
        largest = np.zeros(self.num_items)
        np.maximum.at(largest, self.graph, degree)
        columns += [
            edges / (size * np.maximum(size - 1, 1) / 2),
            largest,
            np.sqrt(np.maximum(square - (2 * edges / size) ** 2, 0)),
            self._sum(triangles) / np.maximum(self._sum(pairs), 1),
            self._sum(triangles / np.maximum(pairs, 1)) / size,
            np.bincount(self.graph[np.unique(part, return_index=True)[1]], minlength=self.num_items),
        ]
        value = np.log1p(degree)
        for _ in range(3):
            mean = self._sum(value) / size
            columns += [mean, np.sqrt(np.maximum(self._sum(value**2) / size - mean**2, 0))]
            value = neighbour_mean(adjacency, value)
        if 0 < self.facts["columns"] <= FEW_COLUMNS and self.facts["label"] == "degree":
            mean = self._sum(self._attributes) / size[:, None]
            second = self._sum(self._attributes**2) / size[:, None]
            columns += [mean, np.sqrt(np.maximum(second - mean**2, 0))]
        return np.column_stack(columns)

    @property
    def description(self) -> Float:
        """``[graphs, columns]`` the logarithms of the descriptors."""
        return np.sign(self.descriptors) * np.log1p(np.abs(self.descriptors))

    def _sum(self, value: Float) -> Float:
        return sum_rows(value, self.graph, self.num_items)


def _ids(data: Data) -> NDArray[Any]:
    """``[n]`` the ids of nodes: int64 or strings."""
    given = data.get("node_ids")
    if given is None:
        return np.arange(int(data.num_nodes or 0))
    return given.cpu().numpy() if isinstance(given, torch.Tensor) else np.array(given, dtype=object)


def _count_nodes(ids: NDArray[Any]) -> bool:
    """Whether ids are 0, 1, 2, ... or 1, 2, 3, ... in any order, perhaps with gaps."""
    return ids.dtype != object and ids.size > 0 and 0 <= ids.min() <= 1 and ids.max() <= 2 * len(ids)


def _columns(found: Int, size: int) -> sparse.csr_array:
    """``[n, size]`` one in the column of each found node: a product with it puts columns where they were fitted."""
    rows = np.flatnonzero(found >= 0)
    return sparse.csr_array((np.ones(len(rows)), (rows, found[rows])), shape=(len(found), size))


View: TypeAlias = Any  # a NodeView or a GraphView: a member knows which of them it is made for


def view_of(data: Data | Sequence[Data], state: State | None = None) -> NodeView | GraphView:
    """The view of a graph, or of a list of graphs, on the CPU."""
    if isinstance(data, Data):
        return NodeView(_on_cpu(data), state)
    return GraphView([_on_cpu(graph) for graph in data], state)


def _on_cpu(graph: Data) -> Data:
    return copy.copy(graph).cpu() if graph.edge_index.is_cuda else graph  # Data.cpu() changes a graph in place


def _shares(rows: Float, quantiles: Float) -> Float:
    """``[items, columns]`` the share of fitted items below each value, by their quantiles."""
    share = np.linspace(0, 1, len(quantiles))
    return np.column_stack([np.interp(x, grid, share) for x, grid in zip(rows.T, quantiles.T, strict=True)])


def heavy_tails(rows: Float) -> NDArray[np.bool_]:
    """``[columns]`` whether a column's kurtosis is above :data:`TAILS`, and more than a few of its values are distinct.

    A normal distribution has 3, an exponential one 9.
    """
    centred = rows - rows.mean(0)
    kurtosis = (centred**4).mean(0) / np.maximum((centred**2).mean(0) ** 2, 1e-300)
    found: NDArray[np.bool_] = kurtosis > TAILS
    found[found] = [len(np.unique(column)) > FEW_VALUES for column in rows[:, found].T]
    return found


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64: a bijection of 64-bit numbers that spreads every bit over all others."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _hash_rows(rows: Float) -> NDArray[np.uint64]:
    """One 64-bit hash a row: equal rows, equal hashes."""
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    column = _mix(np.arange(1, rows.shape[1] + 1, dtype=np.uint64))
    return _mix(_mix(bits + column).sum(1, dtype=np.uint64))
