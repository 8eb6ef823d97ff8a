"""Training of one process: its part of the graph, prepared; then the training loop that all networks have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from demonet.distributed.group import Exchange, from_first, is_first
from demonet.distributed.noise import key_dropout
from demonet.distributed.norm import share_norms
from demonet.distributed.partition import Part
from demonet.distributed.steps import PartBatch, PartProblem, PartSteps
from demonet.nn.models import NodeDEMONet
from demonet.nn.prepared import GraphInput, take_rows
from demonet.train.config import TrainConfig
from demonet.train.loop import Epoch, History, fit
from demonet.train.objective import Objective

SPLIT = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Share:
    """A part of a graph with the data of its nodes.

    Attributes:
        part: The part.
        x: Features of its own nodes; those of its halo follow, if the first convolution reads features.
        y: Encoded targets of its own nodes.
        rows: Its training, validation and test nodes, by their index among its own nodes.
        place: The position of each of them in the split of the whole graph.
        weight: The weight of each of them, or None.
        edge_weight: ``[edges]`` in the order of the part's lists, or None.
    """

    part: Part
    x: Tensor
    y: Tensor
    rows: tuple[Tensor, ...]
    place: tuple[Tensor, ...]
    weight: tuple[Tensor | None, ...]
    edge_weight: Tensor | None = None


def deal(
    parts: Sequence[Part],
    x: Tensor,
    y: Tensor,
    split: Sequence[Tensor],
    weight: Sequence[Tensor | None] = (None, None, None),
    edge_weight: Tensor | None = None,
    *,
    halo: bool,
) -> Iterator[Share]:
    """The share of every process, one after the other.

    Args:
        parts: The parts of the graph.
        x: ``[n, F]`` features.
        y: ``[n]`` encoded targets.
        split: Training, validation and test nodes.
        weight: The weight of each of them, or None.
        edge_weight: ``[m]`` weights of edges, or None.
        halo: Whether the features of the halo are needed.
    """
    num_nodes = y.size(0)
    number, index = torch.full((num_nodes,), -1), torch.full((num_nodes,), -1)
    for owner, part in enumerate(parts):
        number[part.nodes], index[part.nodes] = owner, torch.arange(part.nodes.numel())
    for owner, part in enumerate(parts):
        place = tuple((number[nodes] == owner).nonzero().view(-1) for nodes in split)
        yield Share(
            part,
            take_rows(x, torch.cat([part.nodes, part.halo]) if halo else part.nodes),
            y[part.nodes],
            tuple(index[nodes[some]] for nodes, some in zip(split, place, strict=True)),
            place,
            tuple(None if every is None else every[some] for every, some in zip(weight, place, strict=True)),
            None if edge_weight is None else edge_weight[part.edge],
        )


def prepare_part(model: NodeDEMONet, share: Share, device: torch.device | str = "cpu") -> tuple[GraphInput, Tensor]:
    """The part as the model takes it, and the number of the node in each row."""
    part, layout = share.part, share.part.layout(model.tasks.by).to(device)
    assert layout.order is not None
    own, order = part.nodes.numel(), layout.order
    x, edge_weight = share.x.to(device), None if share.edge_weight is None else share.edge_weight.to(device)
    sums, exchange = None, Exchange(part, layout)
    if model.stem is None:
        filled = torch.cat([order, torch.arange(own, x.size(0), device=device)])
        sums = model._first_conv().neighbourhood(take_rows(x, filled), layout.sorted(), edge_weight, exchange)
    graph = GraphInput(take_rows(x, order), layout, sums, edge_weight, fill=exchange)
    return graph, part.nodes.to(device)[order]


def make_problem(
    model: NodeDEMONet, share: Share, objective: Objective, identity: list[Any], device: torch.device | str = "cpu"
) -> PartProblem:
    """The problem of one process. The model is changed: its normalisation and dropout become those of the whole graph.

    All processes of the group call it together.
    """
    graph, nodes = prepare_part(model, share, device)
    share_norms(model)
    clock = key_dropout(model, graph, nodes)
    y, batches = share.y.to(device), list[PartBatch]()
    for rows, place, weight in zip(share.rows, share.place, share.weight, strict=True):
        here = rows.to(device)
        own = None if weight is None else weight.to(device)
        batches.append(PartBatch.gather(graph, here, y[here], own, place.to(device), objective))
    train, validation, test = batches
    return PartProblem(train, validation, test, objective, clock, identity)


def fit_part(
    model: NodeDEMONet,
    problem: PartProblem,
    config: TrainConfig,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 25,
) -> History:
    """:func:`demonet.train.fit` over processes: every process has the same history and the same weights.

    The first process reads and writes the checkpoint, which is that of one process.

    Args:
        model, config, on_epoch, checkpoint_every: As in :func:`~demonet.train.fit`.
        problem: The problem of this process.
        checkpoint: The file, for the first process; others need not see it.
    """
    with TemporaryDirectory() as folder:
        known = _received(checkpoint, Path(folder), problem.validation.y.device)
        every = checkpoint_every if is_first() and checkpoint is not None else None
        return fit(
            model,
            problem,
            config,
            on_epoch=on_epoch,
            checkpoint=checkpoint if every is not None else known,
            checkpoint_every=every,
            make_steps=PartSteps,
        )


def _received(checkpoint: str | Path | None, folder: Path, device: torch.device) -> Path | None:
    """A copy of the checkpoint of the first process, if it has one."""
    path = None if checkpoint is None else Path(checkpoint)
    content = torch.empty(0, dtype=torch.uint8, device=device)
    if is_first() and path is not None and path.exists():
        content = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).to(device)
    size = int(from_first(torch.tensor(content.numel(), device=device)))
    if size == 0:
        return None
    content = from_first(content if is_first() else content.new_empty(size))
    copy = folder / "checkpoint.safetensors"
    copy.write_bytes(content.cpu().numpy().tobytes())
    return copy
