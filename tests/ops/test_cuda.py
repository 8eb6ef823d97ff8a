"""The kernels on a GPU: the numbers of the float64 definition, within each type's precision; the same bits twice."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from tests.reference.layers import PAPER

from demonet import DegreeLayout, DegreeTasks, DEMOConv, NodeDEMONet
from demonet.ops import (
    Noise,
    Options,
    Weights,
    aggregate,
    conv,
    degree_linear,
    degree_pool,
    linear_cross_entropy,
    reference,
)
from demonet.ops.graph import Graph
from demonet.ops.refine import Refine, definition, refine

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 1e-2, torch.float16: 2e-3}
DTYPES = list(TOLERANCE)


def graph(n: int, hub: int, *, directed: bool = False) -> DegreeLayout:
    generator = torch.Generator().manual_seed(n)
    edge_index = torch.randint(0, n, (2, 2 * n), generator=generator)
    spokes = torch.stack([torch.randint(0, n, (hub,), generator=generator), torch.zeros(hub, dtype=torch.long)])
    edge_index = torch.cat([edge_index, spokes], 1)
    if not directed:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
    return DegreeLayout.from_edge_index(edge_index.cuda(), n).sorted()


def draw(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).cuda()


def error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    assert found.shape == wanted.shape
    return float(((found.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1e-300)).detach())


# Every option with every type once, not all with all: each combination is compiled.
CASES = [
    ("directed", (5, 3, 4), "concat", "mean", "elu", False),
    ("undirected", (64, 32, 32), "concat", "sum", "relu", True),
    ("undirected", (200, 100, 70), "add", "sqrt", "none", True),
    ("undirected", (128, 64, 64), "concat", "sum", "elu", True),
    ("directed", (300, 40, 160), "concat", "sum", "elu", False),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_convolution(dtype, case):
    direction, (columns, left, right), combine, aggr, activation, keep = case
    layout = graph(3000, 2000, directed=direction == "directed")
    left = right if combine == "add" else left
    shapes = [(3000, columns), (columns, left), (layout.degrees.size(0), columns, right)]
    wide = [draw(*shape, seed=i) / shape[-2] ** 0.5 for i, shape in enumerate(shapes)]
    wide.append(draw(right if combine == "add" else left + right, seed=4))
    narrow = [tensor.to(dtype).requires_grad_() for tensor in wide]
    wide = [tensor.detach().double().requires_grad_() for tensor in narrow]
    x, seed, matrices, bias = wide
    options = Options(aggr, combine, activation, keep)
    wanted, a = reference.conv(x, None, Weights(seed, matrices, bias), Graph.of(layout), options)
    grad = draw(*wanted.shape, seed=7)  # where rounding may flip the sign, both slopes are right: leave those out
    grad = torch.where(wanted.detach().abs() > 0.05 * wanted.detach().abs().mean(), grad, 0).to(dtype)
    by = torch.autograd.grad(wanted, wide, grad.double())
    x, seed, matrices, bias = narrow
    found = conv(x, None, Weights(seed, matrices, bias), layout, options)
    given = conv(x, a.to(dtype).detach(), Weights(seed, matrices, bias), layout, options)
    assert error(found, wanted) < TOLERANCE[dtype]
    assert error(given, wanted) < TOLERANCE[dtype]
    for ours, theirs in zip(torch.autograd.grad(found, narrow, grad), by, strict=True):
        assert error(ours, theirs) < 3 * TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("combine", ["add", "concat"])
def test_dropout_inside(dtype, combine):
    layout, noise = graph(3000, 2000), Noise(torch.tensor([7, 2**32 - 9], device="cuda"), 0.4)
    shapes = [(3000, 48), (48, 32), (layout.degrees.size(0), 48, 32), (32 if combine == "add" else 64,)]
    narrow = [(draw(*shape, seed=i) / 5).to(dtype).requires_grad_() for i, shape in enumerate(shapes)]
    wide = [tensor.detach().double().requires_grad_() for tensor in narrow]
    options = Options("mean", combine, "none")
    wanted, _ = reference.conv(wide[0], None, Weights(*wide[1:]), Graph.of(layout), options, noise)
    found = conv(narrow[0], None, Weights(*narrow[1:]), layout, options, noise)
    grad = draw(*wanted.shape, seed=7).to(dtype)
    assert error(found, wanted) < TOLERANCE[dtype]
    by = torch.autograd.grad(wanted, wide, grad.double())
    for ours, theirs in zip(torch.autograd.grad(found, narrow, grad), by, strict=True):
        assert error(ours, theirs) < 3 * TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("dropout", [True, False])
def test_norm_map_and_dropout(dtype, mapped, dropout):
    noise = Noise(torch.tensor([7, 2**32 - 9], device="cuda"), 0.4) if dropout else None
    shapes = [(5000, 48), (48,), (48,), *([(32, 48), (32,)] if mapped else [])]
    narrow = [
        (draw(*shape, seed=i) + (3 if i == 0 else 0)).to(dtype).requires_grad_() for i, shape in enumerate(shapes)
    ]
    wide = [tensor.detach().double().requires_grad_() for tensor in narrow]
    nothing = [] if mapped else [None, None]
    wanted, mean, variance = definition(wide[0], Refine(*wide[1:], *nothing, 1e-5), noise)
    found, *moments = refine(narrow[0], Refine(*narrow[1:], *nothing, 1e-5), noise)
    grad = draw(*wanted.shape, seed=7)
    grad = torch.where(wanted.detach().abs() > 0.05 * wanted.detach().abs().mean(), grad, 0).to(dtype)
    assert error(moments[0], mean) < TOLERANCE[dtype]
    assert error(moments[1], variance) < 3 * TOLERANCE[dtype]
    assert error(found, wanted) < 2 * TOLERANCE[dtype]
    by = torch.autograd.grad(wanted, wide, grad.double(), retain_graph=True)
    for ours, theirs in zip(torch.autograd.grad(found, narrow, grad), by, strict=True):
        assert error(ours, theirs) < 20 * TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_operators(dtype):
    layout = graph(2000, 1500)
    x, weight = draw(2000, 70, seed=0).to(dtype), draw(4, 70, 33, seed=1).to(dtype)
    edges = draw(layout.num_edges, seed=2).abs().to(dtype)
    task = (torch.arange(layout.degrees.size(0), device="cuda") % 5) - 1
    cell = torch.randint(0, 9, (2000,), generator=torch.Generator().manual_seed(0)).cuda()
    lists = (layout.pointer, layout.neighbours)
    wanted = reference.aggregate(x.double(), *lists, edges.double(), "mean")
    assert error(aggregate(x, layout, edges, aggr="mean"), wanted) < TOLERANCE[dtype]
    assert error(aggregate(x, lists, edges, aggr="mean"), wanted) < TOLERANCE[dtype]
    wanted = reference.degree_linear(x.double(), weight.double(), layout.offsets, task)
    assert error(degree_linear(x, weight, layout.offsets, task), wanted) < TOLERANCE[dtype]
    wanted = reference.degree_pool(x.double(), cell, 9, "mean")  # a cell is a graph's number, then a task's
    assert error(degree_pool(x, cell % 3, cell // 3, 3, 3, "mean").view(9, 70), wanted) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [2, 16, 100, 200])
def test_head_and_loss(dtype, classes):
    h, weight, bias = (
        draw(*shape, seed=i).to(dtype).requires_grad_()
        for i, shape in enumerate([(5000, 64), (classes, 64), (classes,)])
    )
    target = torch.arange(5000, device="cuda") % classes
    share = draw(5000, seed=5).clamp(min=0).float() / 5000
    wide = [tensor.detach().double().requires_grad_() for tensor in (h, weight, bias)]
    wanted = F.cross_entropy(F.linear(*wide), target, reduction="none") @ share.double()
    found = linear_cross_entropy(h, weight, bias, target, share)
    assert error(found, wanted) < TOLERANCE[dtype]
    by = torch.autograd.grad(wanted * 3, wide)
    for ours, theirs in zip(torch.autograd.grad(found * 3, (h, weight, bias)), by, strict=True):
        assert error(ours, theirs) < 3 * TOLERANCE[dtype]


STACKS = [("concat", "relu", "sum", True), ("add", "elu", "mean", False), ("concat", "elu", "sqrt", True)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("case", STACKS)
def test_layers_head_and_loss(dtype, case):
    """One function that writes over its own arrays: against float64, twice through one loss, the same bits."""
    combine, activation, aggr, prepared = case
    layout = graph(20_000, 500)
    tasks = DegreeTasks.log2(int(layout.degree.max()))
    options = {"combine": combine, "activation": activation, "aggr": aggr, "hidden": 64, "dropout": 0.0, "bias": True}
    torch.manual_seed(0)
    model = NodeDEMONet(48, 7, tasks, PAPER, scheme="smooth", **options).cuda()
    exact = copy.deepcopy(model).to(dtype).double()
    model, x = model.to(dtype), draw(20_000, 48, seed=1).to(dtype)
    target, share = torch.randint(0, 7, (20_000,)).cuda(), draw(20_000, seed=2).clamp(min=0).float() / 20_000
    given = (model.prepare(x, layout), target, share) if prepared else (x, target, share, layout)
    loss = model.loss(*given)
    assert type(loss.grad_fn).__name__ == "_StackLossBackward"
    wanted = F.cross_entropy(exact(x.double(), layout), target, reduction="none") @ share.double()
    assert error(loss, wanted) < TOLERANCE[dtype]
    found = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    for ours, theirs in zip(found, torch.autograd.grad(wanted, list(exact.parameters())), strict=True):
        assert error(ours, theirs) < 10 * TOLERANCE[dtype]
    again = torch.autograd.grad(loss, list(model.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(found, again, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_same_bits_twice(dtype):
    layout = graph(20_000, 15_000)
    tensors = [draw(20_000, 64, seed=0), draw(64, 32, seed=1), draw(layout.degrees.size(0), 64, 32, seed=2)]
    tensors = [tensor.to(dtype).requires_grad_() for tensor in tensors]

    def once():
        out = conv(tensors[0], None, Weights(*tensors[1:]), layout, Options(activation="elu"))
        return [out, *torch.autograd.grad(out.square().sum(), tensors)]

    first = once()
    for _ in range(3):
        assert all(torch.equal(a, b) for a, b in zip(first, once(), strict=True))


@pytest.mark.parametrize("case", ["a map", "row by row", "large matrices", "folded"])
def test_hashing_gives_the_same_bits_twice(case, override):
    """Collisions of three and more are added up in one order, and as a CPU has them."""
    n, width = 300, 300 if case == "folded" else 40
    layout = graph(n, 100)
    if case in ("row by row", "large matrices"):
        override(hash_map_entries=0, rows_per_hash=1 if case == "large matrices" else n)
    torch.manual_seed(0)
    size = 8 if case == "folded" else width
    conv = DEMOConv(width, 16, DegreeTasks.exact(layout.degree), scheme="hash", hash_size=size).double()
    x = draw(n, width, seed=1)
    wanted = once(conv, x.cpu().double(), layout.to("cpu"))
    conv = conv.float().cuda()
    first = once(conv, x.float(), layout)
    for found, exact in zip(first, wanted, strict=True):
        assert error(found, exact.cuda()) < 1e-5
    for _ in range(5):
        assert all(torch.equal(a, b) for a, b in zip(first, once(conv, x.float(), layout), strict=True))


def once(conv, x, layout):
    """The output of a convolution, and the derivatives of its square."""
    x = x.detach().requires_grad_()
    out = conv(x, layout)
    return [out.detach(), *torch.autograd.grad(out.square().sum(), [x, *conv.parameters()])]


def test_full_precision_also_where_torch_allows_less():
    layout = graph(2000, 10)
    x, seed, matrices = draw(2000, 64, seed=0), draw(64, 32, seed=1), draw(layout.degrees.size(0), 64, 32, seed=2)
    exact = [tensor.float().double() for tensor in (x, seed, matrices)]
    wanted, _ = reference.conv(exact[0], None, Weights(*exact[1:]), Graph.of(layout), Options())
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32 = True
        assert error(conv(x.float(), None, Weights(seed.float(), matrices.float()), layout), wanted) < 1e-6
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("aggr", "combine"), [("sym", "share"), ("mean", "add"), ("sum", "share")])
@pytest.mark.parametrize(("columns", "width"), [(20, 70), (300, 64)])
def test_layer_whose_degrees_scale_its_columns(dtype, aggr, combine, columns, width):
    """The layer as one function, sums before or after the product: the float64 definition; the same bits twice."""
    if dtype == torch.float16:
        pytest.skip("half precision takes single operators")
    generator = torch.Generator().manual_seed(1)
    edge_index = torch.randint(0, 3000, (2, 9000), generator=generator)
    edge_index = torch.cat([edge_index, torch.stack([torch.arange(2000), torch.zeros(2000, dtype=torch.long)])], 1)
    exact = DEMOConv(columns, width, aggr=aggr, combine=combine, act="elu", cached=True).double()
    x = torch.randn(3000, columns, dtype=torch.float64, generator=generator).to(dtype).requires_grad_()
    wide = x.detach().double().requires_grad_()
    exact(wide, edge_index)
    for parameter in (exact.weights.gamma, exact.weights.shift):
        torch.nn.init.normal_(parameter)
    narrow = copy.deepcopy(exact).to("cuda", dtype)
    wanted, rows, edges = exact(wide, edge_index), x.detach().cuda().requires_grad_(), edge_index.cuda()
    grad = torch.randn(wanted.shape, dtype=torch.float64, generator=generator)
    right = torch.autograd.grad(wanted, [wide, *exact.parameters()], grad)
    first, again = (narrow(rows, edges) for _ in range(2))
    by = torch.autograd.grad(first, [rows, *narrow.parameters()], grad.to("cuda", dtype))
    twice = torch.autograd.grad(again, [rows, *narrow.parameters()], grad.to("cuda", dtype))
    for one, other, whole in zip((first, *by), (again, *twice), (wanted, *right), strict=True):
        assert dtype == torch.float64 or torch.equal(one, other)  # float64 is the definition, which adds in any order
        assert error(one.cpu(), whole) < 5 * TOLERANCE[dtype]


@pytest.mark.parametrize(("combine", "aggr"), [("share", "sym"), ("add", "mean")])
def test_dropout_of_the_same_entries_in_any_order_of_rows(combine, aggr):
    """Rows in the caller's order in one kernel, and in degree order, to which weights of edges lead; with a hub."""
    edge_index = torch.randint(0, 3000, (2, 9000), generator=torch.Generator().manual_seed(1))
    hub = torch.stack([torch.arange(2000), torch.zeros(2000, dtype=torch.long)])
    x = draw(3000, 40, seed=0).float()
    for edges in (edge_index.cuda(), torch.cat([edge_index, hub], 1).cuda()):
        torch.manual_seed(0)
        conv = DEMOConv(40, 24, combine=combine, aggr=aggr, act="relu", dropout=0.4, cached=True).cuda()
        for parameter in (conv.weights.gamma, conv.weights.shift, conv.bias):
            torch.nn.init.normal_(parameter)
        found = []
        for weight in (None, None, torch.ones(edges.size(1), device="cuda")):
            torch.manual_seed(3)
            out = conv(x, edges, weight)
            found.append((out, *torch.autograd.grad(out.square().sum(), list(conv.parameters()))))
        for once, twice, ordered in zip(*found, strict=True):
            assert error(once, ordered) < 1e-5
            assert error(twice, ordered) < 1e-5
