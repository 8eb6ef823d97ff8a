r"""``struc2vec``: struc2vec of Ribeiro et al. (KDD'17), skip-gram on walks between nodes of similar structure.

Structural distance (section 3.1): :math:`R_k(u)` are the nodes at distance k from u, :math:`s(R)` their degrees in
order. g compares two such sequences by dynamic time warping, with the cost
:math:`d(a, b) = \max(a, b) / \min(a, b) - 1`:

.. math::
    f_k(u, v) = f_{k-1}(u, v) + g(s(R_k(u)), s(R_k(v))), \qquad f_{-1} = 0

where neither ring is empty. A compressed sequence has each degree once, with its count, and the cost
:math:`d((a, a'), (b, b')) = d(a, b) \max(a', b')`. A node without neighbours has degree ½, as 0 has no ratio.

Layered graph (sections 3.2 and 3.3): in layer k, nodes u and v have an edge of weight
:math:`w_k(u, v) = e^{-f_k(u, v)}`. From layer k, node u moves up with weight :math:`\log(\Gamma_k(u) + e)` and down
with weight 1, where :math:`\Gamma_k(u)` is the number of its edges there that are heavier than the layer's mean. In the
first layer it only moves up; where it has no edges in the layer above, only down.

All three optimisations of the paper are on: compressed degree sequences, distances only to nodes of similar degree, and
a limited number of layers. The same seed gives the same embedding, as skip-gram runs in one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.features.graph import simple_adjacency
from demonet.methods.base import Settings, at_least, register
from demonet.methods.cost import Cost
from demonet_study.methods.embedding import Embedding, Float, skip_gram

Int = NDArray[np.int64]

_CELLS = 50_000  # entries of an array during time warping: few enough for the CPU cache


@dataclass(frozen=True)
class Struc2vecSettings(Settings):
    """Settings of struc2vec."""

    # Number of rings compared, the node itself as the first: the paper's third optimisation.
    layers: int = at_least(1, 6)
    # How many nodes of next higher and next lower degree a node is compared with; None for log2 n, the paper's second
    # optimisation; 0 for all nodes.
    neighbours: int | None = at_least(0, None)
    compressed: bool = True  # compress equal degrees of a ring: the paper's first optimisation
    stay: float = 0.3  # the probability that a step stays in its layer
    walks: int = at_least(1, 10)  # walks from each node
    length: int = at_least(1, 80)  # nodes in a walk
    dimensions: int = at_least(1, 128)  # width of the embedding
    window: int = at_least(1, 10)  # words to either side that skip-gram predicts
    epochs: int = at_least(1, 5)  # of skip-gram

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.stay <= 1:
            raise DemonetError(f"stay must be in (0, 1], got {self.stay!r}")


@register
class Struc2vec(Embedding):
    """Skip-gram on biased walks in a layered graph of structural distances.

    The number of epochs is gensim's default, as in the authors' program.
    """

    name = "struc2vec"
    cost = Cost(1.5, nodes=22.0)
    defaults = Struc2vecSettings("Ribeiro et al., KDD'17, sections 3.5 and 4; chance to stay of the authors' program")
    settings: Struc2vecSettings

    def embed(self, data: Data, seed: int = 0) -> Float:
        """``[nodes, dimensions]``; needs gensim."""
        generator = np.random.default_rng(seed)
        adjacency = simple_adjacency(data)
        n = adjacency.shape[0]
        u, v = self.pairs(np.diff(adjacency.indptr), generator)
        layers = layered(n, u, v, self.distances(adjacency, u, v))
        paths = walk(layers, self.settings.walks, self.settings.length, self.settings.stay, generator)
        if n < 2:  # skip-gram needs two words
            return np.zeros((n, self.settings.dimensions))
        walks = generator.permutation(paths).astype(str).tolist()
        options = {"window": self.settings.window, "epochs": self.settings.epochs}
        return skip_gram(self.name, walks, n, width=self.settings.dimensions, seed=seed, **options)

    def pairs(self, degree: Int, generator: np.random.Generator) -> tuple[Int, Int]:
        """The pairs to compare: each node with the next ones in the order of degrees, ties in random order."""
        n = len(degree)
        count = self.settings.neighbours
        if count is None:
            count = int(np.ceil(np.log2(max(2, n))))
        count = n - 1 if count == 0 else min(count, n - 1)
        order = np.lexsort((generator.permutation(n), degree))
        first = np.concatenate([np.arange(n - step) for step in range(1, count + 1)] or [np.empty(0, np.int64)])
        step = np.repeat(np.arange(1, count + 1), n - np.arange(1, count + 1))
        return order[first], order[first + step]

    def distances(self, adjacency: sparse.csr_array, u: Int, v: Int) -> Float:
        """``[layers, pairs]`` the distance f_k of each pair; NaN from the layer on where a ring is empty."""
        found = [
            warping(ring, u, v) for ring in rings(adjacency, self.settings.layers, compressed=self.settings.compressed)
        ]
        return np.cumsum(found, axis=0)


class Sequences(NamedTuple):
    """One degree sequence per node, concatenated: node u has entries ``pointer[u] : pointer[u + 1]``."""

    pointer: Int
    degree: Float
    times: Float


def rings(adjacency: sparse.csr_array, layers: int, *, compressed: bool = True) -> Iterator[Sequences]:
    """The ordered degrees of the rings R_0, R_1, ...: ``layers`` of them, or until all are empty."""
    n = adjacency.shape[0]
    degree = np.diff(adjacency.indptr)
    values, place = np.unique(degree, return_inverse=True)
    by_degree = sparse.csr_array((np.ones(n), (np.arange(n), place)), shape=(n, len(values)))
    ring = seen = sparse.eye_array(n, format="csr")
    for _ in range(layers):
        counts = sparse.csr_array(ring @ by_degree)  # rows are the compressed sequences
        counts.sort_indices()
        listed = np.where(values == 0, 0.5, values)[counts.indices]
        if compressed:
            yield Sequences(counts.indptr.astype(np.int64), listed, counts.data)
        else:
            repeats = counts.data.astype(np.int64)
            ends = np.concatenate([[0], np.cumsum(repeats)])[counts.indptr]
            yield Sequences(ends, np.repeat(listed, repeats), np.ones(int(repeats.sum())))
        reached = ring @ adjacency
        reached.data[:] = 1.0
        ring = sparse.csr_array(reached - reached.multiply(seen))
        ring.eliminate_zeros()
        if not ring.nnz:
            return
        seen = seen + ring


def warping(sequences: Sequences, u: Int, v: Int) -> Float:
    """The dynamic time warping distance of the sequences of each pair; NaN where one of the two is empty."""
    length = np.diff(sequences.pointer)
    found = np.full(len(u), np.nan)
    pairs = np.flatnonzero((length[u] > 0) & (length[v] > 0))
    pairs = pairs[
        np.argsort(np.maximum(length[u], length[v])[pairs], kind="stable")
    ]  # similar lengths need little padding
    while pairs.size:
        # As many of the longest as fit in memory, padded to the longest.
        width = int(max(length[u[pairs[-1]]], length[v[pairs[-1]]]))
        batch = pairs[-max(1, _CELLS // width) :]
        found[batch] = _warped(_padded(sequences, u[batch], width), _padded(sequences, v[batch], width))
        pairs = pairs[: -len(batch)]
    return found


class _Padded(NamedTuple):
    degree: Float
    times: Float
    length: Int


def _padded(sequences: Sequences, nodes: Int, width: int) -> _Padded:
    """``[nodes, width]``, one sequence per row, padded at the end."""
    start, length = sequences.pointer[nodes], np.diff(sequences.pointer)[nodes]
    place = np.minimum(start[:, None] + np.minimum(np.arange(width), length[:, None] - 1), len(sequences.degree) - 1)
    return _Padded(sequences.degree[place], sequences.times[place], length)


def _warped(a: _Padded, b: _Padded) -> Float:
    """Dynamic time warping of all pairs at once, by antidiagonals, whose cells do not depend on each other."""
    pairs, width = a.degree.shape
    last = a.length + b.length - 2  # the antidiagonal of each table's last cell
    found = np.empty(pairs)
    # Column i + 1 holds row i of the table; column 0 and those outside the table have infinite cost.
    before, current = (np.full((pairs, width + 1), np.inf) for _ in range(2))
    before[:, 0] = 0.0  # the predecessor of the first cell
    for diagonal in range(int(last.max()) + 1):
        low, high = max(0, diagonal - width + 1), min(diagonal, width - 1) + 1
        here, there = slice(low, high), slice(diagonal - high + 1, diagonal - low + 1)
        x, y = a.degree[:, here], b.degree[:, there][:, ::-1]
        cost = np.maximum(x, y) / np.minimum(x, y) - 1
        cost *= np.maximum(a.times[:, here], b.times[:, there][:, ::-1])
        after = np.full((pairs, width + 1), np.inf)
        best = np.minimum(current[:, low:high], current[:, low + 1 : high + 1])
        after[:, low + 1 : high + 1] = cost + np.minimum(best, before[:, low:high])
        before, current = current, after
        done = np.flatnonzero(last == diagonal)
        found[done] = current[done, a.length[done]]
    return found


class Layers(NamedTuple):
    """The layered graph; node u of layer k has index ``k * nodes + u``."""

    nodes: int  # number of nodes in each layer
    pointer: Int  # [indices + 1] the first edge of each index
    neighbour: Int  # [edges] the node at the other end
    # [edges] the probability of this edge or an earlier one of the same index, plus the index, which makes one
    # ascending sequence.
    cumulative: Float
    up: Float  # [indices] the probability to move up, not down, on a change of layer


def layered(n: int, u: Int, v: Int, distance: Float) -> Layers:
    """The layered graph of pairs ``u, v`` at ``distance[layer, pair]``, NaN where the layer has no such edge."""
    layer, pair = np.nonzero(~np.isnan(distance))
    index = np.concatenate([layer * n + u[pair], layer * n + v[pair]])
    neighbour = np.concatenate([v[pair], u[pair]])
    length = np.tile(distance[layer, pair], 2)
    order = np.lexsort((neighbour, index))
    index, neighbour, length = index[order], neighbour[order], length[order]

    indices = len(distance) * n
    count = np.bincount(index, minlength=indices)
    pointer = np.concatenate([[0], np.cumsum(count)])
    # Relative to a node's nearest neighbour, whose weight is 1 at any distance.
    nearest = np.full(indices, np.inf)
    np.minimum.at(nearest, index, length)
    total = np.concatenate([[0.0], np.cumsum(np.exp(nearest[index] - length))])
    before, after = total[pointer[:-1]][index], total[pointer[1:]][index]
    cumulative = index + (total[1:] - before) / (after - before)

    weight, level = np.exp(-length), index // n
    mean = np.bincount(level, weight, len(distance)) / np.maximum(np.bincount(level, minlength=len(distance)), 1)
    strong = np.bincount(index, weight > mean[level], indices)
    up = np.log(strong + np.e) / (np.log(strong + np.e) + 1)
    up[:n] = 1.0
    linked_above = np.concatenate([count[n:], np.zeros(n)]) > 0
    return Layers(n, pointer, neighbour, cumulative, np.where(linked_above, up, 0.0))


def walk(layers: Layers, walks: int, length: int, stay: float, generator: np.random.Generator) -> Int:
    """``[nodes * walks, length]`` the nodes that walks from every node visit; all walks advance together.

    A walk starts in layer 0. With probability ``stay`` it moves to a neighbour in its layer, which is recorded;
    otherwise it changes layer. An isolated node visits itself.
    """
    n = layers.nodes
    path = np.empty((n * walks, length), dtype=np.int64)
    path[:, 0] = np.tile(np.arange(n), walks)
    index, written = path[:, 0].copy(), np.ones(n * walks, dtype=np.int64)
    walking = np.arange(n * walks) if length > 1 else np.empty(0, dtype=np.int64)
    while walking.size:
        steps = generator.random(walking.size) < stay
        draw = generator.random(walking.size)

        stepping, here = walking[steps], index[walking[steps]]
        edge = np.searchsorted(layers.cumulative, here + draw[steps], side="right")
        edge = np.minimum(edge, layers.pointer[here + 1] - 1)  # rounding may point at the next index
        node = layers.neighbour[edge] if layers.neighbour.size else here
        path[stepping, written[stepping]] = node
        written[stepping] += 1
        index[stepping] = here // n * n + node

        changing, here = walking[~steps], index[walking[~steps]]
        index[changing] = np.where(draw[~steps] < layers.up[here], here + n, np.where(here < n, here, here - n))
        walking = walking[written[walking] < length]
    return path
