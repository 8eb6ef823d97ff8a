"""Triton kernels against the definitions in float64, run on the CPU by Triton's interpreter.

Graphs have hubs (lists that are summed chunk by chunk), degree 0, repeated degrees, parallel arcs and loops, and are
directed or not. The interpreter has no bfloat16 products: those are tested on a GPU, in test_cuda.py.
"""

from __future__ import annotations

from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from demonet.degree import DegreeLayout
from demonet.ops import Options, Weights, reference
from demonet.ops.graph import Graph
from demonet.ops.noise import Noise, keyed_factors
from demonet.ops.refine import Refine
from demonet.ops.schedule import gpu as schedule
from demonet.ops.schedule.gpu import CHUNK_EDGES as CHUNK
from demonet.ops.schedule.gpu import SHORT_LIST as SHORT
from demonet.ops.schedule.gpu import cut_groups, cut_lists

pytest.importorskip("triton")
if torch.cuda.is_available():
    pytest.skip("on a GPU the kernels are compiled: see test_cuda.py", allow_module_level=True)

from demonet.ops.triton import cross_entropy, gather, linear, pool, refine, rows
from demonet.ops.triton import operators as gpu

TOLERANCE = {torch.float32: 2e-5, torch.float16: 1e-2}
# No shrinking: a kernel in the interpreter is slow, and the draws are small already.
SLOW = settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
seeds = st.integers(0, 2**31)


@pytest.fixture(autouse=True, scope="module")
def hubs_are_cut():
    """Also those of small graphs, as in a graph with a very long list."""
    with mock.patch.object(schedule, "WHOLE_LIST", CHUNK):
        yield


def graph(seed: int, *, directed: bool) -> DegreeLayout:
    """A drawn graph with a hub longer than one chunk, a smaller one, and isolated nodes."""
    generator = torch.Generator().manual_seed(seed)
    n = int(torch.randint(70, 110, (), generator=generator))
    arcs = [torch.randint(0, n - 3, (2, 2 * n), generator=generator)]
    for target, size in ((0, CHUNK + 5), (1, SHORT + 1), (2, SHORT)):
        arcs.append(torch.stack([torch.randint(0, n - 3, (size,), generator=generator), torch.full((size,), target)]))
    edge_index = torch.cat(arcs, 1)
    if not directed:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
    return DegreeLayout.from_edge_index(edge_index, n).sorted()


def draw(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def assert_near(found: torch.Tensor, wanted: torch.Tensor, dtype: torch.dtype = torch.float32) -> None:
    assert found.shape == wanted.shape
    assert bool(torch.isfinite(found).all())
    error = (found.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1e-12)
    assert float(error.detach()) < TOLERANCE[dtype]


@SLOW
@given(
    seed=seeds,
    directed=st.booleans(),
    aggr=st.sampled_from(["sum", "mean", "sqrt"]),
    weighted=st.booleans(),
    longest=st.sampled_from([CHUNK, 2 * CHUNK]),
)
def test_aggregate(seed, directed, aggr, weighted, longest):
    """With lists that are cut and with lists that are whole, and so are made at once."""
    layout = graph(seed, directed=directed)
    scale = draw(layout.num_nodes, 1, seed=seed)
    x = draw(layout.num_nodes, 5, seed=seed)
    weight = draw(layout.num_edges, seed=seed).abs() if weighted else None
    for pointer, neighbours in (
        (layout.pointer, layout.neighbours),
        (layout.back_pointer.long(), layout.back_neighbours.long()),
    ):
        with mock.patch.object(schedule, "WHOLE_LIST", longest):
            tiles = cut_lists(pointer)
        assert gather.sums_at_once(tiles) == (int(pointer.diff().max()) <= longest)
        wide = None if weight is None else weight.double()
        wanted = reference.aggregate(x.double(), pointer, neighbours, wide, aggr)
        assert_near(gather.aggregate(x, pointer, neighbours, weight, aggr, tiles), wanted)
        assert_near(gather.aggregate(x, pointer, neighbours, weight, aggr, tiles, scale), wanted * scale)


@SLOW
@given(
    seed=seeds,
    directed=st.booleans(),
    aggr=st.sampled_from(["sum", "mean", "sqrt"]),
    combine=st.sampled_from(["concat", "add"]),
    activation=st.sampled_from(["none", "elu", "relu"]),
    widths=st.sampled_from([(5, 3, 4), (17, 8, 20), (32, 16, 16)]),
    has_bias=st.booleans(),
    dropout=st.booleans(),
    dtype=st.sampled_from(list(TOLERANCE)),
)
def test_convolution_and_its_derivatives(seed, directed, aggr, combine, activation, widths, has_bias, dropout, dtype):
    layout = graph(seed, directed=directed)
    columns, left, right = widths
    left = right if combine == "add" else left
    x = draw(layout.num_nodes, columns, seed=seed, dtype=dtype)
    seed_map = draw(columns, left, seed=seed + 1, dtype=dtype)
    matrices = draw(layout.degrees.size(0), columns, right, seed=seed + 2, dtype=dtype)
    bias = draw(right if combine == "add" else left + right, seed=seed + 3, dtype=dtype) if has_bias else None

    given = Weights(seed_map, matrices, bias), Graph.of(layout), Options(aggr, combine, activation)
    noise = Noise(torch.tensor([seed, 2**32 - 1 - seed]), 0.4) if dropout else None
    out, a = gpu.conv(x, None, *given, noise)
    again, _ = gpu.conv(x, a, *given, noise)
    torch.testing.assert_close(again, out, rtol=0, atol=0)  # sums given or gathered: the same bits

    wide = [t.double().requires_grad_() for t in (x, seed_map, matrices)]
    wide_bias = None if bias is None else bias.double().requires_grad_()
    wanted, sums = reference.conv(wide[0], None, Weights(*wide[1:], wide_bias), *given[1:], noise)
    assert_near(a, sums, dtype)
    assert_near(out, wanted, dtype)

    grad = draw(*out.shape, seed=seed + 4, dtype=dtype)
    if activation != "none":  # where rounding may flip the sign, both slopes are right
        grad = torch.where(wanted.detach().abs() > 0.1, grad.double(), 0.0).to(dtype)
    by = torch.autograd.grad(wanted, [*wide, *([] if wide_bias is None else [wide_bias])], grad.double())
    needs = (True, False, True, True, has_bias)
    found = gpu.conv_backward(grad, out, x, a, *given, needs, known=False, noise=noise)
    del found[1]
    for ours, theirs in zip(found, by, strict=False):
        assert_near(ours, theirs, dtype)


def test_tiles_of_several_blocks_give_the_same_bits(monkeypatch):
    """A large graph's tiles, on a small one: a ring with a hub, so that 200 rows have one degree."""
    ring, hub = torch.arange(200), torch.full((CHUNK + 5,), 200)
    edges = [torch.stack([ring, ring.roll(1)]), torch.stack([torch.arange(CHUNK + 5) % 40, hub])]
    edge_index = torch.cat(edges, 1)
    edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
    x, y = draw(201, 20, seed=0), draw(201, 16, seed=1)
    task, noise = torch.tensor([0, 1]), Noise(torch.tensor([3, 4]), 0.4)
    vectors = draw(4, 16, seed=5)
    refined = Refine(vectors[0], vectors[1], draw(16, 16, seed=6), vectors[2], 1e-5)
    found = []
    for size in (64, 192):
        monkeypatch.setattr(schedule, "tile_rows", lambda _count, size=size: size)
        monkeypatch.setattr(refine, "tile_rows", lambda _count, size=size: size)
        layout = DegreeLayout.from_edge_index(edge_index, 201).sorted()
        graph = Graph.of(layout)
        weights = Weights(draw(20, 16, seed=2), draw(layout.degrees.size(0), 20, 16, seed=3), vectors[3])
        given = weights, graph, Options("mean", "add", "relu")
        out, a = gpu.conv(x, None, *given, noise)
        by = gpu.conv_backward(y, out, x, a, *given, (True, False, True, True, True), known=False, noise=noise)
        by += gpu.conv_backward(y, out, x, a, *given, (True, True, True, True, True), known=True, noise=noise)
        sums = gather.aggregate(x, *graph.lists, None, "mean", graph.tiles)
        rest = linear.degree_linear(x, draw(2, 20, 8, seed=4), torch.tensor([0, 150, 201]), task)
        found.append([out, a, *by, sums, rest, *refine.refine(y, refined, noise)])
        assert graph.tiles.short.diff(dim=1)[:, 0].max() == (64 if size == 64 else 160)
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(("n", "columns"), [(1, 1), (65, 3), (130, 200)])
@pytest.mark.parametrize("p", [1e-12, 0.25, 0.999])
def test_dropout_is_what_follows_from_its_key(n, columns, p):
    x, noise = draw(n, columns, seed=1), Noise(torch.tensor([2**32 - 3, 9]), p)
    assert torch.equal(gpu.dropout(x, noise), x * keyed_factors(noise.values, n, columns, p))


@pytest.mark.parametrize(("n", "columns"), [(0, 3), (1, 1), (65, 3), (130, 200)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_rows_in_another_order(n, columns, dtype):
    x, index = draw(n, columns, seed=1, dtype=dtype), torch.randperm(n)
    assert torch.equal(rows.select_rows(x, index), x[index])
    assert torch.equal(rows.select_rows(x, index.int()), x[index])


def test_a_layout_permutes_with_the_kernel_and_its_derivative_permutes_back(override, monkeypatch):
    override(path="triton")
    layout = DegreeLayout.from_edge_index(torch.tensor([[0, 1, 2, 3, 3], [1, 0, 0, 0, 1]]), 5)
    called, kernel = [], rows.select_rows
    monkeypatch.setattr(rows, "select_rows", lambda *given: called.append(given) or kernel(*given))
    x = draw(5, 3, seed=1).requires_grad_()
    (layout.leave(layout.enter(x) ** 2) * torch.arange(5.0)[:, None]).sum().backward()
    assert torch.equal(x.grad, 2 * x.detach() * torch.arange(5.0)[:, None])
    assert len(called) == 4


@SLOW
@given(seed=seeds, widths=st.sampled_from([(3, 5), (70, 17), (130, 150)]), dtype=st.sampled_from(list(TOLERANCE)))
def test_grouped_products_of_any_width(seed, widths, dtype):
    layout = graph(seed, directed=True)
    columns, width = widths
    task = torch.randint(-1, 3, (layout.degrees.size(0),), generator=torch.Generator().manual_seed(seed))
    x, y = (draw(layout.num_nodes, size, seed=seed + size, dtype=dtype) for size in widths)
    weight = draw(3, columns, width, seed=seed + 1, dtype=dtype)
    found = linear.degree_linear(x, weight, layout.offsets, task)
    assert_near(found, reference.degree_linear(x.double(), weight.double(), layout.offsets, task), dtype)
    found = linear.degree_outer(x, y, layout.offsets, task, 3)
    assert_near(found, reference.degree_outer(x.double(), y.double(), layout.offsets, task, 3), dtype)


@SLOW
@given(seed=seeds, n=st.sampled_from([1, 40, 3000]), mode=st.sampled_from(["sum", "mean"]))
def test_pooling_of_few_and_of_many_rows_a_cell(seed, n, mode):
    x = draw(n, 3, seed=seed)
    cell = torch.randint(0, 2, (n,), generator=torch.Generator().manual_seed(seed)) * 2
    assert_near(pool.degree_pool(x, cell, 4, mode), reference.degree_pool(x.double(), cell, 4, mode))


@SLOW
@given(seed=seeds, classes=st.sampled_from([2, 7, 20]), dtype=st.sampled_from(list(TOLERANCE)))
def test_head_and_loss(seed, classes, dtype):
    n, columns = 150, 9
    h, weight, bias = (
        draw(*shape, seed=seed + i, dtype=dtype)
        for i, shape in enumerate([(n, columns), (classes, columns), (classes,)])
    )
    target = torch.randint(0, classes, (n,), generator=torch.Generator().manual_seed(seed))
    share = draw(n, seed=seed).clamp(min=0)  # about half of the rows do not count
    wide = [t.double().requires_grad_() for t in (h, weight, bias)]
    wanted = F.cross_entropy(F.linear(*wide), target, reduction="none") @ share.double()
    by = torch.autograd.grad(wanted * 3, wide)
    assert_near(cross_entropy.loss(h, weight, bias, target, share), wanted.detach(), dtype)
    for ours, theirs in zip(cross_entropy.gradient(torch.tensor(3.0), h, weight, bias, target, share), by, strict=True):
        assert_near(ours, theirs, dtype)


def test_the_same_bits_twice():
    layout = graph(0, directed=False)
    x, seed_map = draw(layout.num_nodes, 16, seed=1), draw(16, 8, seed=2)
    matrices, grad = draw(layout.degrees.size(0), 16, 8, seed=3), draw(layout.num_nodes, 16, seed=4)
    given = Weights(seed_map, matrices), Graph.of(layout), Options(activation="elu")

    def once():
        out, a = gpu.conv(x, None, *given)
        needs = (True, False, True, True, False)
        return (out, a, *gpu.conv_backward(grad, out, x, a, *given, needs, known=False))

    for first, second in zip(once(), once(), strict=True):
        assert torch.equal(first, second)


def test_every_row_and_every_edge_is_in_one_piece():
    for directed in (False, True):
        layout = graph(3, directed=directed)
        for pointer, offsets in ((layout.pointer, layout.offsets), (layout.back_pointer, None)):
            tiles, length = cut_lists(pointer, offsets), pointer.diff().long()
            positions = torch.cat([torch.arange(a, b) for a, b, *_ in (*tiles.short.tolist(), *tiles.long.tolist())])
            assert torch.equal(positions.sort().values, torch.arange(layout.num_nodes))
            rows = tiles.rows if tiles.rows.numel() else torch.arange(layout.num_nodes)
            for first, last, size, _group in tiles.short.tolist():
                assert bool((length[rows[first:last]] == size).all())
                assert size <= SHORT
            covered = [arc for a, b in tiles.chunks.tolist() for arc in range(a, b)]
            assert covered == [arc for r in tiles.hubs.tolist() for arc in range(int(pointer[r]), int(pointer[r + 1]))]
    cut = cut_groups(layout.offsets, layout.num_nodes)
    for table in (cut.tiles, cut.spans):
        rows = torch.cat([torch.arange(a, b) for a, b, _ in table.tolist()])
        assert torch.equal(rows, torch.arange(layout.num_nodes))
