"""The CPU kernels against the reference that defines them, in every dtype and at awkward widths."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed, features, graphs, seeds

from demonet.errors import DemonetError
from demonet.ops import aggregate, cpu, degree_linear, degree_linear_rows, degree_pool, neighbour_lists, reference

DTYPES = (torch.float64, torch.float32, torch.bfloat16)
WIDTHS = (1, 3, 5, 8, 17)


def close(found, exact):
    """As close to the exact (float64) result as the dtype's own precision allows."""
    rtol = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}[found.dtype]
    torch.testing.assert_close(found.double(), exact, rtol=rtol, atol=rtol * max(1.0, float(exact.abs().max())))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("aggr", ["sum", "mean", "sqrt"])
@pytest.mark.parametrize("weighted", [False, True])
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
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("task", [[0, 1, 2, 3], [3, 3, 0, 1], [2, -1, 2, 0], [1, 0, -1, -1], [-1, -1, -1, -1]])
def test_degree_linear_and_outer(dtype, width, columns, task):
    """Groups in order, matrices that are shared or unused, an empty group, the zero map inside and at the end."""
    offsets, task = torch.tensor([0, 7, 7, 30, 41]), torch.tensor(task)
    x, y = features(41, width, 0).to(dtype), features(41, columns, 2).to(dtype)
    weight = features(4 * width, columns, 1).view(4, width, columns).to(dtype)
    found = cpu.degree_linear(x, weight, offsets, task)
    assert found.dtype == dtype
    assert found.is_contiguous()
    close(found, reference.degree_linear(x.double(), weight.double(), offsets, task))
    close(
        cpu.degree_outer(x, y, offsets, task, 4),
        reference.degree_outer(x.double(), y.double(), offsets, task, 4),
    )


@pytest.mark.parametrize("columns", [1, 2, 4, 5, 8])
@pytest.mark.parametrize("width", [1, 2, 4, 5, 8])
def test_rows_and_matrices_that_are_not_contiguous(width, columns):
    """Transposed, as derivatives hand them on, and columns cut out of something wider."""
    offsets, task = torch.tensor([0, 7, 30, 41]), torch.tensor([0, 1, 2])
    weight = features(3 * columns, width, 1).view(3, columns, width).transpose(1, 2)
    rows = features(41, 20, 0)
    y = features(41, columns, 2)
    for x in (rows[:, 3 : 3 + width], rows[:, :width], features(width, 41, 3).t()):
        close(
            cpu.degree_linear(x.float(), weight.float(), offsets, task),
            reference.degree_linear(x, weight, offsets, task),
        )
        views = [tensor.float().t().contiguous().t() for tensor in (x, y)]
        close(cpu.degree_outer(*views, offsets, task, 3), reference.degree_outer(x, y, offsets, task, 3))


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


def test_pool_by_hand():
    x = torch.tensor([[1.0], [2.0], [4.0], [8.0]])
    task, batch = torch.tensor([0, 2, 2, 0]), torch.tensor([0, 0, 0, 1])
    assert degree_pool(x, task, batch, 3, 2).tolist() == [[1, 0, 6], [8, 0, 0]]
    assert degree_pool(x, task, batch, 3, 2, "mean").tolist() == [[1, 0, 3], [8, 0, 0]]


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


@pytest.mark.parametrize(
    ("edge_index", "named"),
    [([[0, 3], [1, 0]], r"\b3\b.*edge_index\[0, 1\]"), ([[0, 1], [-1, 0]], "-1"), ([[0.5], [1.0]], "float32")],
)
def test_neighbour_lists_refuse_bad_arcs(edge_index, named):
    with pytest.raises(DemonetError, match=named):
        neighbour_lists(torch.tensor(edge_index), 3, 2)


@pytest.mark.parametrize("dtypes", [True, False])
@pytest.mark.parametrize("task", [[2, -1, 0], [1, 1, -1], [0, 1, 2]])
def test_without_a_grouped_product_groups_go_one_by_one(monkeypatch, override, dtypes, task):
    x, weight = torch.randn(9, 5), torch.randn(3, 5, 8)
    offsets, task = torch.tensor([0, 2, 5, 9]), torch.tensor(task)
    grouped = cpu.degree_linear(x, weight, offsets, task), cpu.degree_outer(x, x, offsets, task, 3)
    if dtypes:
        monkeypatch.setattr("demonet.ops.cpu.GROUPED_DTYPES", ())
    else:
        override(padded_entries=0)
    looped = cpu.degree_linear(x, weight, offsets, task), cpu.degree_outer(x, x, offsets, task, 3)
    for one, other in zip(grouped, looped, strict=True):
        torch.testing.assert_close(one, other)
