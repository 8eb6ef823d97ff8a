"""DegreePooling is Eq. 11, for graphs whose degrees need not be those of the tasks."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import features, seeds
from tests.reference.layers import degree_pooling

from demonet.degree import DegreeTasks
from demonet.errors import DemonetError
from demonet.nn import DegreePooling

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


def test_by_hand():
    pool = DegreePooling(DegreeTasks.exact(torch.tensor([1, 2])))
    h = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0], [8.0, 80.0]])
    assert pool(h, torch.tensor([1, 2, 1, 5]), None).tolist() == [[5, 50, 2, 20, 8, 80]]
    mean = DegreePooling(DegreeTasks.exact(torch.tensor([1, 2])), mode="mean")
    assert mean(h, torch.tensor([1, 2, 1, 5]), None).tolist() == [[2.5, 25, 2, 20, 8, 80]]


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
    ("degrees", "batch", "named"), [(2, 3, r"\b2\b.*degrees\b.*\b3\b"), (3, 4, r"\b4\b.*batch\b.*\b3\b")]
)
def test_what_does_not_fit_is_refused_by_name(degrees, batch, named):
    pool = DegreePooling(DegreeTasks.log2(4))
    with pytest.raises(DemonetError, match=named):
        pool(torch.ones(3, 2), torch.ones(degrees).long(), torch.arange(batch) % 2, 2)


def test_unknown_mode_is_refused():
    with pytest.raises(DemonetError, match="'max'"):
        DegreePooling(DegreeTasks.log2(4), mode="max")
