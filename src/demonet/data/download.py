"""Finding and downloading the files of a data set: in ``$DEMONET_DATA``, in the user's cache, or at a URL.

Files are checked against the catalogue whenever they are used. A download goes to a temporary folder in the cache,
where it is unpacked under the names of the catalogue (names in an archive are ignored) and checked. Then it is moved
to its place. All this is under a lock, so that only one process does so at a time, and what a killed one has left is
removed by the next.
"""

from __future__ import annotations

import gzip
import os
import sys
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demonet.atomic import scratch_folder
from demonet.data.catalog import DataSet, File
from demonet.errors import DemonetError
from demonet.sealed import sha256_of

TRIES = 3
TIMEOUT = 30.0  # seconds without data
MAX_BYTES = 1 << 28  # far more than any file of the catalogue
_CHUNK = 1 << 20


def locate(entry: DataSet) -> Path | None:
    """The local folder with all files of a data set, or None; contents are not checked."""
    for folder in filter(None, (_user_folder(entry), _cache_folder(entry))):
        if all((folder / file.name).is_file() for file in entry.files):
            return folder
    return None


def fetch(entry: DataSet, *, wait: float = 1.0) -> Path:
    """The folder with the files of a data set, checked; they are downloaded if needed.

    Args:
        entry: The data set.
        wait: Seconds before the second attempt to download; twice as many before the third.
    """
    import filelock

    given, cache = _user_folder(entry), _cache_folder(entry)
    if given is not None and locate(entry) == given:
        for file in entry.files:
            _check_sum(given / file.name, file.sha256, given / file.name)
        return given
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemonetError(
            f"no cache folder: {error}", file=cache, hint="set DEMONET_DATA, or XDG_CACHE_HOME"
        ) from None
    with filelock.FileLock(cache.parent / f"{entry.folder}.lock"), scratch_folder(cache) as scratch:
        places = {file: cache / file.name for file in entry.files}
        missing = [file for file, at in places.items() if not at.is_file() or sha256_of(at) != file.sha256]
        if missing:
            _download(entry, missing, cache, scratch, wait)
    return cache


def _check_sum(path: Path, expected: str, named: str | Path) -> None:
    found = sha256_of(path)
    if found != expected:
        raise DemonetError(
            f"sha256 is {found}, not {expected}", file=named, hint="the file is damaged or has another version"
        )


def _user_folder(entry: DataSet) -> Path | None:
    root = os.environ.get("DEMONET_DATA")
    return Path(root) / entry.folder if root else None


def _cache_folder(entry: DataSet) -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("demonet")) / "data" / entry.folder


def _download(entry: DataSet, files: list[File], folder: Path, scratch: Path, wait: float) -> None:
    archives: dict[str, Path] = {}
    ready: list[tuple[Path, Path]] = []
    for number, file in enumerate(files):
        if file.url not in archives:
            archives[file.url] = _retrieve(entry, file.url, scratch / f"download{number}", wait)
        unpacked = scratch / f"file{number}"
        _unpack(entry, file, archives[file.url], unpacked)
        _check_sum(unpacked, file.sha256, f"{file.name} from {file.url}")
        ready.append((unpacked, folder / file.name))
    for unpacked, place in ready:
        os.replace(unpacked, place)


def _retrieve(entry: DataSet, url: str, path: Path, wait: float) -> Path:
    """Download a URL to a file; try again if the connection fails, but not if the server refuses."""
    import pooch
    import requests

    get = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=TIMEOUT, chunk_size=_CHUNK)
    reason = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        try:
            get(url, str(path), None)
            return path
        except requests.HTTPError as error:
            reason = str(error)
            if error.response is not None and error.response.status_code < 500:
                break
        except (requests.RequestException, OSError) as error:
            reason = str(error)
    hint = f"put the files of {entry.name} in a folder {entry.folder} and set DEMONET_DATA to its parent folder"
    raise DemonetError(f"download failed: {reason}", file=url, hint=hint)


def _unpack(entry: DataSet, file: File, archive: Path, path: Path) -> None:
    try:
        with _opened(entry, file, archive) as source, path.open("wb") as sink:
            while chunk := source.read(_CHUNK):
                sink.write(chunk)
                if sink.tell() > MAX_BYTES:
                    raise DemonetError(f"{file.name} unpacks to more than {MAX_BYTES} bytes", file=file.url)
    except (OSError, EOFError, KeyError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise DemonetError(f"{file.name} cannot be unpacked: {error}", file=file.url) from None


@contextmanager
def _opened(entry: DataSet, file: File, archive: Path) -> Iterator[Any]:
    if file.pack == "zip":
        with zipfile.ZipFile(archive) as members, members.open(f"{entry.folder}/{file.name}") as stream:
            yield stream
        return
    with archive.open("rb") as stream:
        # A server may declare gzip as an encoding, which the client removes; the checksum is of the decompressed file.
        packed = file.pack == "gzip" and stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        yield gzip.GzipFile(fileobj=stream) if packed else stream
