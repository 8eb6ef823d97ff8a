"""What every process of a training does: the first one leads, the others serve until it has finished.

The leader reads files, deals out the shares and keeps the results; ``demonet fit`` runs in it. A process that serves
waits for a training, takes part in it, and waits for the next. Both call :func:`work`, and so do the workers of Ray.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import psutil
import torch
import torch.distributed as dist
from torch import Tensor

from demonet.degree.tasks import DegreeTasks
from demonet.distributed.group import is_first, world
from demonet.distributed.launch import LOST, meeting_place
from demonet.distributed.partition import Part
from demonet.distributed.steps import PartSteps
from demonet.distributed.store import Store
from demonet.distributed.training import Share, fit_part, make_problem
from demonet.errors import DemonetError
from demonet.nn.config import ModelConfig
from demonet.nn.models import NodeDEMONet
from demonet.train.config import TrainConfig
from demonet.train.loop import Epoch, History
from demonet.train.objective import Objective

_CPU = torch.device("cpu")
_NO_PART = Part(*[torch.empty(0, dtype=torch.long)] * len(fields(Part)))  # where a worker reads its own from a store
PATIENCE = timedelta(
    days=7
)  # the others wait while the leader reads and writes files; a dead process is noticed at once
SILENCE = 60  # seconds after which a machine that does not answer is taken for dead
_ALONE = "another worker has died, or its machine cannot be reached"
_UNMET = "a worker has died or is out of reach; between machines, GLOO_SOCKET_IFNAME has to name their network device"


@dataclass(frozen=True, eq=False)
class Training:
    """What all processes of a training have in common.

    Attributes:
        in_channels, tasks, model: Of the network.
        train: Optimizer and early stopping; its seed is also that of the initial weights.
        objective: The fitted objective.
        identity: A digest of the graph, its features, targets and split.
        device: ``"cpu"``, or ``"cuda"`` for a GPU for each process.
        store: Folder and checksum of a store that has the parts; None if they come with the shares.
    """

    in_channels: int
    tasks: DegreeTasks
    model: ModelConfig
    train: TrainConfig
    objective: Objective
    identity: str
    device: str = "cpu"
    store: tuple[str, str] | None = None

    def network(self) -> NodeDEMONet:
        """The untrained network, with the weights that one process would start from."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.train.seed)
            return NodeDEMONet(self.in_channels, self.objective.outputs, self.tasks, self.model, seed=self.train.seed)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best weights, the learning curves, and the metric of the test part (NaN if it is empty)."""

    weights: dict[str, Tensor]
    history: History
    test_metric: float


@contextmanager
def group(device: str = "cpu") -> Iterator[None]:
    """Join the group that the environment describes, as ``torchrun`` and :mod:`~demonet.distributed.launch` set it.

    A process that loses the others ends with the exit code :data:`~demonet.distributed.launch.LOST`.
    """
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    ended, message = threading.Event(), _UNMET
    try:
        rank, processes = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
        dist.init_process_group(backend, meeting_place(), timeout=PATIENCE, rank=rank, world_size=processes)
        message = _ALONE
        if sys.platform == "linux":
            _notice_silence(known := _connections())
            threading.Thread(target=_watch, args=(known, ended), daemon=True).start()
        yield
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error).lower():
            raise
        print(message, file=sys.stderr)
        sys.exit(LOST)
    finally:
        ended.set()
        if dist.is_initialized():
            dist.destroy_process_group()


def _connections() -> dict[Any, int]:
    """Both ends of the connections of this process, and its file descriptor of each."""
    every = psutil.Process().net_connections("tcp")
    return {(one.laddr, one.raddr): one.fd for one in every if one.status == psutil.CONN_ESTABLISHED}


def _notice_silence(connections: dict[Any, int]) -> None:
    """Let the kernel ask the other ends whether they are still there."""
    for fd in connections.values():
        with socket.socket(fileno=os.dup(fd)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in (("IDLE", SILENCE // 2), ("INTVL", SILENCE // 6), ("CNT", 3)):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_KEEP{name}"), value)


def _watch(known: dict[Any, int], ended: threading.Event) -> None:
    """End this process when one of its connections has broken: gloo does not always notice, and would wait for days.

    Before the leader dismisses all of them, no process closes a connection.
    """
    broken = False
    while not ended.wait(SILENCE / 6):
        before, broken = broken, not known.keys() <= _connections().keys()
        if before and broken:  # at the second look, what ends by itself has ended
            print(_ALONE, file=sys.stderr, flush=True)
            os._exit(LOST)


def serve() -> None:
    """Take part in one training after the other, until the leader has finished."""
    while (training := _told(None)) is not None:
        assert isinstance(training, Training)
        received: list[Share] = [None]  # type: ignore[list-item]
        dist.recv_object_list(received, src=0, device=_CPU)
        try:
            work(training, received[0])
        except DemonetError:
            continue  # the leader has the same one, and tells it


class Leader:
    """The first process of a group, as a context manager: in the end, the others are dismissed."""

    def __init__(self) -> None:
        self._busy = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._busy:  # otherwise they are in the middle of a training, and end when this process does
            _told(None)

    def __call__(
        self,
        training: Training,
        shares: Iterable[Share],
        *,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Outcome:
        """Train with all processes of the group.

        Args:
            training: What is trained.
            shares: The share of every process.
            on_epoch: Callback after every epoch.
            checkpoint: Where the state is saved; training resumes from it if it exists.
        """
        self._busy = True
        _told(training)
        own = None
        for rank, share in enumerate(shares):
            if rank:
                share = replace(share, part=_NO_PART) if training.store is not None else share
                dist.send_object_list([share], dst=rank, device=_CPU)
            else:
                own = share
        assert own is not None
        try:
            outcome = work(training, own, on_epoch=on_epoch, checkpoint=checkpoint)
        except DemonetError:  # as in all of them
            self._busy = False
            raise
        self._busy = False
        return outcome


def work(
    training: Training,
    share: Share,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Outcome:
    """The part of one process in a training. All processes of the group call it, each with its own share."""
    device = torch.device(training.device, torch.cuda.current_device()) if training.device == "cuda" else _CPU
    share = _with_part(training, share)
    model = training.network().to(device)
    problem = make_problem(model, share, training.objective, [training.identity], device)
    history = fit_part(model, problem, training.train, on_epoch=on_epoch, checkpoint=checkpoint)
    tested = float("nan")
    steps = PartSteps(model, training.train, device, training.objective)
    if steps.size(problem.test):
        tested = steps.evaluate(problem.test)[1]
    weights = {name: value.cpu() for name, value in model.state_dict().items()} if is_first() else {}
    return Outcome(weights, history, tested)


def _told(message: Training | None) -> Training | None:
    """What the leader says, in every process."""
    said: list[Training | None] = [message]
    dist.broadcast_object_list(said, src=0, device=_CPU)
    return said[0]


def _with_part(training: Training, share: Share) -> Share:
    """The share with its part. If one process cannot read its own, all of them end with that error."""
    part, problem = share.part, ""
    if training.store is not None:
        try:
            part = _stored(*training.store)
        except (DemonetError, OSError) as error:
            problem = str(error)
    problems: list[str] = [""] * world()
    dist.all_gather_object(problems, problem)
    for rank, text in enumerate(problems):
        if text:
            raise DemonetError(f"worker {rank}: {text}")
    return replace(share, part=part)


def _stored(path: str, checksum: str) -> Part:
    store = Store(path)
    if store.checksum != checksum:
        raise DemonetError("not the store that the first process has", file=path, hint="copy it to every machine")
    return store.part(dist.get_rank())
