"""On numbers the layer is not injective, and this is exactly where."""

from __future__ import annotations

import pytest

from demonet_study.experiments.expressive.reals import KINDS, multisets, real_collisions

SCHEMES = ("weight", "hash", "smooth", "shared")


@pytest.fixture(scope="module")
def rows():
    return real_collisions(draws=20)


def share(rows, scheme, left, right, aggregation="sum"):
    (row,) = [r for r in rows if (r.scheme, r.aggregation, r.left, r.right) == (scheme, aggregation, left, right)]
    return row.share


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
