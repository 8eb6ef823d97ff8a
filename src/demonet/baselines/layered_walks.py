r"""Walks among nodes of like structure: struc2vec's layered graph (Ribeiro et al., KDD'17, sections 3.2 and 3.3).

In layer k, nodes u and v are tied by :math:`w_k(u, v) = e^{-f_k(u, v)}`. From layer k, node u goes up with weight
:math:`\log(\Gamma_k(u) + e)` and down with weight 1, where :math:`\Gamma_k(u)` is the number of its ties there that are
stronger than the layer's mean. At either end, and where the layer above has no ties of u, there is one way only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Int = NDArray[np.int64]


class Layers(NamedTuple):
    """The layered graph; node u of layer k is place ``k * nodes + u``.

    Attributes:
        nodes: How many, in each layer.
        pointer: ``[places + 1]`` where the ties of each place begin and end.
        neighbour: ``[ties]`` the node at the other end.
        chance: ``[ties]`` the chance of this tie or one before it, plus the place: one ascending sequence for all.
        up: ``[places]`` the chance to go up, and not down, when the layer is changed.
    """

    nodes: int
    pointer: Int
    neighbour: Int
    chance: Float
    up: Float


def layered(n: int, u: Int, v: Int, distance: Float) -> Layers:
    """The layered graph of pairs ``u, v`` at ``distance[layer, pair]``, NaN where the layer does not tie them."""
    layer, pair = np.nonzero(~np.isnan(distance))
    place = np.concatenate([layer * n + u[pair], layer * n + v[pair]])
    neighbour = np.concatenate([v[pair], u[pair]])
    far = np.tile(distance[layer, pair], 2)
    order = np.lexsort((neighbour, place))
    place, neighbour, far = place[order], neighbour[order], far[order]

    places = len(distance) * n
    count = np.bincount(place, minlength=places)
    pointer = np.concatenate([[0], np.cumsum(count)])
    # Relative to a node's nearest: its strongest tie is 1, however far that is.
    nearest = np.full(places, np.inf)
    np.minimum.at(nearest, place, far)
    total = np.concatenate([[0.0], np.cumsum(np.exp(nearest[place] - far))])
    before, after = total[pointer[:-1]][place], total[pointer[1:]][place]
    chance = place + (total[1:] - before) / (after - before)

    weight, floor = np.exp(-far), place // n
    mean = np.bincount(floor, weight, len(distance)) / np.maximum(np.bincount(floor, minlength=len(distance)), 1)
    strong = np.bincount(place, weight > mean[floor], places)
    up = np.log(strong + np.e) / (np.log(strong + np.e) + 1)
    up[:n] = 1.0
    tied_above = np.concatenate([count[n:], np.zeros(n)]) > 0
    return Layers(n, pointer, neighbour, chance, np.where(tied_above, up, 0.0))


def walk(layers: Layers, walks: int, length: int, stay: float, generator: np.random.Generator) -> Int:
    """``[nodes * walks, length]`` the nodes that walks from every node meet, all of them walking at once.

    A walk begins in layer 0. With chance ``stay`` it steps to a neighbour in its layer, which is written down, and
    otherwise it changes layer, which is not. A lone node meets itself.
    """
    n = layers.nodes
    path = np.empty((n * walks, length), dtype=np.int64)
    path[:, 0] = np.tile(np.arange(n), walks)
    place, written = path[:, 0].copy(), np.ones(n * walks, dtype=np.int64)
    walking = np.arange(n * walks) if length > 1 else np.empty(0, dtype=np.int64)
    while walking.size:
        steps = generator.random(walking.size) < stay
        luck = generator.random(walking.size)

        stepping, here = walking[steps], place[walking[steps]]
        tie = np.searchsorted(layers.chance, here + luck[steps], side="right")
        tie = np.minimum(tie, layers.pointer[here + 1] - 1)  # rounding may point at the next place
        node = layers.neighbour[tie] if layers.neighbour.size else here
        path[stepping, written[stepping]] = node
        written[stepping] += 1
        place[stepping] = here // n * n + node

        changing, here = walking[~steps], place[walking[~steps]]
        place[changing] = np.where(luck[~steps] < layers.up[here], here + n, np.where(here < n, here, here - n))
        walking = walking[written[walking] < length]
    return path
