"""Degree to matrix: each scheme's definition, the equal ways of carrying it out, and degrees never seen."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.graphs import drawn_by_seed, features, seeds
from tests.reference.layers import smooth_basis

from demonet import DegreeLayout, DegreeTasks, DEMOConv
from demonet.nn import weights as schemes
from demonet.nn.weights import HashedWeights, IndependentWeights, ScaledWeights, SmoothWeights

SCHEMES = {
    "weight": IndependentWeights,
    "hash, longer than the rows": lambda *args: HashedWeights(*args, hash_size=16),
    "hash, shorter than the rows": lambda *args: HashedWeights(*args, hash_size=3),
    "smooth": SmoothWeights,
    "scale": ScaledWeights,
}


@pytest.fixture(params=SCHEMES.values(), ids=SCHEMES.keys())
def scheme(request):
    return request.param


def made(scheme, tasks, seed=0, in_channels=5):
    torch.manual_seed(seed)
    weights = scheme(in_channels, 4, tasks).double()
    if scheme is ScaledWeights:
        torch.nn.init.normal_(weights.gamma, std=10)
    return weights


def of_matrices(weights):
    """The parameters of the matrices: all but a bias."""
    return [parameter for name, parameter in weights.named_parameters() if name != "shift"]


@pytest.fixture(params=["matrices", "products"])
def branch(request, override):
    """Both sides of every choice by cost."""
    rows = 0 if request.param == "matrices" else 10**9
    # Five columns are hashed in three blocks.
    override(
        rows_per_task=rows,
        rows_per_hash=rows,
        rows_per_mix=rows,
        cached_entries=0,
        mixed_entries=0,
        hash_columns=2,
    )
    return request.param


@pytest.mark.parametrize("by", ["in", "out", "pair"])
@pytest.mark.parametrize("kind", ["exact", "buckets"])
def test_by_group_equals_by_row_equals_matrices(scheme, branch, by, kind):
    graph = drawn_by_seed(30, 45, 2, undirected=False)
    layout = DegreeLayout.from_edge_index(*graph, by=by)
    some = layout.key[::3]  # two thirds of the degrees or so were never seen
    tasks = DegreeTasks.exact(some, by=by) if kind == "exact" else DegreeTasks.buckets([1, 3], by=by)
    weights = made(scheme, tasks)
    a = features(30, 5, 3).requires_grad_()
    wanted = [a, *of_matrices(weights)]
    definition = torch.bmm(a[:, None], weights.matrices(layout.key))[:, 0]
    expected = torch.autograd.grad(definition.sin().sum(), wanted)
    for out in (weights.by_group(weights.fold(a, layout.key), layout), weights.by_row(a, layout.key)):
        torch.testing.assert_close(out, definition)
        torch.testing.assert_close(torch.autograd.grad(out.sin().sum(), wanted), expected)


@pytest.mark.parametrize("by", ["in", "out", "pair"])
def test_sparse_rows_give_the_same(scheme, by):
    """Rows without entries, degree 0, a hub, and degrees far beyond those of the tasks; twice, as in training."""
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(30, 45, 2, undirected=False), by=by)
    key = layout.key.clone()
    key[-3:] = torch.tensor([40, 7_000, 10**6]).view(-1, *[1] * (key.dim() - 1))
    weights = made(scheme, DegreeTasks.exact(layout.key[::3], by=by))
    dense = torch.where(features(30, 5, 4) > 0.5, features(30, 5, 3), 0.0)
    sparse = dense.to_sparse_csr()
    for _ in range(2):
        definition = torch.bmm(dense[:, None], weights.matrices(key))[:, 0]
        found = weights.by_sparse(sparse, key)
        torch.testing.assert_close(found, definition)
        wanted = of_matrices(weights)
        ways = [torch.autograd.grad(out.sin().sum(), wanted) for out in (found, definition)]
        torch.testing.assert_close(*ways)
    other = weights.by_sparse(sparse, key.flip(0))  # other degrees of the same rows
    torch.testing.assert_close(other, torch.bmm(dense[:, None], weights.matrices(key.flip(0)))[:, 0])
    assert torch.equal(copy.deepcopy(weights).by_sparse(sparse, key), weights.by_sparse(sparse, key))


def test_independent_weights_are_the_shared_matrix_and_the_degrees_own():
    weights = made(IndependentWeights, DegreeTasks.exact(torch.tensor([2, 7])))
    assert weights.own.shape == (2, 5, 4)
    found = weights.matrices(torch.tensor([7, 2, 3]))
    assert torch.equal(found[0], weights.shared + weights.own[1])
    assert torch.equal(found[1], weights.shared + weights.own[0])
    assert torch.equal(found[2], weights.shared), "a degree never seen has the shared matrix alone"


def test_exact_tasks_of_no_degree_at_all():
    weights = made(IndependentWeights, DegreeTasks.exact(torch.tensor([], dtype=torch.long)))
    a, degree = features(3, 5, 0), torch.tensor([0, 4, 9])
    assert torch.equal(weights.by_row(a, degree), a @ weights.shared)
    assert torch.equal(weights.matrices(degree), weights.shared.expand(3, 5, 4))


def test_hashed_weights_are_signed_rows_of_one_matrix():
    """Eq. 10 read as a matrix: row j is xi2(j) W[xi1(j)] of the degree plus the same of the shared functions."""
    weights = made(SCHEMES["hash, shorter than the rows"], DegreeTasks.exact(torch.tensor([2])))
    degree = torch.tensor([2, 90])
    xi1, xi2 = weights.hashes(degree)
    shared1, shared2 = weights.shared_hash
    assert xi1.shape == xi2.shape == (2, 5)
    assert shared1.shape == shared2.shape == (5,)
    for t in range(2):
        for j in range(5):
            row = xi2[t, j] * weights.weight[xi1[t, j]] + shared2[j] * weights.weight[shared1[j]]
            assert torch.equal(weights.matrices(degree)[t, j], row)
            assert torch.equal(weights.shared[j], shared2[j] * weights.weight[shared1[j]])


@pytest.mark.parametrize("size", [2, 3, 5])
def test_smooth_basis_is_the_hats_and_sums_to_one_inside(size):
    weights = SmoothWeights(5, 4, DegreeTasks.exact(torch.arange(40)), basis_size=size).double()
    degree = torch.arange(2000)
    found = weights.basis(degree)
    expected = torch.tensor([smooth_basis(d, 39, size) for d in degree.tolist()], dtype=torch.float64)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found[:40].sum(1), torch.ones(40, dtype=torch.float64))


def test_smooth_weights_fade_to_the_shared_matrix_far_above_the_range():
    weights = made(SmoothWeights, DegreeTasks.exact(torch.arange(40)))
    far = weights.matrices(torch.tensor([10**6, 2**40]))
    assert torch.equal(far, weights.shared.expand(2, 5, 4))
    distance = (weights.matrices(torch.arange(39, 110)) - weights.shared).flatten(1).norm(dim=1)
    assert (distance.diff() <= 0).all()
    assert distance[0] > 0
    assert distance[-1] == 0


@given(degree=st.integers(0, 10**6), seed=seeds)
def test_scaled_weights_are_one_matrix_with_scaled_columns_and_a_bias(degree, seed):
    """They start as the shared matrix, and are it again far above the range, without a bias."""
    tasks = DegreeTasks.exact(torch.arange(40))
    weights = made(SCHEMES["scale"], tasks, seed)
    torch.nn.init.normal_(weights.shift)
    one, a = torch.tensor([degree]), features(1, 5, seed)
    torch.testing.assert_close(weights.matrices(one)[0], weights.shared * (1 + weights.scale(one)))
    torch.testing.assert_close(weights.by_row(a, one), a @ weights.matrices(one)[0] + weights.offset(one))
    far = torch.tensor([10**6 + degree])
    assert torch.equal(weights.by_row(a, far), a @ weights.shared)
    weights.reset_parameters()
    assert torch.equal(weights.by_row(a, one), a @ weights.shared)
    assert [id(p) for p in weights.degree_parameters()] == [id(weights.gamma), id(weights.shift)]


@pytest.mark.parametrize("columns", [6, 600])
def test_the_bias_of_a_degree_moves_with_the_entries_of_the_matrix(columns):
    """After a step of Adam: wide rows have small products, beside which a bias of one size would be large."""
    torch.manual_seed(0)
    weights = ScaledWeights(columns, 400, DegreeTasks.exact(torch.arange(9)))
    size, degree = weights.shared.std(), torch.tensor([3])
    weights.by_row(torch.randn(1, columns), degree).sum().backward()
    torch.optim.Adam(weights.parameters(), lr=0.01).step()
    torch.testing.assert_close(weights.scale(degree).abs(), torch.full((1, 400), 3e-4), rtol=0.02, atol=0)
    torch.testing.assert_close(weights.offset(degree).abs(), torch.full((1, 400), 2e-3) * size, rtol=0.02, atol=0)


def test_smooth_basis_tells_large_degrees_apart_in_16_bits():
    weights = SmoothWeights(5, 4, DegreeTasks.log2(10**6)).bfloat16()
    assert weights.basis(torch.tensor([3])).dtype == torch.bfloat16
    wide = SmoothWeights(5, 4, DegreeTasks.log2(10**6)).double()
    degree = torch.tensor([257, 70_000, 999_999])
    torch.testing.assert_close(weights.basis(degree).double(), wide.basis(degree), atol=2**-9, rtol=2**-8)


def test_degree_scale_is_the_size_of_the_degrees_own_matrices():
    for scheme in (IndependentWeights, SmoothWeights):
        weights = scheme(50, 50, DegreeTasks.log2(8), degree_scale=0.3)
        ratio = weights.own.std() / weights.shared.std()
        assert ratio.item() == pytest.approx(0.3, rel=0.05)
        assert weights.shared.abs().max() <= (6 / 100) ** 0.5
    none = IndependentWeights(5, 4, DegreeTasks.log2(8), degree_scale=0.0)
    assert torch.equal(none.matrices(torch.tensor([1])), none.shared[None])


def test_reset_draws_anew_and_keeps_the_hash_functions(scheme):
    weights = made(scheme, DegreeTasks.exact(torch.tensor([1, 2])))
    degree = torch.tensor([1])
    before, functions = weights.matrices(degree).clone(), getattr(weights, "hashes", lambda d: ())(degree)
    weights.reset_parameters()
    assert not torch.equal(weights.matrices(degree), before)
    for old, new in zip(functions, getattr(weights, "hashes", lambda d: ())(degree), strict=True):
        assert torch.equal(old, new)


def test_no_matrix_per_node():
    """Nothing as large as (nodes, in, width) is ever made, in any scheme, in either order of rows."""
    graph = drawn_by_seed(400, 800, 0)
    layout = DegreeLayout.from_edge_index(*graph)
    in_channels, width = 24, 16
    for scheme in (IndependentWeights, HashedWeights, SmoothWeights):
        weights = scheme(in_channels, width, DegreeTasks.log2(16))
        largest = Largest()
        with largest:
            a = features(400, in_channels, 0, torch.float32)
            weights.by_group(weights.fold(a, layout.key), layout)
            weights.by_row(a, layout.key)
        assert largest.numel <= 400 * 256 < 400 * in_channels * width


class Largest(torch.utils._python_dispatch.TorchDispatchMode):
    """Remembers the largest tensor that any operator returned."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.numel())
        return out


@pytest.mark.parametrize("scheme", sorted(schemes.SCHEMES))
def test_what_is_cached_for_a_layout_follows_the_dtype(scheme):
    """In float64 a layer that has seen the layout in float32 gives the bits of one that has not."""
    layout = DegreeLayout.from_edge_index(*drawn_by_seed(300, 600))
    torch.manual_seed(0)
    used = DEMOConv(5, 4, DegreeTasks.exact(layout.degree), scheme=scheme)
    fresh = copy.deepcopy(used)
    used(features(300, 5, 0, torch.float32), layout)
    x = features(300, 5, 0)
    assert torch.equal(used.double()(x, layout), fresh.double()(x, layout))


def test_degree_parameters_are_those_of_single_degrees():
    tasks = DegreeTasks.exact(torch.tensor([1, 2]))
    for weights, expected in ((IndependentWeights(3, 2, tasks), 1), (SmoothWeights(3, 2, tasks), 1)):
        assert [parameter is weights.own for parameter in weights.degree_parameters()] == [True] * expected
    assert HashedWeights(3, 2, tasks).degree_parameters() == []
