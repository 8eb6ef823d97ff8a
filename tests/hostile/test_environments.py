"""Hostile environments and arguments: each ends in one line and exit code 2, or works; never in a traceback."""

from __future__ import annotations

import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hostile.kills import warm
from tests.runs.files import fit, write_problem

import demonet.runs
from demonet.cli import console, main

NOBODY = 54321  # a user that no file knows


def stream(number: int, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.FileIO(number, "w", closefd=False), encoding, "strict", write_through=True)


def run(arguments: list[str], prepare: Callable[[], object] = lambda: None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in a forked child, which calls ``prepare`` first."""
    warm()
    outputs = [os.memfd_create(name) for name in ("out", "err")]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for number, handle in enumerate(outputs, 1):
                os.dup2(handle, number)
            sys.stdout, sys.stderr = stream(1, "utf-8"), stream(2, "utf-8")
            sys.argv = ["demonet", *arguments]
            prepare()
            main()
        except SystemExit as ended:
            code = ended.code or 0
        except BaseException:
            import traceback

            os.write(2, traceback.format_exc().encode(errors="replace"))
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    texts = []
    for handle in outputs:
        os.lseek(handle, 0, os.SEEK_SET)
        texts.append(os.read(handle, 1 << 20).decode(errors="replace"))
        os.close(handle)
    return os.waitstatus_to_exitcode(status), *texts


def refused(result: tuple[int, str, str], *words: str) -> None:
    code, _, error = result
    assert "Traceback" not in error
    last = error.strip().splitlines()[-1]
    assert code == 2, error
    assert all(word in last for word in words), last


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A problem and a finished run."""
    folder, before = tmp_path_factory.mktemp("finished"), Path.cwd()
    write_problem(folder, motifs=4)
    os.chdir(folder)
    fit()
    os.chdir(before)
    return folder


@pytest.fixture
def folder(finished, tmp_path, monkeypatch):
    """A copy of it that everybody may read and write, as the folder at hand."""
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    for path in (folder, *folder.parents[:3], folder / "run"):
        path.chmod(0o777)
    for path in (folder / "run").iterdir():
        path.chmod(0o666)
    monkeypatch.chdir(folder)
    return folder


PREDICT = ["predict", "run", "edges.csv", "--out", "p.csv"]


def test_a_user_without_a_name_and_a_home(folder):
    def nobody():
        for name in ("HOME", "USER", "LOGNAME"):
            os.environ.pop(name, None)
        os.getuid = lambda: NOBODY  # what looks up a home asks for it

    code, _, error = run(PREDICT, nobody)
    assert code == 0, error
    refused(run(["datasets", "brazil"], lambda: (nobody(), os.environ.pop("DEMONET_DATA", None))), "HOME")


def test_no_temporary_folder(folder):
    def none():
        def fail():
            raise FileNotFoundError(2, "No usable temporary directory found")

        tempfile.tempdir, tempfile._get_default_tempdir = None, fail

    assert run(PREDICT, none)[0] == 0
    refused(run([*PREDICT[:-1], "-"], none), "temporary")


def test_a_full_disk(folder):
    refused(run([*PREDICT[:-1], "/dev/full"]), "No space")

    def little():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    refused(run(["fit", "edges.csv", "--labels", "labels.csv", "--out", "other", "--epochs", "2"], little))
    refused(run(["embed", "run", "edges.csv", "--out", "e.csv"], little))
    assert sorted(path.name for path in folder.iterdir() if path.name.endswith((".part", "e.csv"))) == []


def test_folders_that_may_not_be_written(folder):
    """As another user where this one is root, who may write everywhere."""
    run_files = folder / "run"
    before = {path.name: path.read_bytes() for path in run_files.iterdir()}

    def as_nobody():
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    for path in (folder, run_files):
        path.chmod(0o555)
    try:
        refused(run(PREDICT, as_nobody), "denied")
        refused(
            run(["fit", "edges.csv", "--labels", "labels.csv", "--out", "other", "--epochs", "2"], as_nobody), "denied"
        )
        refused(run(["fit", "edges.csv", "--labels", "labels.csv", "--out", "run", "--overwrite"], as_nobody), "denied")
        refused(run(["report", "run"], as_nobody), "denied")
        assert run([*PREDICT[:-1], "-"], as_nobody)[0] == 0
    finally:
        for path in (folder, run_files):
            path.chmod(0o777)
    assert {path.name: path.read_bytes() for path in run_files.iterdir()} == before


def test_names_that_are_not_utf_8(folder):
    name = os.fsdecode(b"\xff\xfe")
    Path(f"{name}.csv").write_bytes(Path("edges.csv").read_bytes())
    code, out, error = run(["predict", "run", f"{name}.csv", "--out", f"{name}-p.csv"])
    assert (code, "udcff" in out) == (0, True), error
    fitting = ["fit", f"{name}.csv", "--labels", "labels.csv", "--out", f"{name}-run", "--epochs", "2"]
    code, _, error = run(fitting)
    assert code == 0, error
    assert run(["report", f"{name}-run"])[0] == 0
    refused(run(["predict", "run", f"{name}.nothing", "--out", "p.csv"]), "no such file")


def test_a_terminal_that_is_ascii(folder):
    def ascii_only():
        sys.stdout, sys.stderr = stream(1, "ascii"), stream(2, "ascii")

    code, _, error = run(["fit", "edges.csv", "--labels", "labels.csv", "--out", "other", "--epochs", "2"], ascii_only)
    assert code == 0, error


def test_a_name_cannot_command_the_terminal(folder):
    name = "\x1b]0;owned\x07.csv"
    Path(name).write_bytes(Path("edges.csv").read_bytes())
    Path("labels.csv").write_text(Path("labels.csv").read_text().replace("ring", "\x1b[31m\u202ering\u2066"))
    code, out, error = run(["fit", name, "--labels", "labels.csv", "--out", "other", "--epochs", "2"])
    assert code == 0, error
    code, more, worse = run(["predict", "other", name, "--out", "\x1b[2Jp.parquet.nothing"])
    assert code == 2
    assert not set("\x1b\u202e\u2066") & set(out + error + more + worse)
    assert all(code in error + out for code in (r"\x1b", r"\u202e", r"\u2066"))


def test_a_file_name_as_long_as_names_can_be(folder):
    name = "p" * 251 + ".csv"
    code, _, error = run([*PREDICT[:-1], name])
    assert code == 0, error
    assert Path(name).is_file()


def test_standard_output_that_is_closed(folder):
    """Python has no ``sys.stdout`` then."""
    assert run(PREDICT, lambda: setattr(sys, "stdout", None))[0] == 0
    refused(run([*PREDICT[:-1], "-"], lambda: setattr(sys, "stdout", None)), "descriptor")


def test_a_limit_on_addresses_that_libraries_exceed_is_refused_at_once(folder):
    """Some tried for ever to start a thread, others ended in a traceback of the import."""

    def limited(size, error=None):
        def fail(*_, **options):
            raise error

        console.address_limit = lambda: size
        if error is not None:
            demonet.runs.predict_run = fail

    refused(run(PREDICT, lambda: limited(2**30)), "1.0 GiB", "ulimit")
    assert run(["predict", "--help"], lambda: limited(2**30))[0] == 0
    assert run(PREDICT, lambda: limited(2**36))[0] == 0
    for error in (ImportError("lib.so: failed to map segment from shared object"), SystemError("error return")):
        refused(run(PREDICT, lambda error=error: limited(2**36, error)), "out of memory")


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_out_of_memory(folder, error):
    def exhaust():
        def fail(*_, **options):
            raise error

        demonet.runs.predict_run = fail

    refused(run(PREDICT, exhaust), "out of memory")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([*PREDICT, "--source", "²"], "²"),
        (["demo", "--seed", str(2**70)], "2147483648"),
        (["bench", "--sizes", "1e13"], "GiB"),
        (["compare", "edges.csv", "--labels", "labels.csv", "--out", "c", "--jobs", "1000"], "four for each core"),
        (["fit", "edges.csv", "--labels", "labels.csv", "--out", "f", "--cv", "100000000"], "1000"),
        (["export", "run", "--onnx", "run"], "folder"),
        (["fit", "edges.csv", "--labels", "labels.csv", "--out", "f", "--time-limit", "inf"], "--time-limit"),
        (["fit", "edges.csv", "--labels", "labels.csv", "--out", "f", "--split", "/dev/zero"], "device"),
        (["fit", "edges.csv", "--labels", "/dev/zero", "--out", "f"], "device"),
        (["fit", "edges.csv", "--config", "/dev/zero", "--out", "f"], "device"),
    ],
    ids=["source", "seed", "sizes", "jobs", "cv", "onnx", "limit", "split", "labels", "config"],
)
def test_arguments_that_no_machine_can_serve_are_refused_at_once(folder, arguments, word):
    start = time.monotonic()
    refused(run(arguments), word)
    assert time.monotonic() - start < 60


PRESSED = """
import os, signal, sys

module, sys.argv = sys.argv[1], ["demonet", *sys.argv[2:]]

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

from demonet.__main__ import main
sys.meta_path.insert(0, Press())
main()
"""


@pytest.mark.parametrize("module", ["typer", "torch"])
def test_control_c_while_a_module_is_imported_is_one_line(folder, module):
    done = subprocess.run(
        [sys.executable, "-c", PRESSED, module, *PREDICT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr


PRESSED_LATE = """
import os, signal, sys

class Press:
    def __del__(self, press=os.kill, process=os.getpid(), number=signal.SIGINT):
        press(process, number)

from demonet.__main__ import main
sys.argv, sys.pressed = ["demonet", "--version"], Press()
main()
"""


def test_control_c_while_python_ends_changes_nothing():
    """The work was done, and the process died of the signal."""
    done = subprocess.run([sys.executable, "-c", PRESSED_LATE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "demonet" in done.stdout
