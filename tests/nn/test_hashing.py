"""The hash kernel: Eq. 8 literally, an unbiased inner product, and functions that look random."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.reference.graphs import features, seeds
from tests.reference.layers import phi

from demonet.nn.hashing import SHARED_KEY, hash_functions, hash_map


def draw(keys, columns, *, seed=0, size=8):
    return hash_functions(
        torch.tensor(list(keys), dtype=torch.long)[:, None], torch.arange(columns), seed=seed, size=size
    )


@given(rows=st.integers(0, 4), size=st.integers(1, 5), seed=seeds)
def test_equation_8_for_one_pair_of_functions_and_for_one_a_row(rows, size, seed):
    x = features(rows, 6, seed)
    xi1, xi2 = draw(range(rows), 6, seed=seed, size=size)
    expected = [phi(row, *functions, size) for row, *functions in zip(x, xi1, xi2, strict=True)]
    torch.testing.assert_close(hash_map(x, xi1, xi2, size), torch.stack(expected) if rows else x.new_zeros(0, size))
    if rows:
        shared = [phi(row, xi1[0], xi2[0], size) for row in x]
        torch.testing.assert_close(hash_map(x, xi1[0], xi2[0], size), torch.stack(shared))


def test_the_inner_product_is_unbiased_exactly():
    """E <phi(x), phi(y)> = <x, y>: the mean over all 8 * 8 pairs of functions for F = 3, H = 2."""
    x, y = features(1, 3, 0), features(1, 3, 1)
    maps = [torch.tensor(values) for values in product([0, 1], repeat=3)]
    signs = [torch.tensor(values) for values in product([-1, 1], repeat=3)]
    products = [(hash_map(x, xi1, xi2, 2) * hash_map(y, xi1, xi2, 2)).sum() for xi1, xi2 in product(maps, signs)]
    assert len(products) == 64
    torch.testing.assert_close(torch.stack(products).mean(), (x * y).sum(), rtol=1e-13, atol=1e-13)
    # The variance is Weinberger's: (sum_{i != j} x_i^2 y_j^2 + x_i y_i x_j y_j) / H.
    off = 1 - torch.eye(3, dtype=torch.float64)
    cross = (x.T**2 @ y**2 + (x * y).T @ (x * y)) * off
    torch.testing.assert_close(torch.stack(products).var(correction=0), cross.sum() / 2)


@pytest.mark.parametrize("size", [2, 7, 256])
def test_indices_are_uniform_signs_balanced_and_the_two_independent(size):
    xi1, xi2 = draw(range(100), 500, seed=11, size=size)
    assert xi1.min() >= 0
    assert xi1.max() < size
    assert set(xi2.unique().tolist()) == {-1, 1}
    positive = xi1[xi2 > 0].bincount(minlength=size)
    negative = xi1[xi2 < 0].bincount(minlength=size)
    assert stats.chisquare(positive + negative).pvalue > 0.01
    assert stats.chisquare([int(positive.sum()), int(negative.sum())]).pvalue > 0.01
    assert stats.chi2_contingency(torch.stack([positive, negative]).numpy()).pvalue > 0.01


def test_neighbouring_degrees_columns_and_seeds_are_independent():
    xi1, xi2 = draw(range(60), 400, seed=0, size=4)
    pairs = {
        "degrees": (xi1[:-1], xi1[1:], xi2[:-1], xi2[1:]),
        "columns": (xi1[:, :-1], xi1[:, 1:], xi2[:, :-1], xi2[:, 1:]),
        "seeds": (xi1, draw(range(60), 400, seed=1, size=4)[0], xi2, draw(range(60), 400, seed=1, size=4)[1]),
    }
    for name, (a, b, sign_a, sign_b) in pairs.items():
        table = (a * 4 + b).flatten().bincount(minlength=16).view(4, 4)
        assert stats.chi2_contingency(table.numpy()).pvalue > 0.01, name
        signs = (sign_a + 1 + (sign_b + 1) // 2).flatten().bincount(minlength=4).view(2, 2)
        assert stats.chi2_contingency(signs.numpy()).pvalue > 0.01, name


def test_functions_are_fixed_by_seed_and_key_alone():
    """Written down once: they must be the same in every process, on every machine, in every version."""
    xi1, xi2 = draw([SHARED_KEY, 0, 3, 2**40], 4, seed=7, size=256)
    assert xi1.tolist() == [[154, 183, 204, 52], [115, 68, 252, 118], [152, 13, 103, 79], [138, 193, 19, 49]]
    assert xi2.tolist() == [[1, -1, 1, 1], [-1, 1, -1, 1], [1, 1, 1, -1], [-1, 1, -1, 1]]
    again = draw([3], 9, seed=7, size=256)
    assert torch.equal(again[0][0, :4], xi1[2])
    assert torch.equal(again[1][0, :4], xi2[2])
