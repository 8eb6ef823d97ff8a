"""Checkpoints: the whole state of a training run in one tensor file, with a fingerprint of the run it belongs to.

The fingerprint keeps a run from resuming with another split, which would train on what is tested.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from demonet.errors import DemonetError
from demonet.schema import check_like, values_of
from demonet.tensorfile import by_prefix, read_tensors, write_tensors
from demonet.train.config import TrainConfig
from demonet.train.problem import Problem

FORMAT = "demonet-checkpoint-2"
_CURVES = ("train_loss", "val_loss", "val_metric")


def save_checkpoint(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: dict[str, Tensor],
    fingerprint: dict[str, Any],
    facts: dict[str, Any],
    device: torch.device,
) -> None:
    """Write everything that the rest of a training run depends on, including the random number generators."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{index}.{name}": torch.as_tensor(value) for name, value in state.items()}
    tensors["random"] = torch.get_rng_state()
    if device.type == "cuda":
        tensors["random_cuda"] = torch.cuda.get_rng_state(device)
    write_tensors(path, FORMAT, tensors, {"fingerprint": fingerprint, **facts})


def load_checkpoint(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    fingerprint: dict[str, Any],
    device: torch.device,
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Restore a model, its optimizer and the random number generators.

    Returns:
        The best weights so far, and the facts that were saved.
    """
    tensors, facts, _ = read_tensors(path, FORMAT)
    state: dict[int, dict[str, Tensor]] = {}
    with values_of(path, "the state of this run; delete it to start again"):
        for name, value in fingerprint.items():
            if facts["fingerprint"].get(name) != value:
                problem, hint = f"the checkpoint belongs to a run with another {name}", "use another file for this run"
                raise DemonetError(problem, file=path, hint=hint)
        random, random_cuda = tensors.pop("random"), tensors.pop("random_cuda", None)
        groups = by_prefix(tensors, "model", "best", "adam")
        for name, tensor in groups["adam"].items():
            index, _, field = name.partition(".")
            state.setdefault(int(index), {})[field] = tensor
        _check_moments(state, [each for group in optimizer.param_groups for each in group["params"]])
        _check_history(facts)
        model.load_state_dict(groups["best"])
        best = copy.deepcopy(model.state_dict())  # complete, also where a file has no tasks
        model.load_state_dict(groups["model"])
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        torch.set_rng_state(random)
        if device.type == "cuda" and random_cuda is not None:
            torch.cuda.set_rng_state(random_cuda, device)
    return best, facts


def _check_moments(state: dict[int, dict[str, Tensor]], parameters: list[Tensor]) -> None:
    """Refuse moments of Adam that are not those of the parameters: they are used without a check."""
    for index, moments in state.items():
        like = dict.fromkeys(("exp_avg", "exp_avg_sq"), parameters[index]) | {"step": torch.tensor(0.0)}
        if moments.keys() != like.keys():
            raise DemonetError(f"a moment of Adam of parameter {index} is missing")
        check_like(moments, like)


def _check_history(facts: dict[str, Any]) -> None:
    """Refuse curves of other lengths, and entries that are not numbers."""
    history, waited = facts["history"], facts["waited"]
    lengths = {len(history[name]) for name in _CURVES}
    values = [waited, history["best_epoch"], history["seconds"], *(one for name in _CURVES for one in history[name])]
    if len(lengths) > 1 or not all(isinstance(value, int | float) for value in values):
        raise DemonetError("its learning curves do not fit together")
    if history["best_epoch"] not in range(-1, max(lengths) or 1):
        raise DemonetError(f"its best epoch is {history['best_epoch']}")


def fingerprint_of(model: nn.Module, problem: Problem, config: TrainConfig) -> dict[str, Any]:
    """What a checkpoint belongs to: configuration, objective, architecture, and a digest of the data and the split."""
    known = getattr(problem, "identity", None)  # of a problem whose batches are not to be kept all at once
    batches = [problem.validation, *problem.training(config.seed, 0)] if known is None else known
    objective = {name: list(v) if isinstance(v, tuple) else v for name, v in problem.objective.state().items()}
    return {
        "training configuration": asdict(config),
        "objective": objective,
        "model": repr(model),
        "data or split": digest(batches),
    }


def digest(value: Any) -> str:
    """A SHA-256 of nested lists, dataclasses and tensors.

    >>> digest([torch.zeros(2), 1]) == digest([torch.zeros(2), 1]), digest([torch.zeros(2)]) == digest([torch.zeros(3)])
    (True, False)
    """
    total = hashlib.sha256()
    for piece in _pieces(value):
        total.update(piece)
    return total.hexdigest()


def _pieces(value: Any) -> Iterator[bytes | memoryview]:
    """The bytes to hash; dataclass fields that follow from others (``compare=False``) are left out."""
    if isinstance(value, Tensor):
        yield f"{value.dtype} {list(value.shape)} {value.layout};".encode()
        if value.layout == torch.strided:
            yield value.detach().cpu().reshape(-1).view(torch.uint8).numpy().data
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
