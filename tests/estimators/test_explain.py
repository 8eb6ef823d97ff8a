"""Explanations: the parts of a score add up and match loops over the equation, and name what the user named."""

import networkx as nx
import pytest
import torch
from tests.estimators.problems import QUICK, club, roles, words

from demonet import DEMOConv, DEMONetClassifier, DemonetError
from demonet.estimators import Explanation
from demonet.estimators.explain import _surroundings

CASES = {
    "default": (roles, {}),
    "authors": (roles, {"preset": "authors"}),
    "hash of attributes": (words, {"preset": "paper", "scheme": "hash"}),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    data, options = CASES[request.param][0](), CASES[request.param][1]
    fitted = DEMONetClassifier(**QUICK, **options).fit(data)
    return fitted, data, fitted.explain(7)


@pytest.mark.parametrize("options", [{"effort": "quick"}, {"model": "network", "epochs": 30}])
def test_importance_of_an_estimator_is_measured_on_validation_items(options):
    made = DEMONetClassifier(**options).fit(roles())
    found = {row["name"]: row for row in made.importance()}
    assert {"structure", "neighbours", "degree"} <= set(found)
    assert found["structure"]["value"] > 0, "roles are the structure"
    low, high = found["structure"]["interval"]
    assert low <= found["structure"]["value"] <= high
    assert made.importance() == list(found.values())


def test_importance_needs_the_labels_and_a_model_that_has_not_seen_them(tmp_path):
    made = DEMONetClassifier(model="kernel").fit(roles())
    with pytest.raises(DemonetError, match="has seen all labels"):
        made.importance()
    made.save(tmp_path / "m.safetensors")
    with pytest.raises(DemonetError, match="was loaded"):
        DEMONetClassifier.load(tmp_path / "m.safetensors").importance()


def test_it_is_about_the_prediction_that_was_made(case):
    fitted, data, explanation = case
    probability = fitted.predict_proba([7])[0]
    assert explanation.prediction == fitted.predict([7])[0] == fitted.classes_[probability.argmax()]
    assert explanation.confidence == pytest.approx(probability.max(), abs=1e-5)
    assert explanation.item == 7
    assert explanation.degree == int((data.edge_index[1] == 7).sum())
    scores = fitted.model_(fitted.fitted_.model.prepare(fitted.graph_))[7]
    assert explanation.network.score == pytest.approx(float(scores.max().detach()), abs=1e-4)


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
    found = fitted.explain(9)
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
    parts = fitted.explain(3).network
    assert parts.own == parts.seed == 0
    assert parts.shared == pytest.approx(parts.score - parts.rest, abs=1e-12)
    assert parts.interaction == pytest.approx(0, abs=1e-12)


def test_the_surroundings_give_the_score_of_the_whole_graph(case):
    fitted, data, _ = case
    x = fitted.features_.transform(fitted.graph_)
    with torch.no_grad():
        whole = fitted.model_(fitted.fitted_.model.prepare(fitted.graph_))
        for node in range(0, data.num_nodes, 9):
            inputs, place = _surroundings(fitted.model_, fitted.graph_, x, node)
            torch.testing.assert_close(fitted.model_(*inputs)[place], whole[node], atol=1e-4, rtol=1e-4)


def test_names_and_repetition():
    graph, people, sides = club()
    fitted = DEMONetClassifier(graph=graph, **QUICK).fit(people, sides)
    one, two = (fitted.explain("person 11") for _ in range(2))
    assert one == two
    assert isinstance(one, Explanation)
    assert (one.item, one.degree, one.task) == ("person 11", 1, "1")
    assert [(reason.kind, reason.name) for reason in one.reasons] == [("neighbour", "person 0")]


def test_another_graph_another_class_an_isolated_node_and_bad_input():
    fitted = DEMONetClassifier(**QUICK).fit(roles())
    for model, task in ((fitted, "4+"), (DEMONetClassifier(preset="default", **QUICK).fit(roles()), "unseen")):
        star = model.explain(0, graph=nx.star_graph(40))
        assert (star.degree, star.task) == (40, task)
    alone = fitted.explain(1, graph=nx.empty_graph(2))
    assert (alone.degree, alone.reasons) == (0, [])
    assert alone.network.shared == alone.network.own == 0, "no neighbours, nothing but the seed"
    for output in (0, 1):
        assert fitted.explain(7, output=output).prediction == fitted.classes_[output]
    with pytest.raises(DemonetError, match="'nobody'"):
        fitted.explain("nobody")
