"""Stamps: what changes them, and what does not."""

from __future__ import annotations

import json
import shutil

import pytest

from demonet.data.catalog import CATALOG
from demonet.errors import DemonetError
from demonet_study.ledger import job as stamping
from demonet_study.ledger.job import (
    KINDS,
    code,
    data_hash,
    device_name,
    imported_files,
    libraries,
    normalized,
    stamp,
)


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A copy of the package's source that may be changed."""
    copy = tmp_path / "source"
    for package in stamping.PROJECT:
        shutil.copytree(stamping.SOURCE / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(stamping, "SOURCE", copy)
    return copy


def add(path, text):
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    [
        "demonet/data/splits.py",
        "demonet_study/methods/rolx.py",
        "demonet_study/experiments/accuracy.py",
        "demonet/train/loop.py",
    ],
)
def test_another_line_of_code_is_another_stamp(source, name):
    before = code("accuracy")
    add(source / name, "\n_another = 1\n")
    assert code("accuracy") != before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("demonet/train/loop.py", "\n# why\n\n"),
        ("demonet/report/page.py", "\n_another = 1\n"),
        ("demonet_study/ledger/store.py", "\n_another = 1\n"),
        ("demonet_study/report/parts/nodes.py", "\n_another = 1\n"),
    ],
)
def test_what_numbers_do_not_depend_on_is_no_part_of_it(source, name, text):
    before = code("accuracy")
    add(source / name, text)
    assert code("accuracy") == before


def test_where_the_package_lies_and_how_lines_end_does_not_matter(source):
    here = code("accuracy")
    for path in source.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert code("accuracy") == here


@pytest.mark.parametrize("name", ["demonet/data/splits.py", "demonet_study/experiments/accuracy.py"])
def test_a_file_that_is_being_written_is_an_expected_error(source, name):
    add(source / name, "\ndef (\n")
    with pytest.raises(DemonetError, match=name):
        code("accuracy")


def test_only_what_is_said_to_python_counts():
    assert normalized('class A:\n    "doc"\n    x = 1') == normalized("class A: x = 1  # b")
    assert normalized("x = 'a'") != normalized("x = 'b'")
    assert normalized("def f():\n    'a'") != normalized("def f():\n    return 'a'")


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_run_has_its_source(kind):
    module, _ = KINDS[kind]
    assert f"{module.replace('.', '/')}.py" in imported_files(module)
    assert len(code(kind)) == 16


def test_an_import_inside_a_function_is_followed():
    assert "demonet/data/catalog.py" in imported_files("demonet.data.load")
    assert not any(
        name.startswith("demonet_study/ledger") for name in imported_files("demonet_study.experiments.accuracy")
    )


def test_a_stamp_names_all(monkeypatch):
    made = stamp("accuracy", "brazil")
    assert json.loads(made.libraries).keys() >= {"python", "torch", "torch_geometric", "numpy", "scikit-learn"}
    assert (made.device, made.data) == ("cpu", data_hash("brazil"))
    monkeypatch.setattr(stamping, "LIBRARIES", ("numpy", "not-there-at-all"))
    assert json.loads(libraries()).keys() == {"python", "numpy"}


def test_the_data_of_a_set_is_what_the_catalogue_says(monkeypatch):
    assert data_hash("mirrored-karate") == ""
    assert len({data_hash(name) for name in CATALOG}) == len(CATALOG)


def test_what_there_is_not_is_refused(monkeypatch):
    with pytest.raises(DemonetError, match="'guess'"):
        stamp("guess", "brazil")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(DemonetError, match="'cuda'"):
        device_name("cuda")
