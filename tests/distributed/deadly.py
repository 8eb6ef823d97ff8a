"""``demonet``, whose second process is killed with -9 in the middle of an epoch, once."""

from __future__ import annotations

import os
import signal

from demonet.cli import main
from demonet.distributed.launch import restarted
from demonet.distributed.steps import PartSteps

DEADLY_EPOCH = 30

_add = PartSteps._add_gradients


def _dying(self: PartSteps) -> None:
    self.calls = getattr(self, "calls", 0) + 1
    if self.calls == DEADLY_EPOCH and os.environ["RANK"] == "1" and not restarted():
        os.kill(os.getpid(), signal.SIGKILL)
    _add(self)


if __name__ == "__main__":
    PartSteps._add_gradients = _dying
    main()
