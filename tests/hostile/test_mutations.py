"""Some mutations of every format and of every file with a checksum; ``make hostile`` makes many more.

Each case has limits of time and memory, and a child process to end: a crash is a failure with its number.
"""

from __future__ import annotations

import os
import signal
import time

from tests.hostile import supervise
from tests.hostile.formats import Mutations, outcome
from tests.hostile.mutations import flip, mutate
from tests.hostile.sealed import Changes, sealed_files
from tests.hostile.supervise import supervised

ROUNDS = 25  # of every format


def test_every_reader_gives_a_result_or_one_error(tmp_path):
    mutations = Mutations(tmp_path, 0)
    for one in mutations.formats:
        assert outcome(lambda one=one: one.read(tmp_path / one.name)) == "read", one.name
    done = list(supervised(mutations, range(ROUNDS * len(mutations.formats))))
    assert not [case for case in done if case.failure]
    assert {case.how for case in done} == {"read", "refused"}


def test_changes_in_files_with_a_checksum_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = sealed_files(tmp_path)
    for change in (flip, mutate):
        done = list(supervised(Changes(files, 0, change), range(6 * len(files))))
        assert not [case for case in done if case.failure]
        assert {case.how for case in done} <= {"refused", "no changed value", "as before"}


def test_the_supervisor_sees_errors_crashes_hangs_and_memory(monkeypatch):
    monkeypatch.setattr(supervise, "HANG", 1.0)
    monkeypatch.setattr(supervise, "STILL", 20.0)
    monkeypatch.setattr(supervise, "MEMORY", 40.0)

    def case(index: int) -> tuple[str, str, int]:
        if index == 1:
            raise KeyError("an error")
        if index == 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        while index == 3:
            pass
        if index == 5:
            time.sleep(100)
        if index == 4:
            b"1" * (80 << 20)
        return "name", "read", 10

    done = list(supervised(case, range(7)))
    assert [one.index for one in done] == list(range(7))
    assert [bool(one.failure) for one in done] == [False, True, True, True, True, True, False]
    assert "KeyError" in done[1].failure
    assert "-11" in done[2].failure
    assert "MiB" in done[4].failure
