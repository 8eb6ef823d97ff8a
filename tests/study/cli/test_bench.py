"""``demonet bench``: a table, a file, a page; bad arguments are one line."""

import pytest
import typer
from typer.testing import CliRunner

from demonet_study.bench.measure import Row
from demonet_study.cli.bench import bench
from demonet_study.experiments.rows import read_rows

APP = typer.Typer()
APP.command()(bench)


def run(*arguments, **options):
    return CliRunner().invoke(APP, arguments, env={"COLUMNS": "140"}, **options)


@pytest.fixture(autouse=True)
def copies(monkeypatch):
    """The speed of a copy, without copying."""
    monkeypatch.setattr("demonet_study.bench.floor.copy_bandwidth", lambda *_, **__: 1e10)


def test_it_prints_a_table_and_writes_a_file_and_a_page(tmp_path):
    out = tmp_path / "new" / "folder"
    result = run("--sizes", "60,1.2e2", "--methods", "weight, mlp,dgl", "--repeats", "3", "--out", str(out))
    assert result.exit_code == 0, result.output
    rows = read_rows(Row, out / "bench.csv")
    assert [(row.nodes, row.method) for row in rows] == [(n, m) for n in (60, 120) for m in ("weight", "mlp", "dgl")]
    assert "uniform, 60 nodes, 240 edges, float32" in result.stdout
    assert "of weight" in result.stdout
    for row in rows:
        assert not row.failed or f"{row.method}, {row.mode}: {row.error}" in result.stdout
        assert str(tmp_path) not in row.command
    assert (out / "bench.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--sizes", "ten"), "--sizes ten"),
        (("--methods", "gnc"), "'gnc'"),
        (("--dtype", "int8"), "--dtype int8"),
        (("--device", "tpu?"), "'tpu?'"),
        (("--device", "meta"), "'meta'"),
        (("--sizes", "1"), "1 nodes"),
        (("--graph", "brasil"), "brasil"),
    ],
)
def test_bad_arguments_are_expected_errors(tmp_path, arguments, part):
    result = run(*arguments, "--out", str(tmp_path))
    assert result.exit_code == 1
    assert type(result.exception).__name__ == "DemonetError"
    assert part in str(result.exception)
