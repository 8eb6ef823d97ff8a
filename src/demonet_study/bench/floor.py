r"""A lower bound: the bytes that an epoch of our networks must move, divided by the bandwidth of a copy.

n nodes, m directed edges, widths F (input) and C (both hidden layers), numbers of s bytes, neighbours of i bytes, P
parameters.
Every dense array counts once for each time it has to be read or written, a gathered row once for each edge (features
larger than the caches are read from memory again for every neighbour), products and activations nothing. Rows that stay
in a cache can therefore be faster than this bound: it says little on a graph that fits into a cache.

By layer: every layer is a separate function, as in autograd, so its output and its gradient pass through memory.
The first layer's aggregate is constant (prepared), the second's is kept for the backward pass or gathered twice,
whichever is less.

===============================================  ==================================================
first layer, forward                             read x, its aggregate; write h1: 2nF + nC
second layer, forward                            gather h1: mC and the neighbours; read h1, write h2: 2nC
its aggregate, for the backward pass             written and read, or gathered again: min(2nC, mC + neighbours)
head and loss, forward and backward              read h2 and y, write the gradient of h2: 2nC + 8n
second layer, backward                           read h1 and the gradient, write the neighbours' gradients: 3nC;
                                                 gather these: mC and the neighbours; read the seed half
                                                 of the gradient, write the gradient of h1: 3nC / 2
first layer, backward                            read x, its aggregate, the gradient of h1: 2nF + nC
parameters                                       read twice, gradient written and read, Adam's three arrays read and
                                                 written: 10P
===============================================  ==================================================

In one step: values that only one node needs are never stored. Rows of h1 and of the neighbours' gradients still pass
through memory, because other nodes read them; h2, scores, the second aggregate and the gradients of h1 and h2 do not.

===============================================  ==================================================
first layer, forward                             read x, its aggregate; write h1: 2nF + nC
second layer, head and loss, both ways           gather h1: mC and the neighbours; read h1 and y, write the
                                                 neighbours' gradients and the seed half: 5nC / 2 + 8n
first layer, backward                            gather the neighbours' gradients: mC and the neighbours; read the
                                                 seed half, h1, x, its aggregate: 3nC / 2 + 2nF
parameters                                       as above
===============================================  ==================================================

Without preparation the first aggregate is gathered, mF and the neighbours instead of nF: once in a forward pass that
keeps it (written and read, 2nF) or twice, whichever is less.
"""

from __future__ import annotations

import statistics
import time
from typing import NamedTuple

import torch

from demonet_study.bench.step import wait


class Floor(NamedTuple):
    """Bytes of one epoch: layer by layer, and in one step."""

    by_layer: float
    in_one_step: float


def floor_bytes(
    nodes: int, arcs: int, parameters: int, *, width: int, hidden: int, size: int = 4, prepared: bool = True
) -> Floor:
    """The bytes that two degree-specific layers and a linear head must move in one epoch.

    Args:
        nodes, arcs: Numbers of nodes and directed edges.
        parameters: Number of parameters.
        width: Input width.
        hidden: Width of the hidden layers.
        size: Bytes of a number.
        prepared: Whether the first layer's aggregate is constant.

    >>> floor_bytes(2, 2, 1, width=1, hidden=2, size=4)
    Floor(by_layer=328.0, in_one_step=216.0)
    """
    x, h = nodes * width * size, nodes * hidden * size
    index = arcs * (4 if max(nodes, arcs) < 2**31 else 8)
    gather = arcs * hidden * size + index
    labels, learned = 8 * nodes, 10 * parameters * size
    first = 2 * x  # the aggregate, forward and backward
    if not prepared:
        gather_x = arcs * width * size + index
        first = gather_x + min(2 * x, gather_x)
    inputs = 2 * x + first  # x itself, forward and backward, and its aggregate
    by_layer = inputs + 2 * h + 2 * h + 2 * h + labels + 4.5 * h + 2 * gather + min(2 * h, gather) + learned
    in_one_step = inputs + h + 2.5 * h + labels + 1.5 * h + 2 * gather + learned
    return Floor(by_layer, in_one_step)


def copy_bandwidth(device: torch.device, mebibytes: int = 256) -> float:
    """Bytes per second of a copy on the device, read and written: the median of nine."""
    source = torch.ones(mebibytes * 2**18, device=device)
    target = torch.empty_like(source)
    seconds = []
    for _ in range(11):
        wait(device)
        start = time.perf_counter()
        for _ in range(10 if device.type == "cuda" else 1):
            target.copy_(source)
        wait(device)
        seconds.append((time.perf_counter() - start) / (10 if device.type == "cuda" else 1))
    return 2 * source.numel() * source.element_size() / statistics.median(seconds[2:])
