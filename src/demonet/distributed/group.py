"""What processes tell each other: sums, rows of the halo, rows for the first process; with gloo, or NCCL on GPUs."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.distributed.partition import Part


def world() -> int:
    """The number of processes."""
    return dist.get_world_size()


def is_first() -> bool:
    """Whether this is the process that writes files and computes metrics."""
    return dist.get_rank() == 0


def gathered(values: Tensor) -> Tensor:
    """``[processes, ...]`` the values of all processes, in each of them."""
    every = [torch.empty_like(values) for _ in range(world())]
    dist.all_gather(every, values.contiguous())
    return torch.stack(every)


def total(values: Tensor) -> Tensor:
    """The sum of a few values over all processes, the same bits in each: it is added up in one order."""
    return gathered(values).sum(0)


def to_first(rows: Tensor) -> Tensor | None:
    """The rows of all processes, process after process, for the first one; None for the others."""
    counts = gathered(torch.tensor(rows.size(0), device=rows.device)).tolist()
    received = counts if is_first() else [0] * world()
    sent = [rows.size(0)] + [0] * (world() - 1)
    out = rows.new_empty(sum(received), *rows.shape[1:])
    dist.all_to_all_single(out, rows.contiguous(), received, sent)
    return out if is_first() else None


def from_first(values: Tensor) -> Tensor:
    """The values of the first process, in all of them; ``values`` has their shape and dtype."""
    values = values.contiguous()
    dist.broadcast(values, 0)
    return values


class Exchange:
    """Fills the halo of a part: ``exchange(h)`` are its own rows, then those of the halo.

    Backward, the derivatives by the rows of the halo go back to the processes that have these rows, and are added to
    the derivatives by them.

    Args:
        part: The part.
        layout: Its layout: own rows are in its degree order.
    """

    def __init__(self, part: Part, layout: DegreeLayout) -> None:
        assert layout.rank is not None
        self.received, self.sent = part.received.tolist(), part.sent.tolist()
        self.send = layout.rank[part.send.to(layout.rank.device)]

    def __call__(self, h: Tensor) -> Tensor:
        """``[own + halo, width]`` from ``[own, width]``."""
        if world() == 1:
            return h
        filled: Tensor = _Fill.apply(h, self)
        return filled


class _Fill(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, exchange: Exchange) -> Tensor:
        ctx.exchange, own = exchange, h.size(0)
        out = h.new_empty(own + sum(exchange.received), h.size(1))
        out[:own] = h
        rows = h.index_select(0, exchange.send)
        dist.all_to_all_single(out[own:], rows, exchange.received, exchange.sent)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        exchange = ctx.exchange
        own = grad.size(0) - sum(exchange.received)
        back = grad.new_empty(exchange.send.numel(), grad.size(1))
        dist.all_to_all_single(back, grad[own:].contiguous(), exchange.sent, exchange.received)
        return grad[:own].index_add(0, exchange.send, back), None
