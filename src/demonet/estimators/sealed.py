"""A safetensors file that carries the checksum of its own bytes, so that no flipped one goes unnoticed.

The checksum is in the header, and is taken over the whole file with 64 zeros in its place. There is no pickle: reading
a file runs no code from it.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from demonet.atomic import replacing
from demonet.errors import DemonetError

SEAL = re.compile(rb'"sha256":"([0-9a-f]{64})"')  # the facts cannot look like it: in them every quote is escaped
DAMAGED = "save the model again; this copy is damaged, or was not written by demonet"


def write_sealed(path: str | Path, kind: str, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Tensors and facts as one file of that kind, whole or not at all."""
    if not Path(path).parent.is_dir():
        raise DemonetError("there is no such folder", file=path)
    whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    raw = save(whole, metadata={"format": kind, "facts": json.dumps(facts), "sha256": "0" * 64})
    digest = hashlib.sha256(raw).hexdigest().encode()
    with replacing(path) as temporary:
        temporary.write_bytes(_with_seal(raw, digest))


def read_sealed(path: str | Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What :func:`write_sealed` wrote; anything else, and any other version of it, is refused."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise DemonetError(f"cannot be read: {error.strerror}", file=path) from None
    found = _metadata(raw, path).get("format")
    if found != kind:
        raise DemonetError(f"not a {kind} file (its format is {found!r})", file=path)
    seal = SEAL.search(raw)
    if seal is None or hashlib.sha256(_with_seal(raw, b"0" * 64)).hexdigest().encode() != seal[1]:
        raise DemonetError("its bytes do not match its checksum", file=path, hint=DAMAGED)
    try:
        return load(raw), json.loads(_metadata(raw, path)["facts"])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DemonetError(f"cannot be read: {error}", file=path, hint=DAMAGED) from error


def _metadata(raw: bytes, path: str | Path) -> dict[str, Any]:
    """What the header says beside the tensors: eight bytes of length, then JSON."""
    try:
        length = int.from_bytes(raw[:8], "little")
        metadata = json.loads(raw[8 : 8 + length])["__metadata__"]
        if 8 + length <= len(raw) and isinstance(metadata, dict):
            return metadata
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise DemonetError("not a safetensors file with a header of ours", file=path, hint=DAMAGED)


def _with_seal(raw: bytes, digest: bytes) -> bytes:
    """The file with another checksum; the header comes first, so no tensor can be mistaken for it."""
    return SEAL.sub(b'"sha256":"' + digest + b'"', raw, count=1)
