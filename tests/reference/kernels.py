"""Eq. 13-17 as they stand in the paper: loops over pairs of nodes, float64, nothing shared with the package."""

import math

import numpy as np


def neighbours(data, node):
    return [int(u) for u, v in data.edge_index.T.tolist() if v == node]


def wl_colours(data, h):
    """Levels 0 .. h; a colour is the whole nested tuple, so that equal colours are equal subtrees by construction."""
    rows = [[1.0]] * data.num_nodes if data.x is None else data.x.tolist()
    levels = [[tuple(row) for row in rows]]
    for _ in range(h):
        last = levels[-1]
        levels.append([(last[v], tuple(sorted(last[u] for u in neighbours(data, v)))) for v in range(data.num_nodes)])
    return levels


def averaged(data, h):
    """Levels 0 .. h; the mean of the node and of its neighbours' mean, which is zero for an isolated node."""
    rows = [[1.0]] * data.num_nodes if data.x is None else data.x.tolist()
    levels = [[np.array(row, dtype=np.float64) for row in rows]]
    for _ in range(h):
        last, level = levels[-1], []
        for v in range(data.num_nodes):
            mean = np.zeros_like(last[v])
            for u in neighbours(data, v):
                mean += last[u] / len(neighbours(data, v))
            level.append((last[v] + mean) / 2)
        levels.append(level)
    return levels


def wl_subtree(data, other, h):
    """Eq. 17."""
    total = 0
    for colours, others in zip(wl_colours(data, h), wl_colours(other, h), strict=True):
        for colour in colours:
            for other_colour in others:
                total += colour == other_colour
    return total


def mean_wl(data, other, h, representations=averaged):
    """Eq. 16."""
    total = 0.0
    for level, other_level in zip(representations(data, h), representations(other, h), strict=True):
        for h_v in level:
            for h_u in other_level:
                total += float(np.dot(h_v, h_u))
    return total


def degree_wl(data, other, h, representations=averaged):
    """Eq. 13."""
    total = 0.0
    for level, other_level in zip(representations(data, h), representations(other, h), strict=True):
        for v, h_v in enumerate(level):
            for u, h_u in enumerate(other_level):
                if len(neighbours(data, v)) == len(neighbours(other, u)):
                    total += float(np.dot(h_v, h_u))
    return total


def gram(kernel, graphs, others, h, *, normalize=False):
    """The matrix of a kernel over all pairs of graphs."""
    matrix = np.zeros((len(graphs), len(others)))
    for i, data in enumerate(graphs):
        for j, other in enumerate(others):
            matrix[i, j] = kernel(data, other, h)
            if normalize:
                scale = math.sqrt(kernel(data, data, h) * kernel(other, other, h))
                matrix[i, j] = matrix[i, j] / scale if scale else 0.0
    return matrix
