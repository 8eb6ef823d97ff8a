from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demonet.report.accuracy import MOST_BINS, Share, bin_of, percent, ranges, size_bins


def test_wilsons_interval_is_the_textbooks():
    """Of 10 trials 8 succeed: Wilson's score interval with z = 1.96 is 0.490 to 0.943."""
    assert Share(8, 10).interval == pytest.approx((0.4902, 0.9433), abs=1e-3)
    assert Share(8, 10).value == 0.8


@given(st.integers(1, 500).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_an_interval_holds_its_value_and_stays_between_0_and_1(counts):
    low, high = Share(*counts).interval
    assert 0 <= low <= Share(*counts).value + 1e-12
    assert Share(*counts).value - 1e-12 <= high <= 1
    assert high - low > 0


def test_nothing_counted_is_nothing_known():
    assert math.isnan(Share(0, 0).value)
    assert all(math.isnan(end) for end in Share(0, 0).interval)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=80))
def test_every_size_falls_into_exactly_one_bin_and_no_bin_is_empty(sizes):
    sizes = np.array(sizes)
    bins = size_bins(sizes)
    places = bin_of(sizes, bins)
    assert all(bins[place].low <= size <= bins[place].high for place, size in zip(places, sizes, strict=True))
    assert set(places) == set(range(len(bins)))
    assert len(bins) <= max(MOST_BINS, 15)


def test_few_sizes_have_a_bin_each():
    assert [bin.name for bin in size_bins(np.array([3, 900, 3, 0]))] == ["0", "3", "900"]


def test_numbers_in_words():
    assert percent(0.5) == "50.0\u00a0%"
    assert ranges([]) == ""
    assert ranges([0, 1, 1000]) == "0–1, 1,000"
