"""Colour refinement, and the subtree kernel against GraKeL's, to the last integer."""

from collections import Counter

import grakel
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.graphs import drawn_graphs, graph, lists_of, path, to_grakel
from tests.reference import kernels as reference
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.kernels import SignatureIndex, WLSubtreeKernel, wl_classes, wl_colours


def partition(labels):
    """Each element replaced by the first place at which an equal one stands."""
    first = {}
    return [first.setdefault(label, place) for place, label in enumerate(labels)]


@given(graphs=lists_of(drawn_graphs()), h=st.integers(0, 3))
def test_colours_partition_nodes_as_nested_tuples_do(graphs, h):
    colours = wl_colours(graphs, h)
    nested = [reference.wl_colours(data, h) for data in graphs]
    assert len(colours) == h + 1
    for k, colour in enumerate(colours):
        expected = partition(label for levels in nested for label in levels[k])
        assert partition(colour.tolist()) == expected
        assert sorted(set(colour.tolist())) == list(range(len(set(expected))))


@given(graphs=lists_of(drawn_graphs()), h=st.integers(0, 3))
def test_classes_are_equal_multisets_of_colours(graphs, h):
    multisets = [frozenset(Counter(reference.wl_colours(data, h)[-1]).items()) for data in graphs]
    assert partition(wl_classes(graphs, h).tolist()) == partition(multisets)


@given(parts=st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 300)), min_size=1), max_size=5))
def test_a_book_extended_many_times_is_a_dictionary(parts):
    """Old signatures keep their numbers, new ones get the next, wherever they fall in byte order."""
    book, known = SignatureIndex(), {}
    for part in parts:
        (numbers,), book = book.extended([np.array(part)])
        for signature, number in zip(part, numbers.tolist(), strict=True):
            assert known.setdefault(signature, number) == number
        assert sorted(known.values()) == list(range(book.size))


def test_regular_graphs_stay_together():
    two_triangles = graph(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    hexagon = graph(6, [(i, (i + 1) % 6) for i in range(6)])
    assert len(set(wl_classes([two_triangles, hexagon], 5).tolist())) == 1


def test_graphs_without_nodes_are_one_class():
    assert wl_classes([graph(0), path(1), graph(0)], 2).tolist() in ([0, 1, 0], [1, 0, 1])


def test_arcs_are_used_as_given():
    """Arcs 0 -> 1 and 0 -> 2: the ends have degree 1, the beginning has none."""
    data = Data(edge_index=torch.tensor([[0, 0], [1, 2]]), num_nodes=3)
    colour = wl_colours([data], 1)[1]
    assert colour[1] == colour[2] != colour[0]


@pytest.mark.parametrize("n_iter", [-1, 1.5, "2", None])
def test_bad_number_of_rounds(n_iter):
    with pytest.raises(DemonetError, match="n_iter"):
        wl_colours([path(2)], n_iter)


WITH_NODES = drawn_graphs(min_nodes=1)
STRANGERS = drawn_graphs(min_nodes=1, max_nodes=9, values=(0.0, 2.0))


def theirs(h, normalize=False):
    return grakel.WeisfeilerLehman(n_iter=h, normalize=normalize, base_graph_kernel=grakel.VertexHistogram)


@given(fitted=lists_of(WITH_NODES), others=lists_of(STRANGERS), h=st.integers(1, 4))
def test_random_graphs(fitted, others, h):
    ours, kernel = WLSubtreeKernel(n_iter=h), theirs(h)
    np.testing.assert_array_equal(ours.fit_transform(fitted), kernel.fit_transform(map(to_grakel, fitted)))
    np.testing.assert_array_equal(ours.transform(others), kernel.transform(map(to_grakel, others)))
