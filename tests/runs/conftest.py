"""A small problem in files, in the folder at hand."""

import pytest
from tests.runs.files import write_graphs, write_problem, write_tasks

from demonet.methods.forest import NodeForest
from demonet.methods.kernel_ridge import NodeKernel


@pytest.fixture
def problem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path)
    write_graphs(tmp_path)
    write_tasks(tmp_path)
    return tmp_path


@pytest.fixture
def few(monkeypatch):
    """Two quick candidates in place of the portfolio."""
    members = [NodeForest("forest-degree", columns="degree", trees=5), NodeKernel("kernel-degree", kernel="degree")]
    monkeypatch.setattr("demonet.ensemble.ensemble.portfolio", lambda *_: members)
