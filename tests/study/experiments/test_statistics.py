"""Numbers worked by hand, numbers from scipy, and what must hold whatever the numbers are."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from demonet.errors import DemonetError
from demonet.runs.statistics import holm, paired, spread
from demonet_study.experiments.statistics import against_best, average_ranks, pooled

accuracies = st.integers(0, 44).map(lambda right: right / 44)
ps = st.floats(0, 1)


def runs_of(size):
    return st.lists(accuracies, min_size=size, max_size=size)


pairs_of_runs = st.integers(2, 12).flatmap(lambda size: st.tuples(runs_of(size), runs_of(size)))


def test_spread_of_too_few():
    assert spread([0.25])[0] == 0.25
    assert math.isnan(spread([0.25])[1])
    assert all(map(math.isnan, spread([])))


def test_folds_are_scipys_paired_test():
    first, second = [0.71, 0.80, 0.64, 0.9, 0.77], [0.70, 0.71, 0.66, 0.8, 0.7]
    found = paired(first, second)
    theirs = stats.ttest_rel(first, second)
    assert found.p == pytest.approx(theirs.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval()))


def test_corrected_test_by_hand():
    """Differences 1, 2, 3: mean 2, variance 1; with a ratio of one half the error is the root of 1/3 + 1/2."""
    found = paired([2, 4, 6], [1, 2, 3], ratio=0.5)
    t = 2 / math.sqrt(5 / 6)
    assert found.mean == 2
    assert found.error == pytest.approx(math.sqrt(5 / 6))
    # Student's t with two degrees of freedom has a distribution in closed form.
    assert found.p == pytest.approx(1 - t / math.sqrt(t * t + 2))
    assert found.high - found.mean == pytest.approx(4.302653 * math.sqrt(5 / 6), rel=1e-6)


def test_equal_differences_are_judged_by_the_sign_test():
    found = paired([0.9, 0.8, 0.7, 0.6], [0.8, 0.7, 0.6, 0.5], ratio=0.5)
    assert found.mean == pytest.approx(0.1)
    assert found.p == stats.binomtest(4, 4).pvalue == 2 / 16
    assert (found.low, found.high) == (found.mean, found.mean)


@pytest.mark.parametrize(("first", "second", "ratio"), [([0.5], [0.4], 0), ([], [], 0), ([1, 2], [1, 3], -1)])
def test_too_little_to_compare(first, second, ratio):
    with pytest.raises(DemonetError):
        paired(first, second, ratio)


@settings(max_examples=60, deadline=None)
@given(pairs_of_runs, st.sampled_from([0.0, 0.5, 7 / 3]))
def test_turning_a_comparison_round(runs, ratio):
    one, other = paired(*runs, ratio), paired(*runs[::-1], ratio)
    assert (one.mean, one.low, one.high) == pytest.approx((-other.mean, -other.high, -other.low))
    assert one.p == pytest.approx(other.p)
    assert 0 <= one.p <= 1


@settings(max_examples=60, deadline=None)
@given(pairs_of_runs)
def test_the_interval_and_the_test_agree(runs):
    found = paired(*runs, 0.5)
    if found.error and abs(found.p - 0.05) > 1e-9:
        assert (found.p < 0.05) == (not found.low <= 0 <= found.high)


def test_pooled_by_hand():
    """Two sets of three runs, differences 1, 2, 3 and 3, 4, 5: errors of 1 / sqrt(3) each, four degrees of freedom."""
    one, other = paired([1, 2, 3], [0, 0, 0]), paired([3, 4, 5], [0, 0, 0])
    found = pooled([one, other])
    assert found.mean == 3
    assert found.error == pytest.approx(math.sqrt(1 / 3 + 1 / 3) / 2)
    assert found.freedom == pytest.approx(4)
    assert found.p == pytest.approx(2 * stats.t.sf(3 / found.error, 4))
    assert found.runs == 3


def test_sets_that_never_differ_pool_to_no_difference():
    found = pooled([paired([1, 1], [1, 1])] * 3)
    assert (found.mean, found.p) == (0, 1)
    with pytest.raises(DemonetError):
        pooled([])


def test_holm_by_hand():
    """Times 4, 3, 2, 1 in order of size, never below the one before, never above 1."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_comparison_not_yet_made_is_a_member_of_the_family():
    first, missing = holm([0.01, math.nan])
    assert first == 0.02
    assert math.isnan(missing)


@given(st.lists(ps, min_size=1, max_size=12))
def test_holm_keeps_order_and_lies_between_none_and_bonferroni(p):
    corrected = holm(p)
    assert all(a <= c <= min(1.0, len(p) * a) + 1e-12 for a, c in zip(p, corrected, strict=True))
    order = np.argsort(p, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


@given(st.lists(ps, min_size=1, max_size=8), ps)
def test_when_a_missing_comparison_comes_no_other_gets_larger(p, late):
    before, after = holm([*p, math.nan]), holm([*p, late])
    assert all(b >= a - 1e-15 for a, b in zip(after[:-1], before[:-1], strict=True))


def test_the_best_baseline_is_picked_after_the_correction():
    runs = {"ours": [0.9, 0.8, 0.7, 0.85], "good": [0.7, 0.75, 0.6, 0.7], "bad": [0.9, 0.1, 0.0, 0.95], "unrun": [0.99]}
    (found,) = against_best(runs, ["bad", "good", "unrun"], 0.5)
    assert (found.subject, found.rival) == ("ours", "good")
    assert found.difference == paired(runs["ours"], runs["good"], 0.5)
    both = [paired(runs["ours"], runs[name], 0.5).p for name in ("good", "bad")]
    assert found.corrected == holm(both)[0]
    assert found.corrected > found.difference.p
    assert against_best({"ours": [1.0, 0.5]}, ["good"]) == []


def test_ranks_by_hand():
    """On the first set a tie for the first two places; on the third a method is missing, so it does not count."""
    means = {
        "one": {"a": 0.9, "b": 0.9, "c": 0.1},
        "two": {"a": 0.9, "b": 0.5, "c": 0.7},
        "three": {"a": 0.2, "b": math.nan, "c": 0.3},
        "four": {"a": 0.2},
    }
    found = average_ranks(means, ["a", "b", "c"])
    assert found.ranks == {"a": 1.25, "b": 2.25, "c": 2.5}
    assert (found.sets, found.left_out) == (("one", "two"), ("three", "four"))
    assert found.friedman == pytest.approx(stats.friedmanchisquare([0.9, 0.9], [0.9, 0.5], [0.1, 0.7]).pvalue)


def test_ranks_without_enough_for_a_test():
    two = average_ranks({"one": {"a": 1.0, "b": 0.5}}, ["a", "b"])
    assert two.ranks == {"a": 1, "b": 2}
    assert math.isnan(two.friedman)
    none = average_ranks({"one": {"a": 1.0}}, ["a", "b"])
    assert none.sets == ()
    assert all(math.isnan(rank) for rank in none.ranks.values())
    tied = average_ranks(dict.fromkeys("xyz", dict.fromkeys("abc", 1.0)), list("abc"))
    assert tied.friedman == 1
    assert set(tied.ranks.values()) == {2.0}
