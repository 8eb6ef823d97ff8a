"""Blocks hold every row once, in the batch or in the rest; Buffers lend nothing that somebody holds."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from demonet.degree.blocks import HEIGHTS, cut_blocks
from demonet.degree.buffers import LEAST, Buffers


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
    assert height in HEIGHTS
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
