"""On numbers the layer is not injective, and this is exactly where."""

from __future__ import annotations

import pytest

from demonet.errors import DemonetError
from demonet_study.experiments.expressive.reals import KINDS, kind, multisets, real_collisions

SCHEMES = ("weight", "hash", "smooth", "shared")


@pytest.fixture(scope="module")
def rows():
    return real_collisions(draws=20)


def share(rows, scheme, left, right, aggregation="sum"):
    (row,) = [r for r in rows if (r.scheme, r.aggregation, r.left, r.right) == (scheme, aggregation, left, right)]
    return row.share


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("left", "right"),
    [("{0}", "{0, 0}"), ("{}", "{0}"), ("{}", "{-1, 1}"), ("{1, 4}", "{2, 3}"), ("{-1, 3}", "{0, 2}")],
)
def test_no_scheme_rescues_a_zero_sum_or_an_equal_sum_of_equally_many(rows, scheme, aggregation, left, right):
    assert share(rows, scheme, left, right, aggregation) == 1


@pytest.mark.parametrize(("aggregation", "left", "right"), [("sum", "{2}", "{1, 1}"), ("mean", "{1}", "{1, 1}")])
def test_the_degree_rescues_equal_sums_that_are_not_zero(rows, aggregation, left, right):
    assert [share(rows, scheme, left, right, aggregation) for scheme in SCHEMES] == [0, 0, 0, 1]


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_law_holds_for_every_pair(rows, scheme, aggregation):
    """In every draw: equal aggregates and (equal degrees or zero); the shared matrix alone adds unequal degrees."""
    lines = {r.kind: r for r in rows if (r.scheme, r.aggregation, r.left) == (scheme, aggregation, "any")}
    assert set(lines) == set(KINDS)
    collide = {"both zero", "same degree"} | ({"other degree"} if scheme == "shared" else set())
    for name, line in lines.items():
        assert line.pairs > 0
        assert line.always == (line.pairs if name in collide else 0)
    count = len(multisets())
    assert sum(line.pairs for line in lines.values()) == count * (count - 1) // 2


def test_kinds():
    assert kind((1, 2), (3,), "sum") == "other degree"
    assert kind((1, 2), (3,), "mean") == "apart"
    assert kind((1, 1), (1,), "mean") == "other degree"
    assert kind((), (-1, 1), "mean") == "both zero"


def test_no_draw_is_an_error():
    with pytest.raises(DemonetError, match="draws=0"):
        real_collisions(draws=0)
