"""Several processes on this machine, which talk through gloo.

They are forked from a server that has imported the library once: starting torch takes longer than a test. The server
has not the path of the tests, so it can import nothing of them.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["demonet.distributed.worker", "demonet.runs.storing", "demonet.report.run", "pytest"])
PATIENCE = 1800.0  # seconds, of a process that may be waiting for others on a busy machine


def run(world: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """``work(*arguments)`` in every process of a group, and what it returned in each."""
    with tempfile.TemporaryDirectory() as folder:
        meeting, pipes, processes = f"file://{folder}/meeting", [], []
        for rank in range(world):
            here, there = SERVER.Pipe(duplex=False)
            process = SERVER.Process(target=_member, args=(rank, world, meeting, there, work, arguments), daemon=True)
            process.start()
            there.close()
            pipes.append(here)
            processes.append(process)
        try:
            answers = [_answer(pipe) for pipe in pipes]
        finally:
            for process in processes:
                process.join(10)
                process.kill()
            for pipe in pipes:
                pipe.close()
    errors = [value for done, value in answers if not done]
    errors.sort(key=lambda error: "Connection" in error)  # those that only lost the others come last
    assert not errors, errors[0]
    return [value for _, value in answers]


def _answer(pipe: Any) -> tuple[bool, Any]:
    assert pipe.poll(PATIENCE), "a process did not answer"
    answer: tuple[bool, Any] = pipe.recv()
    return answer


def _member(
    rank: int, world: int, meeting: str, pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    try:
        dist.init_process_group(
            "gloo", init_method=meeting, rank=rank, world_size=world, timeout=timedelta(seconds=PATIENCE)
        )
        pipe.send((True, work(*arguments)))
        dist.destroy_process_group()
    except BaseException:
        pipe.send((False, traceback.format_exc()))
