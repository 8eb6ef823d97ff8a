"""Runs that travel between ledgers."""

import math
from dataclasses import replace

import pyarrow
import pyarrow.parquet
import pytest

from demonet.errors import DemonetError, DemonetWarning
from demonet_study.ledger.job import Cell, Job, Outcome, Stamp
from demonet_study.ledger.store import Ledger

CELL = Cell("accuracy", "brazil", "gcn")
STAMP = Stamp("c0de", "{}", "cpu", "da7a")


def fill(path, seeds, value=0.5):
    with Ledger(path) as ledger:
        for seed in seeds:
            ledger.record(Job(CELL, seed), STAMP, Outcome(value, 1.0, math.nan, {"points": [[0.1, 2.0]]}))
        ledger.claim(Job(CELL, 99), STAMP)  # not finished, so it does not travel
    return path


def bring(ledger, source, tmp_path):
    with Ledger(source) as other:
        other.export_runs(tmp_path / "new" / "runs.parquet")
    return ledger.import_runs(tmp_path / "new" / "runs.parquet")


def test_what_is_missing_here_comes_over_as_it_was(tmp_path):
    source = fill(tmp_path / "a", range(4))
    with Ledger(fill(tmp_path / "b", range(2))) as ledger, Ledger(source) as other:
        assert bring(ledger, source, tmp_path) == 2
        assert bring(ledger, source, tmp_path) == 0
        ours, theirs = (opened.results([CELL])[CELL] for opened in (ledger, other))
        assert [result.job for result in ours] == [result.job for result in theirs] == [Job(CELL, i) for i in range(4)]
        for one, two in zip(ours, theirs, strict=True):
            assert (one.stamp, one.outcome.extra) == (two.stamp, two.outcome.extra)
            assert (one.outcome.value, one.outcome.seconds) == (two.outcome.value, two.outcome.seconds)
            assert math.isnan(one.outcome.peak_memory_mb)


def test_another_ledger_comes_over_without_a_parquet_file(tmp_path):
    source = fill(tmp_path / "a.sqlite", range(4))
    with Ledger(fill(tmp_path / "b", range(2))) as ledger:
        assert ledger.import_runs(source) == 2
        assert ledger.import_runs(source) == 0
        assert [result.job.seed for result in ledger.results([CELL])[CELL]] == [0, 1, 2, 3]
        with pytest.raises(DemonetError, match="no such ledger"):
            ledger.import_runs(tmp_path / "c.sqlite")
    assert not (tmp_path / "c.sqlite").exists()


def test_other_numbers_for_the_same_run_are_told_and_left_out(tmp_path):
    source = fill(tmp_path / "a", range(3), value=0.7)
    with Ledger(fill(tmp_path / "b", range(2))) as ledger:
        with pytest.warns(DemonetWarning, match="2 runs"):
            assert bring(ledger, source, tmp_path) == 1
        assert [result.outcome.value for result in ledger.results([CELL])[CELL]] == [0.5, 0.5, 0.7]


def test_the_same_runs_give_the_same_file(tmp_path):
    with Ledger(fill(tmp_path / "a", [0, 1, 2])) as first, Ledger(tmp_path / "b") as second:
        assert first.export_runs(tmp_path / "1.parquet") == 3
        second.import_runs(tmp_path / "1.parquet")
        second.export_runs(tmp_path / "2.parquet")
    assert (tmp_path / "1.parquet").read_bytes() == (tmp_path / "2.parquet").read_bytes()


def test_files_of_something_else_are_refused(tmp_path):
    other, text, newer, forged = (tmp_path / f"{name}.parquet" for name in ("other", "text", "newer", "forged"))
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), other)
    text.write_text("value")
    with Ledger(fill(tmp_path / "a", [0])) as ledger:
        ledger.export_runs(newer)
        table = pyarrow.parquet.read_table(newer)
        pyarrow.parquet.write_table(table.replace_schema_metadata({"demonet.ledger": "7"}), newer)
        changed = table.set_column(1, "kind", pyarrow.array(["speed"]))
        pyarrow.parquet.write_table(changed.replace_schema_metadata(table.schema.metadata), forged)
        wrong = {
            other: r": .*Parquet.*\bruns\b",
            text: r"text\.parquet: .*Parquet",
            newer: r": .*\b7\b.*\b1\b",
            forged: "key",
            tmp_path / "none": "none",
        }
        for path, part in wrong.items():
            with pytest.raises(DemonetError, match=part):
                ledger.import_runs(path)
        assert len(ledger.results([replace(CELL)])[CELL]) == 1


@pytest.mark.parametrize(
    ("column", "values", "why"),
    [
        ("extra", ["[]", "{}"], r"run 1 of 2\b.*extra='\[\]'"),
        ("extra", ["{}", "{"], r"run 2 of 2\b.*extra='{'"),
        ("value", [0.5, None], r"run 2 of 2\b.*\bvalue\b"),
        ("value", [math.inf, 0.5], r"run 1 of 2\b.*\bvalue=inf"),
        ("ended", [None, 1.0], r"run 1 of 2\b.*\bended\b"),
        ("value", ["0.5", "0.5"], r": .*Parquet.*\bruns\b"),
        ("value", [0.5, 0.75], "checksum"),
    ],
)
def test_a_damaged_file_names_the_run_and_leaves_nothing_behind(tmp_path, column, values, why):
    with Ledger(fill(tmp_path / "a", [0, 1])) as source:
        source.export_runs(tmp_path / "runs.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "runs.parquet")
    place = table.column_names.index(column)
    pyarrow.parquet.write_table(table.set_column(place, column, pyarrow.array(values)), tmp_path / "bad.parquet")
    with Ledger(tmp_path / "b") as ledger:
        with pytest.raises(DemonetError, match=why) as caught:
            ledger.import_runs(tmp_path / "bad.parquet")
        assert str(tmp_path / "bad.parquet") in str(caught.value)
        assert ledger.results([CELL])[CELL] == []
