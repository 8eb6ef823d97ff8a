"""Input validation, shared by readers, layers, training and estimators."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor

from demonet.errors import DemonetError, Hint

MOST_CLASSES = 1000
MOST_JOBS = 4 * (os.cpu_count() or 1)  # processes at once


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that would only exhaust the memory."""
    if not 1 <= jobs <= MOST_JOBS:
        raise DemonetError(f"{jobs:,} processes", argument="jobs", hint=f"1 to {MOST_JOBS}, four for each core")


def available_memory() -> int:
    """Bytes of memory that this process can still have: those of the machine, its control group and its limit."""
    import psutil

    process, limits = psutil.Process(), [psutil.virtual_memory().available]
    try:
        folder = Path("/sys/fs/cgroup")
        limits.append(int((folder / "memory.max").read_text()) - int((folder / "memory.current").read_text()))
    except (OSError, ValueError):  # no control group, or "max"
        pass
    if hasattr(psutil, "RLIMIT_AS") and (limit := process.rlimit(psutil.RLIMIT_AS)[0]) >= 0:
        limits.append(limit - process.memory_info().vms)
    return max(0, min(limits))


def check_memory(needed: int, what: str, *, file: str | Path | None = None) -> None:
    """Refuse work that needs more memory than there is; small work is not checked.

    Args:
        needed: An estimate in bytes.
        what: What needs it.
        file: The file to name in the error.
    """
    if needed > 1 << 28 and needed > (free := available_memory()):
        problem = f"{what}: about {needed / 2**30:,.1f} GiB of memory are needed, {free / 2**30:,.1f} GiB are free"
        raise DemonetError(problem, file=file)


def check_classes(count: int, *, file: str | Path | None = None) -> None:
    """Refuse more classes than any model here is made for: time and memory grow with them and with the items."""
    if count > MOST_CLASSES:
        hint = Hint("if they are numbers, {task}; if they are ids, use another column; or group them", task="regress")
        raise DemonetError(f"{count:,} classes, more than {MOST_CLASSES:,}", file=file, hint=hint)


_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def check_edge_index(
    edge_index: Tensor, num_nodes: int | tuple[int, int] | None = None, *, file: str | Path | None = None
) -> None:
    """Check that ``edge_index`` has shape ``[2, m]``, an integer type and node ids in range.

    Args:
        edge_index: Sources in row 0, targets in row 1.
        num_nodes: Number of nodes, or ``(sources, targets)`` of a bipartite graph; ``None`` checks only the sign.
        file: The file to name in the error.
    """
    if not isinstance(edge_index, Tensor):
        raise DemonetError(f"edge_index is a {type(edge_index).__name__}, not a tensor", file=file)
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise DemonetError(f"edge_index has shape {list(edge_index.shape)}, not [2, number of edges]", file=file)
    if edge_index.dtype not in _INTEGERS:
        hint = "node ids are integers; edge weights go in edge_weight"
        raise DemonetError(f"edge_index has type {edge_index.dtype}", file=file, hint=hint)
    limits = num_nodes if isinstance(num_nodes, tuple) else (num_nodes, num_nodes)
    for row, (name, limit) in enumerate(zip(("source", "target"), limits, strict=True)):
        ids = edge_index[row]
        bad = ids < 0 if limit is None else (ids < 0) | (ids >= limit)
        if bool(bad.any()):
            column = int(bad.nonzero()[0])
            allowed = "ids start at 0" if limit is None else f"the graph has {limit} {name} nodes, counted from 0"
            raise DemonetError(f"{name} id {int(ids[column])} at edge_index[{row}, {column}]", file=file, hint=allowed)


def check_features(x: Tensor, num_nodes: int, *, file: str | Path | None = None) -> None:
    """Check that features have one finite row per node; dense or ``torch.sparse_csr``."""
    if not isinstance(x, Tensor):
        raise DemonetError(f"features are a {type(x).__name__}, not a tensor", file=file)
    if x.dim() != 2:
        raise DemonetError(f"features have shape {list(x.shape)}, not [nodes, features]", file=file)
    if x.size(0) != num_nodes:
        raise DemonetError(f"features have {x.size(0)} rows for {num_nodes} nodes", file=file)
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise DemonetError(f"features have layout {x.layout}", file=file, hint="use a dense or a CSR tensor")
    if not x.is_floating_point():
        return
    values = x.values() if x.layout == torch.sparse_csr else x
    if bool(torch.isfinite(values.detach().sum())):  # takes no memory, unlike a mask
        return
    finite = torch.isfinite(values)
    if bool(finite.all()):  # their sum alone is too large
        return
    if x.layout == torch.sparse_csr:
        at = int((~finite).nonzero()[0])
        row = int(torch.searchsorted(x.crow_indices(), at, right=True)) - 1
        column, value = int(x.col_indices()[at]), float(values[at])
    else:
        row, column = (int(i) for i in (~finite).nonzero()[0])
        value = float(x[row, column])
    raise DemonetError(f"feature {value} in row {row}, column {column}", file=file, hint="features must be finite")


def check_labels(y: Tensor, num_items: int, num_classes: int | None = None, *, file: str | Path | None = None) -> None:
    """Check that labels are an int64 vector of classes counted from 0, with -1 for unlabelled items."""
    if not isinstance(y, Tensor) or y.dim() != 1 or y.dtype != torch.int64:
        found = f"{list(y.shape)} of {y.dtype}" if isinstance(y, Tensor) else type(y).__name__
        raise DemonetError(f"labels are {found}, not an int64 vector", file=file)
    if y.numel() != num_items:
        raise DemonetError(f"{y.numel()} labels for {num_items} items", file=file)
    bad = y < -1 if num_classes is None else (y < -1) | (y >= num_classes)
    if bool(bad.any()):
        item = int(bad.nonzero()[0])
        allowed = "0, 1, 2, ..." if num_classes is None else f"0 to {num_classes - 1}"
        raise DemonetError(f"label {int(y[item])} of item {item}", file=file, hint=f"{allowed}, or -1 for unlabelled")


def labelled(y: Tensor) -> Tensor:
    """``[n]`` which items have a target: a class that is not -1, or a row that is not all NaN.

    >>> labelled(torch.tensor([0, -1])), labelled(torch.tensor([[torch.nan, 1.0], [torch.nan, torch.nan]]))
    (tensor([ True, False]), tensor([ True, False]))
    """
    known = ~y.isnan() if y.is_floating_point() else y >= 0
    return known if y.dim() == 1 else known.any(1)


def check_node_count(num_nodes: int, num_edges: int, *, file: str | Path | None = None) -> None:
    """Refuse a node count in a header that is implausible for the number of edges and would exhaust the memory."""
    if num_nodes > max(1_000_000, 100 * num_edges):
        raise DemonetError(f"the header says {num_nodes} nodes, but there are only {num_edges} edges", file=file)
