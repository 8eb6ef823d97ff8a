r"""Weisfeiler-Lehman colour refinement (1-WL), exact and without a loop over nodes.

.. math::
    c_v^0 = x_v, \qquad c_v^k = \left(c_v^{k-1}, \{\!\{ c_u^{k-1} : u \in N(v) \}\!\}\right)

A colour is a signature: the node's own colour, then those of its neighbours in order. Signatures get consecutive
numbers from a dictionary of whole rows, never from a hash alone, so two colours are equal exactly when they should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.kernels.union import Float, GraphUnion, Int

Rows = NDArray[np.void]


@dataclass(frozen=True)
class SignatureBook:
    """A dictionary from signatures of any length to the numbers ``0 .. size - 1``; it never changes, it is extended.

    Attributes:
        pages: For each length in bytes, the signatures of that length in byte order, and their numbers.
        size: How many signatures it holds.
    """

    pages: dict[int, tuple[Rows, Int]] = field(default_factory=dict)
    size: int = 0

    def extended(self, tables: Sequence[NDArray[Any]]) -> tuple[list[Int], SignatureBook]:
        """Number the rows of each table, signatures that are not in the book after those that are.

        The numbers depend on the set of signatures alone, not on the order of the rows.

        Args:
            tables: Arrays ``[rows, length]`` of 8-byte numbers, one for each length.

        Returns:
            The number of each row of each table, and the book with the new signatures in it.
        """
        pages, size, numbers = dict(self.pages), self.size, []
        for table in tables:
            signatures, row = np.unique(_as_bytes(table), return_inverse=True)
            known, code = pages.get(signatures.itemsize, (signatures[:0], np.empty(0, dtype=np.int64)))
            place = np.searchsorted(known, signatures)
            new = np.ones(len(signatures), dtype=bool)
            inside = place < len(known)
            new[inside] = known[place[inside]] != signatures[inside]
            number = np.empty(len(signatures), dtype=np.int64)
            number[~new] = code[place[~new]]
            number[new] = size + np.arange(new.sum())
            size += int(new.sum())
            pages[signatures.itemsize] = (
                np.insert(known, place[new], signatures[new]),
                np.insert(code, place[new], number[new]),
            )
            numbers.append(number[row])
        return numbers, SignatureBook(pages, size)


def refine(
    union: GraphUnion, attributes: Float, books: Sequence[SignatureBook]
) -> tuple[list[Int], list[SignatureBook]]:
    """Colours of rounds ``0 .. len(books) - 1``, numbered by the books, and the books with the new colours in them."""
    (colour,), book = books[0].extended([attributes + 0.0])  # -0.0 + 0.0 is 0.0: equal numbers, equal bytes
    colours, extended = [colour], [book]
    for known in books[1:]:
        colour, book = number_multisets(colour, colour[union.source], union.target, known)
        colours.append(colour)
        extended.append(book)
    return colours, extended


def number_multisets(head: Int, member: Int, owner: Int, book: SignatureBook) -> tuple[Int, SignatureBook]:
    """Number each owner by the signature (its head, the sorted multiset of its members)."""
    span = int(member.max(initial=0)) + 1
    member = np.sort(owner * span + member) % span  # by owner, then by member, in one plain sort
    size = np.bincount(owner, minlength=len(head))
    start = np.cumsum(size) - size
    # Owners of equal size have signatures of equal length: one dense table for each size, nothing padded.
    by_size = np.argsort(size, kind="stable")
    groups = np.split(by_size, np.flatnonzero(np.diff(size[by_size])) + 1)
    tables = [
        np.column_stack([head[group], member[start[group][:, None] + np.arange(size[group[0]])]])
        for group in groups
        if len(group)
    ]
    numbers, book = book.extended(tables)
    number = np.empty(len(head), dtype=np.int64)
    number[by_size] = np.concatenate([*numbers, number[:0]])
    return number, book


def wl_colours(graphs: Iterable[Data], n_iter: int) -> list[Int]:
    """Weisfeiler-Lehman colours of all nodes after ``0, 1, ..., n_iter`` rounds.

    Args:
        graphs: Graphs whose distinct rows of ``x`` are the first colours; without ``x`` all nodes begin alike.
        n_iter: How many rounds.

    Returns:
        For each round an array over the nodes of all graphs, in the order of the list. Equal numbers in one array mean
        equal colours, within a graph and between graphs; numbers of different rounds are not related.
    """
    return _colours(GraphUnion.of(graphs), n_iter)


def wl_classes(graphs: Iterable[Data], n_iter: int) -> Int:
    """For each graph the number of its class: equal for graphs that ``n_iter`` rounds of 1-WL do not tell apart.

    Two graphs are in one class when their multisets of colours of the last round are equal. A colour contains the
    node's colour of the round before, so earlier rounds could not tell more. Graphs without nodes are one class.
    """
    union = GraphUnion.of(graphs)
    colour = _colours(union, n_iter)[-1]
    return number_multisets(np.zeros(len(union.graphs), dtype=np.int64), colour, union.graph, SignatureBook())[0]


def _colours(union: GraphUnion, n_iter: int) -> list[Int]:
    if not isinstance(n_iter, int | np.integer) or n_iter < 0:
        raise DemonetError(f"n_iter={n_iter!r} is not a number of rounds", hint="an integer, 0 or more")
    return refine(union, union.attributes(), [SignatureBook()] * (int(n_iter) + 1))[0]


def _as_bytes(table: NDArray[Any]) -> Rows:
    """Each row as one opaque value, which NumPy compares byte by byte."""
    width = table.shape[1] * table.itemsize
    return np.ascontiguousarray(table).view(np.dtype((np.void, width))).reshape(len(table))
