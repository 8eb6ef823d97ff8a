"""Drivers and workers as real processes: killed, together, interrupted, with runs that crash."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
from tests.study.ledger.fakes import FORK, Wanted, cell, driver, lines, perform, stamp_of, value, wait_for

from demonet import DemonetError, workers
from demonet_study.ledger import work as working
from demonet_study.ledger.job import Cell, Job, Outcome
from demonet_study.ledger.store import ClaimStatus, Ledger
from demonet_study.ledger.work import Estimate, ordered_tasks, run_task, work


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Workers by fork, and short naps."""
    monkeypatch.setattr(workers, "CONTEXT", FORK)
    monkeypatch.setattr(working, "POLL", 0.02)


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def do(ledger, wanted, **options):
    return work(ledger, wanted, perform, **{"jobs": 2, "stamp_of": stamp_of} | options)


def values(ledger, wanted):
    """Seeds and values of every cell."""
    found = ledger.results([one.cell for one in wanted])
    return {one: [(result.job.seed, result.outcome.value) for result in results] for one, results in found.items()}


def expected(wanted):
    return {one.cell: [(seed, value(Job(one.cell, seed))) for seed in range(one.runs)] for one in wanted}


def test_seeds_come_first_and_what_runs_alone_last():
    a, b, c = cell("a"), cell("b"), cell("c")
    wanted = [Wanted(c, 1, alone=True), Wanted(a, 3), Wanted(b, 2), Wanted(a, 2)]
    order = [(task.job.cell.method, task.job.seed, task.alone) for task in ordered_tasks(wanted, "cpu", stamp_of)]
    assert order == [("a", 0, 0), ("b", 0, 0), ("a", 1, 0), ("b", 1, 0), ("a", 2, 0), ("c", 0, 1)]


def test_all_is_done_once_and_the_next_start_does_nothing(ledger, tmp_path):
    log = str(tmp_path / "log")
    wanted = [Wanted(cell("a", log=log), 5), Wanted(cell("b", log=log), 3)]
    told = []
    worked = do(ledger, wanted, on_progress=told.append)
    assert (worked.runs, worked.processor_seconds, worked.failures) == (8, 2.0, [])
    assert values(ledger, wanted) == expected(wanted)
    assert (told[0].done, told[-1].done, told[-1].wanted, told[-1].running) == (0, 8, 8, ())
    assert (told[0].left, told[-1].left) == (None, 0.0)
    assert do(ledger, wanted).runs == 0
    assert do(ledger, [replace(wanted[0], runs=7)]).runs == 2
    assert len(lines(Path(log), "end")) == 10


def test_a_run_that_would_not_end_in_time_is_not_begun(ledger):
    slow, quick = Wanted(cell("slow"), 3), Wanted(cell("quick"), 3)
    before = Job(slow.cell, 0)
    ledger.record(before, stamp_of("fake", "made", "cpu"), Outcome(1.0, 1e6, 1.0))
    summary = do(ledger, [slow, quick], time_limit=1000)
    assert (summary.runs, summary.left, summary.failures) == (3, 2, [])
    assert {one.method: len(runs) for one, runs in values(ledger, [slow, quick]).items()} == {"slow": 1, "quick": 3}
    assert (do(ledger, [slow, quick]).runs, do(ledger, [slow, quick]).left) == (2, 0)


def test_at_the_end_of_the_time_what_runs_is_given_up(ledger, tmp_path):
    (tmp_path / "hold").touch()
    endless = Wanted(cell("endless", hold=1, log=str(tmp_path / "log")), 3)
    summary = do(ledger, [endless], time_limit=2, jobs=1)
    assert (summary.runs, summary.left) == (1, 2)
    (tmp_path / "hold").unlink()
    assert do(ledger, [endless]).runs == 2


def test_what_must_run_alone_does(ledger, tmp_path):
    log = str(tmp_path / "log")
    wanted = [Wanted(cell("a", log=log, sleep=1.0), 2), Wanted(cell("t", log=log, sleep=0.05), 3, alone=True)]
    do(ledger, wanted)
    spans = {
        (method, seed): (float(begin), float(end))
        for (_, method, seed, begin), (_, _, _, end) in zip(
            *(sorted(lines(Path(log), word)) for word in ("begin", "end")), strict=True
        )
    }
    assert _meet(spans["a", "0"], spans["a", "1"])
    for run, span in spans.items():
        assert run[0] == "a" or not any(_meet(span, other) for name, other in spans.items() if name != run)


def _meet(one, two):
    return one[0] < two[1] and two[0] < one[1]


@pytest.mark.parametrize("way", ["crash", "kill", "fail"])
def test_a_run_that_ends_badly_is_told_and_the_rest_goes_on(ledger, way):
    wanted = [Wanted(cell("a", **{way: 1}), 3), Wanted(cell("b"), 3)]
    worked = do(ledger, wanted)
    (failure,) = worked.failures
    assert (failure.job, worked.runs) == (Job(wanted[0].cell, 1), 5)
    words = {"crash": "code 7", "kill": "SIGKILL", "fail": "ValueError: no such luck"}
    assert words[way] in failure.error
    assert values(ledger, wanted[1:]) == expected(wanted[1:])
    again = do(ledger, wanted)  # tried again, told again
    assert ([one.job for one in again.failures], again.runs) == ([failure.job], 0)


def test_a_worker_that_died_while_idle_costs_one_run_and_no_more():
    engine = workers.LocalEngine(partial(run_task, perform, stamp_of, "cpu"), 1)
    tasks = ordered_tasks([Wanted(cell("a"), 2)], "cpu", stamp_of)
    engine.start(tasks[0])
    assert engine.wait(10)[0].outcome is not None
    engine._workers[0].process.kill()
    engine._workers[0].process.join()
    engine.start(tasks[1])
    assert "SIGKILL" in engine.wait(10)[0].error
    engine.start(tasks[1])
    assert engine.wait(10)[0].outcome is not None
    engine.close()


def test_killed_four_times_nothing_is_lost_and_nothing_is_done_twice(tmp_path):
    """Each driver is killed at a random moment; its workers go with it, and the next one goes on."""
    path, log, chance = tmp_path / "ledger.sqlite", tmp_path / "log", random.Random(0)
    wanted = [Wanted(cell(name, log=str(log), sleep=0.04), 60) for name in "abc"]
    recorded: dict = {}
    for _ in range(4):
        process = driver(path, wanted)
        time.sleep(chance.uniform(0.05, 0.5))
        workers = psutil.Process(process.pid).children()
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL, "it was done before it could be killed: more runs"
        wait_for(partial(_all_dead, workers))
        with Ledger(path) as ledger:
            now = _done(ledger)
        assert recorded.items() <= now.items()  # what was finished is there still, by the same process
        recorded = now
    process = driver(path, wanted)
    process.join()
    assert process.exitcode == 0
    with Ledger(path) as ledger:
        assert recorded.items() <= _done(ledger).items()
        assert values(ledger, wanted) == expected(wanted)
    # A run may have been in work when the driver died, two at a time; one that was recorded has not begun again.
    assert 180 <= len(lines(log, "end")) <= 180 + 2 * 4


def _all_dead(processes):
    """Gone, or waiting to be buried by the system."""
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def _done(ledger):
    """Every finished run and the process that did it."""
    rows = ledger._rows("SELECT method, seed, json_extract(extra, '$.pid') FROM runs WHERE state = 'done'")
    return {(method, seed): pid for method, seed, pid in rows}


def test_two_drivers_share_the_work(tmp_path):
    path, log = tmp_path / "ledger.sqlite", tmp_path / "log"
    wanted = [Wanted(cell(name, log=str(log), sleep=0.05), 20) for name in "abc"]
    drivers = [driver(path, wanted), driver(path, wanted)]
    for process in drivers:
        process.join()
        assert process.exitcode == 0
    with Ledger(path) as ledger:
        assert values(ledger, wanted) == expected(wanted)
        assert len(set(_done(ledger).values())) > 2  # a driver has two workers, so both took part
    for word in ("begin", "end"):
        runs = [tuple(line[1:3]) for line in lines(log, word)]
        assert len(runs) == len(set(runs)) == 60


def test_an_interrupt_keeps_what_is_finished_and_frees_the_rest(tmp_path):
    """Five runs are recorded, two are in work and would be for ever."""
    path, log = tmp_path / "ledger.sqlite", tmp_path / "log"
    (tmp_path / "hold").touch()
    wanted = [Wanted(cell("a", log=str(log), hold=5), 200)]
    process = driver(path, wanted)
    with Ledger(path) as ledger:
        wait_for(lambda: len(_done(ledger)) == 5 and len(lines(log, "begin")) == 7)
        os.kill(process.pid, signal.SIGINT)
        process.join(10)
        assert process.exitcode == 1  # KeyboardInterrupt, as in any program
        assert _states(ledger) == {"done": 5}
        for seed in (5, 6):
            assert ledger.claim(Job(wanted[0].cell, seed), stamp_of("", "", "cpu")) is ClaimStatus.OURS


def test_an_interrupt_while_runs_are_recorded_waits_for_the_last_of_them(ledger, monkeypatch):
    """Two workers have handed over what they did; Ctrl-C comes while the first is written, and again."""
    record = ledger.record

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return record(*arguments)

    class Both(workers.LocalEngine):
        def wait(self, seconds):
            return [ended for _ in range(2) for ended in super(Both, self).wait(10)] if seconds else super().wait(0)

    monkeypatch.setattr(ledger, "record", interrupted)
    monkeypatch.setattr("demonet_study.ledger.work.LocalEngine", Both)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        do(ledger, [Wanted(cell("a"), 9)])
    assert _states(ledger)["done"] == 2
    assert signal.getsignal(signal.SIGINT) is before


def _states(ledger):
    return dict(ledger._rows("SELECT state, count(*) FROM runs GROUP BY state"))


class Changing:
    """The stamp of source that changes after it was asked for twice."""

    asked = 0

    def __call__(self, kind, dataset, device):
        self.asked += 1
        return stamp_of(kind, dataset, "cpu" if self.asked <= 2 else "other")


def test_source_that_changes_meanwhile_stops_the_work(ledger):
    with pytest.raises(DemonetError, match="source"):
        work(ledger, [Wanted(cell("a"), 5)], perform, stamp_of=Changing())
    assert len(ledger.results([cell("a")])[cell("a")]) <= 1


def differs(kind, dataset, device, main=os.getpid()):  # noqa: B008  (the process that imports this file)
    """The stamp of source that is another one in workers."""
    return stamp_of(kind, dataset, "cpu" if os.getpid() == main else "other")


def test_a_worker_with_other_code_does_not_count(ledger):
    worked = work(ledger, [Wanted(cell("a"), 1)], perform, stamp_of=differs)
    assert "differ from those that claimed" in worked.failures[0].error


def test_the_likest_runs_tell():
    def of(dataset, method, split="thirds", options="{}"):
        return Cell("accuracy", dataset, method, options=options, split=split)

    usa, rolx = of("usa", "gcn"), of("usa", "rolx")
    estimate = Estimate([(of("brazil", "gcn"), 2, 2.0), (of("brazil", "gcn", "nested:10"), 1, 20.0), (usa, 1, 7.0)])
    estimate.add(rolx, 5.0)
    asked = [usa, rolx, of("brazil", "gcn", options='{"a":1}'), of("europe", "gcn"), of("europe", "gcn", "train:0.3")]
    assert [estimate.of(cell) for cell in asked] == [7.0, 5.0, 1.0, 3.0, 29.0 / 4]
