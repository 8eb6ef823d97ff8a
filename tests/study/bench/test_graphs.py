"""The graphs of the bench: sizes, degrees, seeds."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from demonet.errors import DemonetError
from demonet_study.bench.graphs import CLASSES, KINDS, WIDTH, GraphSpec, configuration, degree_sequence


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_is_undirected_and_has_features_and_labels(kind):
    graph = GraphSpec(kind, nodes=200, edges=400, distinct=10).make()
    assert (graph.num_nodes, graph.num_arcs, graph.num_classes) == (200, 800, CLASSES)
    assert graph.x.shape == (200, WIDTH)
    assert torch.equal(graph.degree, torch.bincount(graph.edge_index[1], minlength=200))
    arcs = sorted(map(tuple, graph.edge_index.t().tolist()))
    assert arcs == sorted(map(tuple, graph.edge_index.flip(0).t().tolist()))


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides(kind):
    first, again, other = (GraphSpec(kind, nodes=100, distinct=8, seed=seed).make() for seed in (0, 0, 1))
    for name in ("edge_index", "x", "y"):
        assert torch.equal(getattr(first, name), getattr(again, name))
    assert not torch.equal(first.edge_index, other.edge_index)


@given(distinct=st.integers(1, 40), nodes=st.integers(100, 400), mean=st.integers(1, 30))
def test_a_degree_sequence_has_exactly_those_degrees_and_arcs(distinct, nodes, mean):
    arcs = 2 * (nodes * mean // 2)
    try:
        degree = degree_sequence(nodes, arcs, distinct)
    except DemonetError:
        # Refused only where half of the arcs as a ladder leave too many or too few for the others.
        assert nodes * mean < distinct * (distinct + 1) + nodes or mean > distinct / 2
        return
    assert (degree.numel(), int(degree.sum())) == (nodes, arcs)
    assert torch.unique(degree).tolist() == list(range(1, distinct + 1))


def test_the_configuration_model_keeps_every_degree():
    degree = degree_sequence(500, 2000, 20)
    edge_index = configuration(degree, torch.Generator().manual_seed(0))
    assert torch.equal(torch.bincount(edge_index[0], minlength=500), degree)
    assert torch.equal(torch.bincount(edge_index[1], minlength=500), degree)


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        (GraphSpec("uniform", nodes=1), r"\b1\b.*\b2\b"),
        (GraphSpec("degrees", nodes=100, distinct=90), r"degrees\b.*\b1\b.*\b90\b"),
        (GraphSpec("degrees", nodes=100), r"degrees\b.*\b1\b.*\b0\b"),
        (GraphSpec("brasil"), "brasil"),
    ],
)
def test_impossible_graphs_are_refused_by_name(spec, part):
    with pytest.raises(DemonetError, match=part):
        spec.make()
