"""Schedules hold every row once; buffers hand out nothing that is still in use."""

import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed

from demonet.degree import DegreeLayout
from demonet.ops.graph import Graph
from demonet.ops.schedule.cpu import BUFFER_BYTES as LEAST
from demonet.ops.schedule.cpu import Buffers, cut_blocks, cut_pieces


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


@given(st.lists(st.integers(LEAST, 4 * LEAST), min_size=1, max_size=60), st.integers(1, 3))
def test_results_of_many_sizes_take_the_memory_of_a_few(sizes, together):
    """Of sizes within a factor of 4 there are four that no other one within half as much again takes the place of."""
    buffers, held = Buffers(), []
    for size in sizes:
        held = [*held, buffers.empty((size,), torch.zeros(1))][-together:]
        assert held[-1].shape == (size,)
    assert len({one.data_ptr() for one in held}) == len(held)
    assert len(buffers._kept) <= 4 * (together + 1)


def test_small_memory_is_not_kept_and_copies_hold_nothing():
    buffers = Buffers()
    assert buffers.empty((3, 2), torch.zeros(1)).shape == (3, 2)
    buffers.empty((LEAST,), torch.zeros(1))
    assert len(buffers._kept) == 1
    assert copy.deepcopy(buffers)._kept == pickle.loads(pickle.dumps(buffers))._kept == []


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
        assert piece.blocks.height == 0
        inside = [g for g, start, end in piece.blocks.rest for _ in range(start, end)]
        assert inside == group[piece.rows].tolist()
        for (pointer, neighbours), own in ((lists, piece.lists), (back, piece.back)):
            for k, row in enumerate(range(piece.rows.start, piece.rows.stop)):
                expected = neighbours[pointer[row] : pointer[row + 1]]
                assert torch.equal(own[1][own[0][k] : own[0][k + 1]], expected)


@pytest.mark.parametrize(
    ("dtype", "least", "count"), [(torch.float32, 12, 3), (torch.bfloat16, 12, 1), (torch.float32, 13, 1)]
)
def test_a_small_graph_is_one_piece(override, dtype, least, count):
    override(piece_graph_rows=least, piece_rows=4)
    graph = Graph.of(DegreeLayout.from_edge_index(*drawn_by_seed(12, 30)))
    assert len(graph.pieces_for(torch.zeros(12, 1, dtype=dtype))) == count
