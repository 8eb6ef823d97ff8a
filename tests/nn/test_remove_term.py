"""A convolution is seed + shared + degree: what a network without one of them lacks is exactly that term."""

import copy

import pytest
import torch
from tests.reference.graphs import features, from_arcs
from tests.reference.layers import PAPER
from tests.train import problems

from demonet import DegreeTasks, DEMOConv, DEMONet, DemonetError, NodeDEMONet
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


REMOVABLE = [
    (scheme, term)
    for scheme, terms in {"weight": ("seed", "shared", "degree"), "smooth": ("seed", "shared", "degree"),
                          "hash": ("seed",), "scale": ("seed", "degree")}.items()
    for term in terms
]  # fmt: skip


def removed(module):
    """What layers without a term have in its place."""
    return [
        buffer
        for name, buffer in module.named_buffers()
        if name.split(".")[-1] in ("weight", "shared", "own", "gamma", "shift")
    ]


def made(scheme, without="none"):
    torch.manual_seed(0)
    return DEMOConv(3, 4, TASKS, scheme=scheme, combine="add", without=without)


@pytest.mark.parametrize(("scheme", "term"), REMOVABLE)
def test_nothing_fills_it_again(scheme, term):
    conv = made(scheme, term)
    assert removed(conv)
    conv.reset_parameters()
    assert not any(zero.any() for zero in removed(conv))
    for part in conv.modules():  # in any order
        if part is not conv and hasattr(part, "reset_parameters"):
            part.reset_parameters()
    assert not any(zero.any() for zero in removed(conv))
    with torch.device("meta"):
        empty = DEMOConv(3, 4, TASKS, scheme=scheme, combine="add", without=term)
    assert all(zero.is_meta for zero in removed(empty))
    ones = conv._apply(lambda tensor: torch.full_like(tensor, 7))  # as to_empty: any value may be there
    assert not any(zero.any() for zero in removed(ones))
    assert not any(zero.any() for zero in removed(empty.to_empty(device="cpu")))
    model = DEMONet(3, 4, 2, tasks=TASKS, scheme=scheme, combine="add", without=term)
    model.reset_parameters()
    assert len(removed(model)) == 2 * len(removed(conv))
    assert not any(zero.any() for zero in removed(model))


@pytest.mark.parametrize(("scheme", "term"), REMOVABLE)
def test_a_state_that_has_the_term_is_refused(scheme, term):
    whole, conv = made(scheme), made(scheme, term)
    state = {
        name: torch.ones_like(value) if value.is_floating_point() else value
        for name, value in whole.state_dict().items()
    }
    with pytest.raises(DemonetError, match=r"term that was removed"):
        conv.load_state_dict(state)
    assert not any(zero.any() for zero in removed(conv))
    again = made(scheme, term)
    again.load_state_dict(conv.state_dict())  # saved without it
    whole.load_state_dict(conv.state_dict())  # zeros can be trained again in a whole layer


def test_it_stays_removed_in_a_copy_and_can_be_removed_again():
    conv = copy.deepcopy(made("smooth", "degree"))
    conv.remove_term("degree")
    conv.reset_parameters()
    assert not conv.weights.own.any()
    assert conv.weights.shared.any()
