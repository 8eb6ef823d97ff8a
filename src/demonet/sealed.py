"""JSON with sorted keys; files that seal themselves with a checksum of everything else in them, and what they name."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any

from demonet.atomic import Member, link_error, replacing
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
        with opened(path) as stream:
            raw = stream.read()
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


def member(folder: Path, name: str) -> Member:
    """The path of a file that a manifest names. It is below the folder, and there is no link on the way to it.

    >>> member(Path("run"), "logs/a.txt").as_posix()
    'run/logs/a.txt'
    """
    path = folder
    for part in name.split("/"):
        if len(part.encode("utf-8", "surrogatepass")) > 255:  # more than any file system has
            raise DemonetError(f"{part[:40]!r}... is too long for the name of a file", file=folder)
        if part in ("", ".", "..") or any(mark in part for mark in "\\:\0"):
            raise DemonetError(f"{name!r} is not the name of a file in this folder", file=folder)
        path /= part
    return Member.of(folder, path)


def opened(path: Path) -> BufferedReader:
    """Open a file to read it. From the folder of a :func:`member` on, no link is followed."""
    if not isinstance(path, Member) or sys.platform == "win32":  # where files cannot be opened in an open folder
        return path.open("rb")
    with _place(path) as (name, above):
        return os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above), "rb")


def created(path: Member) -> BufferedWriter:
    """Open a new file to write it, in folders that are made; no link is followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with _place(path, make=True) as (name, above):
        return os.fdopen(os.open(name, flags, 0o666, dir_fd=above), "wb")


def move(old: Member, new: Member) -> None:
    """Give a file or folder another name, in a folder that is made; no link is followed."""
    with _place(old) as (name, above), _place(new, make=True) as (target, there):
        os.replace(name, target, src_dir_fd=above, dst_dir_fd=there)


def remove(path: Member) -> None:
    """Remove a file, if there is one, or an empty folder; no link is followed."""
    empty = path.is_dir()
    with suppress(FileNotFoundError), _place(path) as (name, above):
        (os.rmdir if empty else os.unlink)(name, dir_fd=above)


@contextmanager
def _place(path: Member, *, make: bool = False) -> Iterator[tuple[str, int | None]]:
    """The name of a member in its folder, and the open folder, for functions of :mod:`os`.

    Each part of its name is opened in the folder before it, so that a link that appears meanwhile is not followed, too.

    Args:
        path: The member.
        make: Make folders that are missing, except that of the member.
    """
    if sys.platform == "win32":
        if make:
            path.parent.mkdir(parents=True, exist_ok=True)
        yield str(path), None
        return
    *folders, name = path.relative_to(path.folder).parts
    handle = -1
    try:
        handle = os.open(path.folder, os.O_RDONLY | os.O_DIRECTORY)
        for part in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            above, handle = handle, os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            os.close(above)
        yield name, handle
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise link_error(path) from None
        raise OSError(error.errno, error.strerror, str(path)) from None  # which file it was
    finally:
        if handle >= 0:
            os.close(handle)


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
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
