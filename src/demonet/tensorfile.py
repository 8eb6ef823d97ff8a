"""Tensor files: safetensors with JSON facts and a SHA-256 checksum in the header, written atomically.

Models, checkpoints and run folders all use this format. The checksum is taken over the whole file with 64 zeros in its
place. Nothing is pickled, so reading a file runs no code from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from demonet.atomic import check_file, replacing
from demonet.errors import DemonetError
from demonet.sealed import opened

T = TypeVar("T")
_ZEROS = "0" * 64
_MOST_HEADER = 10**8  # bytes, as in safetensors
_DAMAGED = "the file is damaged, or was not written by demonet"


class TensorFile(NamedTuple):
    """The contents of a tensor file."""

    tensors: dict[str, Tensor]
    facts: Any
    format: str


def write_tensors(path: str | Path, format: str, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors and facts to one file.

    Args:
        path: The file; its folder must exist.
        format: Name and version of the contents, such as ``"demonet-model-3"``.
        tensors: The tensors by name, on any device.
        facts: Anything that JSON can hold.
    """
    check_file(path)
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    raw = save(copies, metadata={"format": format, "facts": json.dumps(facts), "sha256": _ZEROS})
    with replacing(path) as temporary:
        temporary.write_bytes(_with_checksum(raw, _ZEROS, hashlib.sha256(raw).hexdigest()))


def read_tensors(path: str | Path, *formats: str) -> TensorFile:
    """Read what :func:`write_tensors` wrote.

    Args:
        path: The file.
        *formats: The formats to accept. The checksum of these files is required and verified.

    Raises:
        DemonetError: If the file cannot be read, is damaged, or has another format.
    """
    try:
        with opened(Path(path) if isinstance(path, str) else path) as stream:
            raw = stream.read()
    except OSError as error:
        raise DemonetError(f"cannot be read: {error.strerror}", file=path) from None
    metadata = _metadata(raw, path)
    found = metadata.get("format")
    if found not in formats:
        raise DemonetError(f"not a {' or '.join(formats)} file (its format is {found!r})", file=path)
    checksum = metadata.get("sha256")
    if not _matches(raw, str(checksum)):
        raise DemonetError("the file does not match its checksum", file=path, hint=_DAMAGED)
    try:
        return TensorFile(load(raw), json.loads(metadata["facts"]), str(found))
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DemonetError(f"cannot be read: {error}", file=path, hint=_DAMAGED) from error


def is_ours(path: Path) -> bool:
    """Whether a file begins as :func:`write_tensors` begins it; the rest of it is not read."""
    try:
        with opened(path) as stream:
            start = stream.read(8)
            metadata = _metadata(start + stream.read(min(_header_end(start) - 8, _MOST_HEADER)), path)
    except DemonetError:
        return False
    return str(metadata.get("format")).startswith("demonet-")


def pack_texts(texts: Sequence[str]) -> dict[str, Tensor]:
    """Texts as two tensors: their UTF-8 ``bytes``, and the ``offsets`` between which each of them is.

    A header holds at most 100 MB, which is not enough for the ids of some million nodes.

    >>> pack_texts(["a", "", "bü"])["offsets"].tolist()
    [0, 1, 1, 4]
    """
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    joined = np.frombuffer(b"".join(encoded), dtype=np.uint8).copy()
    return {"bytes": torch.from_numpy(joined), "offsets": torch.from_numpy(offsets)}


def unpack_texts(packed: dict[str, Tensor]) -> list[str]:
    """The texts that :func:`pack_texts` packed; tensors that it cannot have made are an error."""
    raw, ends = packed["bytes"].numpy().tobytes(), packed["offsets"].tolist()
    if not ends or ends[0] != 0 or ends[-1] != len(raw) or any(a > b for a, b in pairwise(ends)):
        raise DemonetError("texts and their offsets do not fit together", hint=_DAMAGED)
    try:
        return [raw[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]
    except UnicodeDecodeError as error:
        raise DemonetError(f"texts are not UTF-8: {error}", hint=_DAMAGED) from None


def _metadata(raw: bytes, path: str | Path) -> dict[str, Any]:
    """The metadata in a safetensors header: eight bytes of length, then JSON."""
    try:
        end = _header_end(raw)
        metadata = json.loads(raw[8:end])["__metadata__"]
        if end <= len(raw) and isinstance(metadata, dict):
            return metadata
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise DemonetError("cannot be read: not a safetensors file with metadata", file=path, hint=_DAMAGED)


def _header_end(raw: bytes) -> int:
    return 8 + int.from_bytes(raw[:8], "little")


def _matches(raw: bytes, checksum: str) -> bool:
    zeroed = _with_checksum(raw, checksum, _ZEROS)
    return zeroed != raw and hashlib.sha256(zeroed).hexdigest() == checksum


def _with_checksum(raw: bytes, old: str, new: str) -> bytes:
    """The file with another checksum. Only the header can match: quotes inside the facts are escaped."""
    end = _header_end(raw)
    return raw[:end].replace(f'"sha256":"{old}"'.encode(), f'"sha256":"{new}"'.encode(), 1) + raw[end:]


def by_prefix(tensors: dict[str, Tensor], *prefixes: str) -> dict[str, dict[str, Tensor]]:
    """Tensors by what stands before the first dot of their names, under the rest of them."""
    parts: dict[str, dict[str, Tensor]] = {prefix: {} for prefix in prefixes}
    for name, tensor in tensors.items():
        prefix, _, rest = name.partition(".")
        parts[prefix][rest] = tensor
    return parts


def to_tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """The same as tensors, as :func:`write_tensors` takes them."""
    return {name: torch.from_numpy(np.ascontiguousarray(a)).reshape(a.shape) for name, a in arrays.items()}


def under(prefix: str, arrays: Mapping[str, T]) -> dict[str, T]:
    """The arrays whose names begin with a prefix and a dot, under the rest of their names.

    >>> under("model", {"model.weight": 1, "other": 2})
    {'weight': 1}
    """
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
