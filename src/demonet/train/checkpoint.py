"""Checkpoints: one safetensors file with its facts as JSON in the header, written whole or not at all.

No pickle anywhere: reading one runs no code from the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from demonet.atomic import replacing
from demonet.errors import DemonetError

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
    identity: dict[str, Any],
    facts: dict[str, Any],
    device: torch.device,
) -> None:
    """Everything that the rest of a training run depends on, the state of the random generators included."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{index}.{name}": torch.as_tensor(value) for name, value in state.items()}
    tensors["random"] = torch.get_rng_state()
    if device.type == "cuda":
        tensors["random_cuda"] = torch.cuda.get_rng_state(device)
    save_tensors(path, tensors, {"identity": identity, **facts})


def load_checkpoint(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    identity: dict[str, Any],
    device: torch.device,
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Put a model, its optimiser and the random generators back where they were.

    Returns:
        The best weights so far, and the facts that were saved.
    """
    tensors, facts = load_tensors(path)
    for name, value in identity.items():
        if facts.get("identity", {}).get(name) != value:
            raise DemonetError(f"belongs to a run with another {name}", file=path, hint="give this run its own file")
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "adam": {}}
    state: dict[int, dict[str, Tensor]] = {}
    try:
        random, random_cuda = tensors.pop("random"), tensors.pop("random_cuda", None)
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        for name, tensor in parts["adam"].items():
            index, _, field = name.partition(".")
            state.setdefault(int(index), {})[field] = tensor
        if any(fields.keys() != {"step", "exp_avg", "exp_avg_sq"} for fields in state.values()):
            raise KeyError("a moment of Adam is missing")
        model.load_state_dict(parts["best"])
        model.load_state_dict(parts["model"])
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        torch.set_rng_state(random)
        if device.type == "cuda" and random_cuda is not None:
            torch.cuda.set_rng_state(random_cuda, device)
    except (RuntimeError, KeyError, ValueError, TypeError) as error:
        raise DemonetError(f"does not hold the state of this run: {error}", file=path, hint="start afresh") from error
    return parts["best"], facts
