"""Kill a process at a chosen write: the k-th open for writing, rename, remove, mkdir or fsync ends it at once.

``python -m tests.hostile.kills K COMMAND...`` runs the command line in this process and ends with exit code 77 before
the k-th of these calls, as ``kill -9`` would. With K = 0 nothing is killed, and the number of calls is printed.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from functools import cache

KILLED = 77
_CALLS = ("rename", "replace", "remove", "unlink", "rmdir", "mkdir", "fsync", "ftruncate")


class Counter:
    """Counts calls, and ends the process before the k-th.

    Args:
        kill_at: The number of the call before which the process ends; 0 for none.
        prefix: Only calls on paths below this folder count, and fsync.
    """

    def __init__(self, kill_at: int, prefix: str) -> None:
        self.kill_at, self.prefix, self.count = kill_at, prefix, 0

    def hit(self, path: object) -> None:
        if isinstance(path, str | bytes | os.PathLike):
            path = os.path.abspath(os.fsdecode(path))
            if not path.startswith(self.prefix) or path.endswith(".pyc") or "__pycache__" in path:
                return
        self.count += 1
        if self.count == self.kill_at:
            os._exit(KILLED)

    def install(self) -> None:
        """Wrap the calls of ``os`` and ``open``."""
        for name in _CALLS:
            setattr(os, name, self._wrapped(getattr(os, name)))
        opened, os_open = io.open, os.open

        def open_file(file, mode="r", *rest, **options):
            if set(mode) & set("wax+"):
                self.hit(file)
            return opened(file, mode, *rest, **options)

        def open_handle(path, flags, *rest, **options):
            if flags & (os.O_WRONLY | os.O_RDWR):
                self.hit(path)
            return os_open(path, flags, *rest, **options)

        builtins.open = io.open = open_file
        os.open = open_handle

    def _wrapped(self, function):
        def call(path, *rest, **options):
            if not isinstance(path, int) or function.__name__ == "fsync":
                self.hit(path)
            return function(path, *rest, **options)

        return call


@cache
def warm():
    """The command line, with all that its commands import and compress once."""
    import pyarrow.parquet  # noqa: F401

    from demonet.cli import app
    from demonet.report.page import _plotly
    from demonet.report.run import run_page  # noqa: F401
    from demonet.runs import fit_run  # noqa: F401

    _plotly()
    return app


def run(kill_at: int, arguments: list[str], prefix: str) -> int:
    """Run a command in this process; the number of calls. Imports come before the first of them."""
    app = warm()
    counter = Counter(kill_at, prefix)
    counter.install()
    try:
        app(arguments, standalone_mode=False)
    finally:
        sys.stdout.flush()
    return counter.count


def forked(kill_at: int, arguments: list[str], prefix: str) -> tuple[int, int]:
    """The same in a forked child, which needs no imports: its exit code, and the number of calls where it ended."""
    warm()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.write(writer, str(run(kill_at, arguments, prefix)).encode())
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 1:
        raise RuntimeError(said.decode(errors="replace"))
    return code, int(said) if code == 0 else 0


if __name__ == "__main__":
    print(run(int(sys.argv[1]), sys.argv[2:], os.getcwd()))
