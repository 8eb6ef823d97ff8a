"""``fit --config``: a run from a file, and a run repeated from the file in its folder."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.files import roles
from tests.walks.command import demonet

from demonet.configfile import read_config, write_config

PAIRS, ROLES = roles(6)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(st.booleans(), st.integers(), st.floats(), TEXT, st.lists(TEXT))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "calls.csv").write_text("who,whom\n" + "".join(f"{u},{v}\n" for u, v in PAIRS))
    (tmp_path / "in" / "roles.csv").write_text("node,label\n" + "".join(f"{u},{r}\n" for u, r in ROLES.items()))
    options = ["edges = 'in/calls.csv'", "labels = 'in/roles.csv'", "source = 'who'", "target = 'whom'"]
    (tmp_path / "run.toml").write_text("\n".join([*options, "epochs = 2", "out = 'first'", "seed = 3"]))
    return tmp_path


def test_a_run_needs_one_argument_and_can_be_repeated_from_its_folder(files, monkeypatch):
    code, _, err = demonet("fit", "--config", "run.toml")
    assert code == 0, err
    (files / "elsewhere").mkdir()
    monkeypatch.chdir(files / "elsewhere")  # paths are relative to the file
    code, _, err = demonet("fit", "--config", "../first/run.toml", "--out", "second")
    assert code == 0, err
    first, second = ((files / run / "predictions.csv").read_bytes() for run in ("first", "elsewhere/second"))
    assert first == second
    saved = tomllib.loads((files / "first" / "run.toml").read_text())
    assert (saved["edges"], saved["source"], saved["epochs"], saved["seed"]) == ("../in/calls.csv", "who", 2, 3)


def test_the_command_line_comes_before_the_file(files):
    assert demonet("fit", "--config", "run.toml", "--seed", "5", "--out", "other")[0] == 0
    assert tomllib.loads((files / "other" / "run.toml").read_text())["seed"] == 5


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("labls = 'x'", ["bad.toml", "'labls'", "'labels'"]),
        ("seed = 'many'\nedges = 'a'\nout = 'b'", ["seed"]),
        ("edges = '" + "e" * 5000 + "'\nout = 'b'", ["eee"]),
        ("[train]\nseed = 3", ["bad.toml", "train"]),
        ("edges = 'in/calls.csv'", ["--out"]),
        ("overwrite = true", ["overwrite"]),
    ],
)
def test_a_wrong_file_is_one_line(files, content, named):
    (files / "bad.toml").write_text(content)
    code, out, err = demonet("fit", "--config", "bad.toml")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert all(word in err for word in named), err


@given(values=st.dictionaries(st.sampled_from(["source", "weight", "val", "cv"]), VALUES))
def test_what_is_written_is_read(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("run")
    write_config(folder / "run.toml", values, folder)
    found = read_config(folder / "run.toml", set(values))
    assert found == values or any(value != value for value in values.values())  # NaN
