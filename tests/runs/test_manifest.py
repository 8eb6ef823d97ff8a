"""Every file of a run is bound to the others: a damaged or swapped one is refused before it is used."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save
from tests.runs.files import Killed, fit
from typer.testing import CliRunner

from demonet import DemonetError, DemonetWarning
from demonet.atomic import folder_locked, replacing
from demonet.cli import app
from demonet.runs import Reading, RunProgress, Settings, folder, load_run, predict_run
from demonet.runs.folder import RunFolder, read_manifest, write_manifest
from demonet.runs.inputs import read_inputs
from demonet.runs.storing import store_graph
from demonet.sealed import created, member, move, opened, read_sealed, remove, write_sealed


@pytest.fixture
def run(problem):
    fit()
    return problem / "run"


def flipped(raw: bytes, place: int) -> bytes:
    return raw[:place] + bytes([raw[place] ^ 1 << place % 8]) + raw[place + 1 :]


def test_a_model_of_another_run_is_refused_and_what_still_works_is_named(run):
    """Two classes in a run of three: before, wrong class names and exit code 0."""
    labels = (run.parent / "labels.csv").read_text()
    (run.parent / "two.csv").write_text(labels.replace("foot", "ring"))
    from demonet.runs import fit_run

    fit_run("edges.csv", "two.csv", out="other", settings=Settings(epochs=12))
    shutil.copy("other/model.safetensors", run)
    with pytest.raises(DemonetError, match=r"^run/model.safetensors: .*run.safetensors.*still works: report\)$"):
        predict_run("run", "edges.csv")
    load_run("run")


def test_report_writes_its_page_into_the_manifest_and_names_a_file_that_no_command_reads(run):
    before = read_manifest(run)
    assert CliRunner().invoke(app, ["report", "run"]).exit_code == 0
    after = read_manifest(run)
    assert {name for name in after if before[name] != after[name]} == {"report.html"}
    with (run / "predictions.csv").open("a") as file:
        file.write("x\n")
    with pytest.warns(DemonetWarning, match=r"predictions.csv"):
        assert CliRunner().invoke(app, ["report", "run"]).exit_code == 0
    (run / "manifest.json").unlink()
    with pytest.raises(DemonetError, match=r"manifest.json"):
        load_run("run")


@pytest.mark.parametrize("command", [["report", "none"], ["predict", "none", "edges.csv", "--out", "p.csv"]])
def test_a_folder_that_is_not_there_is_named_and_not_made(problem, command):
    error = CliRunner().invoke(app, command).exception
    assert isinstance(error, DemonetError)
    assert error.file == Path("none")
    assert not Path("none").exists()


def test_a_forged_manifest_does_not_make_wrong_json_a_run(run):
    for name in ("config.json", "metrics.json"):
        before = (run / name).read_text()
        for text in ("{}", "[]", "null", "1e999", "[" * 100_000, "\xff"):
            (run / name).write_bytes(text.encode("latin-1"))
            write_manifest(run)
            with pytest.raises(DemonetError, match=f"^run/{name}: "):
                load_run("run")
        (run / name).write_text(before)


def test_sealed_json_comes_back_and_every_changed_byte_is_found(tmp_path):
    path, value = tmp_path / "a.json", {"a": [1, 0.1, None], "ü": "\udcff"}
    write_sealed(path, value)
    assert read_sealed(path, "") == value
    raw = path.read_bytes()
    assert json.loads(raw)["a"] == value["a"]
    for place in range(len(raw)):
        path.write_bytes(flipped(raw, place))
        with pytest.raises(DemonetError):
            read_sealed(path, "")


class Meanwhile(RunProgress):
    """What happens after a fit has read its files, before it opens its folder."""

    def __init__(self, happens):
        self.happens = happens

    def message(self, text):
        self.happens()


def killed_before(step, **options):
    """A run that is killed before a step of :class:`RunFolder`; before files are moved, all of them are written."""

    def die(folder, *_):
        if step == "publish":
            write_manifest(folder.work / "whole")
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, step, die)
        with pytest.raises(Killed):
            fit(**options)


@pytest.mark.parametrize("again", [{"resume": True}, {"overwrite": True}])
@pytest.mark.parametrize("where", [".", "unfinished/whole"])
def test_a_manifest_that_names_other_files_removes_nothing(problem, again, where):
    """No absolute name is tried here: a version with the error would remove all files of the machine."""
    (problem / "kept").mkdir()
    (problem / "kept" / "mine.txt").write_text("mine")
    fit()
    killed_before("publish", overwrite=True)
    (problem / "run" / "mine.txt").write_text("mine")
    shutil.move("run", "prepared")
    for name in ("../kept/mine.txt", "tensorboard/../../kept/mine.txt", "mine.txt", "."):
        shutil.copytree("prepared", "run")
        manifest = problem / "run" / where / "manifest.json"
        listed = read_sealed(manifest, "")
        write_sealed(manifest, {**listed, "files": {**listed["files"], name: "0" * 64}})
        if where == "." or "resume" in again:
            with pytest.raises(DemonetError, match=f"^run/{where}".replace("/.", "")):
                fit(**again)
        else:
            fit(**again)  # it starts again, without those files
        assert (problem / "kept" / "mine.txt").read_text() == (problem / "run" / "mine.txt").read_text() == "mine"
        shutil.rmtree("run")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "/", "/etc/hostname", "a//b", "a/", "a/../b", "C:\\a", "a\\..\\b", "a\0"]
)
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    with pytest.raises(DemonetError):
        member(tmp_path, name)


@given(name=st.text())
def test_every_name_of_a_manifest_is_below_its_folder(tmp_path_factory, name):
    folder = tmp_path_factory.getbasetemp() / "a"
    try:
        path = member(folder, name)
    except DemonetError:
        return
    assert Path(os.path.normpath(path)) == path
    assert folder in path.parents


TENSORS = ("model.safetensors", "checkpoint-000.safetensors", "checkpoint-000.safetensors/forest.fit.safetensors")


@pytest.mark.parametrize("again", [{}, {"resume": True}, {"overwrite": True}])
@pytest.mark.parametrize("name", ["notes.txt", "whole/notes.txt", *TENSORS, "split-000.json"])
@pytest.mark.parametrize("asked", ["", "mine", "ours"])
def test_a_folder_of_the_user_that_has_our_name_is_not_removed(problem, again, name, asked):
    """Also with a file of the name of a request; beside a real one, what a run does not write is the user's."""
    theirs = save({"weight": torch.zeros(2)}, metadata={"format": "pt"})
    for of in ("unfinished", ".unfinished.part"):
        mine = problem / "run" / of / name
        mine.parent.mkdir(parents=True)
        mine.write_bytes(theirs if name in TENSORS else b"mine")
        if asked == "mine":
            (problem / "run" / of / "asked.json").write_text('{"question": "mine"}')
        elif asked == "ours":
            write_sealed(problem / "run" / of / "asked.json", {})
        with pytest.raises(DemonetError, match=r"^run"):
            fit(**again)
        assert mine.read_bytes() in (theirs, b"mine")
        shutil.rmtree("run")


def test_files_that_no_manifest_lists_are_neither_replaced_nor_removed(run):
    """Those of another program that have our names, and others beside them."""
    fit(overwrite=True, page=None)
    assert not (run / "report.html").exists()
    (run / "tensorboard").mkdir()
    for name in ("tensorboard/mine", "notes.txt", ".notes.part"):
        (run / name).write_text("mine")
    fit(overwrite=True)
    assert (run / "report.html").exists()
    fit(overwrite=True, page=None)
    (run / "report.html").write_text("mine")
    with pytest.raises(DemonetError, match=r"^run/report.html: "):
        fit(overwrite=True)
    assert all(
        (run / name).read_text() == "mine" for name in ("report.html", "tensorboard/mine", "notes.txt", ".notes.part")
    )
    (run / "report.html").unlink()
    (run / "manifest.json").unlink()
    with pytest.raises(DemonetError, match=r"^run/"):
        fit(overwrite=True)


@pytest.mark.parametrize("name", ["predictions.csv", "report.html"])
def test_a_file_that_was_changed_is_not_replaced(run, name):
    (run / name).write_text("mine")
    for again in ({"overwrite": True}, {"overwrite": True, "page": None}):
        with pytest.raises(DemonetError, match=f"^run/{name}: .*changed"):
            fit(**again)
    assert (run / name).read_text() == "mine"
    (run / name).unlink()
    fit(overwrite=True)
    assert load_run("run")


@pytest.mark.parametrize("name", ["report.html", ".lock", "manifest.json", "unfinished", "model.safetensors"])
def test_links_in_a_run_folder_are_not_followed(run, name):
    target = run.parent / "target"
    if (run / name).exists():
        (run / name).rename(target)
    (run / name).symlink_to(target)
    before = target.read_bytes() if target.exists() else None
    if name not in ("unfinished", "model.safetensors"):
        assert isinstance(CliRunner().invoke(app, ["report", "run"]).exception, DemonetError)
    with pytest.raises(DemonetError, match=f"^run/{name}: "):
        fit(overwrite=True)
    assert (target.read_bytes() if target.exists() else None) == before


def test_links_in_an_unfinished_run_are_not_followed(problem):
    killed_before("save")
    (problem / "target").write_text("mine")
    (problem / "run" / "unfinished" / "whole").mkdir()
    (problem / "run" / "unfinished" / "whole" / "model.safetensors").symlink_to(problem / "target")
    for again in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(DemonetError, match=r"^run/unfinished/whole/model.safetensors: "):
            fit(**again)
    assert (problem / "target").read_text() == "mine"


@pytest.mark.parametrize("again", [{}, {"resume": True}])
def test_a_run_that_was_finished_while_another_read_its_files_is_not_replaced(problem, again):
    told = []

    def happens():
        if not told:
            told.append(fit())

    with pytest.raises(DemonetError, match=r"^run: .*overwrite=True"):
        fit(settings=Settings(epochs=12, seed=1), progress=Meanwhile(happens), **again)
    assert load_run("run").config["seed"] == 0


def test_links_and_names_in_a_store_are_not_followed(problem):
    store_graph("edges.csv", "labels.csv", out="store")
    name = next(path.name for path in (problem / "store").iterdir() if path.suffix == ".npy")
    (problem / "store" / name).rename(problem / name)
    (problem / "store" / name).symlink_to(problem / name)
    with pytest.raises(DemonetError, match=f"^store/{name}: "):
        read_inputs("store", None, None, Reading())


@pytest.mark.parametrize("name", ["store", "s" * 250, "ü" * 120])
def test_a_store_of_any_name_leaves_what_the_user_has_beside_it(problem, name):
    mine = problem / f".{name[:120]}.part" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    store_graph("edges.csv", "labels.csv", out=name)
    assert read_inputs(name, None, None, Reading()).sizes["nodes"]
    assert mine.read_text() == "mine"
    assert [entry for entry in problem.iterdir() if entry.name.endswith(".part")] == [mine.parent]


@pytest.mark.parametrize("act", ["move from", "move to", "remove", "create", "write"])
@pytest.mark.parametrize("place", ["folder", "file"])
def test_a_link_that_appears_after_the_check_moves_and_removes_nothing_elsewhere(tmp_path, act, place):
    for name, text in (("kept", "mine"), ("run/logs", "ours")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a").write_text(text)
    (tmp_path / "run" / "b").write_text("ours")
    path, other = member(tmp_path / "run", "logs/a"), member(tmp_path / "run", "b")
    if place == "folder":
        path.parent.rename(tmp_path / "old")
        path.parent.symlink_to(tmp_path / "kept")
    else:
        path.unlink()
        path.symlink_to(tmp_path / "kept" / "a")
    acts = {
        "move from": lambda: move(path, other),
        "move to": lambda: move(other, path),
        "remove": lambda: remove(path),
        "create": lambda: created(path).close(),
        "write": lambda: write_sealed(path, {}),
    }
    if place == "folder" or act == "write":
        with pytest.raises(DemonetError, match="link"):
            acts[act]()
    elif act == "create":
        with pytest.raises(FileExistsError):
            created(path)
    else:
        acts[act]()  # the link itself
    assert (tmp_path / "kept" / "a").read_text() == "mine"
    assert os.listdir(tmp_path / "kept") == ["a"]


def test_a_link_that_appears_after_the_check_is_not_followed(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a").write_text("mine")
    (tmp_path / "run" / "logs").mkdir(parents=True)
    (tmp_path / "run" / "logs" / "a").write_text("ours")
    path = member(tmp_path / "run", "logs/a")
    with opened(path) as stream:
        assert stream.read() == b"ours"
    path.unlink()
    path.symlink_to(tmp_path / "kept" / "a")
    with pytest.raises(DemonetError, match="link"):
        opened(path)
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(tmp_path / "kept")
    with pytest.raises(DemonetError, match="link"):
        opened(path)


@pytest.mark.parametrize("place", ["folder", "file"])
def test_a_link_that_appears_while_a_file_is_written_is_not_followed(tmp_path, place):
    """What libraries write goes to a file beside; where that gets the name, the folder is looked at again."""
    for name in ("kept", "run/logs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "kept" / "a").write_text("mine")
    path = member(tmp_path / "run", "logs/a")

    def swapped():
        with replacing(path) as temporary:
            temporary.write_text("ours")
            if place == "folder":
                path.parent.rename(tmp_path / "old")
                path.parent.symlink_to(tmp_path / "kept")
                temporary.write_text("ours")
            else:
                path.symlink_to(tmp_path / "kept" / "a")

    with pytest.raises(DemonetError, match="link"):
        swapped()
    assert files_in(tmp_path / "kept") == {tmp_path / "kept" / "a": b"mine"}


def files_in(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_cannot_be_replaced_as_a_whole_stays_as_it_was(run, monkeypatch):
    """Whichever of the moves fails, all before it are undone."""
    killed_before("publish", settings=Settings(epochs=12, seed=1), overwrite=True)
    before, move, left = files_in(run), folder.move, [0]

    def fails(old, new):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(28, "No space left on device", str(new))
        return move(old, new)

    monkeypatch.setattr(folder, "move", fails)
    moved = 2 * len(read_manifest(run)) + 2  # every file of both runs, and both manifests
    for number in range(1, moved + 1):
        left[0] = number
        with pytest.raises(OSError, match="No space"):
            RunFolder(run).publish()
        assert files_in(run) == before
    RunFolder(run).publish()
    assert load_run("run").config["seed"] == 1
    assert not (run / "unfinished").exists()


def test_until_a_file_is_moved_the_earlier_run_is_read_and_a_waiting_writer_is_the_next(run):
    """A reader has the folder; a writer waits for it; whoever comes then waits for the writer, and is not refused."""
    killed_before("publish", settings=Settings(epochs=12, seed=1), overwrite=True)
    (run / "unfinished" / "replaced").mkdir()  # the last step before the first move
    assert load_run("run").config["seed"] == 0
    found = []
    writer = threading.Thread(target=RunFolder(run).publish)
    reader = threading.Thread(target=lambda: found.append(load_run("run").config["seed"]))
    with folder_locked(run, "unfinished", shared=True):
        writer.start()
        handle = os.open(run / "unfinished", os.O_RDONLY)
        while not held(handle):
            time.sleep(0.01)
        os.close(handle)
        reader.start()
        reader.join(0.2)
        assert reader.is_alive()
    writer.join()
    reader.join()
    assert found == [1]


def held(handle):
    """Whether another one has an open folder for itself."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(handle, fcntl.LOCK_UN)
    return False


def test_a_file_that_was_changed_during_training_is_not_replaced(run):
    happened = Meanwhile(lambda: (run / "predictions.csv").write_text("mine"))
    with pytest.raises(DemonetError, match=r"^run/predictions.csv: .*changed"):
        fit(settings=Settings(epochs=12, seed=1), overwrite=True, progress=happened)
    assert (run / "predictions.csv").read_text() == "mine"
