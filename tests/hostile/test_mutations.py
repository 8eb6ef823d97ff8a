"""A few mutations of every format, of the files of a run and of a ledger; ``make hostile`` makes many more."""

from __future__ import annotations

import random

import pytest
from tests.hostile.mutations import RunFiles, attempt, flip, ledger_file, ledger_rows, mutate, seeds
from tests.runs.files import fit

from demonet.runs import predict_run

MUTATIONS, FLIPS = 25, 6


def test_every_reader_gives_a_result_or_one_error(tmp_path):
    generator = random.Random(0)
    found = set()
    for name, raw, read in list(seeds(tmp_path)):
        path = tmp_path / name
        path.write_bytes(raw)
        assert attempt(read, path) == "read", name
        for _ in range(MUTATIONS):
            path.write_bytes(mutate(raw, generator))
            found.add(attempt(read, path))
    assert found == {"read", "refused"}


def test_changes_in_the_files_of_a_run_are_found(problem):
    fit()
    files, generator = RunFiles(problem / "run", problem / "copy"), random.Random(0)
    for name in files.names:
        for change in (flip, mutate):
            for _ in range(FLIPS):
                content = change(files.raw[name], generator)
                read = lambda: predict_run(files.run, "edges.csv")  # noqa: E731
                assert files.changed(name, content, read) != "read", name


@pytest.mark.parametrize("suffix", [".sqlite", ".parquet"])
def test_no_change_in_a_ledger_changes_a_result(tmp_path, suffix):
    path = tmp_path / f"ledger{suffix}"
    ledger_file(tmp_path / "ledger.sqlite")
    raw, generator = path.read_bytes(), random.Random(0)
    expected = set(ledger_rows(path))
    for _ in range(20):
        path.write_bytes(flip(raw, generator))
        assert attempt(lambda path: check_rows(path, expected), path) in ("read", "refused")


def check_rows(path, expected):
    assert set(ledger_rows(path)) <= expected
