"""The bytes of a file, unpacked if they are gzip, and refused if they are not what they should be."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

from demonet.errors import DemonetError

_CHUNK = 1 << 22
# Text packs 5 to 20 times. What unpacks to more than this, and to a hundred times its size, is a trap or a mistake.
_PLENTY = 1 << 28
_EXPANSION = 100


def read_bytes(path: Path) -> bytes:
    """All bytes of a file, unpacked if it is gzip whatever its name."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DemonetError("no such file", file=path) from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise DemonetError(f"cannot be read: {error}", file=path) from None
    if raw[:2] == b"\x1f\x8b":
        raw = _unpack(raw, path)
    if not raw:
        raise DemonetError("the file is empty", file=path)
    return raw


def read_text(path: Path) -> bytes:
    """The bytes of a text file, without a byte order mark; refused if they are binary."""
    raw = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    at = raw.find(b"\0")
    if at >= 0:
        hint = "text is expected here; UTF-16 must be saved as UTF-8"
        raise DemonetError(f"binary file: byte {at} is zero", file=path, hint=hint)
    return raw


def check_expansion(packed: int, unpacked: int, path: Path) -> None:
    """Refuse what unpacks to an absurd size."""
    if unpacked > max(_PLENTY, _EXPANSION * packed):
        raise DemonetError(f"{packed} packed bytes unpack to {unpacked} or more", file=path)


def _unpack(raw: bytes, path: Path) -> bytes:
    unpacked = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            while chunk := stream.read(_CHUNK):
                unpacked.write(chunk)
                check_expansion(len(raw), unpacked.tell(), path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DemonetError(f"truncated or damaged gzip: {error}", file=path) from None
    return unpacked.getvalue()
