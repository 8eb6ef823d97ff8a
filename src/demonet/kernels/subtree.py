r"""Weisfeiler-Lehman colour refinement (1-WL) and the subtree kernel.

.. math::
    c_v^0 = x_v, \qquad c_v^k = \left(c_v^{k-1}, \{\!\{ c_u^{k-1} : u \in N(v) \}\!\}\right)

A colour is a signature: the node's own colour, then the sorted colours of its neighbours. Signatures are numbered by a
dictionary of whole rows, not by a hash, so colours are equal exactly when their signatures are. All nodes are processed
at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.features.graph import Float, GraphUnion, Int
from demonet.kernels.base import Expansion, GraphKernel

Rows = NDArray[np.void]


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
