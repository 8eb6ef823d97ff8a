"""ReFeX features worked out by hand, the description length, and roles that are known."""

import numpy as np
import pytest
from tests.kernels.graphs import graph

from demonet import DemonetError
from demonet.data.synthetic import role_graph
from demonet.features.graph import simple_adjacency
from demonet_study.methods.rolx import (
    RolX,
    bins,
    description_length,
    distinct,
    divergence,
    huffman,
    lloyd_max,
    local_features,
    quantised,
    recursive_features,
)

# A triangle 0 1 2, a tail 2 - 3 - 4, and node 5 alone.
TAILED = graph(6, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])


def test_local_features_by_hand():
    """Egonet of 2: itself, 0, 1, 3 with edges 20 21 23 01; only 34 leaves it."""
    expected = [[2, 3, 1], [2, 3, 1], [3, 4, 1], [2, 2, 2], [1, 1, 1], [0, 0, 0]]
    assert local_features(simple_adjacency(TAILED)).tolist() == expected


def test_recursive_features_by_hand():
    """Sums of the neighbours' degrees, then means: node 2 has neighbours of degree 2, 2, 2."""
    degree = np.array([[2.0], [2], [3], [2], [1], [0]])
    found = recursive_features(simple_adjacency(TAILED), degree)
    assert found.tolist() == [[5, 2.5], [5, 2.5], [6, 2], [4, 2], [2, 2], [0, 0]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], [0, 0, 0, 0, 1, 1, 2, 3]),  # 4 of 8, 2 of 4, 1 of 2, 1
        ([8, 7, 6, 5, 4, 3, 2, 1], [3, 2, 1, 1, 0, 0, 0, 0]),
        ([1, 1, 1, 1, 1, 1, 2, 3], [0, 0, 0, 0, 0, 0, 1, 2]),  # six tie for four places; 1 of 2, 1
        ([0, 0, 0, 0], [0, 0, 0, 0]),
        ([5], [0]),
    ],
)
def test_bins_by_hand(values, expected):
    assert bins(np.array(values, dtype=float)[:, None], 0.5).ravel().tolist() == expected


def test_features_that_never_differ_by_more_are_one():
    """Columns 0 and 1 differ by at most 1, so do 1 and 2: a chain; column 3 stands alone."""
    binned = np.array([[0, 1, 1, 5], [0, 0, 1, 0], [2, 2, 3, 0]])
    assert distinct(binned, 0).tolist() == [0, 1, 2, 3]
    assert distinct(binned, 1).tolist() == [0, 3]
    assert distinct(binned, 9).tolist() == [0]
    assert distinct(binned, 9, settled=2).tolist() == [0, 1]


def test_description_by_hand():
    """Levels 0 and 1 of G, one level of F, and an exact product: eight bits for G, none for F, none for errors."""
    G = np.array([[0.0, 1], [1, 0], [1, 1], [0, 1]])
    F = np.ones((2, 3))
    assert quantised(F, 1)[1] == 0.0
    assert description_length(G @ F, G, F, bits=1) == pytest.approx(8.0)
    assert divergence(np.array([[2.0, 0.0]]), np.array([[1.0, 1.0]])) == pytest.approx(2.0)
    assert huffman(np.array([1, 1, 2])) == 6.0


def test_levels_are_the_means_of_what_is_nearest():
    values = np.array([0.0, 5.2, 0.2, 0.1, 5.0, 5.1, 5.1])
    level, levels = lloyd_max(values, 2)
    assert levels == pytest.approx([0.1, 5.1])
    assert level.tolist() == [0, 1, 0, 0, 1, 1, 1]
    assert np.abs(values - quantised(values, 6)[0]).max() == pytest.approx(0)


def test_the_number_of_roles_is_that_of_the_shortest_description():
    """Neither one role nor as many as there may be: errors cost more before, the roles themselves after."""
    model = RolX()
    z = model.embed(role_graph(0))
    assert z.shape[1] == min(model.lengths, key=model.lengths.get)
    assert 2 < z.shape[1] < 10
    assert (z >= 0).all()


def test_more_roles_than_features_are_refused():
    with pytest.raises(DemonetError, match=r"roles=9.*6"):
        RolX(roles=9).embed(TAILED)
