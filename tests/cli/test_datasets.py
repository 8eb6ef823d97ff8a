import pytest
from typer import Typer
from typer.testing import CliRunner

from demonet.cli.datasets import datasets
from demonet.data import CATALOG
from demonet.errors import DemonetError

app = Typer()
app.command()(datasets)


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.setenv("DEMONET_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def run(*arguments, width=80):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": str(width)})


def rows(output):
    return {words[0]: words[1:] for line in output.splitlines() if (words := line.split())}


def test_the_list_fits_a_terminal_and_says_what_is_missing(empty):
    result = run()
    assert result.exit_code == 0
    listed = rows(result.output)
    for name in CATALOG:
        assert listed[name][-1] == "no"
    assert listed["flickr"] == ["7,575", "239,738", "9", "12,047", "493", "1,881", "0", "no"]
    assert listed["ENZYMES"] == ["600", "19,580", "37,282", "6", "3", "10", "9", "106", "no"]
    assert "…" not in result.output


@pytest.mark.data
def test_the_list_says_what_is_here(use_paper_data):
    assert {rows(run().output)[name][-1] for name in CATALOG} == {"yes"}


@pytest.mark.data
def test_one_set_with_its_degree_distribution(use_paper_data):
    result = run("wiki-vote", width=200)
    assert result.exit_code == 0
    for words in ("100,762", "degree cuts   │ 1, 4, 31", "degree 32 to 1065: 1,766", "2927 edges listed in both"):
        assert words in result.output
    bars = rows(result.output.split("Degree distribution")[1])
    assert bars["1"] == ["2,315", "█" * 40]  # the longest bar
    assert bars["2-3"][0] == "1,028"
    assert bars["1024-2047"][0] == "1"


@pytest.mark.data
def test_a_set_of_graphs(use_paper_data):
    output = run("enzymes", width=120).output
    for words in ("600", "19,580", "node labels", "106", "1: 100, 2: 100"):
        assert words in output


def test_an_unknown_name_is_an_error_with_a_hint(empty):
    result = run("brasil")
    assert isinstance(result.exception, DemonetError)
    assert "brazil" in str(result.exception)
