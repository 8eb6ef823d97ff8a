"""What processes tell each other: sums, rows of the halo, rows for the first process; with gloo, or NCCL on GPUs."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from demonet.degree.layout import DegreeLayout
from demonet.distributed.partition import Part
from demonet.distributed.shared import SharedRows
from demonet.ops.schedule.cpu import Buffers


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
    the derivatives by them. Processes of one machine read each other's memory.

    Args:
        part: The part.
        layout: Its layout: own rows are in its degree order.
    """

    def __init__(self, part: Part, layout: DegreeLayout) -> None:
        assert layout.rank is not None
        self.received, self.sent = part.received.tolist(), part.sent.tolist()
        self.send = layout.rank[part.send.to(layout.rank.device)]
        self._own, self._buffers = part.nodes.numel(), Buffers()
        self._shared: SharedRows | None = None
        self._row_bytes = 0  # of the widest rows that went so far

    def __call__(self, h: Tensor) -> Tensor:
        """``[own + halo, width]`` from ``[own, width]``."""
        if world() == 1:
            return h
        filled: Tensor = _Fill.apply(h, self)
        return filled

    def fill(self, h: Tensor) -> Tensor:
        """The own rows, then those of the halo."""
        out, own = self._empty(h.size(0) + sum(self.received), h), h.size(0)
        out[:own] = h
        shared = self._memory(h)
        if shared is None:
            dist.all_to_all_single(out[own:], h.index_select(0, self.send), self.received, self.sent)
            return out
        dist.barrier()  # the others have read what was there
        shared.part(dist.get_rank(), own, h).copy_(h)
        dist.barrier()
        halo = out[own:].split_with_sizes(self.received)
        for rank, (rows, place, count) in enumerate(zip(halo, self._places, self._counts, strict=True)):
            torch.index_select(shared.part(rank, count, h), 0, place, out=rows)
        return out

    def give_back(self, grad: Tensor) -> Tensor:
        """The derivatives by the own rows, from those by all rows that :meth:`fill` returned."""
        own, shared = self._own, self._memory(grad)
        found = self._empty(own, grad).copy_(grad[:own])
        if shared is None:
            back = self._empty(self.send.numel(), grad)
            dist.all_to_all_single(back, grad[own:].contiguous(), self.sent, self.received)
            return found.index_add_(0, self.send, back)
        dist.barrier()  # the others have read what was there
        halo = sum(self.received)
        shared.part(dist.get_rank(), halo, grad).copy_(grad[own:])
        dist.barrier()
        for rank, rows in enumerate(self.send.split_with_sizes(self.sent)):
            begin = self._begins[rank]
            back = shared.part(rank, begin + rows.numel(), grad)[begin:]
            found.index_add_(0, rows, back)
        return found

    def _empty(self, rows: int, like: Tensor) -> Tensor:
        shape = (rows, like.size(1))
        return self._buffers.empty(shape, like) if like.device.type == "cpu" else like.new_empty(shape)

    def _memory(self, rows: Tensor) -> SharedRows | None:
        """Memory for the own rows, or for those of the halo; None where they are sent. All processes ask together."""
        row_bytes = rows.size(1) * rows.element_size()
        if rows.device.type == "cpu" and row_bytes > self._row_bytes:
            if self._row_bytes == 0:
                self._meet()
            self._row_bytes = row_bytes
            self._shared = SharedRows.open(max(self._own, sum(self.received)) * row_bytes)
        return self._shared

    def _meet(self) -> None:
        """Learn where the others have the rows of this halo, and the derivatives by rows that they read."""
        counts = gathered(torch.tensor([self._own, *self.received]))
        self._counts, rank = counts[:, 0].tolist(), dist.get_rank()
        place = self.send.new_empty(sum(self.received))
        dist.all_to_all_single(place, self.send, self.received, self.sent)
        self._places = place.split_with_sizes(self.received)
        self._begins = counts[:, 1 : 1 + rank].sum(1).tolist()


class _Fill(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, exchange: Exchange) -> Tensor:
        ctx.exchange = exchange
        return exchange.fill(h)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.exchange.give_back(grad), None
