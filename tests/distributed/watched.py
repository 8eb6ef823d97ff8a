"""``demonet`` over processes: the first notes what all of them listen on, the second is killed with -9, once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

from demonet.cli import main
from demonet.distributed.launch import restarted
from demonet.distributed.steps import PartSteps

DEADLY_EPOCH = 28  # after the first checkpoint

_add = PartSteps._add_gradients


def _watched(self: PartSteps) -> None:
    self.calls = getattr(self, "calls", 0) + 1
    if self.calls == DEADLY_EPOCH and os.environ["RANK"] == "1" and not restarted():
        os.kill(os.getpid(), signal.SIGKILL)
    _add(self)
    if self.calls == 1 and os.environ["RANK"] == "0":
        launcher = psutil.Process(os.getppid())
        group = [launcher, *launcher.children(recursive=True)]
        found = [one.laddr.ip for process in group for one in process.net_connections("inet") if one.status == "LISTEN"]
        Path("listening.txt").write_text("\n".join(found))


if __name__ == "__main__":
    PartSteps._add_gradients = _watched
    main()
