"""The command line: ``demonet demo``, help, and errors of one line."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest
from typer.testing import CliRunner

from demonet import cli
from demonet.data.synthetic import flip_graph, role_graph, small_graphs
from demonet.errors import DemonetError
from demonet.runs import demo


@pytest.fixture
def tiny(monkeypatch):
    """The demo on a few graphs, with networks that hardly train."""
    monkeypatch.setattr(demo, "EPOCHS", 2)
    monkeypatch.setattr(demo, "role_graph", lambda seed: role_graph(seed, motifs=8))
    monkeypatch.setattr(demo, "flip_graph", lambda seed: flip_graph(seed, num_nodes=120))
    monkeypatch.setattr(demo, "small_graphs", lambda num, seed, **options: small_graphs(20, seed, **options))


def run(*arguments, width=100):
    return CliRunner().invoke(cli.app, arguments, env={"COLUMNS": str(width)})


@pytest.fixture
def main(monkeypatch, capfd):
    """The installed script: exit code, stdout, stderr."""

    def main(*arguments):
        monkeypatch.setattr("sys.argv", ["demonet", *arguments])
        (script,) = entry_points(group="console_scripts", name="demonet")
        with pytest.raises(SystemExit) as stop:
            script.load()()
        return stop.value.code, *capfd.readouterr()

    return main


def test_the_demo_prints_a_table_and_writes_a_page(tiny, tmp_path):
    splits = 2
    out = tmp_path / ("[red]" + "a long name " * 8 + ".html")
    result = run("demo", "--out", str(out), "--splits", str(splits))
    assert result.exit_code == 0, result.output
    rows = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    for method in (*demo.METHODS, *demo.FLIP_METHODS):
        assert ("±" in rows[method]) == (splits > 1)
    assert "0.950" in rows["ceiling"]
    assert "nan" not in result.stdout
    assert f"Wrote {out} in " in result.stdout
    assert "a node and its mirror are" in result.stdout
    assert out.read_text(encoding="utf-8").lstrip().startswith("<!doctype html>")
    steps = result.stderr.splitlines()
    assert len(steps) == demo.steps(splits)
    assert "Families of small graphs, split 1: gcn" in steps


def test_a_folder_that_is_not_there_is_one_line_before_training(main, tmp_path):
    code, out, err = main("demo", "--out", str(tmp_path / "none" / "report.html"))
    assert (code, out) == (2, "")
    assert err.startswith(f"{tmp_path}/none/report.html: ")


def test_an_expected_error_is_one_line_and_exit_code_2(main, monkeypatch):
    def failing(*_):
        raise DemonetError("'x' is not a number", file="edges.csv", line=3, hint="write node ids as integers")

    monkeypatch.setattr(demo, "run", failing)
    code, out, err = main("demo")
    assert (code, out) == (2, "")
    assert err == "edges.csv:3: 'x' is not a number (write node ids as integers)\n"


@pytest.mark.parametrize("arguments", [("demo", "--splits", "0"), ("demo", "--seed", "-1"), ("dmeo",), ("demo", "--x")])
def test_bad_arguments_are_exit_code_2_and_no_traceback(main, arguments):
    code, out, err = main(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_control_c_is_no_traceback(main, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    code, _, err = main("demo")
    assert code == 130
    assert "Traceback" not in err
