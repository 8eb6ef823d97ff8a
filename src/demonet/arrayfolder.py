"""Array folders: NumPy files that are read through memory maps, and a sealed manifest with their checksums.

A folder is written under another name and gets its own when it is complete, so that there is all of it or nothing.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from demonet.atomic import scratch_folder
from demonet.errors import DemonetError
from demonet.schema import values_of
from demonet.sealed import created, member, opened, read_sealed, sha256_of, write_sealed

MANIFEST = "manifest.json"
_CHUNK = 1 << 24
_HINT = "write the folder again"


class ArrayWriter:
    """Writes the arrays of a folder, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, dict[str, Any]] = {}

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Write an array to ``name.npy``; a name may have folders in it."""
        path = member(self.folder, f"{name}.npy")
        plain, head = np.ascontiguousarray(array), io.BytesIO()
        npy.write_array_header_2_0(head, npy.header_data_from_array_1_0(plain))
        raw = plain.reshape(-1).view(np.uint8)
        total = hashlib.sha256(head.getvalue())
        try:
            with created(path) as stream:
                stream.write(head.getvalue())
                for start in range(0, raw.size, _CHUNK):
                    stream.write(chunk := raw[start : start + _CHUNK].data)
                    total.update(chunk)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None  # which file it was
        self.files[f"{name}.npy"] = {"sha256": total.hexdigest(), "bytes": path.stat().st_size}


@contextmanager
def write_folder(folder: Path, format: str, facts: Mapping[str, Any]) -> Iterator[ArrayWriter]:
    """Write a new folder. It appears when the block succeeds; if it fails, nothing is left.

    Args:
        folder: It must not exist, or be empty.
        format: Name and version of the contents.
        facts: Anything that JSON can hold; it may be filled in the block.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DemonetError("exists already", file=folder, hint="use a new folder")
    if not folder.parent.is_dir():
        raise DemonetError("the folder above it does not exist", file=folder)
    with scratch_folder(folder) as temporary:
        writer = ArrayWriter(temporary)
        yield writer
        write_sealed(temporary / MANIFEST, {"format": format, "facts": dict(facts), "files": writer.files})
        temporary.replace(folder)


class ArrayFolder:
    """The arrays and facts of a folder.

    Args:
        folder: The folder.
        format: What it must be.
    """

    def __init__(self, folder: Path, format: str) -> None:
        content = read_sealed(member(folder, MANIFEST), _HINT)
        if content.get("format") != format:
            raise DemonetError(f"not a {format} folder (its format is {content.get('format')!r})", file=folder)
        with values_of(folder / MANIFEST):
            self.folder, self.facts, self._files = folder, {**content["facts"]}, {**content["files"]}
            if any(not isinstance(known["bytes"], int) for known in self._files.values()):
                raise TypeError("bytes")
        self.checksum = sha256_of(member(folder, MANIFEST))

    def names(self) -> list[str]:
        """The names of the arrays."""
        return [name.removesuffix(".npy") for name in self._files]

    def check(self, names: Iterable[str]) -> None:
        """Refuse files that are missing or differ from the manifest."""
        for name in names:
            path, known = member(self.folder, f"{name}.npy"), self._files.get(f"{name}.npy")
            if known is None or not path.is_file():
                raise DemonetError("missing", file=path, hint=_HINT)
            if path.stat().st_size != known["bytes"] or sha256_of(path) != known.get("sha256"):
                raise DemonetError("does not match its checksum: damaged, or changed", file=path, hint=_HINT)

    def array(self, name: str) -> NDArray[Any]:
        """An array as a memory map; what is written to it stays in memory and never reaches the file."""
        path = member(self.folder, f"{name}.npy")
        with values_of(path, "an array"):
            try:
                with opened(path) as stream:
                    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
                    shape, fortran, dtype = read[npy.read_magic(stream)](stream)
                    if dtype.hasobject:
                        raise ValueError("Python objects")
                    order: Literal["F", "C"] = "F" if fortran else "C"
                    if not math.prod(shape):
                        return np.empty(shape, dtype, order)  # there is nothing to map
                    return np.asarray(np.memmap(stream, dtype, "c", stream.tell(), shape, order))
            except (OSError, TokenError, SyntaxError) as error:  # NumPy parses a header as Python code
                raise ValueError(str(error)) from None
