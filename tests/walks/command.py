"""The package as a person has it: the built wheel, installed into an environment of its own.

The environment has what the package requires, from the environment of the tests, and none of the optional packages.
It is made once; a process in it imports the package once and forks for every command.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.pages import ROOT
from tests.test_dependencies import OPTIONAL, PROJECT, declared

from demonet import __version__ as demonet_version

EXTRAS = [name for extra in sorted(OPTIONAL) for name in PROJECT["optional-dependencies"][extra]]
LEFT_OUT = sorted(declared(EXTRAS) - {"demonet", "setuptools_scm", "triton"})  # torch brings Triton itself
SERVER = """
import json, os, sys, traceback
import demonet.runs, demonet.report.run
from demonet.cli import main

for line in sys.stdin if __name__ == "__main__" else ():  # workers import this file, too
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        code = 0
        try:
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            os.chdir(asked["folder"])
            if asked["optional"]:
                sys.path.append(asked["optional"])
            if asked["code"] is None:
                sys.argv = ["demonet", *asked["arguments"]]
                main()
            else:
                exec(compile(asked["code"], "<walk>", "exec"), {"__name__": "__main__"})
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def build_wheel(folder: Path) -> Path:
    """The wheel of the source distribution of the tree at hand; it is made of a copy, without any earlier build.

    The copy has no tags, so the version is given: that of the wheel follows from the source distribution alone.
    """
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    build = (
        "import os, sys; os.chdir(sys.argv[1]); from setuptools import build_meta; build_meta.build_sdist(sys.argv[2])"
    )
    _run(sys.executable, "-c", build, str(source), str(folder), SETUPTOOLS_SCM_PRETEND_VERSION=demonet_version)
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    _run(sys.executable, "-m", "pip", "wheel", *options, "-w", str(folder), str(next(folder.glob("*.tar.gz"))))
    return next(folder.glob("*.whl"))


@functools.cache
def environment() -> Path:
    """The folder of the environment with the wheel."""
    folder = Path(tempfile.mkdtemp(prefix="demonet-installed-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = folder / "venv"
    _run(sys.executable, "-m", "venv", "--without-pip", str(place))
    options = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    _run(sys.executable, "-m", "pip", "--python", str(place), "install", *options, str(build_wheel(folder)))
    ours, theirs = (Path(sysconfig.get_path("purelib", vars={"base": str(base)})) for base in (place, sys.prefix))
    for name in ("required", "optional"):
        (folder / name).mkdir()
    for entry in theirs.iterdir():
        name = entry.name.split("-")[0].split(".")[0].lower()
        if entry.suffix != ".pth" and not name.startswith(("demonet", "__")):
            (folder / ("optional" if name in LEFT_OUT else "required") / entry.name).symlink_to(entry)
    (ours / "required.pth").write_text(f"{folder / 'required'}\n")
    return place


@functools.cache
def _server() -> subprocess.Popen[str]:
    script = environment() / "server.py"
    script.write_text(SERVER)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean |= {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    process = subprocess.Popen(
        [environment() / "bin" / "python", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean
    )
    atexit.register(process.kill)
    return process


def demonet(*arguments: str, optional: bool = False) -> tuple[int, str, str]:
    """Run the installed command in the folder at hand: exit code, stdout, stderr."""
    return _ask(arguments=arguments, optional=optional)


def python(code: str, *, optional: bool = False) -> tuple[int, str, str]:
    """Run Python with the installed package, perhaps in an environment that also has the optional packages."""
    return _ask(code=code, optional=optional)


def _ask(arguments: tuple[str, ...] = (), code: str | None = None, *, optional: bool) -> tuple[int, str, str]:
    """Run something in the environment, perhaps with the optional packages."""
    server, more = _server(), str(environment().parent / "optional") if optional else None
    out, err = environment() / "out", environment() / "err"
    asked = {"folder": os.getcwd(), "arguments": arguments, "code": code, "optional": more, "out": str(out)}
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(asked | {"err": str(err)}) + "\n")
    server.stdin.flush()
    return int(server.stdout.readline()), out.read_text(), err.read_text()


def _run(*command: str, **environment: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stdout + done.stderr
