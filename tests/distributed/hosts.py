"""Two hosts on one machine: namespaces of Linux for processes, network, names and memory, and a cable between them.

The cable is the only network that they have. Nothing is left behind: all processes of a host end with its first one,
which ends with this process, and network and mounts vanish with them.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch.distributed as dist

from demonet.distributed import worker

ROOT = Path(__file__).parents[2]
NAMES, ADDRESSES = ("first", "second"), ("10.9.8.1", "10.9.8.2")
PATIENCE = 600.0  # seconds, of a test on a busy machine
_SPACES = ["unshare", "--uts", "--ipc", "--pid", "--mount", "--mount-proc", "--fork", "--kill-child"]
_SETUP = """
hostname "$0"
mount --bind "$1" /srv
mount --bind "$2" /etc/hosts
mount -t tmpfs tmpfs /dev/shm
echo ready
exec sleep infinity
"""


def missing() -> str:
    """Why there can be no hosts here; nothing if there can be."""
    if sys.platform != "linux" or os.geteuid():
        return "namespaces need root on Linux"
    absent = [name for name in ("ip", "tc", "ss", "unshare", "nsenter") if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} (of iproute2 and util-linux) is not installed"
    command = [*_SPACES, "--net", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]
    tried = subprocess.run(command, check=False, capture_output=True)
    return "no namespaces can be made here" if tried.returncode else ""


class Host:
    """One host.

    Args:
        number: 0 or 1.
        folder: What it has at ``/srv``.
    """

    def __init__(self, number: int, folder: Path) -> None:
        self.name, self.address, self.folder = NAMES[number], ADDRESSES[number], folder
        holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo && exec sleep infinity"], stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        holder.stdout.readline()
        self.network = os.open(f"/proc/{holder.pid}/ns/net", os.O_RDONLY)  # it lives as long as this is open
        holder.kill()
        holder.communicate()
        self.boot()
        self.run("ip", "link", "set", "lo", "up")

    @property
    def network_path(self) -> str:
        """Its network, as ``ip`` and ``nsenter`` take it."""
        return f"/proc/{os.getpid()}/fd/{self.network}"

    def boot(self) -> None:
        """Start the first process."""
        names = self.folder / f"hosts-{self.name}"
        names.write_text("127.0.0.1 localhost\n" + "".join(map("{} {}\n".format, ADDRESSES, NAMES)))
        command = ["nsenter", f"--net={self.network_path}", *_SPACES, "sh", "-ec", _SETUP]
        command += [self.name, str(self.folder), str(names)]
        self._first = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=_end_with_parent)
        assert self._first.stdout is not None
        assert self._first.stdout.readline() == b"ready\n"
        self._pid = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children").read_text().split()[0]

    def command(self, *command: str) -> list[str]:
        """The command that runs a command on this host."""
        return ["nsenter", "-t", self._pid, "-n", "-u", "-i", "-p", "-m", "--wdns=/srv", *command]

    def start(self, log: str, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a command of Python; what it says goes to a file of the host."""
        variables = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
        variables |= {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "OMP_NUM_THREADS": "1"}
        with (self.folder / log).open("wb") as out:
            return subprocess.Popen(
                self.command(sys.executable, *command),
                env=variables | environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def run(self, *command: str) -> str:
        """Run a command that takes no time, and return what it says."""
        return subprocess.run(self.command(*command), check=True, capture_output=True, text=True, timeout=60).stdout

    def slow_down(self) -> None:
        """20 Mbit a second, and 2 ms later than sent where the kernel can do that."""
        to = ["tc", "qdisc", "replace", "dev", "cable", "root"]
        try:
            self.run(*to, "netem", "delay", "2ms", "rate", "20mbit")
        except subprocess.CalledProcessError:
            self.run(*to, "tbf", "rate", "20mbit", "burst", "32kb", "latency", "1s")

    def listening(self) -> set[str]:
        """The addresses at which something listens."""
        return {line.split()[3].rpartition(":")[0] for line in self.run("ss", "-Hltn").splitlines()}

    def die(self) -> None:
        """End all processes at once, as by ``kill -9``; the network stays."""
        self._first.kill()
        self._first.communicate()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; unshare is deaf to SIGTERM


@contextmanager
def two_hosts(*folders: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts with a cable between them."""
    hosts: list[Host] = []
    try:
        for number, folder in enumerate(folders):
            hosts.append(Host(number, folder))
        ends = [["name", "cable", "netns", host.network_path] for host in hosts]
        subprocess.run(["ip", "link", "add", *ends[0], "type", "veth", "peer", *ends[1]], check=True)
        for host in hosts:
            host.run("ip", "address", "add", f"{host.address}/24", "dev", "cable")
            host.run("ip", "link", "set", "cable", "up")
        yield hosts[0], hosts[1]
    finally:
        for host in hosts:
            host.die()
            os.close(host.network)


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Look again and again, for a while."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE:.0f} s"
        time.sleep(0.05)


def lose_the_other() -> None:
    """A process of a group, on a machine that loses the other: one process waits for gloo, the other sleeps."""
    worker.SILENCE = 6
    with worker.group():
        dist.barrier()
        print("joined", flush=True)
        if dist.get_rank():
            dist.barrier()
        time.sleep(PATIENCE)


if __name__ == "__main__":
    lose_the_other()
