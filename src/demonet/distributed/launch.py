"""Start a command again under ``torchrun``, several times side by side, and restart it where a process dies."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from demonet.errors import DemonetError

RESTARTS = 3
LOST = 75  # exit code of a process that has lost the others: it is started again
# Without it, processes that are started again may find the addresses of those that have died.
NEW_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
_STATUS = "DEMONET_STATUS"  # the file to which the first process writes how the command has ended
_MEETING = "DEMONET_MEETING"  # the file in which processes of one machine find each other
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG of Linux
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def under_torchrun() -> bool:
    """Whether ``torchrun`` has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def restarted() -> bool:
    """Whether ``torchrun`` has started it again, after a process has died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def launch(arguments: Sequence[str], workers: int, module: str = "demonet") -> int:
    """Run ``python -m demonet ARGUMENTS`` in several processes of this machine; the exit code of the command.

    If one of them dies, all are started again, at most three times. They meet in files that only this user can read,
    not in a store of torch, which would listen on all addresses and unpickle what anyone sends; and what they tell each
    other goes through the loopback device. They end with this process, however it ends.
    """
    with tempfile.TemporaryDirectory() as folder, _signals():
        status, meeting = Path(folder) / "status", Path(folder) / "meeting"
        command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={workers}", "--nnodes=1"]
        command += ["--rdzv-backend=c10d", "--rdzv-conf=store_type=file", f"--rdzv-endpoint={folder}/agent"]
        command += ["--rdzv-id=fit", "--local-addr=127.0.0.1", f"--max-restarts={RESTARTS}"]
        command += ["-m", module, *arguments]
        threads = max(1, (os.cpu_count() or 1) // workers)
        environment = {"OMP_NUM_THREADS": str(threads), **loopback()} | os.environ | NEW_STORE
        environment |= {_STATUS: str(status), _MEETING: str(meeting)}
        process = subprocess.Popen(command, env=environment, preexec_fn=end_with_parent)
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


def end_with_parent() -> None:
    """Let the kernel end this process when its parent has ended, on Linux; it is not inherited by children."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGTERM)


@contextmanager
def _signals() -> Iterator[None]:
    """Leave by the usual way after SIGTERM and SIGHUP, so that children and temporary files are removed."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def loopback() -> dict[str, str]:
    """The variables by which gloo and NCCL use the loopback device; an own value of the user comes first."""
    names = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    return {f"{library}_SOCKET_IFNAME": name for library in ("GLOO", "NCCL") for name in names}


def meeting_place() -> str | None:
    """Where processes of one machine meet, which were started by :func:`launch`: a file for each start of them."""
    if _MEETING not in os.environ:
        return None
    return f"file://{os.environ[_MEETING]}-{os.environ['TORCHELASTIC_RESTART_COUNT']}"


def ended_before() -> bool:
    """Whether the command has ended, so that a process that is started again has nothing to do."""
    return _STATUS in os.environ and Path(os.environ[_STATUS]).exists()


@contextmanager
def status() -> Iterator[None]:
    """Note how the command ends in this process; an expected end is no reason to start it again."""
    if _MEETING in os.environ:
        end_with_parent()
    try:
        yield
    except SystemExit as end:
        if _STATUS not in os.environ or os.environ.get("RANK") != "0" or end.code == LOST:
            raise
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        Path(os.environ[_STATUS]).write_text(str(code))
        sys.exit(0)
