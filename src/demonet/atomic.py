"""Atomic writing of files, and locks that a killed process cannot leave behind."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Self

from demonet.errors import DemonetError, Hint

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)  # a file system without locks, such as some network disks
_PART = ".part"  # how the name of a temporary file ends
_TRIES = 1_000  # to create a temporary file, while other processes do
_STANDARD = {"-": 1, "/dev/stdout": 1, "/dev/fd/1": 1, "/dev/stderr": 2, "/dev/fd/2": 2}


class Member(type(Path())):  # type: ignore[misc]
    """The path of a file below a folder of ours: it is opened, written, moved and removed without a link on the way."""

    folder: Path

    @classmethod
    def of(cls, folder: Path, path: Path) -> Self:
        """This path, if no part of it below the folder is a link."""
        found = cls(path)
        found.folder = folder
        found.check()
        return found

    def __truediv__(self, name: str | os.PathLike[str]) -> Path:
        return Path(self) / name  # what is below it has not been checked

    def check(self) -> None:
        """Refuse a link on the way to it."""
        path = self.folder
        for part in self.relative_to(self.folder).parts:
            path /= part
            if path.is_symlink():
                raise link_error(path)


def link_error(path: Path) -> DemonetError:
    """What is said of a link in a folder of ours."""
    return DemonetError("this is a link, which is not followed", file=path, hint="put the file itself there")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file that takes the place of ``path`` when the block succeeds and is deleted when it fails.

    The file that a symbolic link points to is replaced, not the link; of a :class:`Member`, a link is refused when the
    block begins and when it ends, as libraries write by path. What exists and is not a regular file, such as a
    device or a pipe, cannot be replaced: the bytes are written into it when the block succeeds. ``-`` is standard
    output. A temporary file that a killed process has left is removed by the next block for the same path; it is known
    by its name, see :func:`part_of`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     (Path(folder) / "a.txt").read_text(), len(os.listdir(folder))
    ('whole', 1)
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory() as folder:
            yield (temporary := Path(folder) / "stream")
            with temporary.open("rb") as source, _sink(path) as sink:
                shutil.copyfileobj(source, sink)
        return
    if isinstance(path, Member):
        path.check()
    else:
        path = Path(os.path.realpath(path))
    temporary = Path(path).with_name(part_of(path.name))
    handle = _create(temporary)
    try:
        yield temporary
        with temporary.open("rb+") as stream:  # on disk before it gets its name, so that a power cut loses nothing
            os.fsync(stream.fileno())
        if sys.platform == "win32":  # cannot rename an open file
            os.close(handle)
            handle = -1
        if isinstance(path, Member):
            path.check()
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        if handle >= 0:
            os.close(handle)


def part_of(name: str) -> str:
    """The name of what is temporary beside a file or folder: a checksum in it tells it from files of others.

    >>> part_of("a.txt"), len(part_of("a" * 250))
    ('.a.txt.18b7cb09.part', 70)
    """
    checksum = hashlib.sha256(os.fsencode(name)).hexdigest()
    whole = f".{name}.{checksum[:8]}{_PART}"
    return whole if len(os.fsencode(whole)) <= 255 else f".{checksum}{_PART}"


def whole_of(name: str) -> str:
    """The name that :func:`part_of` was given, or the name itself where it has not made it.

    >>> whole_of(part_of("a.txt")), whole_of(".a.txt.part")
    ('a.txt', '.a.txt.part')
    """
    whole = name[1:].removesuffix(_PART).rpartition(".")[0]
    return whole if whole and part_of(whole) == name else name


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A new folder beside a path, removed at the end unless it has another name then; before, what a kill has left."""
    folder = path.with_name(part_of(path.name))
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_stream(path: str | Path) -> bool:
    """Whether a path is standard output (``-``), or exists and is neither a regular file nor a folder."""
    if str(path) in _STANDARD:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_standard_output(path: str | Path) -> bool:
    """Whether what is written to a path goes to standard output.

    >>> is_standard_output("-"), is_standard_output("a.csv")
    (True, False)
    """
    return _STANDARD.get(str(path)) == 1


def check_file(path: str | Path, argument: str | None = None, inputs: Iterable[str | Path | None] = ()) -> None:
    """Fail early if a file cannot be written: its folder does not exist, or it is a folder, or one of the inputs."""
    if is_stream(path):
        return
    if not Path(path).parent.is_dir():
        raise DemonetError("the folder does not exist", argument=argument, file=path)
    if Path(path).is_dir():
        raise DemonetError("this is a folder", argument=argument, file=path, hint="use a file name")
    check_not_input(path, inputs)


def check_not_input(path: str | Path, inputs: Iterable[str | Path | None]) -> None:
    """Refuse to replace a file that is an input, by this name or another, or that is in a folder that is an input."""
    if not os.path.exists(path):
        return
    for name in inputs:
        if name is None or not os.path.exists(name):
            continue
        inside = os.path.isdir(name) and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(name))
        if inside or os.path.samefile(path, name):
            raise DemonetError(f"it would replace the input {name}", file=path, hint="use another name")


def check_no_device(path: Path) -> None:
    """Refuse to read a device, which may have no end; a pipe has one."""
    if path.is_char_device() or path.is_block_device():
        raise OSError(errno.EINVAL, "this is a device, not a file", str(path))


def check_ours(path: Path, mark: bytes, *, overwrite: bool) -> None:
    """Refuse to replace a file without this mark of ours in it, unless it is empty or ``overwrite`` says so."""
    if not overwrite and path.is_file() and path.stat().st_size and mark not in path.read_bytes():
        hint = Hint("use another name, or {overwrite} to replace it", overwrite=True)
        raise DemonetError("exists, and is not what this command writes", file=path, hint=hint)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Lock a file for this process, without waiting; yields False if another process has it. A link is an error.

    The file is created and never removed: if it were, two processes could lock two files of one name.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        yield _lock(handle, wait=False)
    finally:
        os.close(handle)  # which also unlocks


@contextmanager
def folder_locked(folder: Path, turn: str, *, shared: bool) -> Iterator[None]:
    """Wait for a folder: many can have it at once to read its files, one to move them. Where there are no locks, go on.

    The lock is on the folder itself, so that it works where nothing may be written. Who moves files locks the folder
    ``turn`` in it first, and who reads files passes through it: so those who come later wait for one who waits.
    """
    if sys.platform == "win32":  # a folder cannot be opened there
        yield
        return
    with ExitStack() as held, ExitStack() as passed:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        held.callback(os.close, handle)
        try:
            first = os.open(turn, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
        except OSError:  # it is not there: nobody waits
            pass
        else:
            (passed if shared else held).callback(os.close, first)
            _lock(first, wait=True, shared=shared)
        _lock(handle, wait=True, shared=shared)
        passed.close()
        yield


def _create(path: Path) -> int:
    """Create and lock a temporary file. One that is not locked belongs to a process that was killed: it is removed."""
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    for _ in range(_TRIES):
        try:
            handle, ours = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666), True
        except FileExistsError:
            ours = False
            try:
                if not stat.S_ISREG(path.lstat().st_mode):
                    problem = "not a file, so it is not removed"
                    raise DemonetError(problem, file=path, hint="move it away") from None
                handle = os.open(path, flags)
            except FileNotFoundError:
                continue
        if sys.platform != "win32":  # there, a lock would also keep this process from writing
            _lock(handle, wait=True)
        try:
            same = os.path.samestat(os.fstat(handle), os.lstat(path))
        except FileNotFoundError:
            same = False
        if ours and same:
            return handle
        os.close(handle)
        if same:
            path.unlink(missing_ok=True)
    raise DemonetError(f"other processes have made it {_TRIES:,} times meanwhile", file=path, hint="try again")


def _lock(handle: int, *, wait: bool, shared: bool = False) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(handle, kind | (0 if wait else fcntl.LOCK_NB))
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


@contextmanager
def _sink(path: str | Path) -> Iterator[IO[bytes]]:
    standard = _STANDARD.get(str(path))
    if standard is None:
        with open(path, "wb", buffering=0) as sink:
            yield sink
        return
    stream = sys.stdout if standard == 1 else sys.stderr
    if stream is None:  # the user has closed it
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(path))
    stream.flush()
    yield stream.buffer
    stream.buffer.flush()
