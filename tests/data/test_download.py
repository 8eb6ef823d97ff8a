"""Downloads, against a real HTTP server on loopback that behaves well, badly, slowly, or not at all."""

import gzip
import hashlib
import io
import multiprocessing
import threading
import time
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from demonet.atomic import part_of
from demonet.data import catalog, download
from demonet.data.catalog import File

TEXT = b"node label\n" + b"".join(b"%d %d\n" % (i, i % 4) for i in range(20_000))


MOST = 1 << 20


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


class Server:
    """Pages by path: bytes, or a function that answers the request itself. ``asked`` lists the paths asked for."""

    def __init__(self):
        self.pages, self.asked = {}, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                page = outer.pages.get(self.path)
                if page is None:
                    self.send_error(404)
                elif callable(page):
                    page(self)
                else:
                    answer(self, page)

            def log_message(self, *_):
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        self.thread = threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()
        self.thread.join()


def answer(handler, body, claimed=None, **headers):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body) if claimed is None else claimed))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("DEMONET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


def make_set(server, *files):
    """A set in a folder SET whose files are (name, content, path at the server, pack)."""
    parts = tuple(File(name, sha256(content), server.address + path, pack) for name, content, path, pack in files)
    return replace(catalog.find("brazil"), name="set", folder="SET", files=parts)


def left_behind(cache):
    return sorted(
        str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"
    )


def test_success_from_plain_gzip_and_zip_and_never_twice(server, cache):
    server.pages = {
        "/plain.txt": TEXT,
        "/packed.txt.gz": gzip.compress(TEXT),
        "/set.zip": zipped(**{"SET/one.txt": TEXT, "SET/two.txt": b"2", "SET/README.txt": b"not asked for"}),
    }
    entry = make_set(
        server,
        ("plain.txt", TEXT, "/plain.txt", "plain"),
        ("packed.txt", TEXT, "/packed.txt.gz", "gzip"),
        ("one.txt", TEXT, "/set.zip", "zip"),
        ("two.txt", b"2", "/set.zip", "zip"),
    )
    assert download.locate(entry) is None
    folder = download.fetch(entry)
    assert folder == download.locate(entry) == cache / "demonet/data/SET"
    assert sorted(path.name for path in folder.iterdir()) == ["one.txt", "packed.txt", "plain.txt", "two.txt"]
    assert (folder / "packed.txt").read_bytes() == TEXT
    assert sorted(server.asked) == ["/packed.txt.gz", "/plain.txt", "/set.zip"]  # an archive once, not once a file
    download.fetch(entry)
    assert len(server.asked) == 3
    assert len(left_behind(cache)) == 4


def test_gzip_that_the_server_calls_an_encoding(server, cache):
    server.pages["/a.gz"] = lambda handler: answer(handler, gzip.compress(TEXT), Content_Encoding="gzip")
    entry = make_set(server, ("a.txt", TEXT, "/a.gz", "gzip"))
    assert (download.fetch(entry) / "a.txt").read_bytes() == TEXT


def test_a_wrong_checksum_names_both_sums_and_leaves_nothing(server, cache, refuses):
    server.pages = {"/good.txt": TEXT, "/bad.txt": b"something else"}
    entry = make_set(server, ("good.txt", TEXT, "/good.txt", "plain"), ("bad.txt", TEXT, "/bad.txt", "plain"))
    refuses(lambda: download.fetch(entry), "bad.txt", sha256(b"something else"), sha256(TEXT), "/bad.txt")
    assert left_behind(cache) == []
    assert server.asked.count("/bad.txt") == 1  # the server will not say anything else


def test_a_damaged_file_in_the_cache_is_fetched_again(server, cache):
    server.pages["/a.txt"] = TEXT
    entry = make_set(server, ("a.txt", TEXT, "/a.txt", "plain"))
    path = download.fetch(entry) / "a.txt"
    path.write_bytes(TEXT[:100])
    download.fetch(entry)
    assert path.read_bytes() == TEXT


def test_what_a_killed_download_left_is_removed(server, cache):
    server.pages["/a.txt"] = TEXT
    entry = make_set(server, ("a.txt", TEXT, "/a.txt", "plain"))
    for _ in range(2):  # the second time there is nothing to download
        scratch = cache / "demonet/data" / part_of("SET")
        scratch.mkdir(parents=True)
        (scratch / "download0").write_bytes(TEXT[:10])
        assert (download.fetch(entry) / "a.txt").read_bytes() == TEXT
        assert left_behind(cache) == ["demonet/data/SET/a.txt"]
        assert not scratch.exists()
    mine = cache / "demonet/data/.SET.part"
    mine.mkdir()
    download.fetch(entry)
    assert mine.is_dir()


def test_a_cut_connection_is_tried_again(server, cache):
    cuts = iter([True, False])

    def page(handler):
        if next(cuts):
            answer(handler, TEXT[:1000], claimed=len(TEXT))
        else:
            answer(handler, TEXT)

    server.pages["/a.txt"] = page
    entry = make_set(server, ("a.txt", TEXT, "/a.txt", "plain"))
    assert (download.fetch(entry, wait=0.01) / "a.txt").read_bytes() == TEXT
    assert len(server.asked) == 2


def test_a_missing_page_is_not_asked_for_again(server, cache, refuses):
    entry = make_set(server, ("a.txt", TEXT, "/nowhere", "plain"))
    refuses(lambda: download.fetch(entry), "404", "/nowhere", "DEMONET_DATA")
    assert server.asked == ["/nowhere"]
    assert left_behind(cache) == []


def test_a_server_in_trouble_is_asked_again(server, cache, refuses):
    server.pages["/a.txt"] = lambda handler: handler.send_error(503)
    entry = make_set(server, ("a.txt", TEXT, "/a.txt", "plain"))
    refuses(lambda: download.fetch(entry, wait=0.01), "503")
    assert len(server.asked) == download.TRIES


def test_a_slow_start_is_waited_for_and_silence_is_not(server, cache, monkeypatch, refuses):
    quiet = threading.Event()

    def slow(handler):
        time.sleep(0.1)
        answer(handler, TEXT)

    server.pages = {"/slow.txt": slow, "/silent.txt": lambda handler: quiet.wait(10)}
    entry = make_set(server, ("a.txt", TEXT, "/slow.txt", "plain"))
    assert (download.fetch(entry) / "a.txt").read_bytes() == TEXT
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    silent = make_set(server, ("b.txt", TEXT, "/silent.txt", "plain"))
    try:
        refuses(lambda: download.fetch(silent, wait=0.01), "/silent.txt", "timeout=0.2")
    finally:
        quiet.set()


def test_an_archive_cannot_write_outside_its_folder(server, cache):
    evil = dict.fromkeys(("../../evil.txt", "/tmp/evil.txt", "SET/../../evil.txt"), b"evil")
    server.pages["/set.zip"] = zipped(**evil, **{"SET/a.txt": TEXT})
    entry = make_set(server, ("a.txt", TEXT, "/set.zip", "zip"))
    download.fetch(entry)
    assert left_behind(cache) == ["demonet/data/SET/a.txt"]
    assert not list(cache.parent.rglob("evil.txt"))


@pytest.mark.parametrize(
    ("pack", "body", "words"),
    [
        ("zip", zipped(other=b"x"), ["'SET/a.txt'"]),
        ("zip", b"PK not a zip", ["unpack"]),
        ("gzip", gzip.compress(TEXT, mtime=0)[:-20], ["unpack"]),
        ("gzip", gzip.compress(b"0" * (MOST + 10), 1, mtime=0), [f"{MOST} bytes"]),
    ],
)
def test_damaged_archives_are_explained(server, cache, refuses, monkeypatch, pack, body, words):
    monkeypatch.setattr(download, "MAX_BYTES", MOST)
    server.pages["/a"] = body
    entry = make_set(server, ("a.txt", TEXT, "/a", pack))
    refuses(lambda: download.fetch(entry), "a.txt", *words)
    assert left_behind(cache) == []


def fetch_in_a_process(entry, results):
    results.put((download.fetch(entry) / "a.txt").read_bytes() == TEXT)


def test_two_processes_at_once_download_once(server, cache):
    def page(handler):
        time.sleep(0.2)
        answer(handler, TEXT)

    server.pages["/a.txt"] = page
    entry = make_set(server, ("a.txt", TEXT, "/a.txt", "plain"))
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    processes = [fork.Process(target=fetch_in_a_process, args=(entry, results)) for _ in range(2)]
    for process in processes:
        process.start()
    assert [results.get(timeout=30) for _ in processes] == [True, True]
    for process in processes:
        process.join()
    assert server.asked == ["/a.txt"]
    assert left_behind(cache) == ["demonet/data/SET/a.txt"]


def test_the_users_folder_comes_first_and_is_checked(server, cache, tmp_path, monkeypatch, refuses):
    folder = tmp_path / "mine" / "SET"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_bytes(TEXT)
    monkeypatch.setenv("DEMONET_DATA", str(tmp_path / "mine"))
    entry = make_set(server, ("a.txt", TEXT, "/a.txt", "plain"))
    assert download.fetch(entry) == folder
    (folder / "a.txt").write_bytes(TEXT + b"1 2\n")
    refuses(lambda: download.fetch(entry), "a.txt", sha256(TEXT), "sha256")
    assert server.asked == []


def test_a_cache_that_cannot_be_made_is_explained(server, tmp_path, monkeypatch, refuses):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.delenv("DEMONET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    refuses(
        lambda: download.fetch(make_set(server, ("a.txt", TEXT, "/a.txt", "plain"))),
        "demonet/data/SET: ",
        "DEMONET_DATA",
    )
