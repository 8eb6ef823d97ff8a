"""Which run a checkpoint belongs to: going on with another split would train on what is tested."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from demonet.train.config import TrainConfig
from demonet.train.problem import Problem


def run_identity(model: nn.Module, problem: Problem, config: TrainConfig) -> dict[str, Any]:
    """The training configuration, the make of the model, and a digest of the data and the split."""
    parts = [problem.validation, *problem.training(config.seed, 0)]
    return {"training configuration": asdict(config), "model": repr(model), "data or split": digest(parts)}


def digest(value: Any) -> str:
    """A hash of everything inside, tensor by tensor.

    >>> digest([torch.zeros(2), 1]) == digest([torch.zeros(2), 1]), digest([torch.zeros(2)]) == digest([torch.zeros(3)])
    (True, False)
    """
    total = hashlib.sha256()
    for piece in _pieces(value):
        total.update(piece)
    return total.hexdigest()


def _pieces(value: Any) -> Iterator[bytes]:
    """Lists and dataclasses from the outside in; fields that follow from others (``compare=False``) are left out."""
    if isinstance(value, Tensor):
        yield f"{value.dtype} {list(value.shape)} {value.layout};".encode()
        if value.layout == torch.strided:
            yield value.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
        else:
            rows = value.to_sparse_csr()
            yield from _pieces([rows.crow_indices(), rows.col_indices(), rows.values()])
    elif isinstance(value, list | tuple):
        yield f"{len(value)} items;".encode()
        for item in value:
            yield from _pieces(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _pieces([getattr(value, field.name) for field in fields(value) if field.compare])
    else:
        yield f"{value!r};".encode()
