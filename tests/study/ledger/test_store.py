"""The ledger: what is claimed, recorded, released, and what a table is given."""

from __future__ import annotations

import math
import os
import sqlite3
import threading
from dataclasses import replace

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demonet.errors import DemonetError
from demonet_study.ledger import owner as owners
from demonet_study.ledger import schema
from demonet_study.ledger.job import Cell, Job, Outcome, Stamp
from demonet_study.ledger.owner import SILENCE, Owner, process, this_process
from demonet_study.ledger.schema import key
from demonet_study.ledger.store import ClaimStatus, Ledger

CELL = Cell("accuracy", "brazil", "gcn", split="thirds")
STAMP = Stamp("c0de", '{"torch":"2"}', "cpu", "da7a")
OUTCOME = Outcome(0.5, 2.0, 300.0, {"epochs": 7})


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def put(ledger, seed, value=0.5, cell=CELL, stamp=STAMP):
    job = Job(cell, seed)
    assert ledger.claim(job, stamp) is ClaimStatus.OURS
    assert ledger.record(job, stamp, replace(OUTCOME, value=value))


def give_to(ledger, owner):
    """As if another process had claimed what this one has."""
    connection = sqlite3.connect(ledger.path)
    with connection:
        connection.execute("UPDATE runs SET host = ?, pid = ?, started = ?", (owner.host, owner.pid, owner.started))
    connection.close()


def test_a_run_that_is_done_is_not_given_again_and_not_written_again(ledger):
    put(ledger, 0, 0.25)
    assert ledger.claim(Job(CELL, 0), STAMP) is ClaimStatus.DONE
    assert not ledger.record(Job(CELL, 0), STAMP, OUTCOME)
    (result,) = ledger.results([CELL])[CELL]
    assert (result.job, result.stamp) == (Job(CELL, 0), STAMP)
    assert result.outcome == replace(OUTCOME, value=0.25)


def test_the_claim_of_a_living_process_stands_and_that_of_a_dead_one_does_not(ledger):
    me, job = this_process(), Job(CELL, 0)
    ledger.claim(job, STAMP)
    parent = process(os.getppid())
    give_to(ledger, parent)
    assert ledger.claim(job, STAMP) is ClaimStatus.TAKEN
    give_to(ledger, replace(parent, started=parent.started - 60))  # its number was given again
    assert ledger.claim(job, STAMP) is ClaimStatus.OURS
    give_to(ledger, Owner(me.host, 2**22 + 1, 0.0))
    assert ledger.claim(job, STAMP) is ClaimStatus.OURS


def test_a_process_on_another_machine_lives_as_long_as_its_heart_beats(tmp_path, monkeypatch):
    now = [1000.0]
    with Ledger(tmp_path / "l", clock=lambda: now[0]) as here:
        monkeypatch.setattr(owners.socket, "gethostname", lambda: "elsewhere")
        with Ledger(tmp_path / "l", clock=lambda: now[0]) as there:
            job = Job(CELL, 0)
            assert there.claim(job, STAMP) is ClaimStatus.OURS
            monkeypatch.undo()
            now[0] += SILENCE - 1
            assert here.claim(job, STAMP) is ClaimStatus.TAKEN
            there.beat()
            now[0] += SILENCE - 1
            assert here.claim(job, STAMP) is ClaimStatus.TAKEN
            now[0] += 2
            assert here.claim(job, STAMP) is ClaimStatus.OURS
            there.fail(job, STAMP, "late")  # no longer its own
            assert here.failures([(job, STAMP)]) == []
            assert there.record(job, STAMP, OUTCOME)  # but a finished run is a finished run
            assert not here.record(job, STAMP, replace(OUTCOME, value=0.0))


def test_a_step_of_the_clock_kills_nobody(monkeypatch):
    """Start times count from the machine's start, and a heartbeat from the future is none."""
    me = this_process()
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: 0.0)  # which goes by the clock
    assert me.is_alive(0.0, 1e9)
    assert this_process() == me
    far = Owner("elsewhere", 1, 0.0)
    assert far.is_alive(1000.0, 1000.0 + SILENCE - 1)
    assert not far.is_alive(1e9, 1000.0)


def test_the_numbers_of_another_container_mean_nothing_here(ledger):
    """It lives as long as its heart beats, and is on this machine all the same."""
    job, me = Job(CELL, 0), this_process()
    ledger.claim(job, STAMP)
    give_to(ledger, Owner(f"{me.machine} pid:[1]", 2**22 + 1, 0.0))
    assert ledger.claim(job, STAMP) is ClaimStatus.TAKEN
    assert ledger.claim(Job(CELL, 1), STAMP, alone=True) is ClaimStatus.BLOCKED


def test_what_runs_alone_runs_beside_nothing_of_another_process(ledger):
    other = process(os.getppid())
    first, second = Job(CELL, 0), Job(CELL, 1)
    ledger.claim(first, STAMP)
    give_to(ledger, other)
    assert ledger.claim(second, STAMP, alone=True) is ClaimStatus.BLOCKED
    assert ledger.claim(second, STAMP) is ClaimStatus.OURS
    ledger.release()
    assert ledger.record(first, STAMP, OUTCOME)
    assert ledger.claim(second, STAMP, alone=True) is ClaimStatus.OURS
    give_to(ledger, other)
    assert ledger.claim(Job(CELL, 2), STAMP) is ClaimStatus.BLOCKED


def test_a_failed_run_keeps_its_error_until_it_is_done(ledger):
    run = (Job(CELL, 0), STAMP)
    ledger.claim(*run)
    ledger.fail(*run, "out of luck")
    assert ledger.claim(*run) is ClaimStatus.FAILED
    assert [failure.error for failure in ledger.failures([run])] == ["out of luck"]
    assert ledger.failures([(Job(CELL, 1), STAMP)]) == []
    ledger.retry([run])
    assert [failure.error for failure in ledger.failures([run])] == ["out of luck"]
    assert ledger.claim(*run) is ClaimStatus.OURS
    ledger.record(*run, OUTCOME)
    assert ledger.failures([run]) == []


def test_release_frees_what_is_claimed_and_leaves_what_is_done(ledger):
    put(ledger, 0)
    ledger.claim(Job(CELL, 1), STAMP)
    ledger.release()
    states = sqlite3.connect(ledger.path).execute("SELECT seed, state FROM runs ORDER BY seed").fetchall()
    assert states == [(0, "done"), (1, "waiting")]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_run_that_gives_no_number_is_not_recorded(ledger, value):
    with pytest.raises(DemonetError, match=f"{value}"):
        put(ledger, 0, value)
    assert ledger.results([CELL])[CELL] == []


def test_what_a_library_calls_a_number_is_kept_as_one(ledger, tmp_path):
    put(ledger, 0, np.float32(0.5))
    assert ledger.export_runs(tmp_path / "runs.parquet") == 1
    assert ledger.results([CELL])[CELL][0].outcome.value == 0.5


def test_of_stamps_that_have_enough_the_newest_counts(ledger):
    new = replace(STAMP, code="new")
    for seed in range(3):
        put(ledger, seed, 0.1)
    for seed in range(2):
        put(ledger, seed, 0.9, stamp=new)
    assert [len(ledger.results([CELL], enough={CELL: n})[CELL]) for n in (2, 3)] == [2, 3]
    assert ledger.results([CELL], enough={CELL: 2})[CELL][0].stamp == new
    assert ledger.results([CELL])[CELL][0].stamp == STAMP


def test_a_ledger_that_is_locked_is_not_to_be_moved_away(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "_TIMEOUT", 0.05)
    with Ledger(tmp_path / "l") as ledger:
        other = sqlite3.connect(tmp_path / "l", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DemonetError, match="locked") as caught:
            ledger.claim(Job(CELL, 0), STAMP)
        other.close()
        assert "move" not in str(caught.value)
        assert ledger.claim(Job(CELL, 0), STAMP) is ClaimStatus.OURS


def test_a_new_ledger_that_another_process_is_making_is_waited_for(tmp_path, monkeypatch):
    """A writer keeps SQLite from turning the write-ahead log on, and SQLite itself does not wait for its end."""
    with Ledger(tmp_path / "l"):
        pass
    writer = sqlite3.connect(tmp_path / "l", isolation_level=None, check_same_thread=False)
    writer.execute("PRAGMA journal_mode = DELETE")  # as a new one is, before the log is turned on
    writer.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(schema, "_TIMEOUT", 0.05)
    with pytest.raises(DemonetError, match="locked"):
        Ledger(tmp_path / "l")
    monkeypatch.setattr(schema, "_TIMEOUT", 60.0)
    leaving = threading.Timer(0.2, writer.close)
    leaving.start()
    with Ledger(tmp_path / "l") as ledger:
        put(ledger, 0)
    leaving.join()


def test_the_time_of_cells_is_summed(ledger):
    put(ledger, 0)
    put(ledger, 1)
    assert ledger.seconds() == [(CELL, 2, 4.0)]


@pytest.mark.parametrize(
    "other",
    [
        (replace(CELL, options='{"hidden":8}'), STAMP),
        (replace(CELL, split="train:0.3"), STAMP),
        *((CELL, replace(STAMP, **{name: "x"})) for name in ("code", "libraries", "device", "data")),
    ],
)
def test_any_other_configuration_is_another_run(ledger, other):
    cell, stamp = other
    put(ledger, 0, 0.1)
    put(ledger, 0, 0.9, cell, stamp)
    put(ledger, 1, 0.9, cell, stamp)
    values = [result.outcome.value for result in ledger.results([cell])[cell]]
    assert values == [0.9, 0.9]  # those of one stamp, never three in a mix


def test_runs_of_one_device_alone(ledger):
    for seed in range(3):
        put(ledger, seed, 0.9, CELL, replace(STAMP, device="gpu"))
    put(ledger, 0, 0.1)
    assert [result.outcome.value for result in ledger.results([CELL])[CELL]] == [0.9] * 3
    assert [result.outcome.value for result in ledger.results([CELL], STAMP.device)[CELL]] == [0.1]
    assert ledger.results([CELL], "another")[CELL] == []


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc")), unique=True, max_size=12),
)
def test_results_are_the_longest_complete_run_of_seeds_of_one_stamp(tmp_path_factory, runs):
    path = tmp_path_factory.mktemp("ledger") / "l"
    clock = iter(range(10**6))
    with Ledger(path, clock=lambda: next(clock)) as ledger:
        for seed, code in runs:
            put(ledger, seed, cell=CELL, stamp=replace(STAMP, code=code))
        found = ledger.results([CELL])[CELL]
    lengths, newest = {}, {}
    for code in "abc":
        seeds = {seed for seed, other in runs if other == code}
        lengths[code] = next(n for n in range(6) if n not in seeds)
        newest[code] = max((i for i, (s, c) in enumerate(runs) if c == code and s < lengths[code]), default=-1)
    best = max("abc", key=lambda code: (lengths[code], newest[code]))
    assert [result.job.seed for result in found] == list(range(lengths[best]))
    assert all(result.stamp.code == best for result in found)


@given(st.integers(0, 9), st.text(max_size=5), st.text(max_size=5))
def test_keys_are_of_all_that_a_run_is(seed, method, code):
    job, stamp = Job(replace(CELL, method=method), seed), replace(STAMP, code=code)
    same = (seed, method, code) == (3, CELL.method, STAMP.code)
    assert (key(job, stamp) == key(Job(CELL, 3), STAMP)) == same


def test_a_file_that_is_not_a_ledger_is_refused(tmp_path):
    text, foreign, newer, damaged = (tmp_path / name for name in ("text", "foreign", "newer", "damaged"))
    text.write_text("value\n" * 1000)
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE runs (key)")
    Ledger(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    with Ledger(damaged) as ledger:
        for seed in range(200):
            ledger.claim(Job(CELL, seed), STAMP)
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:5000] + b"\xff" * 9000 + whole[14000:])
    for path, part in (
        (text, "database"),
        (foreign, "SQLite"),
        (newer, r"\b99\b.*\b2\b"),
        (damaged, "damaged"),
    ):
        before = path.read_bytes()
        with pytest.raises(DemonetError, match=part) as caught:
            Ledger(path)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_said_plainly(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DemonetError, match="file"):
        Ledger(tmp_path / "file" / "ledger.sqlite")
