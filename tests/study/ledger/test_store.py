"""The ledger: what is claimed, recorded, released, and what a table is given."""

import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.study.ledger.fakes import FORK

from demonet.errors import DemonetError, DemonetWarning
from demonet_study.ledger import schema
from demonet_study.ledger.job import Cell, Job, Outcome, Stamp, Wanted
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


def claim_elsewhere(path, pipe, *claims):
    """In another process: claim, say what came of it, and hold the claims until the process is killed."""
    with Ledger(path) as ledger:
        pipe.send([ledger.claim(Job(CELL, seed), STAMP, alone=alone) for seed, alone in claims])
        pipe.recv()


@pytest.fixture
def elsewhere(ledger):
    """Start a process that claims runs; it is killed at the end, if not before."""
    started = []

    def start(*claims):
        ours, theirs = FORK.Pipe()
        started.append(FORK.Process(target=claim_elsewhere, args=(ledger.path, theirs, *claims)))
        started[-1].start()
        assert set(ours.recv()) == {ClaimStatus.OURS}
        started[-1].pipe = ours  # kept open
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.join()


def test_a_run_that_is_done_is_not_given_again_and_not_written_again(ledger):
    put(ledger, 0, 0.25)
    assert ledger.claim(Job(CELL, 0), STAMP) is ClaimStatus.DONE
    assert not ledger.record(Job(CELL, 0), STAMP, OUTCOME)
    (result,) = ledger.results([CELL])[CELL]
    assert (result.job, result.stamp) == (Job(CELL, 0), STAMP)
    assert result.outcome == replace(OUTCOME, value=0.25)


def test_the_claim_of_a_living_process_stands_and_that_of_a_dead_one_does_not(ledger, elsewhere):
    job = Job(CELL, 0)
    other = elsewhere((0, False))
    assert ledger.claim(job, STAMP) is ClaimStatus.TAKEN
    ledger.fail(job, STAMP, "not ours")
    assert ledger.failures([(job, STAMP)]) == []
    other.kill()
    other.join()
    assert ledger.claim(job, STAMP) is ledger.claim(job, STAMP) is ClaimStatus.OURS
    assert ledger.record(job, STAMP, OUTCOME)
    ledger.release()
    assert not ledger.path.with_name("ledger.sqlite-claims").exists()


def test_what_runs_alone_runs_beside_nothing_of_another_process(ledger, elsewhere):
    other = elsewhere((0, False))
    assert ledger.claim(Job(CELL, 1), STAMP, alone=True) is ClaimStatus.BLOCKED
    assert ledger.claim(Job(CELL, 1), STAMP) is ClaimStatus.OURS
    ledger.release()
    other.kill()
    other.join()
    elsewhere((1, True))
    assert ledger.claim(Job(CELL, 2), STAMP) is ClaimStatus.BLOCKED
    assert ledger.claim(Job(CELL, 1), STAMP) is ClaimStatus.TAKEN


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


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc")), unique=True, max_size=12))
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
            put(ledger, seed)
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:5000] + b"\xff" * 9000 + whole[14000:])
    for path, part in ((text, "database"), (foreign, "SQLite"), (newer, r"\b99\b.*\b3\b"), (damaged, "damaged")):
        before = path.read_bytes()
        with pytest.raises(DemonetError, match=part) as caught:
            Ledger(path)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == before


RUNS = 5


@pytest.fixture
def path(tmp_path):
    """A ledger with five finished runs, closed."""
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        for seed in range(RUNS):
            put(ledger, seed, 0.5 + seed / 100)
    return tmp_path / "ledger.sqlite"


def change(path, statement):
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


def values(path):
    with Ledger(path) as ledger:
        return [result.outcome.value for result in ledger.results([CELL])[CELL]]


@pytest.mark.parametrize("column", ["key", "method", "seed", "code", "value", "extra", "digest"])
def test_a_changed_value_is_left_out_and_made_again(path, column):
    text = column not in ("seed", "value")
    new = f"CAST(x'ff' || {column} AS TEXT)" if text else f"coalesce({column}, 1) + 1000"
    change(path, f"UPDATE runs SET {column} = {new} WHERE seed = 2")
    with pytest.warns(DemonetWarning, match=r"\b1 of 5 runs\b"):
        assert values(path) == [0.5, 0.51]
    with Ledger(path) as ledger:
        assert ledger.incomplete([Wanted(CELL, RUNS), Wanted(CELL, 2)]) == [Wanted(CELL, RUNS)]
        assert ledger.incomplete([Wanted(CELL, 2)], "a GPU") == [Wanted(CELL, 2)]
        assert ledger.claim(Job(CELL, 2), STAMP) is ClaimStatus.OURS
        ledger.record(Job(CELL, 2), STAMP, replace(OUTCOME, value=0.52))
    assert values(path) == [0.5, 0.51, 0.52, 0.53, 0.54]


def test_a_damaged_table_is_refused(path):
    """One byte of its text can hide a column, so that the values of every row are read from the next one."""
    change(path, "PRAGMA journal_mode = DELETE")
    raw = path.read_bytes()
    ends_comment = raw.index(b"\n    error TEXT,")
    comment = raw.index(b"-- the outcome")
    kind = raw.index(b"value REAL")
    for place, bit in [(ends_comment, 0), (ends_comment, 6), (comment, 5), (kind, 0), (kind + 6, 7), (kind + 7, 0)]:
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1 :])
        with pytest.raises(DemonetError, match=f"^{path}: "):
            Ledger(path)
