"""Start a command again under ``torchrun``, several times side by side, and restart it where a process dies."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from demonet.errors import DemonetError

RESTARTS = 3
LOST = 75  # exit code of a process that has lost the others: it is started again
# Without it, processes that are started again may find the addresses of those that have died.
NEW_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
_STATUS = "DEMONET_STATUS"  # the file to which the first process writes how the command has ended


def under_torchrun() -> bool:
    """Whether ``torchrun`` has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def restarted() -> bool:
    """Whether ``torchrun`` has started it again, after a process has died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def launch(arguments: Sequence[str], workers: int) -> int:
    """Run ``demonet ARGUMENTS`` in several processes of this machine; the exit code of the command.

    If one of them dies, all are started again, at most three times.
    """
    with tempfile.TemporaryDirectory() as folder:
        status = Path(folder) / "status"
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}"]
        command += [f"--max-restarts={RESTARTS}", "-m", "demonet", *arguments]
        threads = max(1, (os.cpu_count() or 1) // workers)
        environment = {"OMP_NUM_THREADS": str(threads)} | os.environ | NEW_STORE | {_STATUS: str(status)}
        process = subprocess.Popen(command, env=environment)
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        if status.exists():
            return int(status.read_text())
        if code:
            raise DemonetError(
                f"a worker died more than {RESTARTS} times", hint="the lines above say which, and how it ended"
            )
        return code


def ended_before() -> bool:
    """Whether the command has ended, so that a process that is started again has nothing to do."""
    return _STATUS in os.environ and Path(os.environ[_STATUS]).exists()


@contextmanager
def status() -> Iterator[None]:
    """Note how the command ends in this process; an expected end is no reason to start it again."""
    try:
        yield
    except SystemExit as end:
        if _STATUS not in os.environ or os.environ.get("RANK") != "0" or end.code == LOST:
            raise
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        Path(os.environ[_STATUS]).write_text(str(code))
        sys.exit(0)
