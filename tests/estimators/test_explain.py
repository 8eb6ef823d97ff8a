"""Explanations: the parts add up, match loops over the equation, and name what the user named."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from tests.estimators.problems import QUICK, club, roles, words
from torch_geometric.utils import k_hop_subgraph

from demonet import DEMOConv, DEMONetClassifier, DemonetError
from demonet.estimators import Explanation
from demonet.estimators.explain import _surroundings
from demonet.features.blocks import NUM_RADIAL, STRUCTURE_NAMES

CASES = {
    "default": (roles, {}),
    "authors": (roles, {"preset": "authors"}),
    "hash of attributes": (words, {"preset": "paper", "scheme": "hash"}),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    data, options = CASES[request.param][0](), CASES[request.param][1]
    fitted = DEMONetClassifier(**QUICK, **options).fit(data)
    return fitted, data, fitted.explain(7, epochs=5)


def test_it_is_about_the_prediction_that_was_made(case):
    fitted, data, explanation = case
    probability = fitted.predict_proba([7])[0]
    assert explanation.prediction == fitted.predict([7])[0] == fitted.classes_[probability.argmax()]
    assert explanation.confidence == pytest.approx(probability.max(), abs=1e-5)
    assert explanation.node == 7
    assert explanation.degree == int((data.edge_index[1] == 7).sum())
    scores = fitted.model_(fitted.fitted_.model.prepare(fitted.graph_))[7]
    assert explanation.network.score == pytest.approx(float(scores.max().detach()), abs=1e-4)


def test_another_class_has_other_reasons():
    fitted = DEMONetClassifier(**QUICK).fit(roles())
    predicted = int(fitted.predict_proba([7])[0].argmax())
    same, other = (fitted.explain(7, epochs=5, output=output) for output in (predicted, (predicted + 1) % 2))
    assert same.edges == fitted.explain(7, epochs=5).edges
    assert other.prediction == fitted.classes_[(predicted + 1) % 2]
    assert other.edges != same.edges


def test_the_parts_add_up(case):
    for parts in (case[2].network, case[2].last_layer):
        if parts is not None:
            total = parts.rest + parts.seed + parts.shared + parts.own + parts.interaction
            assert total == pytest.approx(parts.score, abs=1e-9)


def test_a_degree_specific_last_layer_is_linear(case):
    fitted, _, explanation = case
    assert (explanation.last_layer is not None) == isinstance(fitted.model_.head, DEMOConv)
    if explanation.last_layer is not None:
        assert explanation.last_layer.interaction == pytest.approx(0, abs=1e-9)
        assert explanation.last_layer.score == explanation.network.score


@pytest.mark.parametrize("scheme", ["weight", "hash", "smooth"])
def test_parts_of_one_convolution_by_hand(scheme):
    r"""``default`` on attributes is :math:`W_0 x_v + (W_g + W_d) \bar x_{N(v)} + b`: each term on its own."""
    data = words()
    fitted = DEMONetClassifier(preset="default", scheme=scheme, **QUICK).fit(data)
    found = fitted.explain(9, epochs=1)
    conv, x = fitted.model_.head.requires_grad_(False), fitted.features_.transform(fitted.graph_)
    neighbours = data.edge_index[0][data.edge_index[1] == 9]
    mean = x[neighbours].mean(0)
    column = fitted.classes_.tolist().index(found.prediction)
    own = conv.degree_weight(torch.tensor([len(neighbours)]))[0] - conv.weights.shared
    by_hand = {
        "rest": conv.bias[column],
        "seed": conv.seed.weight[column] @ x[9],
        "shared": mean @ conv.weights.shared[:, column],
        "own": mean @ own[:, column],
        "interaction": 0.0,
    }
    for parts in (found.network, found.last_layer):
        for name, value in by_hand.items():
            assert getattr(parts, name) == pytest.approx(float(value), abs=1e-5), name


def test_a_part_that_is_zero_has_no_part_in_it():
    fitted = DEMONetClassifier(preset="paper", **QUICK).fit(roles())
    with torch.no_grad():
        for module in fitted.model_.modules():
            if isinstance(module, DEMOConv):
                module.weights.own.zero_()
                module.seed.weight.zero_()
    parts = fitted.explain(3, epochs=1).network
    assert parts.own == parts.seed == 0
    assert parts.shared == pytest.approx(parts.score - parts.rest, abs=1e-12)
    assert parts.interaction == pytest.approx(0, abs=1e-12)


def test_arcs_are_those_that_the_score_depends_on(case):
    fitted, data, explanation = case
    hops = sum(isinstance(module, DEMOConv) for module in fitted.model_.modules())
    _, arcs, _, _ = k_hop_subgraph(7, hops, data.edge_index)
    present = set(map(tuple, arcs.t().tolist()))
    assert explanation.edges
    assert {(arc.source, arc.target) for arc in explanation.edges} <= present
    assert 7 in {arc.target for arc in explanation.edges}
    for found in (explanation.edges, explanation.features):
        importance = [one.importance for one in found]
        assert importance == sorted(importance, reverse=True)
        assert all(0 <= value <= 1 for value in importance)


def test_the_surroundings_give_the_score_of_the_whole_graph(case):
    fitted, data, _ = case
    x = fitted.features_.transform(fitted.graph_)
    with torch.no_grad():
        whole = fitted.model_(fitted.fitted_.model.prepare(fitted.graph_))
        for node in range(0, data.num_nodes, 9):
            _, inputs, place = _surroundings(fitted.model_, fitted.graph_, x, node)
            torch.testing.assert_close(fitted.model_(*inputs)[place], whole[node], atol=1e-4, rtol=1e-4)


def test_names_seed_and_repetition():
    graph, people, sides = club()
    fitted = DEMONetClassifier(graph=graph, **QUICK).fit(people, sides)
    state = torch.get_rng_state()
    one, two = (fitted.explain("person 11", epochs=3) for _ in range(2))
    assert one == two
    assert torch.equal(state, torch.get_rng_state())
    assert isinstance(one, Explanation)
    assert (one.node, one.degree, one.task) == ("person 11", 1, "1")
    assert {one.edges[0].source, one.edges[0].target} <= set(people)
    radial = {f"degree-rbf {column}" for column in range(NUM_RADIAL)}
    assert {feature.name for feature in one.features} <= {*radial, *STRUCTURE_NAMES}
    assert (
        one.edges
        != DEMONetClassifier(graph=graph, random_state=1, **QUICK)
        .fit(people, sides)
        .explain("person 11", epochs=3)
        .edges
    )
    np.testing.assert_array_equal(fitted.predict_proba(), fitted.predict_proba(graph=graph))
    assert not any(module.explain for module in fitted.model_.modules() if isinstance(module, DEMOConv))


def test_another_graph_an_isolated_node_and_bad_input():
    fitted = DEMONetClassifier(**QUICK).fit(roles())
    for model, task in ((fitted, "4+"), (DEMONetClassifier(preset="default", **QUICK).fit(roles()), "unseen")):
        star = model.explain(0, graph=nx.star_graph(40), epochs=2)
        assert (star.degree, star.task) == (40, task)
    alone = fitted.explain(1, graph=nx.empty_graph(2), epochs=2)
    assert (alone.degree, alone.edges) == (0, [])
    assert alone.features, "its own features still moved it"
    assert alone.network.shared == alone.network.own == 0, "no neighbours, nothing but the seed"
    with pytest.raises(DemonetError, match="'nobody'"):
        fitted.explain("nobody")
    with pytest.raises(DemonetError, match=r"epochs=0\b.*\b1\b"):
        fitted.explain(0, epochs=0)
