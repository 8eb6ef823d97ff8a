"""Seeded small fits give what they gave: a change of the code that is not meant to change results does not.

What changes on purpose is written by ``python -m tests.golden --write`` and shows as changed lines of ``golden.json``.
"""

import pytest
from tests.golden.cases import CASES, compute
from tests.golden.stored import differences, read

STORED = read()


def test_every_case_is_stored():
    assert list(STORED) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_case_gives_what_it_gave(name):
    case = CASES[name]
    assert differences(STORED[name], compute(name), case.tolerance, case.agreement) == []


def test_a_difference_is_found():
    stored = {"number": [0.5, 1.0], "word": "a", "classes": [0, 1, 1, 1]}
    assert differences(stored, {"number": [0.5, 1.001], "word": "a", "classes": [0, 1, 1, 0]}, 1e-2, 0.7) == []
    assert len(differences(stored, {"number": [0.5, 1.1], "word": "b", "classes": [1, 0, 1, 1]}, 1e-2, 0.7)) == 3
    assert differences(stored, {"number": [0.5, 1.0]}, 1e-2, 0.7) != []
