"""Tiers: every row has a place of its own, and sums over neighbours are the same there."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import features, graphs

from demonet.degree import DegreeLayout
from demonet.degree.tiers import CALL, cheapest, cut_tiers
from demonet.ops.reference import aggregate


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
