"""Work for another process: in a file of its own, which that process imports in no time."""

from __future__ import annotations

import os


def process_and_number(offset: int, number: int) -> list[int]:
    """Who did it, and what came of it."""
    return [os.getpid(), offset + number]
