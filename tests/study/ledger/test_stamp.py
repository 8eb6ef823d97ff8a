"""Stamps: what changes them, and what does not."""

from __future__ import annotations

import json

import pytest

from demonet.data.catalog import CATALOG
from demonet.errors import DemonetError
from demonet_study.ledger import job as stamping
from demonet_study.ledger.job import code, data_hash, device_name, stamp

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
