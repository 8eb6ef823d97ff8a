"""The page about estimators says what is true: every block of Python on it runs."""

from __future__ import annotations

import re

import pytest


def test_every_block_runs(pytestconfig, tmp_path, monkeypatch):
    text = (pytestconfig.rootpath / "docs" / "estimators.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 5
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        try:
            exec(compile(block, "docs/estimators.md", "exec"), {})
        except Exception as error:
            pytest.fail(f"{error!r} in\n{block}")
