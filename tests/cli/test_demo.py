"""The command line: ``demonet demo``, help, and errors of one line."""

import pytest
from tests.runs.files import small_demo
from typer.testing import CliRunner

from demonet import cli
from demonet.runs import demo


def run(*arguments, width=100):
    return CliRunner().invoke(cli.app, arguments, env={"COLUMNS": str(width)})


def test_the_demo_prints_a_table_and_writes_a_page(monkeypatch, tmp_path):
    small_demo(monkeypatch)
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


@pytest.mark.parametrize("arguments", [("demo", "--splits", "0"), ("demo", "--seed", "-1"), ("dmeo",), ("demo", "--x")])
def test_bad_arguments_are_exit_code_2_and_no_traceback(main, arguments):
    code, out, err = main(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_a_page_of_something_else_is_replaced_only_when_asked(monkeypatch, main, tmp_path):
    small_demo(monkeypatch)
    page = tmp_path / "report.html"
    page.write_text("<html>of the user")
    code, out, err = main("demo", "--out", str(page), "--splits", "1")
    assert (code, out, page.read_text()) == (2, "", "<html>of the user")
    assert err.startswith(f"{page}: ")
    assert "--overwrite" in err
    for more in (["--overwrite"], []):  # now it is ours
        assert main("demo", "--out", str(page), "--splits", "1", *more)[0] == 0
