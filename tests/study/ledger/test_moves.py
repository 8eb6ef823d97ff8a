"""Complete cells outlive every change of the code, moved and renamed files included."""

import json
import re

import numpy as np
import pytest
from tests.pages import ROOT

from demonet.data.catalog import CATALOG
from demonet.errors import DemonetError
from demonet_study.ledger import job as stamping
from demonet_study.ledger.job import Cell, Job, Stamp, code, data_hash, device_name, stamp
from demonet_study.ledger.schema import key
from demonet_study.ledger.store import Ledger
from demonet_study.report.files import write_files
from demonet_study.report.parts import PARTS

NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e-?\d+)?")
CELL = Cell("accuracy", "brazil", "gcn", split="thirds")


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """A new ledger with the committed runs. Reading them checks that every run still has the key of its job."""
    with Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite") as ledger:
        assert ledger.import_runs(ROOT / "results" / "ledger.parquet") > 20_000
        yield ledger


@pytest.mark.parametrize("name", PARTS)
def test_no_committed_cell_is_run_again(committed, name):
    """By today's code: if a move or a renamed method, kind or option lost a cell, ``reproduce all`` would repeat it."""
    part = PARTS[name]
    if not any(committed.results(one.cell for one in part.wanted(own=True)).values()):
        pytest.skip(f"no run of the part {name} has been committed yet")
    assert committed.incomplete(part.wanted(), part.device) == []


def test_the_committed_tables_and_figures_are_written_again(committed, tmp_path):
    """From the committed runs, word by word; numbers may differ in their last digit on another processor."""
    written = write_files(committed, list(PARTS.values()), tmp_path, runs=None, quick=False, summary=None)
    names = [path.relative_to(tmp_path).as_posix() for path in written if path.name != "paper.html"]
    assert len(names) > 40
    for name in names:
        text = (tmp_path / name).read_text(encoding="utf-8")
        before = (ROOT / "results" / name).read_text(encoding="utf-8")
        assert NUMBER.sub("#", text) == NUMBER.sub("#", before), name
        found, known = NUMBER.findall(text), NUMBER.findall(before)
        last = [10.0 ** -len(number.split("e")[0].partition(".")[2]) for number in known]
        difference = np.abs(np.array(found, dtype=float) - np.array(known, dtype=float))
        assert (difference <= 1.01 * np.array(last)).all(), name


def test_the_key_of_a_run_is_a_matter_of_record():
    """It is a hash over field names and values: renaming a field of Cell, Job or Stamp would orphan all runs."""
    made = Stamp("c0de", "{}", "cpu", "da7a")
    assert key(Job(CELL, 3), made) == "0c0d644b30e66a1fb8e3358c77fe0bca3ffebdb61eca219f8ee1d16d3e1f4229"


LOOP, RUN, PAGE, STORE = (
    *("demonet/train/loop.py", "demonet_study/experiments/accuracy.py"),
    *("demonet/report/page.py", "demonet_study/ledger/store.py"),
)


@pytest.fixture
def source(tmp_path, monkeypatch):
    """Four files in the place of the two packages."""
    for name in (LOOP, RUN, PAGE, STORE):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(stamping, "SOURCE", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        (LOOP, "x = 2\n", False),
        (RUN, "x = 1\ny = 1\n", False),
        (LOOP, "# why\nx = 1\n", True),
        (LOOP, '"""Why."""\r\nx = 1\r\n', True),
        (PAGE, "x = 2\n", True),
        (STORE, "x = 2\n", True),
    ],
)
def test_code_that_numbers_may_depend_on_is_part_of_a_stamp(source, name, text, same):
    before = code()
    (source / name).write_bytes(text.encode())
    assert (code() == before) is same


def test_a_file_that_is_being_written_is_an_expected_error(source):
    (source / RUN).write_text("def (\n", encoding="utf-8")
    with pytest.raises(DemonetError, match=f"{RUN}:1"):
        code()


def test_a_stamp_names_all(monkeypatch):
    made = stamp("accuracy", "brazil")
    assert json.loads(made.libraries).keys() >= {"python", "torch", "torch_geometric", "numpy", "scikit-learn"}
    assert (len(made.code), made.device, made.data) == (16, "cpu", data_hash("brazil"))
    assert len({data_hash(name) for name in (*CATALOG, "mirrored-karate")}) == len(CATALOG) + 1
    with pytest.raises(DemonetError, match="'guess'"):
        stamp("guess", "brazil")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(DemonetError, match="'cuda'"):
        device_name("cuda")


def test_a_moved_file_changes_the_stamp(source):
    before = code()
    (source / LOOP).rename(source / LOOP.replace("loop", "moved"))
    assert code() != before
