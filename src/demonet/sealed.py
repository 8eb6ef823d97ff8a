"""JSON with sorted keys; files that seal themselves with a checksum of everything else in them, and what they name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from demonet.atomic import replacing
from demonet.errors import DemonetError

_SEAL = "sha256"


def canonical(content: Mapping[str, Any]) -> str:
    """Content as JSON text; the same content gives the same text, whatever the order of its keys."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def write_sealed(path: Path, value: dict[str, Any]) -> None:
    """Write JSON with a checksum in it, atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(_sealed(value))


def read_sealed(path: Path, hint: str) -> dict[str, Any]:
    """Read what :func:`write_sealed` wrote; one changed byte is an error, with ``hint`` for what to do."""
    try:
        raw = path.read_bytes()
        value = json.loads(raw)
        if isinstance(value, dict) and value.pop(_SEAL, None) is not None and _sealed(value) == raw:
            return value
    except FileNotFoundError:
        raise DemonetError("no such file", file=path) from None
    except OSError as error:
        raise DemonetError(f"cannot be read: {error.strerror}", file=path) from None
    except (ValueError, RecursionError):
        pass
    raise DemonetError("does not match its checksum: damaged, or changed by hand", file=path, hint=hint)


def member(folder: Path, name: str) -> Path:
    """The path of a file that a manifest names. It is below the folder, and there is no link on the way to it.

    >>> member(Path("run"), "logs/a.txt").as_posix()
    'run/logs/a.txt'
    """
    path = folder
    for part in name.split("/"):
        if part in ("", ".", "..") or any(mark in part for mark in "\\:\0"):
            raise DemonetError(f"{name!r} is not the name of a file in this folder", file=folder)
        path /= part
        if path.is_symlink():
            raise DemonetError("this is a link, which is not followed", file=path, hint="put the file itself there")
    return path


def to_json(value: Any) -> bytes:
    r"""JSON as it is written to files. Names that are not UTF-8 (lone surrogates) are escaped.

    >>> to_json("a\udcff")
    b'"a\\udcff"\n'
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _sealed(value: dict[str, Any]) -> bytes:
    return to_json({**value, _SEAL: hashlib.sha256(to_json(value)).hexdigest()})


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
