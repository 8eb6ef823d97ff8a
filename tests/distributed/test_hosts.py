"""Two hosts with a slow cable between them: the same bits as on one, also after one of them is lost; what listens."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.distributed.hosts import NAMES, Host, missing, two_hosts, wait_for
from tests.distributed.processes import run
from tests.distributed.test_engines import SETTINGS, fit, numbers
from tests.runs.files import write_problem

from demonet.distributed.launch import LOST
from demonet.runs.storing import store_graph

EPOCHS = 100  # with a checkpoint every 25
SAME = ("predictions.csv", "split.json")
ENGINE = ["demonet", "fit", "store", "--out", "run", "--epochs", str(EPOCHS), "--engine"]
TORCHRUN = "torch.distributed.run --nnodes 2 --nproc-per-node 1 --max-restarts 3"
TORCHRUN += " --rdzv-backend c10d --rdzv-endpoint first:29500 --rdzv-id fit-1 -m"
NETWORK = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "GLOO_SOCKET_IFNAME": "cable"}
RAY = {"RAY_TMPDIR": "/dev/shm", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": "/srv/token"}
RAY |= {f"RAY_health_check_{name}": "1000" for name in ("period_ms", "initial_delay_ms", "timeout_ms")}

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "there can be hosts")


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """A store, and its runs by two processes of this machine and by one."""
    folder = tmp_path_factory.mktemp("problem")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_problem(folder)
        for parts, name, out in ((1, "whole", "alone"), (2, "store", "run")):
            store_graph("edges.csv", "labels.csv", "features.csv", out=name, parts=parts, partition="hash")
            assert run(parts, fit, folder, name, replace(SETTINGS, epochs=EPOCHS), out) == [None] * parts
    return folder


@pytest.fixture
def folders(problem, tmp_path):
    """A folder for each host, with a copy of the store."""
    found = [tmp_path / name for name in NAMES]
    for folder in found:
        shutil.copytree(problem / "store", folder / "store")
    return found


def start(host: Host, log: str = "log"):
    return host.start(log, "-m", *TORCHRUN.split(), *ENGINE, "torchrun", **NETWORK)


def said(folder: Path, log: str = "log") -> str:
    return (folder / log).read_text()


def check_same(folder: Path, problem: Path) -> None:
    for name in SAME:
        assert (folder / "run" / name).read_bytes() == (problem / "run" / name).read_bytes()
    for found, wanted in zip(numbers(folder / "run"), numbers(problem / "run"), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_run_over_two_hosts_is_that_of_one_and_listens_where_the_manual_says(problem, folders):
    with two_hosts(*folders) as hosts:
        for host in hosts:
            host.slow_down()
        processes = [start(host) for host in hosts]
        heard: list[set[str]] = [set(), set()]

        def ended() -> bool:
            for addresses, host in zip(heard, hosts, strict=True):
                addresses |= host.listening()
            return all(process.poll() is not None for process in processes)

        wait_for(ended, "the end")
        assert [process.returncode for process in processes] == [0, 0], said(folders[0]) + said(folders[1])
        assert heard == [{"*", hosts[0].address}, {hosts[1].address}]
    check_same(folders[0], problem)
    for one, two in zip(numbers(problem / "alone"), numbers(folders[0] / "run"), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-4)


def test_a_host_that_is_lost_can_come_back_and_the_run_ends_in_the_same_bits(problem, folders):
    with two_hosts(*folders) as hosts:
        for host in hosts:
            host.slow_down()
        process, lost = start(hosts[0]), start(hosts[1])
        wait_for(lambda: [*folders[0].glob("run/unfinished/checkpoint*")], "a checkpoint")
        hosts[1].die()
        assert lost.wait(60) != 0
        hosts[1].boot()
        again = start(hosts[1], "again")
        wait_for(lambda: process.poll() is not None, "the end")
        assert process.returncode == again.wait(60) == 0, said(folders[0]) + said(folders[1], "again")
    assert "another worker has died" in said(folders[0])
    check_same(folders[0], problem)


def test_a_host_that_falls_silent_ends_the_processes_that_wait_for_it_and_those_that_do_not(folders):
    with two_hosts(*folders) as hosts:
        processes = []
        for rank, host in enumerate(hosts):
            place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "first", "MASTER_PORT": "29500"}
            processes.append(host.start("log", "-m", "tests.distributed.hosts", **place, **NETWORK))
        wait_for(lambda: all("joined" in said(folder) for folder in folders), "a group")
        hosts[1].run("ip", "link", "set", "cable", "down")
        wait_for(lambda: all(process.poll() is not None for process in processes), "the end")
        for process, folder in zip(processes, folders, strict=True):
            assert process.returncode == LOST, said(folder)
            assert said(folder).count("its machine cannot be reached") == 1


def start_ray(host: Host, log: str, *options: str, **environment: str):
    words = f"ray.scripts.scripts start --node-ip-address {host.address} --num-cpus 1 --object-store-memory 80000000"
    return host.start(log, "-m", *words.split(), "--disable-usage-stats", "--block", *options, **RAY | environment)


@pytest.mark.skipif("DEMONET_RAY_HOSTS" not in os.environ, reason="takes a minute and a half: make processes")
def test_a_ray_cluster_of_two_hosts_goes_on_after_one_is_lost_and_ends_in_the_same_bits(problem, tmp_path):
    """They share a disk. A node with another token is refused."""
    pytest.importorskip("ray", reason="Ray is not installed")
    shutil.copytree(problem / "store", tmp_path / "store")
    (tmp_path / "token").write_text("a" * 48)
    address = {"RAY_ADDRESS": "10.9.8.1:6379"}
    with two_hosts(tmp_path, tmp_path) as hosts:
        start_ray(hosts[0], "head", "--head", "--include-dashboard=false", "--port=6379")
        wait_for(lambda: "Ray runtime started" in said(tmp_path, "head"), "a head")
        node = ["--address=10.9.8.1:6379"]
        stranger = start_ray(hosts[1], "stranger", *node, RAY_AUTH_TOKEN="b" * 48)
        wait_for(lambda: stranger.poll() is not None, "a refusal")
        assert stranger.returncode != 0
        start_ray(hosts[1], "node", *node)
        wait_for(lambda: "Ray runtime started" in said(tmp_path, "node"), "a node")
        for host in hosts:
            host.slow_down()
        process = hosts[0].start("log", "-m", *ENGINE, "ray", **RAY | address)
        wait_for(lambda: process.poll() is not None or [*tmp_path.glob("run/unfinished/checkpoint*")], "a checkpoint")
        assert process.poll() is None, said(tmp_path)
        hosts[1].die()
        hosts[1].boot()
        start_ray(hosts[1], "again", *node)
        wait_for(lambda: process.poll() is not None, "the end")
        assert process.returncode == 0, said(tmp_path)
    check_same(tmp_path, problem)
