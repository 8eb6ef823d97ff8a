"""Which kernels run; also available as ``demonet.backend``.

Each operator has a definition in plain PyTorch (:mod:`demonet.ops.reference`), a CPU version and a Triton version. By
default the device and the dtype decide. All versions give the same results up to rounding.

To choose one for a block of code:

    with demonet.backend.override(path="reference"):
        model(x, edge_index)

To choose one for a process, set ``DEMONET_BACKEND`` before the package is imported: ``DEMONET_BACKEND=reference``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Literal, cast, get_args

import torch
import torch.autograd.forward_ad as forward_ad
import torch.onnx
from torch import Tensor
from torch.nn import Parameter

from demonet.errors import DemonetError

Path = Literal["auto", "reference", "cpu", "triton"]
Family = Literal["reference", "cpu", "triton"]

HAS_TRITON = find_spec("triton") is not None
TRITON_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_PLAIN_TYPES = {Tensor, Parameter}
# Before 2.13, ``is_exporting`` is also true while ``torch.compile`` runs.
_EXPORT_IS_DISTINCT = torch.__version__ >= "2.13"


# Measured thresholds that decide between two ways of computing the same. Those of single kernels are beside them.
PIECE_GRAPH_ROWS = 16_384  # from so many rows on, a CPU takes a convolution piece by piece: rows stay in its cache
PIECE_ROWS = 4_096  # rows of a piece
# Rows per degree from which on a matrix for each degree is cheaper than what the scheme does with the rows instead.
ROWS_PER_TASK = 32  # scheme "weight": one product with the sum of two matrices, or two products
ROWS_PER_HASH = 4  # scheme "hash": matrices read through the hash functions, or hashed rows
ROWS_PER_SCALE = 200  # scheme "scale": scaled matrices, or scaled products
ROWS_PER_MIX = 20  # scheme "smooth": mixed matrices, or mixed products
# Entries of all matrices together up to which they fit into a CPU's cache, and are made for any number of rows.
CACHED_ENTRIES = 2**20  # schemes "weight" and "hash"
MIXED_ENTRIES = 2**18  # scheme "smooth"


def _checked(path: str) -> Path:
    if path not in get_args(Path):
        raise DemonetError(f"backend path={path!r}", hint=f"one of {', '.join(get_args(Path))}")
    return cast(Path, path)


_path = _checked(os.environ.get("DEMONET_BACKEND", "").strip() or "auto")


@contextmanager
def override(*, path: Path) -> Iterator[None]:
    """Choose a version inside a ``with`` block, for all threads: autograd runs derivatives in threads of its own.

    Args:
        path: ``"auto"``, or one family for every operator that has a version in it: ``"reference"``, ``"cpu"`` (only
            for tensors on a CPU), ``"triton"`` (for tensors on a CPU with Triton's interpreter, for tests).
    """
    global _path
    before, _path = _path, _checked(path)
    try:
        yield
    finally:
        _path = before


def family(x: Tensor) -> Family:
    """The family of kernels for a tensor."""
    path, in_memory = _path, x.device.type == "cpu"
    if path == "auto":
        path = "cpu" if in_memory else "triton"
    if path == "triton":
        on_device = x.is_cuda or in_memory
        return "triton" if HAS_TRITON and on_device and x.dtype in TRITON_DTYPES else "reference"
    return "cpu" if path == "cpu" and in_memory else "reference"


def is_sparse(x: Tensor) -> bool:
    """Whether x is a ``torch.sparse`` tensor; rows are then read as CSR."""
    return x.layout in (torch.sparse_csr, torch.sparse_coo, torch.sparse_csc)


# Whether ``torch.compile`` or ``torch.export`` is recording: values cannot be read, and must not be cached.
tracing = torch.compiler.is_compiling


def exporting() -> bool:
    """Whether ``torch.export`` is recording: for graphs of any size, so no choice may depend on the example's."""
    return torch.compiler.is_exporting() and (_EXPORT_IS_DISTINCT or not torch.compiler.is_dynamo_compiling())


def onnx() -> bool:
    """Whether ``torch.onnx`` is recording: it knows PyTorch's own operators alone."""
    return tracing() and torch.onnx.is_in_onnx_export()


def mapped() -> bool:
    """Whether ``torch.func`` maps or differentiates, or forward-mode derivatives are computed.

    Operators are then their definitions in plain PyTorch, which has rules for all of this.
    """
    if tracing():
        return False
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def eager(x: Tensor, *others: Tensor) -> bool:
    """Whether kernels may be called directly instead of through ``torch.library``.

    ``torch.library`` looks up kernels in Python, which takes longer than a convolution of a small graph. It is only
    needed where something traces or compiles.
    """
    if tracing() or mapped() or family(x) == "reference":
        return False
    return _PLAIN_TYPES.issuperset(map(type, (x, *others)))


def direct(*tensors: Tensor) -> bool:
    """:func:`eager` for the kernels of a CPU."""
    return family(tensors[0]) == "cpu" and eager(*tensors)


def fuses_loss(x: Tensor) -> bool:
    """Whether layers, head and loss may be one function: ``x`` is dense and constant, and nothing traces or casts."""
    if x.size(0) == 0 or x.requires_grad or tracing() or torch.is_autocast_enabled(x.device.type):
        return False
    return x.layout == torch.strided


def enough_rows(rows_per_degree: int, num_degrees: int, num_rows: int) -> bool:
    """Whether degrees have at least ``rows_per_degree`` rows on average, so that making a matrix for each pays."""
    return not exporting() and num_degrees * rows_per_degree <= num_rows
