"""The CPU kernels against the reference that defines them, in every dtype and at awkward widths."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed, features, graphs, seeds

from demonet.errors import DemonetError
from demonet.ops import (
    aggregate,
    cpu,
    degree_linear,
    degree_linear_rows,
    degree_pool,
    linear_cross_entropy,
    neighbour_lists,
    reference,
)

DTYPES = (torch.float64, torch.float32, torch.bfloat16)


def close(found, exact):
    """As close to the exact (float64) result as the dtype's own precision allows."""
    rtol = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}[found.dtype]
    torch.testing.assert_close(found.double(), exact, rtol=rtol, atol=rtol * max(1.0, float(exact.abs().max())))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("width", "aggr", "weighted"), [(1, "sum", True), (5, "mean", False), (17, "sqrt", True)])
def test_aggregate(dtype, width, aggr, weighted):
    graph = drawn_by_seed(40, 90, 3)
    pointer, neighbours, _ = neighbour_lists(*graph, graph.num_nodes)
    x = features(40, width, 0).to(dtype)
    weight = features(neighbours.numel(), 1, 1)[:, 0].to(dtype) if weighted else None
    exact = reference.aggregate(x.double(), pointer, neighbours, None if weight is None else weight.double(), aggr)
    for small in (False, True):  # 32-bit lists, as a layout has them, and 64-bit ones
        lists = (pointer.int(), neighbours.int()) if small else (pointer, neighbours)
        found = cpu.aggregate(x, *lists, weight, aggr)
        assert found.dtype == dtype
        close(found, exact)
    close(reference.aggregate(x, pointer, neighbours, weight, aggr), exact)


def test_aggregate_of_columns_that_are_not_contiguous():
    graph = drawn_by_seed(20, 30)
    lists = neighbour_lists(*graph, 20)[:2]
    x = features(6, 20, 0).t()
    assert torch.equal(aggregate(x, lists), aggregate(x.contiguous(), lists))


def test_a_hub_beyond_the_16_bit_numbers():
    """65,504 is the largest half: a mean over 70,000 neighbours is not their sum divided by infinity."""
    pointer, neighbours = torch.tensor([0, 70_000]), torch.zeros(70_000, dtype=torch.long)
    x = torch.full((1, 1), 0.5, dtype=torch.float16)
    assert cpu.aggregate(x, pointer, neighbours, None, "mean").item() == pytest.approx(0.5, rel=1e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("task", [[0, 1, 2, 3], [3, 3, 0, 1], [2, -1, 2, 0], [1, 0, -1, -1], [-1, -1, -1, -1]])
def test_degree_linear_and_outer(dtype, turned, task):
    """Groups in order, matrices that are shared or unused, an empty group, the zero map; transposed, as derivatives."""
    offsets, task = torch.tensor([0, 7, 7, 30, 41]), torch.tensor(task)
    x, y = features(41, 5, 0).to(dtype), features(41, 3, 2).to(dtype)
    weight = features(20, 3, 1).view(4, 5, 3).to(dtype)
    if turned:
        x, y, weight = (one.mT.contiguous().mT for one in (x, y, weight))
    found = cpu.degree_linear(x, weight, offsets, task)
    assert found.dtype == dtype
    close(found, reference.degree_linear(x.double(), weight.double(), offsets, task))
    wanted = reference.degree_outer(x.double(), y.double(), offsets, task, 4)
    close(cpu.degree_outer(x, y, offsets, task, 4), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "classes"), [(40, 3), (4096, 3), (4096, 16)])
def test_a_linear_head_and_its_loss(dtype, rows, classes):
    """Row by row and, for few classes of many rows, class by class; and the derivatives that are written out."""
    given = [features(rows, 5, 0), features(classes, 5, 1), features(1, classes, 2)[0]]
    target, share = torch.arange(rows) % classes, torch.rand(rows, generator=torch.Generator().manual_seed(0)) / rows
    given = [one.to(dtype).requires_grad_() for one in given]
    exact = [one.detach().double().requires_grad_() for one in given]
    wanted = (
        torch.nn.functional.cross_entropy(torch.nn.functional.linear(*exact), target, reduction="none") @ share.double()
    )
    found = linear_cross_entropy(*given, target, share)
    by, written = torch.autograd.grad(found, given), [one.detach() for one in given]
    written = reference.linear_cross_entropy_backward(torch.tensor(1.0).to(found), *written, target, share)
    close(found.to(dtype), wanted.detach())
    for one, other, right in zip(by, written, torch.autograd.grad(wanted, exact), strict=True):
        close(one, right)
        close(other, right)


@given(tasks=st.lists(st.integers(-1, 3), max_size=12), seed=seeds)
def test_rows_in_any_order_are_each_multiplied_by_their_own_matrix(tasks, seed):
    x, weight = features(len(tasks), 3, seed), features(12, 2, seed + 1).view(4, 3, 2)
    expected = [torch.zeros(2, dtype=torch.float64) if t < 0 else x[v] @ weight[t] for v, t in enumerate(tasks)]
    found = degree_linear_rows(x, weight, torch.tensor(tasks, dtype=torch.long))
    torch.testing.assert_close(found, torch.stack(expected) if expected else x.new_zeros(0, 2))


@given(graph=graphs(min_nodes=0))
def test_neighbour_lists_are_sorted_by_target_then_source(graph):
    pointer, neighbours, arc = neighbour_lists(*graph, graph.num_nodes)
    arcs = sorted((target, source, i) for i, (source, target) in enumerate(graph.edge_index.t().tolist()))
    assert neighbours.tolist() == [source for _, source, _ in arcs]
    assert arc.tolist() == [i for _, _, i in arcs]
    assert pointer.tolist() == [sum(t < v for t, _, _ in arcs) for v in range(graph.num_nodes + 1)]


def test_float64_stays_float64_under_autocast():
    x, weight = features(4, 3, 0), features(6, 2, 1).view(2, 3, 2)
    offsets, task = torch.tensor([0, 1, 4]), torch.tensor([1, 0])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert degree_linear(x, weight, offsets, task).dtype == torch.float64
        assert degree_linear(x.float(), weight.float(), offsets, task).dtype == torch.bfloat16


@pytest.mark.parametrize("empty", [False, True])
def test_unknown_names_are_refused(empty):
    graph = drawn_by_seed(4, 0 if empty else 5)
    x, lists = features(4, 2, 0), neighbour_lists(*graph, 4)[:2]
    with pytest.raises(DemonetError, match="'max'"):
        aggregate(x, lists, aggr="max")
    with pytest.raises(DemonetError, match="'max'"):
        degree_pool(x, torch.zeros(4, dtype=torch.long), torch.zeros(4, dtype=torch.long), 1, 1, "max")


def test_neighbour_lists_refuse_bad_arcs():
    with pytest.raises(DemonetError, match=r"\b3\b.*edge_index\[0, 1\]"):
        neighbour_lists(torch.tensor([[0, 3], [1, 0]]), 3, 2)
