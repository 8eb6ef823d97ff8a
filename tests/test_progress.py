"""Progress: quiet lines in a file, a live bar on a terminal."""

import io

import pytest
from rich.console import Console

from demonet.progress import EpochBar
from demonet.train.loop import Epoch


def watched(epochs, **options):
    with EpochBar(options.pop("label", "demonet"), epochs, **options) as progress:
        for number in range(epochs):
            progress(Epoch(number, 1.5 - number / 1000, 1.0, number / 1000))


def test_lines_where_there_is_no_terminal(capfd):
    watched(250, every=100)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "demonet: epoch 100, loss 1.401  validation accuracy 0.099",
        "demonet: epoch 200, loss 1.301  validation accuracy 0.199",
        "demonet: epoch 250, loss 1.251  validation accuracy 0.249",
    ]


def test_the_last_epoch_has_a_line_however_few_there_are(capfd):
    watched(8, every=100)
    assert "epoch 8, " in capfd.readouterr().err


def test_a_long_name_stays_one_line_and_cannot_command_the_terminal(capfd):
    label = "[red]" + "a long name " * 20
    watched(1, every=1, label=f"{label}\x1b[31m")
    assert capfd.readouterr().err == f"{label}\\x1b[31m: epoch 1, loss 1.500  validation accuracy 0.000\n"


@pytest.fixture
def screen(monkeypatch):
    """What a terminal of 100 columns gets."""
    screen = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **options: Console(file=screen, force_terminal=True, width=100, legacy_windows=False),
    )
    return screen


def test_a_bar_on_a_terminal(screen):
    watched(250, label="[b]demonet")
    shown = screen.getvalue()
    assert "250/250" in shown
    assert "validation accuracy 0.249" in shown
    assert "loss 1.251" in shown
    assert "[b]demonet" in shown
    assert "━" in shown
    assert "epoch 100" not in shown  # the lines are for files
    assert shown.endswith("\x1b[2K")  # and it is gone afterwards


def test_the_bar_goes_away_when_training_fails(screen):
    def failing():
        with EpochBar("demonet", 10) as progress:
            progress(Epoch(0, 1.0, 1.0, 0.5))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert screen.getvalue().endswith("\x1b[2K")
