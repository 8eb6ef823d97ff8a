"""``demonet fit`` over processes: it writes what one process writes, goes on after a kill, and fails in one line."""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch.distributed as dist
from tests.distributed.processes import run
from tests.reference.layers import PAPER
from tests.runs.files import FILES, page, write_problem

from demonet import DemonetError
from demonet.degree.tasks import DegreeTasks
from demonet.distributed import launch
from demonet.distributed.store import Store
from demonet.distributed.training import Share
from demonet.distributed.worker import Leader, Training, _with_part, serve
from demonet.runs import Settings, fit_run, load_run
from demonet.runs.engines import count_workers, join
from demonet.runs.storing import store_graph
from demonet.train import Classify, TrainConfig

ROOT = Path(__file__).parents[2]
SETTINGS = Settings(engine="torchrun", epochs=30)


@pytest.fixture
def problem(tmp_path, monkeypatch):
    write_problem(tmp_path)
    monkeypatch.chdir(tmp_path)
    store_graph("edges.csv", "labels.csv", "features.csv", out="store", parts=2, partition="hash")
    return tmp_path


def fit(folder, edges, settings, out, labels=None):
    """A run in this group: the first process leads, the others serve. What went wrong, as text."""
    os.chdir(folder)
    if dist.get_rank():
        return serve()
    try:
        with Leader() as lead:
            fit_run(edges, labels, out=out, settings=settings, page=page, lead=lead)
    except DemonetError as error:
        return str(error)
    return None


def numbers(out):
    found = load_run(out)
    return np.array([found.history["train_loss"], found.history["val_loss"]]), found.outputs


def test_a_run_over_processes_is_that_of_one(problem):
    """From a store, and from a file that is cut on the way; two splits; the folder is that of any run."""
    settings = replace(SETTINGS, cv=2, epochs=5)
    assert run(1, fit, problem, "store", replace(settings, workers=1), "wrong") == [
        "store: the store has 2 parts for 1 workers (workers=2 fits it, or write another store)"
    ]
    assert run(1, fit, problem, "edges.csv", settings, "one", "labels.csv") == [None]
    assert run(2, fit, problem, "edges.csv", replace(settings, partition="hash"), "two", "labels.csv") == [None, None]
    assert sorted(file.name for file in Path("two").iterdir()) == FILES
    for one, two in zip(numbers("one"), numbers("two"), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-4)
    assert load_run("two").metrics["cv"]["splits"] == 2
    assert run(2, fit, problem, "store", settings, "stored") == [None, None]
    assert load_run("stored").config["sizes"]["attributes"] == 2


def test_a_worker_that_is_killed_is_started_again_and_the_run_ends_in_the_same_bits(problem, monkeypatch, capfd):
    """Meanwhile nothing listens but on the loopback device: torch would unpickle what anyone sends."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    arguments = ["fit", "store", "--engine", "torchrun", "--epochs", "30", "--out", "killed"]
    code = launch.launch(arguments, 2, "tests.distributed.watched")
    error = capfd.readouterr().err
    assert code == 0, error
    assert "exitcode: -9" in error
    assert run(2, fit, problem, "store", SETTINGS, "whole") == [None, None]
    for name in ("predictions.csv", "split.json"):
        assert Path("killed", name).read_bytes() == Path("whole", name).read_bytes()
    for killed, whole in zip(numbers("killed"), numbers("whole"), strict=True):
        np.testing.assert_array_equal(killed, whole)
    found = Path("listening.txt").read_text().split()
    assert len(found) >= 2  # gloo, in each worker
    assert all(ipaddress.ip_address(address).is_loopback for address in found), found


def test_a_damaged_part_is_one_error_in_the_first_process(problem):
    Path("store/part-001/halo.npy").unlink()
    problems = run(2, fit, problem, "store", SETTINGS, "out")
    assert problems[1] is None
    assert "part-001" in problems[0]
    assert "missing" in problems[0]
    assert not Path("out/metrics.json").exists()


def opened(folder, checksum):
    """What a worker says of each store on its own machine."""
    os.chdir(folder)
    training = Training(1, DegreeTasks.log2(1), PAPER, TrainConfig(), Classify(), "")
    said = []
    for copy in ("copy", "damaged", "other"):
        stored = replace(training, store=(copy if dist.get_rank() else "store", checksum))
        try:
            said.append(_with_part(stored, Share(None, None, None, (), (), ())).part.nodes.numel())
        except DemonetError as error:
            said.append(str(error))
    return said


def test_a_worker_whose_store_is_damaged_or_another_ends_all_of_them_with_its_error(problem):
    shutil.copytree("store", "copy")
    shutil.copytree("store", "damaged")
    Path("damaged/part-001/halo.npy").write_bytes(b"damaged")
    store_graph("edges.csv", "labels.csv", out="other", parts=2)
    found = run(2, opened, problem, Store("store").checksum)
    assert sum(each[0] for each in found) == 60
    for _, damaged, other in found:
        assert damaged.startswith("worker 1: damaged/part-001/halo.npy")
        assert "not the store" in other


def test_the_command_is_started_in_processes_and_its_exit_code_comes_back(problem, capfd):
    assert launch.launch(["fit", "missing.csv", "--engine", "torchrun", "--out", "run"], 2) == 2
    error = capfd.readouterr().err
    assert error.count("missing.csv") == 1  # an expected error starts nothing again
    assert "exitcode" not in error


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_workers_end_with_a_parent_that_is_killed(tmp_path, number):
    """Three processes and four ports were left of a parent that had no time to end them."""
    code = "from demonet.distributed.launch import launch; launch([], 2, 'tests.distributed.waiting')"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    parent = psutil.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment)
    group = []
    try:
        while parent.poll() is None and not all((tmp_path / f"met-{rank}").exists() for rank in range(2)):
            time.sleep(0.1)
        group = parent.children(recursive=True)
        found = [one.laddr for process in group for one in process.net_connections("inet") if one.status == "LISTEN"]
        assert len(group) >= 3
        assert found
        parent.send_signal(number)
        assert not psutil.wait_procs(group, timeout=120)[1]
        for address in found:
            with pytest.raises(ConnectionRefusedError), socket.create_connection(address, 5):
                pass
    finally:
        for process in (parent, *group):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        parent.wait()


def test_the_status_of_the_first_process_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("DEMONET_STATUS", str(tmp_path / "status"))
    monkeypatch.setenv("RANK", "0")
    assert not launch.ended_before()
    for code in (launch.LOST, 2):  # one that has lost the others is started again
        with pytest.raises(SystemExit) as caught, launch.status():
            sys.exit(code)
        assert caught.value.code == (code if code == launch.LOST else 0)
        assert launch.ended_before() == (code == 2)
    assert (tmp_path / "status").read_text() == "2"


def test_workers_are_counted(problem, refuses):
    assert count_workers("store", None) == 2
    assert count_workers("edges.csv", 3) == 3
    refuses(lambda: count_workers("edges.csv", None), "workers")


def test_options_that_do_not_fit_are_refused(problem, refuses):
    refuses(lambda: Settings(workers=2), "workers", "local")
    refuses(lambda: Settings(engine="torchrun", batch_size=8), "batch_size", "torchrun")
    refuses(lambda: Settings(engine="spark"), "engine", "spark")
    refuses(lambda: Settings(engine="ray", model="kernel"), "engine")
    refuses(lambda: fit_run("store", out="out", settings=SETTINGS), "engine")
    refuses(lambda: join(SETTINGS).__enter__(), "engine", "torchrun")


def test_one_process_reads_a_store_too(problem):
    fit_run("store", out="store-run", settings=Settings(epochs=8), page=page)
    fit_run("edges.csv", "labels.csv", "features.csv", out="file-run", settings=Settings(epochs=8), page=page)
    assert Path("store-run/predictions.csv").read_bytes() == Path("file-run/predictions.csv").read_bytes()


def test_ray_starts_the_same_workers(problem):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        settings = replace(SETTINGS, engine="ray", workers=2, epochs=3)
        with join(settings) as role:
            fit_run("store", out="ray", settings=settings, page=page, lead=role.lead)
        assert ray.is_initialized()  # it was there before
    finally:
        ray.shutdown()
    assert run(2, fit, problem, "store", replace(SETTINGS, epochs=3), "torchrun") == [None, None]
    for one, other in zip(numbers("ray"), numbers("torchrun"), strict=True):
        np.testing.assert_array_equal(one, other)
