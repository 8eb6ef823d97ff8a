"""The demo: every method on every problem, and mirrored nodes in one place."""

import math

import pytest
import torch
from tests.reference.kernels import wl_colours

from demonet.data.synthetic import flip_graph
from demonet.runs import demo
from demonet.train import preset


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def result(told):
    """The demo with networks that hardly train."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "EPOCHS", 3)
        patch.setattr(demo, "flip_graph", lambda seed: flip_graph(seed, num_nodes=300))
        return demo.run(splits=1, on_step=told.append)


def test_every_method_is_measured_on_every_problem(result):
    assert demo.METHODS == ("demonet-weight", "demonet-hash", "demonet-smooth", "gcn", "degree-knn")
    for part in (result.roles, result.graphs):
        assert set(part.accuracy) == set(demo.METHODS)
        assert all(len(runs) == 1 and 0 <= runs[0] <= 1 for runs in part.accuracy.values())
        assert set(part.curves) == set(demo.METHODS) - {"degree-knn"}
        assert all(history.epochs == 3 for history in part.curves.values())


def test_the_flip_has_every_method_and_who_was_right(result):
    flip = result.flip
    assert set(flip.comparison.accuracy) == set(flip.right) == set(demo.FLIP_METHODS)
    assert flip.ceiling == 0.95
    for method, (accuracy,) in flip.comparison.accuracy.items():
        assert len(flip.right[method]) == len(flip.degree) == 100
        assert flip.right[method].mean() == accuracy
    assert set(flip.comparison.curves) == {"demonet-default", "gcn", "gcn + degree", "sage + degree"}


def test_the_closed_form_learns_the_flip_by_the_degree_alone(result):
    """Without the degree-specific part, or with the degrees of other nodes, it is at chance (100 nodes: ± .1)."""
    accuracy = {method: runs[0] for method, runs in result.flip.comparison.accuracy.items()}
    assert accuracy["kernel"] > 0.7
    assert accuracy["kernel, s_d = 0"] < 0.65
    assert accuracy["kernel, shuffled degrees"] < 0.65


def test_steps_are_told_and_counted(result, told):
    assert len(told) == demo.steps(1) == 20
    assert told[0] == "Roles in a graph, split 1: demonet-weight"
    assert told[-1].startswith("Mirrored karate club")


def test_mirrored_nodes_fall_together(result):
    mirror = result.mirror
    assert mirror.other_distance > 0
    assert mirror.mirrored_distance < 1e-5 * mirror.other_distance
    assert mirror.xy.shape == (68, 2)
    spread = mirror.xy.std(0)
    assert (spread[0] >= spread[1]).item()  # principal components, the larger first
    assert (mirror.xy - mirror.xy[mirror.data.mirror]).abs().max() < 1e-5 * spread[0]


def test_nodes_fall_together_where_their_subtrees_are_equal_and_nowhere_else(result):
    """The degree is a round of WL refinement, and every layer one more."""
    (*_, colours) = wl_colours(result.mirror.data, 1 + preset("default", "nodes").model.layers)
    equal = torch.tensor([[one == two for two in colours] for one in colours])
    distance = torch.cdist(result.mirror.xy, result.mirror.xy)
    assert torch.equal(distance < 1e-5 * distance.max(), equal)
    assert equal.sum(1).min() == 2  # a node and its mirror


def test_mean_deviation_and_interval_by_hand():
    """Runs .5, .6, .7: deviation .1; t(.975, 2) = 4.3027; .1 / sqrt(3) = .057735."""
    part = demo.Comparison("", accuracy={"a": [0.5, 0.6, 0.7], "b": [0.5]})
    assert part.row("a") == pytest.approx((0.6, 0.1, 4.302653 * 0.0577350), rel=1e-5)
    mean, deviation, half = part.row("b")
    assert mean == 0.5
    assert math.isnan(deviation)
    assert math.isnan(half)
