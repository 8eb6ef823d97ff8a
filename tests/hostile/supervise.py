"""Many cases in a forked child, each within limits of time and memory; a crash or a hang costs one case alone."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

SLOW = 10.0  # seconds of processor time that no case may take
HANG = 30.0  # seconds of processor time after which a case is ended
STILL = 600.0  # seconds after which one is ended that takes no processor time, on a machine that may be busy
MEMORY, TIMES = 512.0, 4.0  # MiB that a case may take beyond what was there before it, or so many times its file
_LOOK = 1.0  # seconds between two looks at the time that a case takes
_AT_MOST = 6 << 30  # bytes that a child can have, so that a case out of bounds does not take the machine with it


@dataclass(frozen=True)
class Done:
    """A case that has ended.

    Attributes:
        index: Its number, from which it can be made again.
        name: What was read.
        how: How it ended.
        seconds: Its processor time.
        memory: MiB beyond what was there before it.
        failure: What is wrong; empty if nothing is.
    """

    index: int
    name: str
    how: str
    seconds: float
    memory: float
    failure: str = ""


def supervised(case: Callable[[int], tuple[str, str, int]], indices: range) -> Iterator[Done]:
    """Run cases one after the other, in as few children as survive.

    Args:
        case: Called with a number; gives a name, how it ended, and the size of its file. What it raises is a failure.
        indices: The numbers.
    """
    start = indices.start
    while start < indices.stop:
        for done in _child(case, range(start, indices.stop)):
            start = done.index + 1
            yield done


def _child(case: Callable[[int], tuple[str, str, int]], indices: range) -> Iterator[Done]:
    """Run cases in one child until all are done, or one has ended or hung it."""
    sys.stdout.flush()
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "w") as stream:
                _serve(case, indices, stream)
        finally:
            os._exit(0)
    os.close(writer)
    index, began, watched, spent = indices.start, time.monotonic(), psutil.Process(process), 0.0
    with os.fdopen(reader, "rb", buffering=0) as stream:
        rest, failure = b"", ""
        while index < indices.stop and not failure:
            if not select.select([stream], [], [], _LOOK)[0]:
                seconds = sum(watched.cpu_times()[:2]) - spent
                if seconds > HANG or time.monotonic() - began > STILL:
                    failure = f"no end after {seconds:.0f} s of processor time"
                continue
            if not (chunk := os.read(stream.fileno(), 1 << 16)):
                failure = "it ended the process"
                continue
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                done = Done(*json.loads(line))
                index, began, spent = done.index + 1, time.monotonic(), sum(watched.cpu_times()[:2])
                yield done
    if failure:
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    if failure:
        code = os.waitstatus_to_exitcode(status)
        yield Done(index, "", "failed", time.monotonic() - began, 0.0, f"{failure} (exit code {code})")


def _serve(case: Callable[[int], tuple[str, str, int]], indices: range, stream) -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + _AT_MOST, hard))
    for index in indices:
        before, start = _reset_peak(), time.process_time()
        name, failure, allowed = "", "", MEMORY
        try:
            name, how, size = case(index)
            allowed = max(MEMORY, TIMES * size / 2**20)
        except BaseException:
            how, failure = "failed", traceback.format_exc()
        memory, seconds = _peak() - before, time.process_time() - start
        if memory > allowed:
            how, failure = "failed", f"{memory:,.0f} MiB, {allowed:,.0f} are allowed"
        if seconds > SLOW:
            how, failure = "failed", f"{seconds:.0f} s, {SLOW:.0f} are allowed"
        stream.write(json.dumps([index, name, how, round(seconds, 4), round(memory, 1), failure]) + "\n")
        stream.flush()


def _reset_peak() -> float:
    """Forget the largest memory so far; MiB of memory now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split(None, 1)[0]) / 2**10
