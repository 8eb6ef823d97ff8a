"""Checkpoints: one safetensors file with its facts as JSON in the header, written whole or not at all.

No pickle anywhere: reading one runs no code from the file.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from demonet.atomic import replacing
from demonet.errors import DemonetError
from demonet.train.config import TrainConfig

FORMAT = "demonet-checkpoint-1"


def save_tensors(path: str | Path, tensors: dict[str, Tensor], facts: dict[str, Any], *, kind: str = FORMAT) -> None:
    """Tensors and facts as one file."""
    with replacing(path) as temporary:
        whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
        save_file(whole, temporary, metadata={"format": kind, "facts": json.dumps(facts)})


def load_tensors(path: str | Path, *, kind: str = FORMAT) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What :func:`save_tensors` wrote; anything else is refused."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != kind:
                raise DemonetError(f"not a {kind} file (its format is {metadata.get('format')!r})", file=path)
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(metadata["facts"])  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, json.JSONDecodeError) as error:
        raise DemonetError(f"cannot be read: {error}", file=path) from error


def save_checkpoint(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: dict[str, Tensor],
    config: TrainConfig,
    facts: dict[str, Any],
) -> None:
    """Everything that the rest of a training run depends on, the state of the random generator included."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{index}.{name}": torch.as_tensor(value) for name, value in state.items()}
    tensors["random"] = torch.get_rng_state()
    save_tensors(path, tensors, {"train": asdict(config), **facts})


def load_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer, config: TrainConfig
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Put a model, its optimiser and the random generator back where they were.

    Returns:
        The best weights so far, and the facts that were saved.
    """
    tensors, facts = load_tensors(path)
    if facts.pop("train", None) != asdict(config):
        raise DemonetError("belongs to a run with another training configuration", file=path, hint="start afresh")
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "adam": {}, "random": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = tensor
    try:
        model.load_state_dict(parts["model"])
    except RuntimeError as error:
        raise DemonetError("belongs to another model", file=path, hint="start afresh") from error
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in parts["adam"].items():
        index, _, field = name.partition(".")
        state.setdefault(int(index), {})[field] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    torch.set_rng_state(parts["random"][""])
    return parts["best"], facts
