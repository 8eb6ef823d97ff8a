"""``python -m demonet``, and the command ``demonet``: Ctrl-C while libraries are imported ends in one line, too."""

from __future__ import annotations

import atexit
import gc
import os
import signal
from types import FrameType

COLLECT = (100_000, 20, 20)  # imported libraries stay: looking for cycles among them takes a second


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGINT, _stop)
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # Python's end would let the signal kill the process
    gc.set_threshold(*COLLECT)
    from demonet.cli import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    except KeyboardInterrupt:
        _stop()
    finally:
        signal.signal(signal.SIGINT, _stop)


def _stop(number: int = 0, frame: FrameType | None = None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)  # an exception would be caught, or shown, by whatever is being imported


if __name__ == "__main__":
    main()
