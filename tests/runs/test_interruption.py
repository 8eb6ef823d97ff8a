"""Killed at any point, a run goes on to the same bits; a finished one is never lost, and two never share a folder."""

import hashlib
import shutil
from contextlib import nullcontext
from pathlib import Path

import filelock
import numpy as np
import pytest
from tests.runs.files import FILES, Killed, fit

from demonet import DemonetError
from demonet.atomic import part_of
from demonet.runs import Reading, RunProgress, Settings, folder, load_run
from demonet.runs.plan import Plan


def contents(out):
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(out.iterdir()) if file.is_file()
    }


class Deadly(RunProgress):
    """A process that is killed in the middle of an epoch."""

    def __init__(self, split, epoch):
        self.at = split, epoch

    def training(self, label, epochs):
        return nullcontext(lambda epoch: self.tell(label, epoch.number))

    def tell(self, label, number):
        if (label, number) == self.at:
            raise Killed


def test_an_interrupted_run_goes_on_to_the_same_bits(problem):
    settings = Settings(epochs=60, cv=2)
    whole = fit(out="whole", settings=settings)
    for at in (("split 1 of 2", 40), ("split 2 of 2", 30)):
        with pytest.raises(Killed):
            fit(settings=settings, resume=(problem / "run").exists(), progress=Deadly(*at))
        assert sorted(file.name for file in (problem / "run").iterdir()) == [".lock", "unfinished"]
        with pytest.raises(DemonetError, match=r"^run: .*resume"):
            load_run("run")
    with pytest.raises(DemonetError, match=r"^run: .*resume=True.*overwrite=True"):
        fit(settings=settings)
    run = fit(settings=settings, resume=True)
    np.testing.assert_array_equal(run.outputs, whole.outputs)
    assert run.metrics["cv"] == whole.metrics["cv"]
    assert contents(problem / "run")["predictions.csv"] == contents(problem / "whole")["predictions.csv"]
    assert sorted(file.name for file in (problem / "run").iterdir()) == FILES


def test_finished_splits_are_not_trained_again(problem, monkeypatch):
    settings = Settings(epochs=12, cv=2)
    with pytest.raises(Killed):
        fit(settings=settings, progress=Deadly("split 2 of 2", 3))
    trained = []
    original = Plan.estimator
    monkeypatch.setattr(Plan, "estimator", lambda plan, number: trained.append(number) or original(plan, number))
    fit(settings=settings, resume=True)
    assert trained == [1]


def killed_while_moving(monkeypatch, files, **options):
    """A run that is killed after so many of its files are in their place: nothing is put back."""
    moved, original = [], folder.move

    def move(old, new):
        if "whole" in old.parts:
            moved.append(old)
        if len(moved) > files:
            raise Killed
        return original(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(folder, "move", move)
        with pytest.raises(Killed):
            fit(**options)


@pytest.mark.parametrize("files", [0, 7])
def test_a_run_that_is_killed_while_its_files_are_moved_is_brought_to_its_end(problem, monkeypatch, files):
    expected = fit(out="expected")
    killed_while_moving(monkeypatch, files)
    with pytest.raises(DemonetError, match=r"^run: .*resume=True.*overwrite=True"):
        fit()
    with pytest.raises(DemonetError, match=r"^run: .*resume"):
        load_run("run")
    run = fit(resume=True)
    np.testing.assert_array_equal(run.outputs, expected.outputs)
    assert sorted(file.name for file in (problem / "run").iterdir()) == FILES


@pytest.mark.parametrize("again", [{"resume": True}, {"overwrite": True}])
def test_no_folder_is_ever_half_one_run_and_half_another(problem, monkeypatch, again):
    other = Settings(epochs=12, seed=1)
    expected = fit(out="expected", settings=other)
    fit()
    killed_while_moving(monkeypatch, 4, overwrite=True, settings=other)
    with pytest.raises(DemonetError, match=r"^run: .*resume"):
        load_run("run")
    run = fit(settings=other, **again)
    assert run.config["seed"] == run.metrics["seed"] == 1
    np.testing.assert_array_equal(run.outputs, expected.outputs)
    assert sorted(file.name for file in (problem / "run").iterdir()) == FILES


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": Settings(epochs=60, seed=1)}, r"seed: .*\b0\b.*\b1\b"),
        ({"reading": Reading(directed=True)}, r"directed: .*\bdefault\b.*\bTrue\b"),
    ],
)
def test_another_configuration_is_not_gone_on_with(problem, changes, message):
    with pytest.raises(Killed):
        fit(settings=Settings(epochs=60), progress=Deadly("training", 30))
    with pytest.raises(DemonetError, match=f"^run: {message}"):
        fit(**{"settings": Settings(epochs=60), "resume": True} | changes)


def test_another_file_is_not_gone_on_with(problem):
    with pytest.raises(Killed):
        fit(settings=Settings(epochs=60), progress=Deadly("training", 30))
    text = (problem / "labels.csv").read_text()
    (problem / "labels.csv").write_text(text.replace("r1,ring", "r1,foot"))
    with pytest.raises(DemonetError, match=r"^run: .*\blabels\b.*overwrite=True"):
        fit(settings=Settings(epochs=60), resume=True)
    (problem / "labels.csv").write_text(text)
    fit(settings=Settings(epochs=60), resume=True)


def test_a_finished_run_is_replaced_only_when_asked_and_only_when_the_new_one_is_done(problem):
    fit()
    before = contents(problem / "run")
    with pytest.raises(DemonetError, match=r"^run: (?!.*resume).*overwrite=True"):
        fit()
    with pytest.raises(Killed):
        fit(overwrite=True, settings=Settings(epochs=12, seed=1), progress=Deadly("training", 3))
    assert contents(problem / "run") == before
    assert load_run("run").config["seed"] == 0
    assert fit(overwrite=True, settings=Settings(epochs=12, seed=1)).config["seed"] == 1
    assert fit(resume=True, settings=Settings(epochs=12, seed=1)).config["seed"] == 1  # finished: nothing to do
    with pytest.raises(DemonetError, match=r"^run: seed: .*\b1\b.*\b0\b"):
        fit(resume=True)


def test_two_processes_never_share_a_folder(problem):
    (problem / "run" / "unfinished").mkdir(parents=True)
    with filelock.FileLock(problem / "run" / ".lock"), pytest.raises(DemonetError, match=r"^run: .*process"):
        fit()


@pytest.mark.parametrize("removed", [0, 2])
@pytest.mark.parametrize("again", [{"resume": True}, {"overwrite": True}])
def test_a_kill_during_the_last_clean_up_blocks_nothing_and_leaves_nothing(problem, monkeypatch, removed, again):
    original = shutil.rmtree

    def rmtree(path, *rest, **options):
        if path == Path("run", part_of("unfinished")):
            for file in sorted(path.iterdir())[:removed]:
                original(file) if file.is_dir() else file.unlink()
            raise Killed
        original(path, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", rmtree)
        with pytest.raises(Killed):
            fit()
    expected = load_run("run")
    run = fit(**again)
    np.testing.assert_array_equal(run.outputs, expected.outputs)
    assert sorted(file.name for file in (problem / "run").iterdir()) == FILES


def test_what_a_killed_process_left_is_neither_published_nor_kept(problem):
    with pytest.raises(Killed):
        fit(settings=Settings(epochs=60), progress=Deadly("training", 30))
    whole = problem / "run" / "unfinished" / "whole"
    whole.mkdir()
    (whole / part_of("config.json")).write_text("half")
    (problem / "run" / part_of("report.html")).write_text("half")
    fit(settings=Settings(epochs=60), resume=True)
    assert sorted(file.name for file in (problem / "run").iterdir()) == FILES
