"""Equality within a tolerance, and equality of partitions."""

from __future__ import annotations

import numpy as np
import pytest

from demonet_study.experiments.expressive.partitions import alike, classes, same_partition


def test_rows_nearer_than_a_billionth_of_the_largest_entry_are_one_class():
    rows = np.array([[1.0, 1000.0], [1.0 + 0.9e-6, 1000.0], [1.0 + 2e-6, 1000.0], [1.0, 1000.0]])
    label, widest, nearest = classes(rows)
    assert label[0] == label[1] == label[3] != label[2]
    assert widest == pytest.approx(0.9e-9, rel=1e-4)
    assert nearest == pytest.approx(1.1e-9, rel=1e-4)
    np.testing.assert_array_equal(alike(rows, np.array([0, 0, 1]), np.array([1, 2, 3])), [True, False, True])


def test_one_class_has_no_distance_to_another():
    assert classes(np.ones((3, 2)))[1:] == (0.0, np.inf)


def test_partitions_are_equal_up_to_the_names_of_classes():
    one = np.array([0, 0, 1, 2])
    assert same_partition(one, np.array([5, 5, 9, 1]))
    assert not same_partition(one, np.array([0, 1, 1, 2]))  # as many classes, but others
    assert not same_partition(one, np.array([0, 0, 1, 1]))  # a coarser one
