"""The manifest of a run: the SHA-256 of each of its files, so that no damaged or swapped file is used in silence.

It is written after all other files, and seals itself: JSON with a checksum of everything else in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from demonet.atomic import PART, replacing
from demonet.errors import DemonetError

MANIFEST = "manifest.json"
_FORMAT = "demonet-manifest-1"
_SEAL = "sha256"


def write_manifest(folder: Path) -> None:
    """Write the manifest of all files in a folder; temporary files that a killed process has left are removed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    for path in files:
        if path.name.endswith(PART):
            path.unlink()
    names = (path.relative_to(folder).as_posix() for path in files if not path.name.endswith(PART))
    write_sealed(folder / MANIFEST, {"format": _FORMAT, "files": {name: _sha256(folder / name) for name in names}})


def read_manifest(folder: Path) -> dict[str, str] | None:
    """The checksum of each file of a run, by its name; None if there is no manifest."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    content = read_sealed(path, hint="the run cannot be checked: fit it again")
    files = content.get("files")
    if content.get("format") != _FORMAT or not isinstance(files, dict):
        raise DemonetError(f"not a manifest of format {_FORMAT}", file=path)
    return files


def update_manifest(folder: Path, name: str) -> None:
    """Note that a file of a run has been written again."""
    files = read_manifest(folder)
    if files is not None:
        files[name] = _sha256(folder / name)
        write_sealed(folder / MANIFEST, {"format": _FORMAT, "files": dict(sorted(files.items()))})


def damaged(folder: Path, files: dict[str, str], names: Iterable[str]) -> list[str]:
    """Those of the named files that are missing or differ from the manifest ``files``."""
    return [name for name in names if not (folder / name).is_file() or _sha256(folder / name) != files.get(name)]


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


def to_json(value: Any) -> bytes:
    r"""JSON as it is written to files. Names that are not UTF-8 (lone surrogates) are escaped.

    >>> to_json("a\udcff")
    b'"a\\udcff"\n'
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _sealed(value: dict[str, Any]) -> bytes:
    return to_json({**value, _SEAL: hashlib.sha256(to_json(value)).hexdigest()})


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
