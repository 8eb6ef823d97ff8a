"""The policy for loops, duplicates and directions, on lists small enough to check by eye."""

import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demonet.data import simple_edges
from demonet.data.read import read_problem
from demonet.data.readers.base import InputFiles, ReadOptions
from demonet.errors import DemonetWarning


def edges(pairs, n, **options):
    pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return simple_edges(pairs[:, 0], pairs[:, 1], n, **options)


def arcs(pairs, n, **options):
    return list(zip(*edges(pairs, n, **options)[0].tolist(), strict=True))


def test_a_list_in_both_directions_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert arcs([(0, 1), (1, 0), (1, 2), (2, 1)], 3) == arcs([(0, 1), (1, 2)], 3)


@pytest.mark.parametrize(
    ("pairs", "options", "fact"),
    [
        ([(0, 0), (1, 1), (0, 1)], {}, "2 self-loops"),
        ([(0, 1), (0, 1), (0, 1), (1, 2)], {}, "2 duplicate edges"),
        ([(0, 1), (1, 0), (1, 2)], {}, "1 edge "),
        ([(0, 1), (1, 0)] * 2, {}, "2 edges "),
        ([(0, 1), (0, 1), (1, 0)], {"directed": True}, "1 duplicate edge "),
    ],
)
def test_each_change_is_counted_in_one_warning(pairs, options, fact):
    with pytest.warns(DemonetWarning) as caught:
        edges(pairs, 3, file="mine.txt", **options)
    (warning,) = caught
    assert str(warning.message).startswith(f"mine.txt: {fact}")


def test_unknown_policy_is_refused(refuses):
    refuses(lambda: edges([(0, 1)], 2, self_loops="maybe"), "maybe", "drop")
    refuses(lambda: edges([(0, 1)], 2, merge="maybe"), "maybe", "mean")


def test_weights_follow_their_edges():
    index, weight = edges([(2, 0), (0, 1)], 3, weight=np.array([5.0, 7.0]))
    assert index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert weight.tolist() == [7, 5, 7, 5]


@pytest.mark.parametrize(
    ("merge", "first", "second"), [("sum", 13, 8), ("mean", 13 / 3, 4), ("max", 7, 4), ("last", 1, 4), (None, 13, 8)]
)
def test_repeated_weights_are_merged(merge, first, second):
    """By default, the weights of repetitions are added as soon as one edge has two different weights."""
    weight = np.array([5.0, 4, 7, 1, 4])
    with pytest.warns(DemonetWarning, match=r"1 edge .*different weights.*merge"):
        index, merged = edges([(0, 1), (1, 2), (1, 0), (0, 1), (1, 2)], 3, weight=weight, merge=merge)
    assert index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert merged.tolist() == pytest.approx([first, first, second, second])


def test_repeated_weights_that_agree_are_copies():
    with pytest.warns(DemonetWarning, match="1 duplicate edge"):
        _, kept = edges([(0, 1), (0, 1), (1, 2)], 3, weight=np.array([5.0, 5, 7]))
    assert kept.tolist() == [5, 5, 7, 7]
    with pytest.warns(DemonetWarning, match="1 duplicate edge"):
        _, added = edges([(0, 1), (0, 1), (1, 2)], 3, weight=np.array([5.0, 5, 7]), merge="sum")
    assert added.tolist() == [10, 10, 7, 7]
    with pytest.warns(DemonetWarning, match="1 duplicate edge"):
        assert edges([(0, 1), (0, 1), (1, 2)], 3, merge="sum")[1].tolist() == [2, 2, 1, 1]


def test_directions_have_their_own_weights():
    index, kept = edges([(0, 1), (1, 0)], 2, weight=np.array([5.0, 7.0]), directed=True)
    assert (index.tolist(), kept.tolist()) == ([[0, 1], [1, 0]], [5, 7])


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_same_edges_as_networkx(drawn):
    n, pairs = drawn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonetWarning)
        for keep in (False, True):
            graph = nx.Graph([(u, v) for u, v in pairs if keep or u != v])
            expected = {(u, v) for u, v in graph.edges} | {(v, u) for u, v in graph.edges}
            assert arcs(pairs, n, self_loops="keep" if keep else "drop") == sorted(expected)
            digraph = nx.DiGraph([(u, v) for u, v in pairs if keep or u != v])
            assert arcs(pairs, n, directed=True, self_loops="keep" if keep else "drop") == sorted(digraph.edges)


@pytest.mark.parametrize(
    ("pairs", "said"), [("a,b\nb,c\n", ""), ("a,b\nb,a\nb,c\nc,d\n", "1 of 3"), ("a,b\nb,a\n", None)]
)
def test_a_direction_that_nobody_has_given_is_told(tmp_path, pairs, said):
    path = tmp_path / "e.csv"
    path.write_text("source,target\n" + pairs)

    def told(**given):
        return read_problem(path, None, None, ReadOptions(**given), InputFiles()).undirected

    assert (said is None) == (told() is None)
    assert said is None or said in str(told())
    assert told(directed=False) is told(directed=True) is None
