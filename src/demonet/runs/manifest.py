"""The manifest of a run: the SHA-256 of each of its files, so that no damaged or swapped file is used in silence.

It is written after all other files, and seals itself: JSON with a checksum of everything else in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from demonet.atomic import PART
from demonet.errors import DemonetError
from demonet.sealed import member, read_sealed, sha256_of, write_sealed

MANIFEST = "manifest.json"
_FORMAT = "demonet-manifest-1"


def write_manifest(folder: Path) -> None:
    """Write the manifest of all files in a folder; temporary files that a killed process has left are removed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    for path in files:
        if path.name.endswith(PART):
            path.unlink()
    names = [path.relative_to(folder).as_posix() for path in files if not path.name.endswith(PART)]
    checksums = {name: sha256_of(member(folder, name)) for name in names}
    write_sealed(member(folder, MANIFEST), {"format": _FORMAT, "files": checksums})


def read_manifest(folder: Path) -> dict[str, str] | None:
    """The checksum of each file of a run, by its name; None if there is no manifest.

    A name that leads out of the folder is refused, and so is a link.
    """
    path = member(folder, MANIFEST)
    if not path.exists():
        return None
    content = read_sealed(path, hint="the run cannot be checked: fit it again, in a new folder")
    files = content.get("files")
    if content.get("format") != _FORMAT or not isinstance(files, dict):
        raise DemonetError(f"not a manifest of format {_FORMAT}", file=path)
    for name in files:
        member(folder, name)
    return files


def update_manifest(folder: Path, name: str) -> None:
    """Note that a file of a run has been written again."""
    files = read_manifest(folder)
    if files is not None:
        files[name] = sha256_of(folder / name)
        write_sealed(folder / MANIFEST, {"format": _FORMAT, "files": dict(sorted(files.items()))})


def damaged(folder: Path, files: dict[str, str], names: Iterable[str]) -> list[str]:
    """Those of the named files that are missing or differ from the manifest ``files``."""
    return [name for name in names if not (folder / name).is_file() or sha256_of(folder / name) != files.get(name)]
