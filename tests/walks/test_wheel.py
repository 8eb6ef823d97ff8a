"""The built wheel installs and runs outside the repository, without the optional packages."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

from tests.pages import ROOT
from tests.walks.command import LEFT_OUT, build_wheel, demonet, environment, python

import demonet as package

PACKAGES = ("demonet/", "demonet_study/")


def test_the_wheel_has_every_file_of_both_packages(tmp_path):
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        inside = {name for name in wheel.namelist() if name.startswith(PACKAGES)}
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert inside == {name for name in files if name.startswith(PACKAGES) and "__pycache__" not in name}


def test_the_command_and_the_package_are_those_of_the_wheel(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = subprocess.run([environment() / "bin" / "demonet", "--version"], capture_output=True, text=True)
    assert done.stdout == f"demonet {package.__version__}\n", done.stderr
    code, out, err = python(
        "import demonet, importlib.metadata; print(demonet.__file__, importlib.metadata.version('demonet'))"
    )
    place, version = out.split()
    assert (code, version) == (0, package.__version__), err
    assert Path(place).is_relative_to(environment())
    assert "pandas" in LEFT_OUT
    assert "No module named 'pandas'" in python("import pandas")[2]


def test_a_run_with_its_page_and_the_baselines(tmp_path, monkeypatch):
    """No package of the test extras is needed for it."""
    monkeypatch.chdir(tmp_path)
    pairs = [(i, (i + 1) % 12) for i in range(12)] + [(i, 12 + i // 2) for i in range(0, 12, 2)]
    Path("edges.csv").write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in pairs))
    Path("labels.csv").write_text("node,label\n" + "".join(f"{u},{'out' if u > 11 else 'in'}\n" for u in range(16)))
    code, _, err = demonet("fit", "edges.csv", "--labels", "labels.csv", "--out", "run", "--effort", "quick")
    assert code == 0, err
    assert Path("run/report.html").stat().st_size > 10_000
    assert demonet("report", "run")[0] == 0
    code, _, err = demonet("datasets")
    assert code == 0, err
