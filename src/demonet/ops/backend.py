"""Which kernels run, and every threshold that decides it; also available as ``demonet.backend``.

Each operator has a definition in plain PyTorch (:mod:`demonet.ops.reference`), a CPU version and a Triton version. By
default the device and the dtype decide. All versions give the same results up to rounding.

To change a setting for a block of code:

    with demonet.backend.override(path="reference"):
        model(x, edge_index)

To change it for a process, set ``DEMONET_BACKEND`` before the package is imported: a path, thresholds, or both, such
as ``DEMONET_BACKEND=reference`` or ``DEMONET_BACKEND=triton,short_list=64``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn import Parameter

from demonet.errors import DemonetError

Path = Literal["auto", "reference", "cpu", "triton"]
Family = Literal["reference", "cpu", "triton"]

HAS_TRITON = find_spec("triton") is not None
TRITON_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
# Before 2.13, ``is_exporting`` is also true while ``torch.compile`` runs.
_EXPORT_IS_DISTINCT = torch.__version__ >= "2.13"


@dataclass(frozen=True)
class Backend:
    """The path and the thresholds. All defaults are measured; none changes a result beyond rounding.

    A *group* is all rows of one degree.

    The attributes are, in this order: the path; thresholds on a CPU; thresholds of the schemes; thresholds in Triton.

    Attributes:
        path: ``"auto"``, or one family for every operator that has a version in it: ``"reference"``, ``"cpu"`` (only
            for tensors on a CPU), ``"triton"`` (for tensors on a CPU with Triton's interpreter, for tests).

        block_heights: Numbers of rows to which groups may be padded for one batched product; longer groups are
            multiplied one by one. 0 is no batched product.
        block_call_cost: Cost of calling a matrix product, without its arithmetic, in padded rows.
        block_batch_cost: The same for a batched product.
        block_matrix_size: With matrices of at least this many entries, groups are multiplied one by one.
        piece_graph_rows: With at least this many rows, a convolution goes piece by piece.
        piece_rows: Rows of a piece.
        buffer_bytes: The memory of results of at least this size is reused in the next epoch.
        deep_rows: Rows below which deep layers (:mod:`demonet.ops.deep`) are one function.
        outer_rows: Rows that are summed at a time in a sum of outer products over all rows.
        padded_entries: Entries that may be copied to align rows for ``torch.nn.functional.grouped_mm``.
        head_rows: Rows below which a linear head and its loss are plain PyTorch, without a custom operator.
        vector_classes: Number of classes below which scores are stored with one row per class in the loss.
        class_major_rows: Rows needed for the same where the scores were computed before, one row per node.

        rows_per_task: Scheme ``weight``: with at least this many rows per degree on average, the shared and the own
            matrix of each degree are added before the product; with fewer, there are two products.
        rows_per_hash: Scheme ``hash``: the same for making a matrix per degree, instead of hashing rows.
        rows_per_mix: Scheme ``smooth``: the same for mixing matrices, instead of mixing products.
        cached_entries: If all matrices together have at most this many entries, they fit into a CPU's cache and are
            made whatever the number of rows (schemes ``weight`` and ``hash``).
        mixed_entries: The same for scheme ``smooth``.
        hash_map_entries: Most entries of the hash functions of all degrees as one matrix on a GPU.
        hash_columns: Input columns that are hashed at a time.

        tile_rows: Rows of a tile in Triton kernels, a power of two. Only the environment can set it.
        short_list: Longest neighbour list that is summed inside its tile.
        chunk_edges: Edges of a longer list that are summed at a time.
        pool_rows: Rows that one program of the pooling kernel sums.
        widest_input: Most input columns of the fused convolution.
        widest_half: Most output columns of each of its halves.
        matrix_bytes: Most bytes of the matrices in one program of it; half as many in float32, whose products keep
            copies.
        most_classes: Most classes of the fused head and loss.
    """

    path: Path = "auto"

    block_heights: tuple[int, ...] = (0, 2, 4, 8, 16, 32)
    block_call_cost: int = 40
    block_batch_cost: int = 200
    block_matrix_size: int = 2**14
    piece_graph_rows: int = 16384
    piece_rows: int = 4096
    buffer_bytes: int = 2**18
    deep_rows: int = 4096
    outer_rows: int = 8192
    padded_entries: int = 2**22
    head_rows: int = 4096
    vector_classes: int = 16
    class_major_rows: int = 4096

    rows_per_task: int = 32
    rows_per_hash: int = 4
    rows_per_mix: int = 20
    cached_entries: int = 2**20
    mixed_entries: int = 2**18
    hash_map_entries: int = 2**25
    hash_columns: int = 256

    tile_rows: int = 64
    short_list: int = 32
    chunk_edges: int = 256
    pool_rows: int = 1024
    widest_input: int = 256
    widest_half: int = 128
    matrix_bytes: int = 2**17
    most_classes: int = 128

    def __post_init__(self) -> None:
        if self.path not in get_args(Path):
            raise DemonetError(f"backend path={self.path!r}", hint=f"one of {', '.join(get_args(Path))}")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int" and (not isinstance(value, int) or value < 0):
                raise DemonetError(f"backend {field.name}={value!r}", hint="a non-negative integer")
        if self.tile_rows < 16 or self.tile_rows & (self.tile_rows - 1):
            raise DemonetError(f"backend tile_rows={self.tile_rows}", hint="a power of two of at least 16")

    def changed(self, **changes: Any) -> Backend:
        """A copy with some fields changed."""
        unknown = sorted(set(changes) - {field.name for field in fields(self)})
        if unknown:
            known = ", ".join(field.name for field in fields(self))
            raise DemonetError(f"no backend setting {unknown[0]!r}", hint=f"there are {known}")
        return replace(self, **changes)


def parse(text: str) -> Backend:
    """The settings that a value of ``DEMONET_BACKEND`` describes.

    >>> parse("triton, tile_rows=32").tile_rows
    32
    """
    changes: dict[str, Any] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, given, value = part.partition("=")
        if given and not value.strip().isdigit():
            raise DemonetError(f"DEMONET_BACKEND: {part!r}", hint="thresholds are integers, such as tile_rows=32")
        changes |= {name.strip(): int(value)} if given else {"path": name}
    return Backend().changed(**changes)


_current = parse(os.environ.get("DEMONET_BACKEND", ""))


def current() -> Backend:
    """The settings in force."""
    return _current


@contextmanager
def override(**changes: Any) -> Iterator[Backend]:
    """Change settings inside a ``with`` block, for all threads: autograd runs derivatives in threads of its own."""
    global _current
    before = _current
    if "tile_rows" in changes:  # schedules and kernels must agree, and a schedule outlives the block
        raise DemonetError("tile_rows is fixed for a process", hint="set DEMONET_BACKEND=tile_rows=...")
    _current = before.changed(**changes)
    try:
        yield _current
    finally:
        _current = before


def family(x: Tensor) -> Family:
    """The family of kernels for a tensor."""
    path, in_memory = _current.path, x.device.type == "cpu"
    if path == "auto":
        path = "cpu" if in_memory else "triton"
    if path == "triton":
        on_device = x.is_cuda or in_memory
        return "triton" if HAS_TRITON and on_device and x.dtype in TRITON_DTYPES else "reference"
    return "cpu" if path == "cpu" and in_memory else "reference"


def is_sparse(x: Tensor) -> bool:
    """Whether x is a ``torch.sparse`` tensor; rows are then read as CSR."""
    return x.layout in (torch.sparse_csr, torch.sparse_coo, torch.sparse_csc)


def tracing() -> bool:
    """Whether ``torch.compile`` or ``torch.export`` is recording: values cannot be read, and must not be cached."""
    return torch.compiler.is_compiling()


def exporting() -> bool:
    """Whether ``torch.export`` is recording: for graphs of any size, so no choice may depend on the example's."""
    return torch.compiler.is_exporting() and (_EXPORT_IS_DISTINCT or not torch.compiler.is_dynamo_compiling())


def eager(x: Tensor, *others: Tensor) -> bool:
    """Whether kernels may be called directly instead of through ``torch.library``.

    ``torch.library`` looks up kernels in Python, which takes longer than a convolution of a small graph. It is only
    needed where something traces, compiles or maps over the tensors.
    """
    if tracing() or torch._C._are_functorch_transforms_active() or family(x) == "reference":
        return False
    return all(type(tensor) in (Tensor, Parameter) for tensor in (x, *others))


def direct(*tensors: Tensor) -> bool:
    """:func:`eager` for the kernels of a CPU."""
    return family(tensors[0]) == "cpu" and eager(*tensors)


def fuses_loss(x: Tensor) -> bool:
    """Whether layers, head and loss may be one function: ``x`` is dense and constant, and nothing traces or casts."""
    if x.size(0) == 0 or x.requires_grad or tracing() or torch.is_autocast_enabled(x.device.type):
        return False
    return x.layout == torch.strided


def block_width(width: int, largest: int) -> int:
    """The power of two that covers a width, between 16 (the least that GPU matrix units take) and ``largest``."""
    return min(largest, max(16, 1 << max(width - 1, 0).bit_length()))


def fits_conv(seed: Tensor, matrices: Tensor) -> bool:
    """Whether a convolution fits into one Triton program."""
    columns, widths = seed.size(0), (seed.size(1), matrices.size(2))
    widest, half = _current.widest_input, _current.widest_half
    if columns > widest or max(widths) > half:
        return False
    held = block_width(columns, widest) * sum(block_width(width, half) for width in widths)
    limit = _current.matrix_bytes // (2 if seed.dtype == torch.float32 else 1)
    return held * seed.element_size() <= limit


def fits_head(weight: Tensor) -> bool:
    """Whether a linear head fits into one Triton program."""
    return weight.size(1) <= _current.widest_input and weight.size(0) <= _current.most_classes


def enough_rows(rows_per_degree: int, num_degrees: int, num_rows: int) -> bool:
    """Whether degrees have at least ``rows_per_degree`` rows on average, so that making a matrix for each pays."""
    return not exporting() and num_degrees * rows_per_degree <= num_rows
