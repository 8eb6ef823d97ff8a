"""Files that are written whole or not at all."""

import os
import stat
import threading

import pytest

from demonet import DemonetError
from demonet.atomic import check_file, locked, part_of, replacing, scratch_folder


def test_the_file_takes_its_place_when_the_block_ends(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path  # on the same disk, or it could not be moved in one step
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_in_the_block_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def failing():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        failing()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_error_in_the_move_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"), replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_it_is_on_disk_before_it_has_the_name(tmp_path, monkeypatch):
    order = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("fsync"), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda *paths: (order.append("replace"), replace(*paths)))
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert order == ["fsync", "replace"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_it_may_be_read_by_whom_the_user_lets_read(tmp_path, mask):
    before = os.umask(mask)
    try:
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("new")
        assert os.umask(mask) == mask  # left as it was
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~mask


def test_a_symbolic_link_stays_and_the_file_that_it_points_to_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("old", "none"):
        target, link = tmp_path / "there" / name, tmp_path / f"to-{name}"
        if name == "old":
            target.write_text("old")
        link.symlink_to(target)
        with replacing(link) as temporary:
            temporary.write_text("new")
        assert link.is_symlink()
        assert target.read_text() == "new"


def test_what_is_not_a_regular_file_is_written_into(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as temporary:
        temporary.write_text("new")
    assert os.read(reader, 100) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_gets_all_bytes_or_none(tmp_path, monkeypatch, capfdbinary, name):
    monkeypatch.chdir(tmp_path)
    with replacing(name) as temporary:
        temporary.write_bytes(b"\xff new\n")
    assert capfdbinary.readouterr().out == b"\xff new\n"
    with pytest.raises(ZeroDivisionError), replacing(name) as temporary:
        temporary.write_bytes(b"%d" % (1 // 0))
    assert capfdbinary.readouterr().out == b""
    assert os.listdir(tmp_path) == []


def test_what_a_killed_process_left_is_removed_and_what_a_live_one_writes_is_not(tmp_path):
    path = tmp_path / "a.txt"
    (tmp_path / part_of("a.txt")).write_text("half")  # of a process that was killed
    with replacing(path) as temporary:
        assert temporary.read_text() == ""
        temporary.write_text("first")
        other = threading.Thread(target=lambda: write(path, "second"))
        other.start()
        other.join(0.1)
        assert other.is_alive()  # waits for its turn
    other.join()
    assert path.read_text() == "second"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_file_of_the_user_whose_name_ends_like_ours_stays(tmp_path):
    for name in (".a.txt.part", "a.txt.part", ".a.txt.12345678.part"):
        (tmp_path / name).write_text("mine")
    write(tmp_path / "a.txt", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        ".a.txt.part": "mine",
        "a.txt.part": "mine",
        ".a.txt.12345678.part": "mine",
        "a.txt": "new",
    }


@pytest.mark.parametrize("target", ["nowhere", "mine", "folder"])
@pytest.mark.parametrize("name", [".a.txt.part", part_of("a.txt")])
def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path, name, target):
    """It was, and one that leads nowhere had no end."""
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / name).symlink_to(target)
    if name == ".a.txt.part":  # not of ours
        write(tmp_path / "a.txt", "new")
    else:
        with pytest.raises(DemonetError, match=name):
            write(tmp_path / "a.txt", "new")
    assert (tmp_path / name).is_symlink()
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_or_pipe_in_the_place_of_a_temporary_file_is_an_error(tmp_path):
    for make in (os.mkdir, os.mkfifo):
        make(tmp_path / part_of(make.__name__))
        with pytest.raises(DemonetError, match=part_of(make.__name__)):
            write(tmp_path / make.__name__, "new")


def test_a_temporary_folder_goes_and_one_of_the_user_stays(tmp_path):
    mine, left = tmp_path / ".a.part" / "mine", tmp_path / part_of("a")
    mine.parent.mkdir()
    mine.write_text("mine")
    left.mkdir()
    (left / "half").write_text("half")  # of a process that was killed
    with scratch_folder(tmp_path / "a") as folder:
        assert list(folder.iterdir()) == []
        (folder / "b").write_text("new")
    with scratch_folder(tmp_path / "a") as folder:
        folder.rename(tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == [".a.part", "a"]
    left.symlink_to(mine.parent)
    with pytest.raises(OSError, match="link"), scratch_folder(tmp_path / "a"):
        pass
    assert mine.read_text() == "mine"


def write(path, text):
    with replacing(path) as temporary:
        temporary.write_text(text)


def test_a_lock_is_held_by_one_and_its_file_stays(tmp_path):
    path = tmp_path / ".lock"
    with locked(path) as first, locked(path) as second:
        assert (first, second) == (True, False)
    assert path.exists()
    with locked(path) as again:
        assert again


def test_where_a_file_cannot_be_written(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "a.txt"):
        with pytest.raises(DemonetError, match=f"^{path}: "):
            check_file(path)
    check_file("-")
    check_file("/dev/null")
