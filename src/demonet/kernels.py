r"""Graph kernels of the paper.

They have scikit-learn's interface, from a list of graphs to a Gram matrix:

============================  ============  ==============================================================
:class:`DegreeWLKernel`       Eq. 13-15     compares nodes of equal degree
:class:`MeanWLKernel`         Eq. 16        compares every node with every node
:class:`WLSubtreeKernel`      Eq. 17        compares nodes by their Weisfeiler-Lehman colours
============================  ============  ==============================================================

Equation numbers follow the order of the kernels in the paper. The formula inside its theorem on graph representations,
which applies an activation to Eq. 13 and defines no other kernel, is not counted.

:func:`wl_colours` returns the colours of nodes, :func:`wl_classes` the classes of graphs that they cannot distinguish.
Weisfeiler-Lehman colour refinement (1-WL) is

.. math::
    c_v^0 = x_v, \qquad c_v^k = \left(c_v^{k-1}, \{\!\{ c_u^{k-1} : u \in N(v) \}\!\}\right)

A colour is a signature: the node's own colour, then the sorted colours of its neighbours. Signatures are numbered by a
dictionary of whole rows, not by a hash, so colours are equal exactly when their signatures are. All nodes are processed
at once.

>>> import torch
>>> from torch_geometric.data import Data
>>> edge, path = (
...     Data(edge_index=torch.tensor(edges), num_nodes=n)
...     for n, edges in [(2, [[0, 1], [1, 0]]), (3, [[0, 1, 1, 2], [1, 0, 2, 1]])]
... )
>>> WLSubtreeKernel(n_iter=1).fit_transform([edge, path])
array([[ 8., 10.],
       [10., 14.]])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval, InvalidParameterError
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from demonet.data.read import read_graph
from demonet.errors import DemonetError
from demonet.features.graph import Float, GraphUnion, Int, numeric, sum_rows

__all__ = ["DegreeWLKernel", "MeanWLKernel", "WLSubtreeKernel", "wl_classes", "wl_colours"]

Features = Any  # a float64 array, or a scipy CSR array where most features are zero
Representations = Callable[[Data], Sequence[torch.Tensor]]
Rows = NDArray[np.void]


class Expansion(NamedTuple):
    """Graphs in feature space.

    Attributes:
        features: One row per graph, over the columns learned in ``fit``.
        self_kernel: ``k(G, G)`` of each graph, including what lies outside those columns.
    """

    features: Features
    self_kernel: Float


class GraphKernel(TransformerMixin, BaseEstimator, ABC):
    """A kernel that is the inner product of explicit features, summed over levels ``0 .. n_iter``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "normalize": ["boolean"],
    }

    normalize: bool

    def fit(self, graphs: Iterable[Data], y: object = None) -> Self:
        """Learn the feature columns of the graphs, and store their features.

        Args:
            graphs: A list of ``torch_geometric.data.Data`` or of NetworkX graphs, of which the edges are read.
            y: Ignored; scikit-learn passes it.
        """
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise DemonetError(str(error)) from error
        union = _union(graphs)
        self.with_x_ = union.with_x
        self.features_ = self._scaled(self._learn(union))
        return self

    def transform(self, graphs: Iterable[Data]) -> Float:
        """The Gram matrix ``[len(graphs), len(fitted)]`` of graphs against the fitted ones."""
        return _inner_products(self.features(graphs), self.features_)

    def fit_transform(self, graphs: Iterable[Data], y: object = None) -> Float:
        """Fit the graphs and return their symmetric Gram matrix."""
        self.fit(graphs, y)
        return _inner_products(self.features_, self.features_)

    def features(self, graphs: Iterable[Data]) -> Features:
        """The explicit feature map ``[len(graphs), columns]``, over the columns learned in ``fit``.

        ``transform(graphs)`` is ``features(graphs) @ features(fitted).T``. A degree or colour that no
        fitted graph has contributes nothing to that product and has no column; :meth:`self_kernel` and normalisation
        include it.
        """
        return self._scaled(self._expanded(graphs))

    def self_kernel(self, graphs: Iterable[Data]) -> Float:
        """``k(G, G)`` of each graph by the equation, without normalisation."""
        return self._expanded(graphs).self_kernel

    @abstractmethod
    def _learn(self, union: GraphUnion) -> Expansion:
        """Learn the feature columns and expand the graphs over them."""

    @abstractmethod
    def _expand(self, union: GraphUnion) -> Expansion:
        """Expand graphs over the learned columns."""

    def _expanded(self, graphs: Iterable[Data]) -> Expansion:
        check_is_fitted(self, "features_")
        union = _union(graphs)
        if union.with_x != self.with_x_:
            fitted, given = ("have", "do not") if self.with_x_ else ("have no", "do")
            raise DemonetError(f"the fitted graphs {fitted} x, these {given}", hint="give x to all graphs or to none")
        return self._expand(union)

    def _scaled(self, expansion: Expansion) -> Features:
        if not self.normalize:
            return expansion.features
        # Where k(G, G) = 0 all features are zero at any finite scale.
        norm = np.sqrt(np.where(expansion.self_kernel > 0, expansion.self_kernel, 1.0))
        if isinstance(expansion.features, sparse.csr_array):
            return sparse.diags_array(1.0 / norm) @ expansion.features
        return expansion.features / norm[:, None]


def _union(graphs: Iterable[Any]) -> GraphUnion:
    return GraphUnion.of([read_graph(graph) if isinstance(graph, nx.Graph) else graph for graph in graphs])


def _inner_products(left: Features, right: Features) -> Float:
    products = left @ right.T
    return products.toarray() if isinstance(products, sparse.csr_array) else products


class RepresentationKernel(GraphKernel):
    """A kernel on node representations ``h^0 .. h^K``: averaged attributes, or the result of a callable."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphKernel._parameter_constraints,
        "representations": [callable, None],
    }

    def __init__(
        self, n_iter: int = 2, normalize: bool = False, representations: Representations | None = None
    ) -> None:
        self.n_iter = n_iter
        self.normalize = normalize
        self.representations = representations

    def _learn(self, union: GraphUnion) -> Expansion:
        levels = self._levels(union)
        self.widths_ = [h.shape[1] for h in levels]
        return self._pool(union, levels)

    def _expand(self, union: GraphUnion) -> Expansion:
        levels = self._levels(union)
        if (widths := [h.shape[1] for h in levels]) != self.widths_:
            raise DemonetError(
                f"the levels h^0 .. h^K have widths {widths}, those of the fitted graphs {self.widths_}",
                hint="all graphs need the same node attributes",
            )
        return self._pool(union, levels)

    def _levels(self, union: GraphUnion) -> list[Float]:
        if self.representations is None:
            return _averaged(union, self.n_iter)
        return _from_callable(union, self.n_iter, self.representations)

    @abstractmethod
    def _pool(self, union: GraphUnion, levels: list[Float]) -> Expansion:
        """Sum the rows of each level over the groups of nodes that the kernel compares."""


class DegreeWLKernel(RepresentationKernel):
    r"""Inner products of all pairs of nodes of equal degree, Eq. 13 summed over levels ``0 .. n_iter``.

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'}
            \delta(deg(v), deg(v')) \, \langle h_v^k, h_{v'}^k \rangle

    The kernel space of degree-specific pooling: the features (Eq. 14) are the blocks
    :math:`c(G_k, d) = \sum_{v: deg(v) = d} h_v^k` (Eq. 15), for each level and each degree of the fitted graphs.

    Args:
        n_iter: The last level :math:`h`; ``h + 1`` levels are summed.
        normalize: Divide by :math:`\sqrt{K(G, G) K(G', G')}`; a graph without nodes gets zeros.
        representations: A callable from a ``Data`` to the list of tensors :math:`h^0, \dots, h^h`, each
            ``[nodes, width]``, such as the layers of a trained model. By default :math:`h^0` is ``data.x`` (ones where
            there is none) and :math:`h^k` the mean of :math:`h^{k-1}` of the node and of its neighbours' mean, which
            is zero for an isolated node.

    Attributes:
        degrees_: The degrees of the fitted graphs, ascending.
        widths_: The width of each level.
        features_: Features of the fitted graphs, an array ``[graphs, levels * degrees * width]``.
    """

    def _learn(self, union: GraphUnion) -> Expansion:
        self.degrees_ = np.unique(union.degree)
        return super()._learn(union)

    def _pool(self, union: GraphUnion, levels: list[Float]) -> Expansion:
        # One sum for each pair (graph, degree) that occurs, including degrees that fit has not seen.
        degree, num_graphs = union.degree, len(union.graphs)
        span = int(degree.max(initial=0)) + 1
        cells, cell = np.unique(union.graph * span + degree, return_inverse=True)
        graph, degree = np.divmod(cells, span)
        known = np.isin(degree, self.degrees_)
        place = np.searchsorted(self.degrees_, degree[known])

        self_kernel, blocks = np.zeros(num_graphs), []
        for h in levels:
            c = sum_rows(h, cell, len(cells))
            self_kernel += np.bincount(graph, np.square(c).sum(axis=1), minlength=num_graphs)
            block = np.zeros((num_graphs, len(self.degrees_), h.shape[1]))
            block[graph[known], place] = c[known]
            blocks.append(block.reshape(num_graphs, -1))
        return Expansion(np.hstack(blocks), self_kernel)


class MeanWLKernel(RepresentationKernel):
    r"""Inner products of all pairs of nodes, Eq. 16 summed over levels ``0 .. n_iter``.

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'} \langle h_v^k, h_{v'}^k \rangle

    The kernel space of sum pooling: the features are :math:`\sum_v h_v^k`, one block per level. The name is the
    paper's, although the equation has sums and no mean; ``normalize=True`` removes the dependence on the number of
    nodes.

    The parameters are those of :class:`DegreeWLKernel`.

    Attributes:
        widths_: The width of each level.
        features_: Features of the fitted graphs, an array ``[graphs, levels * width]``.
    """

    def _pool(self, union: GraphUnion, levels: list[Float]) -> Expansion:
        features = sum_rows(np.hstack(levels), union.graph, len(union.graphs))
        return Expansion(features, np.square(features).sum(axis=1))


def _averaged(union: GraphUnion, n_iter: int) -> list[Float]:
    r"""Levels ``0 .. n_iter`` by repeated averaging, without a trained model.

    .. math::
        h_v^0 = x_v, \qquad
        h_v^k = \tfrac12 \Big( h_v^{k-1} + \tfrac{1}{deg(v)} \sum\nolimits_{u \in N(v)} h_u^{k-1} \Big)

    The mean over an empty neighbourhood is zero, as in the layers of this package. The representation of an isolated
    node halves with each level, so it differs from that of a node whose neighbours equal itself.
    """
    share = 1.0 / np.maximum(union.degree, 1)[union.target]
    neighbours_mean = sparse.csr_array((share, (union.target, union.source)), shape=(union.num_nodes,) * 2)
    levels = [union.attributes()]
    for _ in range(n_iter):
        levels.append((levels[-1] + neighbours_mean @ levels[-1]) / 2)
    return levels


def _from_callable(union: GraphUnion, n_iter: int, representations: Representations) -> list[Float]:
    """Levels ``0 .. n_iter`` from a callable, graph by graph, concatenated over all nodes."""
    with torch.no_grad():
        by_graph = [_checked_levels(union, position, n_iter, representations) for position in range(len(union.graphs))]
    for k, level in enumerate(zip(*by_graph, strict=True)):
        if len(widths := {h.shape[1] for h in level}) > 1:
            raise DemonetError(f"representations: level {k} must have one width for all graphs, got {sorted(widths)}")
    return [np.concatenate(level) for level in zip(*by_graph, strict=True)]


def _checked_levels(union: GraphUnion, position: int, n_iter: int, representations: Representations) -> list[Float]:
    levels = representations(union.graphs[position])
    if not isinstance(levels, list | tuple):
        raise DemonetError(
            f"representations must return a list of tensors, got {type(levels).__name__} for graph {position}"
        )
    if len(levels) != n_iter + 1:
        raise DemonetError(
            f"representations returned {len(levels)} levels for graph {position}, n_iter={n_iter} needs {n_iter + 1}",
            hint=f"set n_iter={len(levels) - 1}; level 0 is the input",
        )
    name = f"representations: level {{}} of graph {position}"
    return [numeric(h, name.format(k), union.sizes[position]) for k, h in enumerate(levels)]


class WLSubtreeKernel(GraphKernel):
    r"""The number of pairs of nodes of equal Weisfeiler-Lehman colour, Eq. 17 summed over rounds ``0 .. n_iter``.

    .. math::
        K(G, G') = \sum_{k=0}^{h} \sum_{v \in V} \sum_{v' \in V'} \delta(h_v^k, h_{v'}^k)

    where :math:`h_v^k` is the colour of node :math:`v` after :math:`k` rounds of refinement. Each distinct row of
    ``data.x`` is an initial colour; without ``x`` all nodes have the same. The features are counts of colours, so the
    cost is one pass over the edges per round and one sparse product, not a pass over pairs of nodes.

    Shervashidze et al., "Weisfeiler-Lehman graph kernels", JMLR 2011.

    Args:
        n_iter: Rounds of refinement :math:`h`; ``h + 1`` levels are summed.
        normalize: Divide by :math:`\sqrt{K(G, G) K(G', G')}`; a graph without nodes gets zeros.

    Attributes:
        indexes_: The colours known from ``fit``, one :class:`SignatureIndex` per level.
        features_: Features of the fitted graphs, a CSR array ``[graphs, colours]``.
    """

    def __init__(self, n_iter: int = 2, normalize: bool = False) -> None:
        self.n_iter = n_iter
        self.normalize = normalize

    def _learn(self, union: GraphUnion) -> Expansion:
        attributes = union.attributes()
        self.n_features_in_ = attributes.shape[1]
        colours, self.indexes_ = _refine(union, attributes, [SignatureIndex()] * (self.n_iter + 1))
        return self._counts(union, colours, self.indexes_)

    def _expand(self, union: GraphUnion) -> Expansion:
        # Colours that fit has not seen are numbered for the self-kernel only; the extended indexes are not stored.
        colours, indexes = _refine(union, union.attributes(self.n_features_in_), self.indexes_)
        return self._counts(union, colours, indexes)

    def _counts(self, union: GraphUnion, colours: Sequence[Int], indexes: Sequence[SignatureIndex]) -> Expansion:
        ones, num_graphs = np.ones(union.num_nodes), len(union.graphs)
        counts = [
            sparse.csr_array((ones, (union.graph, colour)), shape=(num_graphs, index.size))
            for colour, index in zip(colours, indexes, strict=True)
        ]
        known = [count[:, : index.size] for count, index in zip(counts, self.indexes_, strict=True)]
        self_kernel = np.sum([count.power(2).sum(axis=1) for count in counts], axis=0)
        return Expansion(sparse.hstack(known, format="csr"), self_kernel)


@dataclass(frozen=True)
class SignatureIndex:
    """An immutable map from signatures of any length to the numbers ``0 .. size - 1``.

    Attributes:
        by_length: For each length in bytes, the signatures of that length in byte order, and their numbers.
        size: The number of signatures.
    """

    by_length: dict[int, tuple[Rows, Int]] = field(default_factory=dict)
    size: int = 0

    def extended(self, tables: Sequence[NDArray[Any]]) -> tuple[list[Int], SignatureIndex]:
        """Number the rows of each table; new signatures get the next free numbers.

        The numbers depend on the set of signatures alone, not on the order of the rows.

        Args:
            tables: Arrays ``[rows, length]`` of 8-byte numbers, one per length.

        Returns:
            The number of each row of each table, and the index with the new signatures.
        """
        by_length, size, numbers = dict(self.by_length), self.size, []
        for table in tables:
            signatures, row = np.unique(_as_bytes(table), return_inverse=True)
            known, code = by_length.get(signatures.itemsize, (signatures[:0], np.empty(0, dtype=np.int64)))
            place = np.searchsorted(known, signatures)
            new = np.ones(len(signatures), dtype=bool)
            inside = place < len(known)
            new[inside] = known[place[inside]] != signatures[inside]
            number = np.empty(len(signatures), dtype=np.int64)
            number[~new] = code[place[~new]]
            number[new] = size + np.arange(new.sum())
            size += int(new.sum())
            by_length[signatures.itemsize] = (
                np.insert(known, place[new], signatures[new]),
                np.insert(code, place[new], number[new]),
            )
            numbers.append(number[row])
        return numbers, SignatureIndex(by_length, size)


def _refine(
    union: GraphUnion, attributes: Float, indexes: Sequence[SignatureIndex]
) -> tuple[list[Int], list[SignatureIndex]]:
    """Colours of rounds ``0 .. len(indexes) - 1``, and the indexes extended by the new colours."""
    (colour,), index = indexes[0].extended([attributes + 0.0])  # -0.0 + 0.0 is 0.0: equal numbers, equal bytes
    colours, extended = [colour], [index]
    for known in indexes[1:]:
        colour, index = _number_multisets(colour, colour[union.source], union.target, known)
        colours.append(colour)
        extended.append(index)
    return colours, extended


def _number_multisets(head: Int, member: Int, owner: Int, index: SignatureIndex) -> tuple[Int, SignatureIndex]:
    """Number each owner by the signature (its head, its sorted members)."""
    span = int(member.max(initial=0)) + 1
    member = np.sort(owner * span + member) % span  # by owner, then by member, in one sort
    size = np.bincount(owner, minlength=len(head))
    start = np.cumsum(size) - size
    # Owners of equal size have signatures of equal length: one dense table per size, without padding.
    by_size = np.argsort(size, kind="stable")
    groups = np.split(by_size, np.flatnonzero(np.diff(size[by_size])) + 1)
    tables = [
        np.column_stack([head[group], member[start[group][:, None] + np.arange(size[group[0]])]])
        for group in groups
        if len(group)
    ]
    numbers, index = index.extended(tables)
    number = np.empty(len(head), dtype=np.int64)
    number[by_size] = np.concatenate([*numbers, number[:0]])
    return number, index


def wl_colours(graphs: Iterable[Data], n_iter: int) -> list[Int]:
    """Weisfeiler-Lehman colours of all nodes after ``0, 1, ..., n_iter`` rounds.

    Args:
        graphs: Graphs whose distinct rows of ``x`` are the initial colours; without ``x`` all nodes have the same.
        n_iter: The number of rounds.

    Returns:
        One array per round, over the nodes of all graphs in the order of the list. Equal numbers in one array mean
        equal colours, within a graph and between graphs; numbers of different rounds are unrelated.
    """
    return _colours(GraphUnion.of(graphs), n_iter)


def wl_classes(graphs: Iterable[Data], n_iter: int) -> Int:
    """The class of each graph: equal for graphs that ``n_iter`` rounds of 1-WL do not distinguish.

    Two graphs are in one class when their multisets of colours of the last round are equal. A colour includes the
    node's colour of the previous round, so earlier rounds add nothing. Graphs without nodes are one class.
    """
    union = GraphUnion.of(graphs)
    colour = _colours(union, n_iter)[-1]
    return _number_multisets(np.zeros(len(union.graphs), dtype=np.int64), colour, union.graph, SignatureIndex())[0]


def _colours(union: GraphUnion, n_iter: int) -> list[Int]:
    if not isinstance(n_iter, int | np.integer) or n_iter < 0:
        raise DemonetError(f"n_iter must be a non-negative integer, got {n_iter!r}")
    return _refine(union, union.attributes(), [SignatureIndex()] * (int(n_iter) + 1))[0]


def _as_bytes(table: NDArray[Any]) -> Rows:
    """Each row as one opaque value that NumPy compares byte by byte."""
    width = table.shape[1] * table.itemsize
    return np.ascontiguousarray(table).view(np.dtype((np.void, width))).reshape(len(table))
