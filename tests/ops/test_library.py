"""Every operator in torch.ops.demonet keeps the promises that compile and export rely on."""

import math

import pytest
import torch
from tests.reference.graphs import drawn_by_seed, features

from demonet.degree import DegreeLayout
from demonet.ops.library import library, ops

GRAPH = drawn_by_seed(12, 20, 0, undirected=False)
LAYOUT = DegreeLayout.from_edge_index(*GRAPH)
BACK = [LAYOUT.back_pointer, LAYOUT.back_neighbours, LAYOUT.back_entry]
OFFSETS, TASK = torch.tensor([0, 3, 3, 12]), torch.tensor([1, -1, 0])


TENSORS = [LAYOUT.offsets, LAYOUT.pointer, LAYOUT.neighbours, LAYOUT.back_pointer, LAYOUT.back_neighbours]


def leaf(*shape, seed):
    return features(math.prod(shape), 1, seed, torch.float32).view(shape).requires_grad_()


def x(width=3, seed=0):
    return leaf(12, width, seed=seed)


def edge_weights():
    return leaf(LAYOUT.num_edges, seed=5)


def matrices(count=2):
    return leaf(count, 3, 5, seed=1)


def stack():
    return matrices(LAYOUT.degrees.size(0))


def seed(width):
    return leaf(3, width, seed=2)


def bias(width):
    return leaf(width, seed=3)


def given():
    return x(7, seed=6), x(7, seed=7), x(), x(seed=4)


KEY, FACTORS = torch.tensor([5, 2**31 + 7]), (features(12 * 7, 1, 9, torch.float32)[:, 0] > 0) * 2.0
SHARE = features(12, 1, 8, torch.float32)[:, 0].abs()

CALLS = {
    "conv": [
        lambda: (x(), x(seed=4), seed(2), stack(), bias(7), TENSORS, None, 0.0, "sum", "concat", "elu", True),
        lambda: (x(), x(seed=4), seed(5), stack(), None, TENSORS, KEY, 0.4, "sum", "add", "relu", True),
        lambda: (x(), None, seed(2), stack(), bias(7), TENSORS, FACTORS, 0.4, "sum", "concat", "elu", True),
        lambda: (x(), None, seed(5), stack(), None, TENSORS, None, 0.0, "mean", "add", "none", False),
    ],
    "conv_backward": [
        lambda: (
            *(tensor.detach() for tensor in (*given(), seed(2), stack())),
            *(TENSORS, KEY, 0.4, "sum", "concat", "elu", True, [True] * 5, True),
        ),
        lambda: (
            *(tensor.detach() for tensor in (*given(), seed(2), stack())),
            *(TENSORS, None, 0.0, "sqrt", "concat", "relu", True, [True] * 5, False),
        ),
    ],
    "linear_cross_entropy": [
        lambda: (x(), seed(4).detach().t().requires_grad_(), bias(4), torch.arange(12) % 4, SHARE)
    ],
    "linear_cross_entropy_backward": [
        lambda: (torch.tensor(2.0), x().detach(), seed(4).detach().t(), bias(4).detach(), torch.arange(12) % 4, SHARE)
    ],
    "neighbour_lists": [
        lambda: (GRAPH.edge_index, 12, 12),
        lambda: (GRAPH.edge_index.int(), 12, 13),
        lambda: (GRAPH.edge_index[:, :0], 12, 12),
    ],
    "kept_lists": [
        lambda: (GRAPH.edge_index, 12, 12, True),
        lambda: (GRAPH.edge_index.int(), 12, 13, False),
    ],
    "aggregate": [
        lambda: (x(), LAYOUT.pointer, LAYOUT.neighbours, None, "sum", BACK, []),
        lambda: (x(), LAYOUT.pointer, LAYOUT.neighbours, edge_weights(), "mean", BACK, []),
        lambda: (x(), LAYOUT.pointer.long(), LAYOUT.neighbours.long(), edge_weights(), "sqrt", [], []),
    ],
    "dropout_noise": [lambda: (x().detach(), 40, 0.4)],
    "hash_functions": [lambda: (torch.arange(5)[:, None], torch.arange(7), 3, 11)],
    "degree_linear": [
        lambda: (x(), matrices(), OFFSETS, TASK),
        lambda: (x().double().detach().requires_grad_(), matrices().double(), OFFSETS, TASK),
    ],
    "degree_outer": [lambda: (x(), x(width=5, seed=4), OFFSETS, TASK, 2)],
    "degree_pool": [
        lambda: (x(), torch.arange(12) % 4, 5, "sum"),
        lambda: (x(), torch.arange(12) % 4, 5, "mean"),
    ],
}


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls])
def test_opcheck(name, call):
    torch.library.opcheck(getattr(ops, name).default, call())


def test_every_operator_is_checked():
    assert {name.split("::")[1] for name in library._op_defs} == set(CALLS)
