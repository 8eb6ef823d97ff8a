"""Engines as they are used: forked or spawned workers, a Ray cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from multiprocessing.forkserver import ForkServer

import pytest
import torch
from tests.study.ledger.fakes import Wanted, cell, perform, stamp_of, value
from threadpoolctl import threadpool_info

from demonet.errors import DemonetError
from demonet.workers import LocalEngine
from demonet_study.ledger.job import Job, Outcome
from demonet_study.ledger.store import Ledger
from demonet_study.ledger.work import ordered_tasks, run_task, work


def describe(job: Job, device: str) -> Outcome:
    """What a worker is like."""
    threads = [torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())]
    deaf = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return Outcome(0.0, 0.0, 0.0, {"threads": max(threads), "deaf": deaf, "pid": os.getpid()})


def no_server(self: ForkServer) -> None:
    raise FileNotFoundError("no temporary folder")


@pytest.mark.parametrize("served", [True, False])
def test_a_worker_has_one_thread_and_no_ear_for_ctrl_c(monkeypatch, served):
    """Forked from a server, or spawned where there is none."""
    if not served:
        monkeypatch.setattr(ForkServer, "ensure_running", no_server)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    engine = LocalEngine(partial(run_task, describe, stamp_of, "cpu"), 1)
    first, second = ordered_tasks([Wanted(cell("a"), 2)], "cpu", stamp_of)
    found = []
    for task in (first, second):
        engine.start(task)
        (ended,) = engine.wait(60)
        assert ended.task == task
        assert ended.outcome, ended.error
        found.append(ended.outcome.extra)
    engine.close()
    assert found[0] == found[1] == {"threads": 1, "deaf": True, "pid": found[0]["pid"]}
    assert found[0]["pid"] != os.getpid()
    assert os.environ["OMP_NUM_THREADS"] == "2"
    assert "MKL_NUM_THREADS" not in os.environ
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


UNGUARDED = """
from functools import partial
from operator import add
from demonet.workers import LocalEngine

engine = LocalEngine(partial(add, bytes(2**20)), 1)  # more than a pipe holds
engine.start(b"")
print([ended.error for ended in engine.wait(60)], flush=True)
engine.close()
"""


def test_a_worker_that_ends_before_it_has_read_what_to_perform_ends_its_task(tmp_path):
    """Workers import the main module; a script without a guard would start workers of its own, which is an error."""
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "worker process exited with code 1" in done.stdout


def test_a_ray_cluster_does_the_same_work(tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    wanted = Wanted(cell("a", fail=1, crash=2), 3)
    try:
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            worked = work(ledger, [wanted], perform, engine="ray", stamp_of=stamp_of)
            assert (worked.runs, [failure.job.seed for failure in worked.failures]) == (1, [1, 2])
            assert "no such luck" in worked.failures[0].error
            assert "worker died" in worked.failures[1].error
            (first,) = ledger.results([wanted.cell])[wanted.cell]
            assert first.outcome.value == value(first.job)
            assert first.outcome.extra["pid"] != os.getpid()
        assert ray.is_initialized()  # it was there before
    finally:
        ray.shutdown()


def test_without_ray_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with Ledger(tmp_path / "l") as ledger, pytest.raises(DemonetError, match=r"demonet\[ray\]"):
        work(ledger, [Wanted(cell("a"), 1)], perform, engine="ray", stamp_of=stamp_of)
