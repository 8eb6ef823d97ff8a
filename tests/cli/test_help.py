"""Help, the version and usage errors import nothing heavy; arguments in errors are spelled as options."""

import os
import subprocess
import sys
import time

import pytest

import demonet
from demonet.cli import app
from demonet.cli.console import Heartbeat, console_progress, spelling
from demonet.errors import DemonetError, DemonetWarning, Hint

HEAVY = ("torch", "torch_geometric", "numpy", "scipy", "sklearn", "networkx", "pyarrow", "plotly")
PROGRAM = f"""
import sys
import time
sys.modules.update(dict.fromkeys({HEAVY}))  # importing one of them fails
sys.argv[0] = "demonet"
from demonet.cli import main
main()
"""


def command(*arguments, **environment):
    program = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["--help"], 0, "reproduce"),
        ([], 2, "reproduce"),
        (["--version"], 0, demonet.__version__),
        (["fit", "--help"], 0, "--labels"),
        (["fit", "edges.csv", "--nothing"], 2, "--nothing"),
        (["fit", "edges.csv", "--out", "run", "--preset", "none"], 2, "strong"),
    ],
)
def test_nothing_heavy_is_imported(arguments, code, word):
    done = command(*arguments)
    assert done.returncode == code, done.stderr
    assert word in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["fit", "edges.csv", "--out", "run", "--labls", "x"], ["--labls", "--labels"]),
        (["fit"], ["edges", "demonet fit --help"]),
        (["nothing"], ["nothing", "demonet --help"]),
    ],
)
def test_a_usage_error_is_one_line(arguments, named):
    """It was a usage line, a hint and a box, over five to seven lines."""
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    assert all(word in done.stderr for word in named)


def test_completion_imports_nothing_heavy(tmp_path):
    (tmp_path / "brand.csv").touch()
    for words, found in ((f"{tmp_path}/br", f"{tmp_path}/brand.csv"), ("br", "brazil"), ("--preset ", "strong")):
        place = str(len(f"fit {words}".split(" ")))
        done = command(_DEMONET_COMPLETE="complete_bash", COMP_WORDS=f"demonet fit {words}", COMP_CWORD=place)
        assert found in done.stdout.split(), done.stderr


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "demonet", "--version"], capture_output=True, text=True)
    assert done.stdout == f"demonet {demonet.__version__}\n", done.stderr


def test_public_names_are_found():
    assert set(demonet.__all__) <= set(dir(demonet))
    for name in demonet.__all__:
        assert getattr(demonet, name).__name__.rpartition(".")[2] == name
    assert demonet.data.__name__ == "demonet.data"
    with pytest.raises(AttributeError, match="nothing"):
        _ = demonet.nothing


def test_an_argument_is_spelled_as_the_option_of_the_command():
    spell = spelling(app, ["fit", "edges.csv"])
    error = DemonetError(
        "'x' is wrong", argument="self_loops", file="a.csv", line=2, hint=Hint("{directed}", directed=True)
    )
    assert str(error) == "a.csv:2: self_loops: 'x' is wrong (directed=True)"
    assert error.spelled(spell) == "a.csv:2: --self-loops: 'x' is wrong (--directed)"
    for arguments, option in (
        ({"directed": False}, "--undirected"),
        ({"self_loops": "keep"}, "--self-loops keep"),
        ({"labels": ...}, "--labels"),
        ({"edges": ...}, "EDGES"),
    ):
        warning = DemonetWarning("w", hint=Hint(f"use {{{next(iter(arguments))}}}", **arguments))
        assert warning.spelled(spell) == f"w (use {option})"


def test_a_hint_that_the_command_has_no_option_for_is_left_out():
    error = DemonetError("wrong", hint=Hint("{add_isolated} adds them", add_isolated=True))
    assert error.spelled(spelling(app, ["fit"])) == "wrong (--add-isolated adds them)"
    assert error.spelled(spelling(app, ["report"])) == "wrong"
    assert error.spelled(spelling(app, [])) == "wrong"


def test_a_long_step_is_not_silent(capsys):
    """The first candidate on 2,000 graphs takes minutes, in which nothing was printed."""
    with Heartbeat(seconds=0.05) as heartbeat:
        heartbeat.now("fitting machine", left=1000.0)
        said, end = "", time.monotonic() + 30
        while not said and time.monotonic() < end:
            time.sleep(0.01)
            said = capsys.readouterr().err
    assert said.startswith("still fitting machine, ")
    assert "1000 s left" in said


def test_a_step_in_parts_says_how_many_are_done_and_what_is_left(capsys):
    with Heartbeat(seconds=0.05) as heartbeat:
        progress = console_progress(heartbeat)
        progress.step("measuring what matters", 0, 1000)
        time.sleep(0.01)
        progress.step("measuring what matters", 1, 1000)
        said, end = "", time.monotonic() + 30
        while not said and time.monotonic() < end:
            time.sleep(0.01)
            said = capsys.readouterr().err
    assert said.startswith("still measuring what matters (1 of 1000), ")
    assert " s left" in said
