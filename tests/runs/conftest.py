"""A small problem in files, in the folder at hand."""

from __future__ import annotations

import pytest
from tests.runs.files import write_graphs, write_problem, write_tasks


@pytest.fixture
def problem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path)
    write_graphs(tmp_path)
    write_tasks(tmp_path)
    return tmp_path
