"""A convolution is seed + shared + degree: what a network without one of them lacks is exactly that term."""

import pytest
import torch
from tests.reference.graphs import features, from_arcs
from tests.reference.layers import PAPER
from tests.train import problems

from demonet import DegreeTasks, DEMOConv, DemonetError, NodeDEMONet
from demonet.train import train_nodes

GRAPH = from_arcs(7, [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4), (5, 5), (2, 4)], undirected=True)
DEGREE = torch.bincount(GRAPH.edge_index[1], minlength=7)
TASKS = DegreeTasks.exact(DEGREE)
MATRIX = {"seed": "seed.weight", "shared": "weights.shared", "degree": "weights.own"}


def one_layer(without="none", **changes):
    """Scores straight from the input: linear in the three terms."""
    torch.manual_seed(0)
    options = {"layers": 0, "head": "degree", "bias": True, "dropout": 0.0} | changes
    return NodeDEMONet(3, 4, TASKS, PAPER, without=without, **options).double()


@pytest.mark.parametrize("scheme", ["weight", "smooth"])
@pytest.mark.parametrize("term", ["seed", "shared", "degree"])
def test_what_is_lacking_is_the_term(scheme, term):
    """Eq. 5-7 node by node: W_0 x_v, W_g a_v, W_d a_v with a_v the sum over the neighbours of v."""
    x = features(7, 3, 1)
    whole = one_layer(scheme=scheme)
    lacking = whole(x, GRAPH.edge_index) - one_layer(term, scheme=scheme)(x, GRAPH.edge_index)
    source, target = GRAPH.edge_index
    for v in range(7):
        a = x[source[target == v]].sum(0)
        own = whole.head.degree_weight(DEGREE[v : v + 1])[0] - whole.head.weights.shared
        terms = {"seed": whole.head.seed.weight @ x[v], "shared": a @ whole.head.weights.shared, "degree": a @ own}
        torch.testing.assert_close(lacking[v], terms[term], rtol=1e-10, atol=1e-10)


def test_the_layer_is_made_without_it():
    conv = DEMOConv(3, 4, TASKS, combine="add", without="degree")
    assert {name for name, _ in conv.named_parameters()} == {"bias", "seed.weight", "weights.shared"}


@pytest.mark.parametrize("term", ["shared", "degree"])
def test_one_matrix_serves_both_terms_of_the_hash_scheme(term):
    with pytest.raises(DemonetError, match=rf"without='{term}'.*\bhash\b"):
        PAPER.changed(scheme="hash", without=term)
    with pytest.raises(DemonetError, match=r"without='both'.*'none', 'seed', 'shared', 'degree'"):
        PAPER.changed(without="both")


@pytest.mark.parametrize("term", ["seed", "shared", "degree"])
def test_training_leaves_it_at_zero(term):
    preset = problems.quick("paper", "nodes", model={"hidden": 8, "without": term}, epochs=5)
    model = train_nodes(*problems.nodes(), preset, seed=0).model
    owner, name = MATRIX[term].split(".")
    for layer in model.layers:
        assert int(layer.conv.get_parameter("seed.weight" if term != "seed" else "weights.own").count_nonzero())
        assert int(getattr(layer.conv.get_submodule(owner), name).count_nonzero()) == 0
    assert MATRIX[term] not in "".join(name for name, _ in model.named_parameters())


def test_an_open_width_is_refused():
    with pytest.raises(DemonetError, match="in_channels=-1"):
        NodeDEMONet(-1, 3, TASKS, PAPER, without="seed")
