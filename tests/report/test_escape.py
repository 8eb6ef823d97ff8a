from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demonet.report.escape import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain <b>", "plain <b>"),
        ("Köln 東京", "Köln 東京"),
        ("a\u202eb", r"a\u202eb"),
        ("a\x00\x1b\x7f\n", r"a\x00\x1b\x7f\n"),
        ("\u2028\ufeff", r"\u2028\ufeff"),
        ("می\u200cشود", "می\u200cشود"),
        (7, "7"),
    ],
)
def test_what_is_invisible_is_written_out(text, shown):
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_nothing_legible_is_invisible_and_nothing_is_lost(text):
    shown = visible(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in "\u202e\u2066\u200f"]
    if not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]:
        assert shown == text
    assert visible(shown) == shown
