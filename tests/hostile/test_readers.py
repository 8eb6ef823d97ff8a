"""A few readings of a run that another process replaces all the time; ``make hostile`` makes many more."""

from __future__ import annotations

from tests.hostile.readers import Replaced
from tests.hostile.supervise import supervised


def test_who_reads_a_run_that_is_replaced_sees_one_whole_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    replaced = Replaced(tmp_path)
    try:
        done = list(supervised(replaced, range(10)))
    finally:
        replaced.close()
    assert not [case for case in done if case.failure]
