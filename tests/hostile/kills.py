"""Kill a process at a chosen write: before the k-th open for writing, rename, remove, mkdir, fsync or SQL statement.

A command runs in a forked child of a parent that has run every command once, so a kill costs no imports.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import signal
import sqlite3
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.runs.files import write_problem

KILLED = -signal.SIGKILL
_CALLS = ("rename", "replace", "remove", "unlink", "rmdir", "mkdir", "fsync", "ftruncate")
FIT = ["fit", "edges.csv", "--labels", "labels.csv", "--out", "run", "--epochs", "3", "--seed"]


class Counter:
    """Counts calls of this process, and kills it before the k-th.

    Args:
        kill_at: The number of the call before which the process ends; 0 for none.
        prefix: Only calls on paths below this folder count, and fsync, and statements of SQLite.
    """

    def __init__(self, kill_at: int, prefix: str) -> None:
        self.kill_at, self.prefix, self.count, self.process = kill_at, prefix, 0, os.getpid()

    def hit(self, path: object) -> None:
        if os.getpid() != self.process:  # a worker
            return
        if isinstance(path, str | bytes | os.PathLike):
            path = os.path.abspath(os.fsdecode(path))
            if not path.startswith(self.prefix) or path.endswith(".pyc") or "__pycache__" in path:
                return
        self.count += 1
        if self.count == self.kill_at:
            os.kill(self.process, signal.SIGKILL)

    def install(self) -> None:
        """Wrap the calls of ``os``, ``open`` and ``sqlite3``."""
        for name in _CALLS:
            setattr(os, name, self._wrapped(getattr(os, name)))
        opened, os_open, connected = io.open, os.open, sqlite3.connect

        def open_file(file, mode="r", *rest, **options):
            if set(mode) & set("wax+"):
                self.hit(file)
            return opened(file, mode, *rest, **options)

        def open_handle(path, flags, *rest, **options):
            if flags & (os.O_WRONLY | os.O_RDWR):
                self.hit(path)
            return os_open(path, flags, *rest, **options)

        def connect(*arguments, **options):
            connection = connected(*arguments, **options)
            connection.set_trace_callback(self.hit_statement)
            return connection

        builtins.open = io.open = open_file
        os.open, sqlite3.connect = open_handle, connect

    def hit_statement(self, text: str) -> None:
        if not text.startswith(("SELECT", "PRAGMA", "--")):  # what only reads
            self.hit(0)

    def _wrapped(self, function):
        def call(path, *rest, **options):
            if not isinstance(path, int) or function.__name__ == "fsync":
                self.hit(path)
            return function(path, *rest, **options)

        return call


@cache
def warm():
    """The command line, after every command that is killed has run once in this process, or what it imports."""
    from demonet.cli import app
    from demonet.report.page import _plotly
    from demonet_study.ledger.job import stamp
    from demonet_study.ledger.schema import _expected_columns
    from demonet_study.report import files, parts  # noqa: F401

    _plotly()
    _expected_columns()
    stamp("identity", "cycle", "cpu")
    before = Path.cwd()
    commands = [
        [*FIT, "0"],
        ["predict", "run", "edges.csv", "--out", "p.csv"],
        ["embed", "run", "edges.csv", "--out", "e.parquet"],
        ["report", "run"],
    ]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        write_problem(Path(folder), motifs=4)
        os.chdir(folder)
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for command in commands:
                app(command, standalone_mode=False)
        os.chdir(before)
    return app


class Child:
    """A command in a forked child.

    Args:
        arguments: The command line.
        folder: The folder at hand.
        kill_at: The number of the call before which it is killed; 0 for none.
        setting: Called in the child first.
    """

    def __init__(
        self, arguments: list[str], folder: Path, kill_at: int = 0, setting: Callable[[Path], None] | None = None
    ) -> None:
        app = warm()
        sys.stdout.flush()
        self._said, writer = os.pipe()
        self.process = os.fork()
        if self.process:
            os.close(writer)
            return
        code = 1
        try:
            os.setpgid(0, 0)  # workers with it
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.chdir(folder)
            if setting is not None:
                setting(folder)
            counter = Counter(kill_at, str(folder))
            counter.install()
            app(arguments, standalone_mode=False)
            os.write(writer, str(counter.count).encode())
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode()[:4000])
        finally:
            os._exit(code)

    def kill(self) -> None:
        """Kill it now; its workers have to end by themselves."""
        os.kill(self.process, signal.SIGKILL)

    def wait(self) -> tuple[int, int]:
        """Its exit code (the negative number of the signal that killed it), and the number of calls if it is 0."""
        _, status = os.waitpid(self.process, 0)
        self._wait_for_workers()
        os.set_blocking(self._said, False)
        with os.fdopen(self._said, "rb") as stream:
            said = stream.read() or b""
        code = os.waitstatus_to_exitcode(status)
        if code > 0:
            raise RuntimeError(said.decode(errors="replace") or f"exit code {code}")
        return code, int(said) if code == 0 else 0

    def _wait_for_workers(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                os.killpg(self.process, 0)
            except ProcessLookupError:
                return
            time.sleep(0.005)
        os.killpg(self.process, signal.SIGKILL)
        raise AssertionError("a worker outlives its parent by a minute")


def forked(
    kill_at: int, arguments: list[str], folder: Path, setting: Callable[[Path], None] | None = None
) -> tuple[int, int]:
    """Run a command in a forked child: its exit code, and the number of calls where it ended by itself."""
    return Child(arguments, folder, kill_at, setting).wait()
