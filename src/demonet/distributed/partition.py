r"""Partitions: which process has which node, and what each of them needs from the others.

A partition is one-dimensional: an edge belongs to the process that has its target, so that every process sums over all
neighbours of its own nodes, and their degrees are those in the whole graph. The sources that it does not have are its
*halo*; their rows come from the processes that have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from demonet.checks import check_edge_index
from demonet.degree.count import By, check_by, count_degree
from demonet.degree.layout import DegreeLayout
from demonet.degree.lists import counting_sort, neighbour_lists
from demonet.errors import DemonetError
from demonet.nn.hashing import hash_functions

Method = Literal["hash", "balanced", "metis"]


@dataclass(frozen=True, eq=False)
class Part:
    """The share of one process.

    Attributes:
        nodes: ``[own]`` its nodes, ascending.
        halo: ``[halo]`` the sources of its edges that others have, by process and then ascending.
        received: ``[parts]`` how many of the halo each process has.
        send: The rows that the others need, by their index in ``nodes``, process after process.
        sent: ``[parts]`` how many of them each process needs.
        pointer: ``[own + 1]`` where the neighbour list of each own node begins and ends.
        neighbours: ``[edges]`` the sources: an index in ``nodes``, or ``own`` plus an index in ``halo``.
        edge: ``[edges]`` the column of each of them in the ``edge_index`` of the whole graph.
        outgoing: ``[own]`` the number of outgoing edges of each own node, in the whole graph.
    """

    nodes: Tensor
    halo: Tensor
    received: Tensor
    send: Tensor
    sent: Tensor
    pointer: Tensor
    neighbours: Tensor
    edge: Tensor
    outgoing: Tensor

    def layout(self, by: By = "in") -> DegreeLayout:
        """The layout of the own nodes; ``edge`` is the index of an edge in the part's lists.

        It has as many rows as there are own nodes. Its lists read more: first the own rows in degree order, then the
        halo, see :attr:`demonet.nn.prepared.GraphInput.fill`.
        """
        check_by(by)
        incoming = self.pointer.diff().long()
        target = torch.repeat_interleave(incoming)
        source, outgoing = self.neighbours.long(), self.outgoing.long()
        return DegreeLayout.of_rows(source, target, incoming, outgoing, more=self.halo.numel(), by=by)


def assign(edge_index: Tensor, num_nodes: int, parts: int, method: str = "balanced") -> Tensor:
    """``[n]`` the process of every node.

    Args:
        edge_index: ``[2, m]`` edges.
        num_nodes: Number of nodes.
        parts: Number of processes.
        method: ``"balanced"``: runs of consecutive nodes with about equal numbers of nodes and edges; ``"hash"``: by a
            hash of the index, which balances any graph and ignores its edges; ``"metis"``: few edges between
            processes (needs ``pymetis``).
    """
    if parts < 1:
        raise DemonetError(f"{parts} parts", argument="parts", hint="at least 1")
    if method not in METHODS:
        raise DemonetError(f"{method!r} is unknown", argument="partition", hint=f"use {', '.join(METHODS)}")
    check_edge_index(edge_index, num_nodes)
    return METHODS[method](edge_index, num_nodes, parts)


def _hash(edge_index: Tensor, num_nodes: int, parts: int) -> Tensor:
    return hash_functions(torch.arange(num_nodes), torch.zeros(1, dtype=torch.long), seed=0, size=parts)[0]


def _balanced(edge_index: Tensor, num_nodes: int, parts: int) -> Tensor:
    """A node counts as one, and as much as it has edges. It goes where the middle of its work is."""
    work = count_degree(edge_index, num_nodes) + 1
    middle = 2 * work.cumsum(0) - work
    return middle * parts // max(2 * int(work.sum()), 1)


def _metis(edge_index: Tensor, num_nodes: int, parts: int) -> Tensor:
    try:
        import pymetis
    except ImportError:
        problem = "'metis' needs pymetis, which is not installed"
        raise DemonetError(problem, argument="partition", hint="pip install 'demonet[metis]'") from None
    if parts == 1 or num_nodes == 0:
        return torch.zeros(num_nodes, dtype=torch.long)
    both = torch.cat([edge_index, edge_index.flip(0)], 1).long()
    code = torch.unique((both[0] * num_nodes + both[1])[both[0] != both[1]])  # METIS takes simple undirected graphs
    source, target = code // num_nodes, code % num_nodes
    pointer = torch.nn.functional.pad(torch.bincount(source, minlength=num_nodes).cumsum(0), (1, 0))
    work = count_degree(edge_index, num_nodes) + 1
    adjacency = pymetis.CSRAdjacency(pointer.numpy(), target.numpy())
    _, found = pymetis.part_graph(parts, adjacency, vweights=work.numpy())
    return torch.as_tensor(found)


METHODS: dict[str, Callable[[Tensor, int, int], Tensor]] = {"balanced": _balanced, "hash": _hash, "metis": _metis}


def cut(edge_index: Tensor, owner: Tensor, parts: int) -> list[Part]:
    """Cut a graph.

    Args:
        edge_index: ``[2, m]`` edges.
        owner: ``[n]`` the process of every node.
        parts: Number of processes; some may have no node.
    """
    num_nodes, (source, target) = owner.numel(), edge_index.long()
    by_owner, first = counting_sort(owner, parts)
    place = torch.empty_like(owner)
    place[by_owner] = torch.arange(num_nodes) - first[owner[by_owner]]
    outgoing = count_degree(edge_index, num_nodes, by="out")
    by_part, bounds = counting_sort(owner[target], parts)
    halos, found = [], []
    for number in range(parts):
        edge = by_part[int(bounds[number]) : int(bounds[number + 1])]
        nodes = by_owner[int(first[number]) : int(first[number + 1])]
        ends = source[edge]
        away = owner[ends] != number
        code, index = torch.unique(owner[ends[away]] * num_nodes + ends[away], return_inverse=True)
        local = place[ends]
        local[away] = nodes.numel() + index
        lists = neighbour_lists(local, place[target[edge]], nodes.numel() + code.numel(), nodes.numel())
        halos.append((code % max(num_nodes, 1), torch.bincount(code // max(num_nodes, 1), minlength=parts)))
        found.append((nodes, lists, edge[lists.edge]))
    sent = torch.stack([counts for _, counts in halos], 1)  # row p: what p sends to each
    starts = torch.stack([counts.cumsum(0) - counts for _, counts in halos], 1)
    cuts = []
    for number, (nodes, lists, edge) in enumerate(found):
        wanted = [
            halo[int(begin) : int(begin + count)]
            for (halo, _), begin, count in zip(halos, starts[number], sent[number], strict=True)
        ]
        halo, received = halos[number]
        send = place[torch.cat(wanted)]
        cuts.append(Part(nodes, halo, received, send, sent[number], lists.pointer, lists.source, edge, outgoing[nodes]))
    return cuts
