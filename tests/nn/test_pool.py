"""DegreePooling is Eq. 11, for any degrees; LinearCrossEntropy is F.cross_entropy of a linear map."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import features, seeds
from tests.reference.layers import degree_pooling

from demonet import DegreePooling, DegreeTasks, DemonetError, backend
from demonet.nn import LinearCrossEntropy

NODES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), max_size=10)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@given(nodes=NODES, seed=seeds, seen=st.none() | st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_equation_11(mode, nodes, seed, seen):
    """Any degrees, unseen ones and graphs without nodes included; values and gradients."""
    tasks = DegreeTasks.log2(4) if seen is None else DegreeTasks.exact(torch.tensor(seen))
    degree, batch = [d for d, _ in nodes], [b for _, b in nodes]
    h = features(len(nodes), 3, seed).requires_grad_()
    long = {"dtype": torch.long}
    found = DegreePooling(tasks, mode)(h, torch.tensor(degree, **long), torch.tensor(batch, **long), 3)
    expected = degree_pooling(h, degree, batch, 3, tasks, mode)
    assert found.shape == (3, tasks.num_tasks * 3)
    torch.testing.assert_close(found, expected)
    if nodes:
        ours, theirs = (torch.autograd.grad(out.sin().sum(), h)[0] for out in (found, expected))
        torch.testing.assert_close(ours, theirs)


def test_pairs_and_the_number_of_graphs():
    tasks = DegreeTasks.exact(torch.tensor([[1, 0], [0, 1]]))
    pairs = torch.tensor([[0, 1], [1, 0], [1, 1]])
    h = torch.tensor([[1.0], [2.0], [4.0]])
    assert DegreePooling(tasks)(h, pairs, None).tolist() == [[1, 2, 4]]
    batch = torch.tensor([0, 2, 2])
    assert DegreePooling(tasks)(h, pairs, batch).tolist() == [[1, 0, 0], [0, 0, 0], [0, 2, 4]]
    assert DegreePooling(tasks)(h, pairs, batch, 5).shape == (5, 3)
    assert DegreePooling(tasks)(h[:0], pairs[:0], batch[:0]).shape == (0, 3)


def test_compiled_with_a_given_number_of_graphs():
    torch._dynamo.reset()
    pool = DegreePooling(DegreeTasks.log2(8))
    compiled = torch.compile(pool, fullgraph=True, backend="aot_eager")
    h = features(6, 3, 0).requires_grad_()
    args = (torch.tensor([0, 1, 1, 3, 9, 2]), torch.tensor([0, 0, 1, 1, 1, 1]), 2)
    torch.testing.assert_close(compiled(h, *args), pool(h, *args))
    compiled(h, *args).sum().backward()
    assert torch.equal(h.grad, torch.ones_like(h))


@pytest.mark.parametrize(
    ("h", "degree", "batch", "named"),
    [
        (torch.ones(3, 2), torch.ones(2), torch.arange(3), r"\b2\b.*degrees\b.*\b3\b"),
        (torch.ones(3, 2), torch.ones(3), torch.arange(4), r"\b4\b.*batch\b.*\b3\b"),
        (torch.ones(3), torch.ones(3), None, r"\[3\]"),
        (torch.ones(3, 2), torch.ones(3, 1), None, r"degrees.*\[3, 1\]"),
        (torch.ones(3, 2), torch.ones(3), torch.zeros(3, 1).long(), r"batch.*\[3, 1\]"),
        (torch.ones(3, 2), [1, 1, 1], None, "degrees.*list"),
        (torch.ones(3, 2), torch.ones(3), [0, 0, 0], "batch.*list"),
        (torch.ones(3, 2), torch.ones(3), torch.zeros(3), "batch.*float32"),
        (torch.ones(3, 2), torch.ones(3), torch.tensor([0, -1, 0]), "node 1.*-1"),
        (torch.ones(3, 2), torch.tensor([1, -1, 1]), None, "degree of -1"),
    ],
)
def test_what_does_not_fit_or_is_no_tensor_is_refused_by_name(h, degree, batch, named):
    with pytest.raises(DemonetError, match=named):
        DegreePooling(DegreeTasks.log2(4))(h, degree, batch)


def test_unknown_mode_is_refused():
    with pytest.raises(DemonetError, match="'max'"):
        DegreePooling(DegreeTasks.log2(4), mode="max")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("rows", [7, 5000])  # many rows go class by class
def test_value_and_derivatives(bias, weighted, rows):
    torch.manual_seed(0)
    weight = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64) if weighted else None
    head = LinearCrossEntropy(4, 3, bias, class_weight=weight).double()
    h, y, mask = features(rows, 4, 0).requires_grad_(), torch.arange(rows) % 4 - 1, torch.arange(rows) % 3 > 0
    known = mask & (y >= 0)
    given = [h, *head.parameters()]
    for found, expected in (
        (head.loss(h, y, mask), F.cross_entropy(head(h)[known], y[known], weight)),
        (head.loss(h, y), F.cross_entropy(head(h), y, weight, ignore_index=-1)),
    ):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
        both = (torch.autograd.grad(one, given, retain_graph=True) for one in (found, expected))
        torch.testing.assert_close(*both, rtol=1e-10, atol=1e-12)


def test_it_is_a_linear_map():
    head, linear = LinearCrossEntropy(4, 3), torch.nn.Linear(4, 3)
    head.load_state_dict(linear.state_dict())
    h = features(5, 4, 0, torch.float32)
    torch.testing.assert_close(head(h), linear(h))
    with backend.override(path="reference"):
        torch.testing.assert_close(head.loss(h, torch.arange(5) % 3), F.cross_entropy(linear(h), torch.arange(5) % 3))


def test_shapes_are_checked():
    with pytest.raises(DemonetError, match="class_weight"):
        LinearCrossEntropy(4, 3, class_weight=torch.ones(2))
    with pytest.raises(DemonetError, match="5 rows"):
        LinearCrossEntropy(4, 3).loss(torch.zeros(5, 4), torch.zeros(4).long())
    for mask in (torch.tensor([1, 2]), torch.ones(5, 1).bool(), torch.ones(1).bool()):  # numbers of rows; two that fit
        with pytest.raises(DemonetError, match="mask entries"):
            LinearCrossEntropy(4, 3).loss(torch.zeros(5, 4), torch.zeros(5).long(), mask)
