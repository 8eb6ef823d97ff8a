"""Ray Train as the engine: the same worker function on the nodes of a cluster."""

from __future__ import annotations

import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch.distributed as dist

from demonet.distributed.launch import loopback
from demonet.distributed.training import Share
from demonet.distributed.worker import PATIENCE, Outcome, Training
from demonet.errors import DemonetError
from demonet.train.loop import Epoch
from demonet.workers import join_ray

STARTS = 10  # how often Ray tries for a minute to find a place for all workers


def lead_on_ray(
    training: Training,
    shares: Iterable[Share],
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Outcome:
    """What :class:`demonet.distributed.worker.Leader` does, with the workers of a Ray cluster.

    It is the cluster at ``$RAY_ADDRESS``, or a new one on this machine, which listens on the loopback device alone.
    Shares, epochs and the outcome go through Ray. The checkpoint is a file of the first worker: on several machines, it
    has to be on a shared disk.
    """
    here = "RAY_ADDRESS" not in os.environ
    if here:
        os.environ.update(loopback() | os.environ)
    ray, started = join_ray()
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.backend import Backend
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.util.queue import Queue
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    class NoGroup(TorchConfig):
        """Ray forms no group of torch: its store listens on all addresses."""

        backend_cls = Backend

    answers, meeting = None, tempfile.TemporaryDirectory()
    alone = started and here
    try:
        references = [ray.put(share) for share in shares]
        node = ray.get_runtime_context().get_node_id()  # here: a queue elsewhere would be lost with its machine
        answers = Queue(actor_options={"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)})
        settings = {
            "training": ray.put(training),
            "shares": references,
            "answers": answers,
            "checkpoint": None if checkpoint is None else str(Path(checkpoint).resolve()),
            "meeting": meeting.name if alone else None,
        }
        on_gpu = training.device == "cuda"
        settings["backend"] = backend = "cpu:gloo,cuda:nccl" if on_gpu else "gloo"
        trainer = TorchTrainer(
            _loop,
            train_loop_config=settings,
            torch_config=(NoGroup if alone else TorchConfig)(backend=backend),
            scaling_config=ScalingConfig(num_workers=len(references), use_gpu=on_gpu),
            run_config=RunConfig(failure_config=FailureConfig(max_failures=3, controller_failure_limit=STARTS)),
        )
        return _listen(trainer, answers, on_epoch)
    finally:
        if answers is not None:
            answers.shutdown()
        if started:
            ray.shutdown()
        meeting.cleanup()


def _listen(trainer: Any, answers: Any, on_epoch: Callable[[Epoch], None] | None) -> Outcome:
    """Run the trainer in a thread, and hear what its first worker says."""
    from ray.util.queue import Empty

    failed: list[BaseException] = []

    def run() -> None:
        try:
            trainer.fit()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while True:
        running = thread.is_alive()
        try:
            answer = answers.get(timeout=0.5)
        except Empty:
            if running:
                continue
            problem = getattr(failed[0], "controller_failure", failed[0]) if failed else "no result"
            raise DemonetError(f"the workers on Ray failed: {problem}") from None
        if isinstance(answer, Epoch):
            if on_epoch is not None:
                on_epoch(answer)
            continue
        thread.join()
        if isinstance(answer, DemonetError):
            raise answer
        assert isinstance(answer, Outcome)
        return answer


def _loop(settings: dict[str, Any]) -> None:
    """The function that Ray Train runs in every worker."""
    import ray
    import ray.train

    from demonet.distributed.worker import work

    rank, answers = ray.train.get_context().get_world_rank(), settings["answers"]
    first = rank == 0
    training, share = ray.get(settings["training"]), ray.get(settings["shares"][rank])
    tell = answers.put if first else None
    if settings["meeting"] is not None:
        _meet(settings["meeting"], settings["backend"])
    try:
        outcome = work(training, share, on_epoch=tell, checkpoint=settings["checkpoint"] if first else None)
    except DemonetError as error:
        if first:
            answers.put(error)
        return
    if first:
        answers.put(outcome)


def _meet(folder: str, backend: str) -> None:
    """Form the group of torch in a file of this machine: a new one for each start of the workers."""
    import ray.train
    from ray.train.collective import broadcast_from_rank_zero

    context = ray.train.get_context()
    file = f"file://{folder}/{broadcast_from_rank_zero(uuid.uuid4().hex)}"
    place = {"rank": context.get_world_rank(), "world_size": context.get_world_size()}
    dist.init_process_group(backend, file, timeout=PATIENCE, **place)
