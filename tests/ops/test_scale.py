"""Rows scaled and moved by splines of their degree: every version against the naive definition, with derivatives."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.utils.checkpoint import checkpoint

from demonet.ops import backend, neighbour_lists
from demonet.ops.library import reversed_lists
from demonet.ops.noise import RowNoise, keyed_factors
from demonet.ops.scale import Lists, Splines, scale_conv, scale_rows


def draw(rows: int, columns: int, splines: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(rows + columns)
    shapes = [(rows, columns), (rows, splines), (splines, columns), (splines, columns), (columns,), (rows, columns)]
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]
    return [tensor if place == 1 else tensor.requires_grad_() for place, tensor in enumerate(drawn)]


def naive(y, basis, gamma, beta, bias, own, activation):
    rows = []
    for v in range(y.size(0)):
        scale = 1 + sum(basis[v, k] * gamma[k] for k in range(gamma.size(0)))
        shift = sum(basis[v, k] * beta[k] for k in range(gamma.size(0)))
        rows.append(scale * y[v] + shift + bias + own[v])
    h = torch.stack(rows)
    return {"none": lambda: h, "relu": h.relu, "elu": lambda: torch.nn.functional.elu(h)}[activation]()


def scaled(y, basis, gamma, beta, bias, own, activation="none"):
    return scale_rows(y, Splines(basis, gamma, beta), bias, own, activation)


@pytest.mark.parametrize("activation", ["none", "relu", "elu"])
@pytest.mark.parametrize("path", ["auto", "reference"])
def test_is_the_equation_with_its_derivatives(activation, path):
    given = draw(6, 3, 5)
    wanted = naive(*given, activation)
    with backend.override(path=path):
        found = scaled(*given, activation)
        torch.testing.assert_close(found, wanted)
        leaves = [tensor for tensor in given if tensor.requires_grad]
        grad = torch.randn(6, 3, dtype=torch.float64)
        by = torch.autograd.grad(found, leaves, grad)
    for mine, theirs in zip(by, torch.autograd.grad(wanted, leaves, grad), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("activation", ["none", "elu"])
def test_first_and_second_derivatives(activation):
    given = draw(4, 2, 3)
    assert gradcheck(lambda *tensors: scaled(*tensors, activation), given)
    assert gradgradcheck(lambda *tensors: scaled(*tensors, activation), given)


def test_what_is_not_given_is_not_added():
    y, basis, gamma, beta, *_ = draw(5, 4, 5)
    found = scale_rows(y, Splines(basis, gamma, beta))
    zeros = torch.zeros(4, dtype=y.dtype), torch.zeros_like(y)
    torch.testing.assert_close(found, naive(y, basis, gamma, beta, *zeros, "none"))
    (by,) = torch.autograd.grad(found.sum(), [gamma])
    torch.testing.assert_close(by, basis.t() @ y.detach())


def test_coefficients_follow_the_dtype_of_the_rows():
    y, *rest = draw(5, 4, 5)
    found = scaled(y.detach().float(), *rest)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), naive(y.detach(), *rest, "none"), rtol=1e-5, atol=1e-5)


def drawn_lists(rows: int, edges: int, kind: str, dtype: torch.dtype = torch.float64) -> tuple[Lists, torch.Tensor]:
    """Lists of random edges, some of them several times, and the matrix that multiplies rows as the lists do."""
    generator = torch.Generator().manual_seed(edges)
    pairs = torch.randint(max(rows, 1), (2, edges), generator=generator)
    pointer, neighbours, _ = neighbour_lists(pairs, rows, rows)
    back_pointer, back_neighbours, entry = reversed_lists(pointer, neighbours, rows, rows)
    weight = torch.rand(edges, generator=generator, dtype=dtype) if kind == "weight" else None
    scale = torch.rand(rows, 1, generator=generator, dtype=dtype) if kind == "scale" else None
    back_weight = None if weight is None else weight[entry]
    lists = Lists(pointer, neighbours, weight, back_pointer, back_neighbours, back_weight, scale)
    target = torch.repeat_interleave(torch.arange(rows), pointer.diff())
    values = torch.ones(edges, dtype=dtype) if weight is None else weight
    dense = torch.zeros(rows, rows, dtype=dtype).index_put_((target, neighbours.long()), values, accumulate=True)
    return lists, dense if scale is None else scale * dense


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("kind", ["weight", "scale", "neither"])
@pytest.mark.parametrize(
    ("columns", "width", "product_first", "by_x"),
    [(3, 3, False, True), (3, 3, False, False), (2, 5, False, True), (5, 2, True, True), (5, 2, True, False)],
)
@pytest.mark.parametrize("all_given", [True, False])
def test_a_whole_convolution_is_the_equation_with_its_derivatives(
    override, pieces, kind, columns, width, product_first, by_x, all_given
):
    rows = 23
    override(piece_graph_rows=8 if pieces > 1 else 100, piece_rows=6)
    lists, dense = drawn_lists(rows, 70, kind)
    y, basis, gamma, beta, bias, own = draw(rows, width, 5)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(rows, columns, generator=generator, dtype=torch.float64).requires_grad_(by_x)
    matrix = torch.randn(columns, width, generator=generator, dtype=torch.float64).requires_grad_()
    activation = "elu" if all_given else "none"
    more = (bias, own) if all_given else (None, None)
    added = [one for one in more if one is not None]
    leaves = [one for one in (x, matrix, gamma, beta, *added) if one.requires_grad]
    given = more if all_given else (torch.zeros(width, dtype=y.dtype), torch.zeros_like(y))
    wanted = naive(dense @ x @ matrix, basis, gamma, beta, *given, activation)
    by_wanted = torch.autograd.grad(wanted, leaves, y.detach())
    for _ in range(2):  # the memory of results is used again
        found = scale_conv(
            x, lists, matrix, Splines(basis, gamma, beta), *more, activation, product_first=product_first
        )
        torch.testing.assert_close(found, wanted)
        for mine, theirs in zip(torch.autograd.grad(found, leaves, y.detach()), by_wanted, strict=True):
            torch.testing.assert_close(mine, theirs)


def test_what_lists_are_cut_into_and_the_memory_of_results_are_kept():
    lists, _ = drawn_lists(9, 20, "weight")
    parts, back, memory = lists.parts(torch.float64), lists.parts(torch.float64, back=True), lists.memory
    assert lists.parts(torch.float64) is parts
    assert lists.parts(torch.float64, back=True) is back
    assert lists.memory is memory


@pytest.mark.parametrize("product_first", [True, False])
def test_first_and_second_derivatives_of_a_whole_convolution(product_first):
    lists, _ = drawn_lists(4, 9, "weight")
    y, basis, gamma, beta, bias, own = draw(4, 2, 3)
    x, matrix = (one.detach().clone().requires_grad_() for one in (y, gamma[:2]))  # memory of their own

    def convolve(*tensors):
        x, matrix, gamma, beta, bias, own = tensors
        return scale_conv(x, lists, matrix, Splines(basis, gamma, beta), bias, own, "elu", product_first=product_first)

    given = (x, matrix, gamma, beta, bias, own)
    assert gradcheck(convolve, given)
    assert gradgradcheck(convolve, given)


@pytest.mark.parametrize(("rows", "edges"), [(0, 0), (5, 0)])
def test_a_convolution_without_edges(rows, edges):
    lists, _ = drawn_lists(rows, edges, "neither")
    _, basis, gamma, beta, bias, own = draw(rows, 3, 5)
    x = torch.ones(rows, 3, dtype=torch.float64, requires_grad=True)
    matrix = torch.eye(3, dtype=torch.float64, requires_grad=True)
    found = scale_conv(x, lists, matrix, Splines(basis, gamma, beta), bias, own, "none", product_first=False)
    torch.testing.assert_close(found, basis @ beta + bias + own)
    by = torch.autograd.grad(found.sum(), [x, matrix])
    assert all(not part.any() for part in by)


@pytest.mark.parametrize("activation", ["none", "relu", "elu"])
@pytest.mark.parametrize(("rows", "columns", "splines"), [(1, 1, 2), (70, 20, 5), (130, 70, 10)])
def test_kernels(activation, rows, columns, splines):
    """Triton's kernels, on tiles that do not divide rows or columns, with all and with few inputs."""
    pytest.importorskip("triton")
    given = draw(rows, columns, splines, torch.float32)
    exact = [tensor.detach().double().requires_grad_(tensor.requires_grad) for tensor in given]
    grad = torch.randn(rows, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    for keep in (range(6), range(4)):
        some, wide = ([one if place in keep else None for place, one in enumerate(all_)] for all_ in (given, exact))
        with backend.override(path="triton"):
            found = scaled(*some, activation)
            by = torch.autograd.grad(
                found, [one for one in some if one is not None and one.requires_grad], grad.float()
            )
        with backend.override(path="reference"):
            wanted = scaled(*wide, activation)
        right = torch.autograd.grad(wanted, [one for one in wide if one is not None and one.requires_grad], grad)
        for one, other in zip((found, *by), (wanted, *right), strict=True):
            torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["weight", "scale", "neither"])
@pytest.mark.parametrize(
    ("edges", "width", "product_first", "drop", "all_given"),
    [(70, 20, True, 0.3, True), (2000, 70, True, 0.0, False), (2000, 20, False, 0.5, True), (0, 20, True, 0.5, True)],
)
def test_kernels_of_a_whole_convolution(override, kind, edges, width, product_first, drop, all_given):
    """Short lists and long ones, whole or cut; dropout in degree order, of both halves."""
    pytest.importorskip("triton")
    rows, columns = 23, 25
    for whole_list in (1024, 16):  # lists of 2,000 / 23 edges are long, and cut in the second round
        override(whole_list=whole_list, chunk_edges=32)
        lists, dense = drawn_lists(rows, edges, kind, torch.float32)
        _, basis, gamma, beta, bias, own = draw(rows, width, 5, torch.float32)
        generator = torch.Generator().manual_seed(1)
        x, matrix = (torch.randn(shape, generator=generator) for shape in ((rows, columns), (columns, width)))
        grad = torch.randn(rows, width, generator=generator)
        noise = None
        if drop:
            key, place = torch.randint(2**32, (2,), generator=generator), torch.randperm(rows, generator=generator)
            noise = RowNoise(key, drop, place, width if all_given else 0)
        more = (bias, own) if all_given else (None, None)
        given = [x.requires_grad_(), matrix.requires_grad_(), basis, gamma, beta, *more]
        exact = [None if t is None else t.detach().double().requires_grad_(t.requires_grad) for t in given]
        with backend.override(path="triton"):
            splines = Splines(*given[2:5])
            found = scale_conv(x, lists, matrix, splines, *more, "elu", noise, product_first=product_first)
            by = torch.autograd.grad(found, [t for t in given if t is not None and t.requires_grad], grad)
        left = right = torch.ones((), dtype=torch.float64)
        if drop:
            left, right = (
                keyed_factors(noise.key, rows, noise.left + width, drop).double()[place].tensor_split([noise.left], 1)
            )
        x, matrix, basis, gamma, beta, bias, own = exact
        y = dense.double() @ x @ matrix
        h = ((1 + basis @ gamma) * y + basis @ beta) * right
        wanted = torch.nn.functional.elu(h + bias + own * left if all_given else h)
        right_by = torch.autograd.grad(wanted, [t for t in exact if t is not None and t.requires_grad], grad.double())
        for one, other in zip((found, *by), (wanted, *right_by), strict=True):
            assert (one.double() - other).norm() <= 1e-5 * other.norm()


@pytest.mark.parametrize("drop", [0.0, 0.4])
def test_second_derivatives_with_dropout(drop):
    """They are those of the definition, with the entries that the kernels dropped."""
    pytest.importorskip("triton")
    given = draw(6, 4, 3, torch.float32)
    noise = RowNoise(torch.tensor([5, 7]), drop, None, 4) if drop else None
    y, basis, gamma, beta, bias, own = given
    leaves = [y, gamma, beta, bias, own]
    squares = []
    for path in ("triton", "reference"):
        with backend.override(path=path):
            out = scale_rows(y, Splines(basis, gamma, beta), bias, own, "elu", noise)
            by = torch.autograd.grad(out.square().sum(), leaves, create_graph=True)
            squares.append(torch.autograd.grad(sum(one.square().sum() for one in by), leaves))
    for one, other in zip(*squares, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("product_first", "width"), [(True, 4), (True, 6), (False, 4)])
@pytest.mark.parametrize("path", ["auto", "triton"])
def test_all_that_a_convolution_keeps_is_saved_by_autograd(path, product_first, width):
    """Hooks see it, checkpoints drop it, and it ends with the graph: nothing of the size of the rows is left.

    The last derivative, which nobody follows, may be written over it.
    """
    if path == "triton":
        pytest.importorskip("triton")
    rows, columns = 23, 6
    lists, _ = drawn_lists(rows, 70, "weight", torch.float32)
    _, basis, gamma, beta, bias, own = draw(rows, width, 5, torch.float32)
    x, matrix = torch.randn(rows, columns, requires_grad=True), torch.randn(columns, width, requires_grad=True)
    saved = []

    def convolve():
        given = (x, lists, matrix, Splines(basis, gamma, beta), bias, own, "elu")
        return scale_conv(*given, product_first=product_first)

    with (
        backend.override(path=path),
        torch.autograd.graph.saved_tensors_hooks(lambda one: saved.append(one) or one, lambda one: one),
    ):
        out = convolve()
        y = (
            one
            for one in saved
            if one.shape == out.shape and one is not own and one is not x and not torch.equal(one, out)
        )
        torch.testing.assert_close(next(y), lists.sums(x.detach()) @ matrix, rtol=1e-4, atol=1e-4)
        leaves = [x, matrix, gamma, beta, bias, own]
        whole, last = (torch.autograd.grad(out.square().sum(), leaves, retain_graph=more) for more in (True, False))
        torch.testing.assert_close(last, whole, rtol=0, atol=0)
        assert not any(isinstance(kept, torch.Tensor) for kept in vars(out.grad_fn).values())
        recomputed = torch.autograd.grad(checkpoint(convolve, use_reentrant=False).square().sum(), leaves)
        torch.testing.assert_close(recomputed, whole, rtol=0, atol=0)


def test_memory_of_results_is_not_used_again_while_a_graph_needs_it():
    """Two convolutions whose derivatives are still to come, then a third after one of them."""
    lists, _ = drawn_lists(3000, 9000, "weight")
    _, basis, gamma, beta, bias, own = draw(3000, 16, 5)
    matrix = torch.randn(8, 16, dtype=torch.float64, requires_grad=True)
    inputs = [torch.randn(3000, 8, dtype=torch.float64, requires_grad=True) for _ in range(3)]

    def convolve(x):
        return scale_conv(x, lists, matrix, Splines(basis, gamma, beta), bias, own, "elu", product_first=False)

    def alone(x):
        return torch.autograd.grad(convolve(x).square().sum(), [matrix])[0].clone()

    wanted = [alone(x) for x in inputs]
    first, second = convolve(inputs[0]), convolve(inputs[1])
    found = [torch.autograd.grad(first.square().sum(), [matrix])[0]]
    third = convolve(inputs[2])
    found += [torch.autograd.grad(out.square().sum(), [matrix])[0] for out in (second, third)]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("kind", ["weight", "scale"])
@pytest.mark.parametrize(("by_x", "known"), [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("all_given", [True, False])
def test_groups_with_a_matrix_each_are_the_equation_with_its_derivatives(
    override, pieces, kind, by_x, known, all_given
):
    rows, sizes = 23, torch.tensor([3, 1, 12, 7])
    override(piece_graph_rows=8 if pieces > 1 else 100, piece_rows=6)
    lists, dense = drawn_lists(rows, 70, kind)
    lists = replace(lists, offsets=torch.nn.functional.pad(sizes.cumsum(0), (1, 0)))
    own, basis, gamma, beta, bias, _ = draw(rows, 4, 5)
    basis = basis[:4].repeat_interleave(sizes, dim=0)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(rows, 3, generator=generator, dtype=torch.float64).requires_grad_(by_x)
    matrix = torch.randn(3, 4, generator=generator, dtype=torch.float64).requires_grad_()
    more = (bias, own) if all_given else (None, None)
    leaves = [one for one in (x, matrix, gamma, beta, *more) if one is not None and one.requires_grad]
    given = more if all_given else (torch.zeros(4, dtype=x.dtype), torch.zeros_like(own))
    sums = x if known else dense @ x
    wanted = naive(sums @ matrix, basis, gamma, beta, *given, "elu")
    grad = torch.randn(rows, 4, generator=generator, dtype=torch.float64)
    by_wanted = torch.autograd.grad(wanted, leaves, grad)
    for _ in range(2):  # the memory of results is used again
        splines = Splines(basis, gamma, beta)
        found = scale_conv(x, lists, matrix, splines, *more, "elu", product_first=False, known=known)
        torch.testing.assert_close(found, wanted)
        for mine, theirs in zip(torch.autograd.grad(found, leaves, grad), by_wanted, strict=True):
            torch.testing.assert_close(mine, theirs)
