"""The halo, read from the others' memory or sent: the rows and derivatives of the definition, to the last bit."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import torch
import torch.distributed as dist
from tests.distributed.graphs import random_graph
from tests.distributed.processes import run

from demonet.distributed import shared
from demonet.distributed.group import Exchange
from demonet.distributed.partition import cut

WIDTHS = [3, 1, 5]  # also wider than before, which needs more memory


def exchanged(way: str, world: int) -> tuple[bool, list[list[np.ndarray]]]:
    """Whether memory is shared; for each width what every process has: filled rows, and derivatives by its own."""
    edge_index, n = random_graph(directed=True)
    owner = torch.arange(n) % world
    owner[owner == 1] = 0  # one process has nothing
    part = cut(edge_index, owner, world)[dist.get_rank()]
    layout = part.layout()
    exchange, found = Exchange(part, layout), []
    machine = f"machine {dist.get_rank()}" if way == "machines" else "machine"
    full = way == "full" and dist.get_rank() == world - 1
    with (
        mock.patch.object(shared, "_machine", return_value=machine),
        mock.patch.object(shared, "_reserve", (lambda path, size: None) if full else shared._reserve),
    ):
        for width in WIDTHS:
            own = values(n, width)[part.nodes][layout.order].requires_grad_()
            filled = exchange(own)
            (by,) = torch.autograd.grad(filled, own, filled.detach() ** 2)
            order = torch.empty_like(layout.order)
            order[layout.order] = torch.arange(order.numel())
            rows = filled.detach()
            found.append([part.numpy() for part in (rows[order], rows[order.numel() :], by[order])])
    return exchange._shared is not None, found


def values(n: int, width: int) -> torch.Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(width), dtype=torch.float64)


def test_the_halo_and_its_derivatives():
    world, (edge_index, n) = 3, random_graph(directed=True)
    owner = torch.arange(n) % world
    owner[owner == 1] = 0
    parts = cut(edge_index, owner, world)
    readers = torch.bincount(torch.cat([part.halo for part in parts]), minlength=n) + 1  # the owner reads it too
    ways = {way: run(world, exchanged, way, world) for way in ("memory", "machines", "full")}
    for way, every in ways.items():
        for part, (in_memory, found), (_, first) in zip(parts, every, ways["memory"], strict=True):
            assert in_memory == (way == "memory")
            for width, (own, halo, by), same in zip(WIDTHS, found, first, strict=True):
                x = values(n, width)
                np.testing.assert_array_equal(own, x[part.nodes])
                np.testing.assert_array_equal(halo, x[part.halo])
                np.testing.assert_allclose(by, x[part.nodes] ** 2 * readers[part.nodes][:, None])
                assert all(np.array_equal(*pair) for pair in zip((own, halo, by), same, strict=True))


def test_no_file_is_left_and_no_room_is_no_error(tmp_path):
    assert run(2, opened, tmp_path) == [True, True]
    assert not list(tmp_path.iterdir())
    assert shared._reserve(tmp_path / "missing" / "file", 10) is None
    with mock.patch.object(shared.os, "posix_fallocate", side_effect=OSError):
        assert shared._reserve(tmp_path / "file", 10) is None


def opened(folder: Path) -> bool:
    with mock.patch.object(shared, "_FOLDER", folder):
        return shared.SharedRows.open(0) is not None
