"""The networks of the bench: what is compared computes what it says, whatever form its input has."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from demonet import DegreeLayout, DemonetError
from demonet_study.bench.graphs import CLASSES, KINDS, WIDTH, GraphSpec, configuration, degree_sequence
from demonet_study.bench.methods import METHODS, build
from demonet_study.bench.step import training_step

GRAPH = GraphSpec("uniform", nodes=60).make()
HERE = [name for name in METHODS if name != "dgl"]


@pytest.mark.parametrize("name", HERE)
def test_every_network_learns(name):
    torch.manual_seed(0)
    built = build(METHODS[name], GRAPH, "float32")
    assert built.model(*built.inputs).shape == (60, 16)
    step = training_step(built)
    losses = [float(step()) for _ in range(60)]
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])


@pytest.mark.parametrize(("one", "other"), [("gcn", "gcn-csr"), ("sage", "sage-csr"), ("gin", "gin-csr")])
def test_two_forms_of_one_network_give_the_same_scores(one, other):
    first, second = (build(METHODS[name], GRAPH, "float32") for name in (one, other))
    second.model.load_state_dict(first.model.state_dict())
    torch.testing.assert_close(first.model(*first.inputs), second.model(*second.inputs), rtol=1e-4, atol=1e-5)


def test_prepared_and_unprepared_inputs_give_the_same_scores():
    first, second = (build(METHODS[name], GRAPH, "float32") for name in ("weight", "weight-lean"))
    second.model.load_state_dict(first.model.state_dict())
    torch.testing.assert_close(first.model(*first.inputs), second.model(*second.inputs))


@pytest.mark.parametrize("other", ["module-once", "module-csr", "module-edges", "module-sorted", "module-plain"])
def test_a_module_gives_the_same_scores_on_every_form_of_a_graph(other):
    first, second = (build(METHODS[name], GRAPH, "float32") for name in ("module", other))
    second.model.load_state_dict(first.model.state_dict())
    rank = DegreeLayout.from_edge_index(GRAPH.edge_index, 60).rank
    scores = first.model(*first.inputs)[rank]
    again = second.model(*second.inputs)
    torch.testing.assert_close(again[rank] if other == "module-once" else again, scores, rtol=1e-4, atol=1e-5)


def test_our_labels_follow_their_nodes_into_degree_order():
    built = build(METHODS["weight"], GRAPH, "float32")
    row = {tuple(x.tolist()): int(y) for x, y in zip(GRAPH.x, GRAPH.y, strict=True)}
    assert [row[tuple(x.tolist())] for x in built.inputs[0].x] == built.y.tolist()


def test_bfloat16_holds_everything_in_it():
    for name in ("weight", "mlp"):
        built = build(METHODS[name], GRAPH, "bfloat16")
        assert {parameter.dtype for parameter in built.model.parameters()} == {torch.bfloat16}
        assert built.model(*built.inputs).dtype == torch.bfloat16


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", ["mlp", "gin", "weight"])
def test_a_captured_epoch_is_the_epoch(name):
    graph = GraphSpec("uniform", nodes=500).make("cuda")
    losses = []
    for mode in ("eager", "graphed"):
        built = build(METHODS[name], graph, "float32")
        step = training_step(built, mode=mode)
        losses.append([float(step()) for _ in range(30)])
    eager, graphed = (torch.tensor(curve) for curve in losses)
    torch.testing.assert_close(graphed[:20], eager[4:24], rtol=1e-3, atol=1e-3)  # four epochs went into the capture


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_is_undirected_and_has_features_and_labels(kind):
    graph = GraphSpec(kind, nodes=200, distinct=10).make()
    assert (graph.num_nodes, graph.num_arcs, graph.num_classes) == (200, 800, CLASSES)
    assert graph.x.shape == (200, WIDTH)
    assert torch.equal(graph.degree, torch.bincount(graph.edge_index[1], minlength=200))
    arcs = sorted(map(tuple, graph.edge_index.t().tolist()))
    assert arcs == sorted(map(tuple, graph.edge_index.flip(0).t().tolist()))


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
