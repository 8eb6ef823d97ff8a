"""What files of our own may hold: shapes, bounds, pointers and trees, checked before anything is computed with them.

A checksum says that a file is as it was written, not who has written it. Libraries check few of the numbers that they
are given: an index out of bounds ends the process or reads foreign memory, a cycle in a tree never ends, and a size in
a header takes any amount of memory. So every array of a file goes through this module first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from demonet.errors import DemonetError

_HINT = "the file is damaged, or was not written by demonet"
Made = TypeVar("Made")


@contextmanager
def values_of(file: str | Path, what: str = "values that fit together") -> Iterator[None]:
    """Turn errors about values that were read from a file into one that names the file."""
    try:
        yield
    except DemonetError as error:
        if error.file is not None:
            raise
        raise DemonetError(error.message, argument=error.argument, file=file, hint=error.hint or _HINT) from error
    except OSError:
        raise
    except Exception as error:  # whatever libraries raise about values that do not fit
        if isinstance(error, MemoryError) or "allocate" in str(error):  # as torch says that there is no memory
            raise DemonetError("its sizes need more memory than there is", file=file) from error
        text = " ".join(str(error).split())[:200]
        raise DemonetError(f"does not hold {what} ({type(error).__name__}: {text})", file=file, hint=_HINT) from error


def from_json(made: type[Made], values: Mapping[str, Any]) -> Made:
    """A dataclass of values from a file, each of the type that the class declares for it; lists become tuples."""
    types = get_type_hints(made)
    for name, value in values.items():
        if name not in types or not _fits(value, types[name]):
            raise DemonetError(f"{str(value)[:40]!r} for {str(name)[:40]!r}", hint=_HINT)
    return made(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def _fits(value: Any, kind: Any) -> bool:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin in (list, tuple):
        if not isinstance(value, list | tuple):
            return False
        wanted = parts if origin is tuple and parts[-1] is not ... else parts[:1] * len(value)
        return len(wanted) == len(value) and all(map(_fits, value, wanted))
    if isinstance(value, bool):
        return kind is bool
    kind = origin or kind
    return isinstance(value, float | int if kind is float else kind)


class Array(NamedTuple):
    """What an array must be.

    Attributes:
        kinds: The kinds of its type, as in NumPy: ``"i"`` for integers, ``"f"`` for floating-point numbers.
        shape: The length of each dimension: a number, or the name of one; ``"name+1"`` for one more. A name stands for
            the same number everywhere.
        low: No entry is less.
        below: The number, or its name, that no entry reaches.
        pointer: The number, or its name, to which the entries rise from 0.
        optional: Whether the array may be missing.
        finite: Whether no entry is infinite or NaN.
    """

    kinds: str
    shape: tuple[str | int, ...]
    low: int | None = None
    below: str | int | None = None
    pointer: str | int | None = None
    optional: bool = False
    finite: bool = False


def check_arrays(
    arrays: Mapping[str, Any], schema: Mapping[str, Array], sizes: dict[str, int] | None = None
) -> dict[str, int]:
    """Check arrays or tensors by their names; the sizes that were found.

    Args:
        arrays: The arrays.
        schema: What each of them must be. Others are left alone.
        sizes: Numbers that are known before, by name.

    >>> csr = {"pointer": Array("i", ("rows+1",), pointer="entries"), "column": Array("i", ("entries",), 0, "columns")}
    >>> check_arrays({"pointer": np.array([0, 1, 2]), "column": np.array([0, 4])}, csr, {"columns": 5, "entries": 2})
    {'columns': 5, 'entries': 2, 'rows': 2}
    """
    found = dict(sizes or {})
    plain = {name: array for name in schema if (array := _plain(arrays.get(name))) is not None}
    for name, wanted in schema.items():
        if name in plain:
            _check_shape(name, plain[name], wanted, found)
        elif not wanted.optional:
            raise DemonetError(f"{name} is missing", hint=_HINT)
    for name, array in plain.items():
        _check_entries(name, array, schema[name], found)
    return found


def _plain(array: Any) -> NDArray[Any] | None:
    if isinstance(array, Tensor):
        return array.float().numpy() if array.dtype == torch.bfloat16 else array.numpy()
    return None if array is None else np.asarray(array)


def _check_shape(name: str, array: NDArray[Any], wanted: Array, sizes: dict[str, int]) -> None:
    if array.dtype.kind not in wanted.kinds:
        raise DemonetError(f"{name} is of type {array.dtype}", hint=_HINT)
    if array.ndim == len(wanted.shape):
        for length, side in zip(array.shape, wanted.shape, strict=True):
            known, more = (side.removesuffix("+1"), side.endswith("+1")) if isinstance(side, str) else (side, False)
            number = sizes.setdefault(known, length - more) if isinstance(known, str) else known
            if length != number + more or number < 0:
                break
        else:
            return
    raise DemonetError(f"{name} has the shape {list(array.shape)}", hint=_HINT)


def _check_entries(name: str, array: NDArray[Any], wanted: Array, sizes: dict[str, int]) -> None:
    if wanted.finite and not np.isfinite(array).all():
        raise DemonetError(f"{name} has entries that are not finite", hint=_HINT)
    if wanted.pointer is not None:
        last = _size(wanted.pointer, sizes)
        if not (array.size and array[0] == 0 and array[-1] == last and bool((array[1:] >= array[:-1]).all())):
            raise DemonetError(f"{name} does not rise from 0 to {last}", hint=_HINT)
    elif array.size and wanted.low is not None and array.min() < wanted.low:
        raise DemonetError(f"{array.min()} in {name} is less than {wanted.low}", hint=_HINT)
    elif array.size and wanted.below is not None and array.max() >= (limit := _size(wanted.below, sizes)):
        raise DemonetError(f"{array.max()} in {name} is not less than {limit}", hint=_HINT)


def _size(name: str | int, sizes: dict[str, int]) -> int:
    return sizes[name] if isinstance(name, str) else name


def check_alike(value: Any, like: Any) -> None:
    """Check that JSON content has the form of another: its names and types; numbers are finite, lists of any length.

    >>> check_alike({"rounds": [3, 4], "scale": 1}, {"rounds": [20], "scale": 0.5})
    """
    if isinstance(like, dict) and isinstance(value, dict) and value.keys() == like.keys():
        for name, part in value.items():
            check_alike(part, like[name])
    elif isinstance(like, list | tuple) and isinstance(value, list | tuple) and bool(value) == bool(like):
        for part in value:
            check_alike(part, like[0])
    else:
        kinds = [float if type(each) is int else type(each) for each in (value, like)]
        if kinds[0] != kinds[1] or kinds[0] in (dict, list, tuple) or (kinds[0] is float and not math.isfinite(value)):
            raise DemonetError(f"{str(value)[:40]!r} in place of {str(like)[:40]!r}", hint=_HINT)


def check_like(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Check that tensors have the types and shapes of those whose place they take."""
    for name in tensors.keys() & expected.keys():
        found, like = (f"{tensor.dtype} {list(tensor.shape)}" for tensor in (tensors[name], expected[name]))
        if found != like:
            raise DemonetError(f"{name} is {found}, not {like}", hint=_HINT)


_TREES = {
    "roots": Array("i", ("trees",), 0, "nodes"),
    "feature": Array("i", ("nodes",), 0, "columns"),
    "threshold": Array("f", ("nodes",)),
    "left": Array("i", ("nodes",), 0, "nodes"),
    "right": Array("i", ("nodes",), 0, "nodes"),
    "value": Array("f", ("nodes", "outputs")),
}


def check_trees(arrays: Mapping[str, Any], columns: int) -> None:
    """Check trees: children come after their parent, so that no path has a cycle; a leaf points at itself twice."""
    nodes = check_arrays(arrays, _TREES, {"columns": columns})["nodes"]
    place, left, right = np.arange(nodes), arrays["left"], arrays["right"]
    leaf = left == place
    if not bool(np.where(leaf, right == place, (left > place) & (right > place)).all()):
        raise DemonetError("a tree has a cycle", hint=_HINT)


def checked_csr(values: Any, column: Any, pointer: Any, shape: tuple[int, int]) -> sparse.csr_array:
    """A SciPy CSR array of parts that fit together."""
    schema = {
        "data": Array("biuf", ("entries",)),
        "indices": Array("i", ("entries",), 0, "columns"),
        "indptr": Array("i", ("rows+1",), pointer="entries"),
    }
    parts = {"data": values, "indices": column, "indptr": pointer}
    rows, columns = (int(side) for side in shape)
    check_arrays(parts, schema, {"rows": rows, "columns": columns})
    return sparse.csr_array((values, column, pointer), shape=(rows, columns))


def check_sparse(tensor: Tensor) -> None:
    """Check the indices of a sparse tensor; torch does so only where it is told to."""
    if tensor.layout == torch.sparse_coo:
        index, limits = tensor._indices(), torch.tensor(tensor.shape[: tensor.sparse_dim()])
        if index.numel() and bool(((index < 0) | (index >= limits[:, None])).any()):
            raise DemonetError("an index of a sparse tensor is out of bounds", hint=_HINT)
    elif tensor.layout == torch.sparse_csr and tensor.dim() == 2:
        shape = (int(tensor.size(0)), int(tensor.size(1)))
        checked_csr(tensor.values().numpy(), tensor.col_indices().numpy(), tensor.crow_indices().numpy(), shape)
    elif tensor.layout != torch.strided:
        raise DemonetError(f"a tensor of layout {tensor.layout}", hint="use a dense, COO or CSR tensor")
