"""Schedules hold every row once; buffers hand out nothing that is still in use."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed, features, graphs

from demonet import backend
from demonet.degree import DegreeLayout
from demonet.ops.graph import Graph
from demonet.ops.reference import aggregate
from demonet.ops.schedule.buffers import Buffers
from demonet.ops.schedule.cpu import cheapest, cut_blocks, cut_pieces, cut_tiers

LEAST = backend.current().buffer_bytes
CALL = backend.current().tier_call_cost


def offsets(sizes):
    return torch.tensor([0, *sizes]).cumsum(0)


@given(st.lists(st.integers(0, 90), max_size=60))
def test_every_row_stands_in_one_place(sizes):
    blocks = cut_blocks(offsets(sizes))
    bounds = offsets(sizes).tolist()
    rest = [row for _, start, end in blocks.rest for row in range(start, end)]
    batch = [row for row in range(bounds[-1]) if row not in set(rest)] if blocks.rows is None else blocks.rows.tolist()
    assert sorted([*batch, *rest]) == list(range(bounds[-1]))
    assert blocks.num_groups == len(sizes)
    for group, start, end in [*blocks.rest, *blocks.whole]:
        assert bounds[group] == start < end == bounds[group + 1]
    assert blocks.filled.sum() == sum(min(size, blocks.height) for size in sizes if blocks.height)
    assert blocks.gather[blocks.place].tolist() == (batch if blocks.height else [])
    for row, place in zip(batch if blocks.height else [], blocks.place.tolist(), strict=True):
        group, inside = divmod(place, blocks.height)
        assert bounds[group] + inside == row


@pytest.mark.parametrize(
    ("sizes", "height"), [([], 0), ([20_000] * 17, 0), ([3] * 40, 4), ([1, 2] * 70, 2), ([0] + [3] * 40, 0)]
)
def test_small_groups_go_together(sizes, height):
    blocks = cut_blocks(offsets(sizes))
    assert blocks.height == height
    assert height in backend.current().block_heights
    assert (blocks.rest == []) == (height > 0 or not sizes)


def test_memory_is_lent_again_once_nobody_holds_it():
    buffers, like = Buffers(), torch.zeros(1)
    first = buffers.empty((LEAST,), like)
    where, view = first.data_ptr(), first[3:].detach()
    assert buffers.empty((LEAST,), like).data_ptr() != where
    del first
    assert buffers.empty((LEAST,), like).data_ptr() != where  # a view holds it still
    array = view.numpy()
    del view
    assert buffers.empty((LEAST,), like).data_ptr() != where  # and so does NumPy
    del array
    assert buffers.empty((2, LEAST // 2), like).data_ptr() == where
    assert buffers.empty((LEAST // 2,), like.double()).dtype == torch.float64


def test_small_memory_is_not_kept_and_copies_hold_nothing():
    buffers = Buffers()
    assert buffers.empty((3, 2), torch.zeros(1)).shape == (3, 2)
    buffers.empty((LEAST,), torch.zeros(1))
    assert len(buffers._kept) == 1
    assert copy.deepcopy(buffers)._kept == pickle.loads(pickle.dumps(buffers))._kept == {}


@given(
    st.integers(1, 40), st.integers(0, 90), st.integers(0, 5), st.booleans(), st.integers(1, 50), st.sampled_from("io")
)
def test_pieces_hold_every_row_once(nodes, arcs, seed, undirected, rows, side):
    graph = drawn_by_seed(nodes, arcs, seed, undirected=undirected)
    layout = DegreeLayout.from_edge_index(*graph, by="in" if side == "i" else "out").sorted()
    lists, back = (layout.pointer, layout.neighbours), (layout.back_pointer, layout.back_neighbours)
    pieces = cut_pieces(layout.offsets, lists, back, rows)
    assert [row for piece in pieces for row in range(piece.rows.start, piece.rows.stop)] == list(range(nodes))
    group = torch.repeat_interleave(layout.offsets.diff())
    for piece in pieces:
        assert 0 < piece.rows.stop - piece.rows.start <= rows
        inside = [g for g, part in piece.groups for _ in range(part.start, part.stop)]
        assert inside == group[piece.rows].tolist()
        for (pointer, neighbours), own in ((lists, piece.lists), (back, piece.back)):
            for k, row in enumerate(range(piece.rows.start, piece.rows.stop)):
                expected = neighbours[pointer[row] : pointer[row + 1]]
                assert torch.equal(own[1][own[0][k] : own[0][k + 1]], expected)


def test_a_graph_without_nodes_has_no_pieces():
    layout = DegreeLayout.from_edge_index(torch.empty(2, 0, dtype=torch.long), 0)
    assert Graph.of(layout).pieces == []


def tiers_of(layout):
    lists, back = (layout.pointer, layout.neighbours), (layout.back_pointer, layout.back_neighbours)
    return cut_tiers(layout.offsets, lists, back)


@given(graphs(max_nodes=12))
def test_places_and_lists(graph):
    layout = DegreeLayout.from_edge_index(*graph).sorted()
    tiers, x = tiers_of(layout), features(graph.num_nodes, 3, 0)
    assert torch.equal(tiers.source[tiers.place], torch.arange(graph.num_nodes))
    padded = tiers.pad(x)
    assert torch.equal(padded[tiers.place], x)
    assert (padded != 0).any(1).sum() == graph.num_nodes
    for lists, spread in (
        ((layout.pointer, layout.neighbours), (tiers.pointer, tiers.neighbours)),
        ((layout.back_pointer, layout.back_neighbours), (tiers.back_pointer, tiers.back_neighbours)),
    ):
        torch.testing.assert_close(
            aggregate(padded, *spread, None, "sum"), tiers.pad(aggregate(x, *lists, None, "sum"))
        )
    group = torch.repeat_interleave(layout.offsets.diff())
    where = torch.cat([torch.arange(tier.first, tier.last).repeat_interleave(tier.height) for tier in tiers.cuts])
    assert torch.equal(where[tiers.place], group)
    assert (
        [block.size(0) for block in tiers.blocks(padded)]
        == tiers.counts
        == [len(part) for part in tiers.groups(torch.zeros(len(layout.degrees), 1, 1))]
    )


@given(st.lists(st.integers(0, 200), max_size=9))
def test_the_tiers_cost_least(sizes):
    def price(bounds):
        return sum(CALL + (last - first) * max(1, *sizes[first:last]) for first, last in bounds)

    def every(first):
        if first == len(sizes):
            yield []
        for last in range(first + 1, len(sizes) + 1):
            yield from ([(first, last), *rest] for rest in every(last))

    found = cheapest(sizes)
    assert [tier.height for tier in found] == [max(1, *sizes[t.first : t.last]) for t in found]
    assert price([(t.first, t.last) for t in found]) == min(map(price, every(0)))
