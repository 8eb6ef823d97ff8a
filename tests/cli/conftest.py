"""The installed command in this process, and the problem of the runs."""

import signal
from importlib.metadata import entry_points

import pytest
from tests.data.conftest import paper_data, use_paper_data  # noqa: F401  (fixtures)
from tests.runs.conftest import problem  # noqa: F401  (a fixture)


@pytest.fixture
def main(monkeypatch, capfd):
    """The command: exit code, stdout, stderr."""
    (script,) = entry_points(group="console_scripts", name="demonet")

    def main(*arguments):
        monkeypatch.setattr("sys.argv", ["demonet", *map(str, arguments)])
        before = signal.getsignal(signal.SIGINT)  # the command leaves its own, as a process ends with it
        try:
            with pytest.raises(SystemExit) as stop:
                script.load()()
        finally:
            signal.signal(signal.SIGINT, before)
        return stop.value.code or 0, *capfd.readouterr()

    return main
