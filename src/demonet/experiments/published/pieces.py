"""The pieces of a claim, measured side by side and kept as they end: a stop costs no more than those in work."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demonet.atomic import replacing
from demonet.experiments.published.claims import Claim, Row, compare


@dataclass(frozen=True)
class Measured:
    """The answer of a piece, and the processor time that it took."""

    answer: Any
    seconds: float


def measure(claim: Claim, folder: Path, jobs: int = 1) -> Row:
    """Measure what is missing of a claim, in so many processes of one thread each, and compare.

    Args:
        claim: What to measure.
        folder: Pieces that end are kept here, and found here by the next call; those of a finished claim are removed.
        jobs: How many processes. One is this one.
    """
    files = [folder / f"{_name(claim)}-{number}.json" for number in range(claim.pieces)]
    folder.mkdir(parents=True, exist_ok=True)
    for number, measured in _measured(claim, [n for n, file in enumerate(files) if not file.exists()], jobs):
        with replacing(files[number]) as temporary:
            temporary.write_text(json.dumps({"answer": measured.answer, "seconds": measured.seconds}))
    done = [Measured(**json.loads(file.read_text())) for file in files]
    row = compare(claim, [piece.answer for piece in done], sum(piece.seconds for piece in done))
    for file in files:
        file.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
    return row


def _name(claim: Claim) -> str:
    """A file name that only this claim has."""
    return f"{claim.method}-{claim.dataset}-{hashlib.sha256('|'.join(claim.key).encode()).hexdigest()[:8]}"


def _measured(claim: Claim, missing: list[int], jobs: int) -> Iterator[tuple[int, Measured]]:
    if jobs == 1 or len(missing) < 2:
        for number in missing:
            yield number, _one(claim.piece, number)
        return
    with _workers(min(jobs, len(missing))) as pool:
        numbers = {pool.submit(_one, claim.piece, number): number for number in missing}
        for future in as_completed(numbers):
            yield numbers[future], future.result()


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Spawned, as a forked one would share torch's threads; what waits when one fails or we are stopped is dropped."""
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _one_thread)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _one_thread() -> None:
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    torch.set_num_threads(1)
    threadpool_limits(1)


def _one(piece: Callable[[int], Any], number: int) -> Measured:
    start = time.process_time()
    return Measured(piece(number), time.process_time() - start)
