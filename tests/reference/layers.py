"""The layers, node by node and arc by arc: Eq. 5-7, 8-10, the smooth and the scale scheme, and Eq. 11.

Nothing here is fast, and nothing here calls the code under test; the hash functions of Eq. 8-9 are taken as given.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from demonet.nn.config import ModelConfig

PAIR_BASE = 2**31
PAPER = ModelConfig(scheme="weight", aggr="sum", combine="concat", bias=False)


def node_degrees(edge_index: Tensor, num_nodes: int, by: str = "in") -> list:
    """The degree of every node, counted arc by arc; a tuple ``(in, out)`` for pairs."""
    incoming, outgoing = [0] * num_nodes, [0] * num_nodes
    for source, target in edge_index.t().tolist():
        incoming[target] += 1
        outgoing[source] += 1
    return {"in": incoming, "out": outgoing, "pair": list(zip(incoming, outgoing, strict=True))}[by]


def task_of(tasks, degree) -> int | None:
    """The task of one degree by search; None for a degree that exact tasks have not seen."""
    edges = tasks.boundaries.tolist()
    if tasks.kind == "exact":
        seen = [divmod(code, PAIR_BASE) for code in edges] if tasks.by == "pair" else edges
        return seen.index(degree) if degree in seen else None
    if tasks.by == "pair":
        return sum(b <= degree[0] for b in edges) * (len(edges) + 1) + sum(b <= degree[1] for b in edges)
    return sum(b <= degree for b in edges)


def phi(x: Tensor, xi1: Tensor, xi2: Tensor, size: int) -> Tensor:
    """Eq. 8: entry i is the signed sum of the entries that hash to i."""
    entries = []
    for i in range(size):
        total = x.new_zeros(())
        for j in range(x.numel()):
            if int(xi1[j]) == i:
                total = total + int(xi2[j]) * x[j]
        entries.append(total)
    return torch.stack(entries)


def hat(place: float, knot: int) -> float:
    """A linear B-spline: 1 at its knot, 0 at the next ones."""
    return max(0.0, 1.0 - abs(place - knot))


def smooth_basis(degree: int, max_degree: int, size: int) -> list[float]:
    """The hats over log(1 + d), on evenly spaced knots from 0 to the largest degree."""
    spacing = max(math.log(1 + max_degree), 1.0) / (size - 1)
    return [hat(math.log(1 + degree) / spacing, knot) for knot in range(size)]


def neighbour_map(conv, degree, x: Tensor) -> Tensor:
    """What one neighbour with features x gives to a node of this degree."""
    weights, tasks = conv.weights, conv.tasks
    if conv.scheme == "weight":  # Eq. 7: (W_g + W_d) h_u
        task = task_of(tasks, degree)
        matrix = weights.shared if task is None else weights.shared + weights.own[task]
        return matrix.t() @ x
    if conv.scheme == "hash":  # Eq. 10: W (phi_g(h_u) + phi_d(h_u))
        of_degree = weights.hashes(torch.tensor([degree]))
        hashed = phi(x, *weights.shared_hash, weights.hash_size)
        hashed = hashed + phi(x, of_degree[0][0], of_degree[1][0], weights.hash_size)
        return weights.weight.t() @ hashed
    if conv.scheme == "scale":  # W diag(1 + gamma(d))
        return (1 + weights.rate * spline(conv, degree, weights.gamma)) * (weights.shared.t() @ x)
    if conv.scheme != "smooth":  # a scheme that was added: its own definition
        return weights.matrices(torch.tensor([degree]))[0].t() @ x
    return (weights.shared + spline(conv, degree, weights.own)).t() @ x  # smooth: W_s + sum_b B_b V_b


def spline(conv, degree, coefficients: Tensor) -> Tensor:
    """The hats of a degree, or of both of a pair, times their coefficients."""
    sides = degree if conv.tasks.by == "pair" else (degree,)
    basis = [b for side in sides for b in smooth_basis(side, conv.tasks.max_degree, conv.weights.basis_size)]
    return sum(b * own for b, own in zip(basis, coefficients, strict=True))


def drawn(conv):
    """The layer with drawn splines where they start at zero."""
    for name in ("gamma", "shift"):
        if hasattr(conv.weights, name):
            torch.nn.init.normal_(getattr(conv.weights, name), std=1 / conv.weights.rate)
    return conv


def convolution(conv, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, degree=None) -> Tensor:
    """Eq. 5, before the activation."""
    num_nodes = x.size(0)
    degree = node_degrees(edge_index, num_nodes, conv.tasks.by) if degree is None else degree
    arcs = [(u, v, 1.0 if edge_weight is None else edge_weight[i]) for i, (u, v) in enumerate(edge_index.t().tolist())]
    if conv.combine == "share":  # every node is its own neighbour, once
        loops = {u for u, v, _ in arcs if u == v}
        arcs += [(v, v, 1.0) for v in range(num_nodes) if v not in loops]
    into = [[(u, w) for u, v, w in arcs if v == node] for node in range(num_nodes)]
    total = [sum(w for _, w in into[node]) for node in range(num_nodes)]
    rows = []
    for v in range(num_nodes):
        out, count = x.new_zeros(conv.weights.width), max(len(into[v]), 1)
        for u, w in into[v]:
            root = (total[u] * total[v]) ** 0.5 if conv.aggr == "sym" else 1.0
            scale = {"sum": 1.0, "mean": 1 / count, "sqrt": count**-0.5, "sym": 1 / root if root else 0.0}[conv.aggr]
            out = out + w * scale * neighbour_map(conv, degree[v], x[u])
        if conv.scheme == "scale":
            weights, size = conv.weights, math.sqrt(2 / (x.size(1) + conv.weights.width))  # of Glorot's entries
            out = out + weights.shift_rate * size * spline(conv, degree[v], weights.shift)
        if conv.seed is not None:
            seed = conv.seed.weight @ x[v]  # Eq. 6
            out = torch.cat([seed, out]) if conv.combine == "concat" else seed + out
        rows.append(out if conv.bias is None else out + conv.bias)
    return torch.stack(rows)


def degree_pooling(h: Tensor, degree: list, batch: list[int], num_graphs: int, tasks, mode: str) -> Tensor:
    """Eq. 11: for every graph the sums (or means) of the nodes of every task, side by side."""
    graphs = []
    for graph in range(num_graphs):
        blocks = []
        for task in range(tasks.num_tasks):
            last = tasks.num_tasks - 1
            rows = [
                h[v]
                for v in range(h.size(0))
                if batch[v] == graph
                and (last if task_of(tasks, degree[v]) is None else task_of(tasks, degree[v])) == task
            ]
            total = sum(rows, h.new_zeros(h.size(1)))
            blocks.append(total / max(len(rows), 1) if mode == "mean" else total)
        graphs.append(torch.cat(blocks))
    return torch.stack(graphs)
