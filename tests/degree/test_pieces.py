"""Pieces: every row once, with its own list, among its group's."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed

from demonet import DegreeLayout
from demonet.degree.pieces import cut_pieces


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
    assert layout.pieces == []
