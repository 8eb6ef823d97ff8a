"""Finished runs are sealed by a digest: a changed value is found, and older ledgers keep every run."""

from __future__ import annotations

import re
import sqlite3

import numpy as np
import pytest

from demonet import DemonetError
from demonet.errors import DemonetWarning
from demonet_study.ledger import schema
from demonet_study.ledger.job import Cell, Job, Outcome, Stamp, Wanted
from demonet_study.ledger.schema import RUN
from demonet_study.ledger.store import ClaimStatus, Ledger

CELL, STAMP = Cell("accuracy", "brazil", "gcn", split="thirds"), Stamp("c0de", "{}", "cpu", "da7a")
RUNS = 5


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as ledger:
        for seed in range(RUNS):
            ledger.claim(Job(CELL, seed), STAMP)
            ledger.record(Job(CELL, seed), STAMP, Outcome(0.5 + seed / 100, 1.5, float("nan"), {"epochs": seed}))
    return path


def change(path, statement):
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


def values(path):
    with Ledger(path) as ledger:
        return [result.outcome.value for result in ledger.results([CELL])[CELL]]


@pytest.mark.parametrize("column", [*RUN, "digest"])
def test_a_changed_value_is_left_out_and_made_again(path, column):
    text = column in ("key", *RUN[1:7], *RUN[8:12], "extra", "digest")
    new = f"CAST(x'ff' || {column} AS TEXT)" if text else f"coalesce({column}, 1) + 1000"
    change(path, f"UPDATE runs SET {column} = {new} WHERE seed = 2")
    with pytest.warns(DemonetWarning, match=r"\b1 of 5 runs\b"):
        assert values(path) == [0.5, 0.51]
    with Ledger(path) as ledger:
        assert ledger.incomplete([Wanted(CELL, RUNS)]) == [Wanted(CELL, RUNS)]
        assert ledger.claim(Job(CELL, 2), STAMP) is ClaimStatus.OURS
        ledger.record(Job(CELL, 2), STAMP, Outcome(0.52, 1.5, 1.0, {"epochs": 2}))
    assert values(path) == [0.5, 0.51, 0.52, 0.53, 0.54]


def test_a_ledger_of_the_first_version_keeps_every_run(path):
    expected = values(path)
    change(path, "ALTER TABLE runs RENAME TO new")
    change(path, re.sub(r".*digest TEXT.*\n", "", schema._TABLE))
    names = "key, kind, dataset, method, preset, options, split, seed, code, libraries, device, data, state, value, "
    names += "seconds, peak_memory_mb, extra, ended"
    change(path, f"INSERT INTO runs ({names}) SELECT {names} FROM new")
    change(path, "DROP TABLE new")
    change(path, "PRAGMA user_version = 1")
    assert values(path) == expected
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(digest) FROM runs").fetchone() == (RUNS,)
    connection.close()


def test_runs_that_an_older_process_records_meanwhile_count(path):
    change(path, "UPDATE runs SET digest = NULL WHERE seed = 3")
    assert len(values(path)) == RUNS
    change(path, "UPDATE runs SET value = 0 WHERE seed = 3")
    with pytest.warns(DemonetWarning, match=r"\b1 of 5\b"):
        assert len(values(path)) == 3


@pytest.mark.filterwarnings("ignore::demonet.errors.DemonetWarning")
def test_flipped_bits_never_change_a_result(path):
    change(path, "PRAGMA journal_mode = DELETE")
    raw, expected = path.read_bytes(), values(path)
    path.write_bytes(raw)
    places = np.random.default_rng(0).choice(len(raw), 60, replace=False).tolist()
    used = [place for place in range(len(raw)) if raw[place : place + 4] in (b"gcn{", b'{"ep')]
    for place in [*places, *used]:
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1 << place % 8]) + raw[place + 1 :])
        try:
            found = values(path)
        except (DemonetError, DemonetWarning):
            continue
        assert found == expected[: len(found)]


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


def test_a_ledger_that_cannot_be_opened_keeps_nobody_waiting(path, monkeypatch):
    def fail(*_):
        raise DemonetError("damaged")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_give_up_damaged", fail)
        with pytest.raises(DemonetError) as caught:
            Ledger(path)
    other = sqlite3.connect(path, timeout=0)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")  # fails at once where another connection is open
    other.execute("BEGIN EXCLUSIVE")
    other.close()
    assert caught.value.message == "damaged"
