"""Every file of a run is bound to the others: a damaged or swapped one is refused before it is used."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from tests.runs.files import fit
from typer.testing import CliRunner

from demonet import DemonetError
from demonet.cli import app
from demonet.errors import DemonetWarning
from demonet.runs import Settings, load_run, predict_run
from demonet.runs.folder import FORMAT
from demonet.runs.manifest import read_manifest
from demonet.sealed import read_sealed, write_sealed
from demonet.tensorfile import read_tensors, write_tensors

READ = ["config.json", "manifest.json", "metrics.json", "model.safetensors", "run.safetensors"]


@pytest.fixture
def run(problem):
    fit()
    return problem / "run"


def flipped(raw: bytes, place: int) -> bytes:
    return raw[:place] + bytes([raw[place] ^ 1 << place % 8]) + raw[place + 1 :]


@pytest.mark.parametrize("name", READ)
def test_a_changed_bit_of_any_file_is_found_before_it_is_used(run, name):
    raw = (run / name).read_bytes()
    for place in np.random.default_rng(0).choice(len(raw), 20, replace=False).tolist():
        (run / name).write_bytes(flipped(raw, place))
        with pytest.raises(DemonetError, match=r"^run/"):
            predict_run("run", "edges.csv")
    (run / name).write_bytes(raw)
    predict_run("run", "edges.csv")


def test_a_model_of_another_run_is_refused_and_what_still_works_is_named(run):
    """Two classes in a run of three: before, wrong class names and exit code 0."""
    labels = (run.parent / "labels.csv").read_text()
    (run.parent / "two.csv").write_text(labels.replace("foot", "ring"))
    from demonet.runs import fit_run

    fit_run("edges.csv", "two.csv", out="other", settings=Settings(epochs=12))
    shutil.copy("other/model.safetensors", run)
    with pytest.raises(DemonetError, match=r"^run/model.safetensors: .*run.safetensors.*still works: report\)$"):
        predict_run("run", "edges.csv")
    load_run("run")


def test_a_file_that_no_command_reads_is_named_by_report(run):
    with (run / "predictions.csv").open("a") as file:
        file.write("x\n")
    result = CliRunner().invoke(app, ["report", "run"])
    assert result.exit_code == 0
    with pytest.warns(DemonetWarning, match=r"predictions.csv"):
        CliRunner().invoke(app, ["report", "run"], catch_exceptions=False)


def test_a_page_that_is_written_again_is_in_the_manifest(run):
    before = read_manifest(run)
    assert CliRunner().invoke(app, ["report", "run"]).exit_code == 0
    after = read_manifest(run)
    assert {name for name in after if before[name] != after[name]} == {"report.html"}


def test_a_missing_manifest_is_an_error_unless_the_run_is_older_than_manifests(run):
    (run / "manifest.json").unlink()
    with pytest.raises(DemonetError, match=r"manifest.json"):
        load_run("run")
    arrays = run / "run.safetensors"
    found = read_tensors(arrays, FORMAT)
    write_tensors(arrays, FORMAT, found.tensors, {k: v for k, v in found.facts.items() if k != "manifest"})
    with pytest.warns(DemonetWarning, match="cannot be checked"):
        load_run("run")
    for name in ("config.json", "metrics.json"):
        before = (run / name).read_text()
        for text in ("{}", "[]", "null", "1e999", "[" * 100_000, "\xff"):
            (run / name).write_bytes(text.encode("latin-1"))
            with pytest.raises(DemonetError, match=f"^run/{name}: "), pytest.warns(DemonetWarning):
                load_run("run")
        (run / name).write_text(before)


def test_sealed_json_comes_back_and_every_changed_byte_is_found(tmp_path):
    path, value = tmp_path / "a.json", {"a": [1, 0.1, None], "ü": "\udcff"}
    write_sealed(path, value)
    assert read_sealed(path, "") == value
    raw = path.read_bytes()
    assert json.loads(raw)["a"] == value["a"]
    for place in range(len(raw)):
        path.write_bytes(flipped(raw, place))
        with pytest.raises(DemonetError):
            read_sealed(path, "")
