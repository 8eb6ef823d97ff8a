"""The runner: complete rows, whatever happens to a method; the floor by hand; files."""

import math
import os
import signal
from dataclasses import asdict, replace

import pytest
from tests.study.ledger.fakes import FORK

from demonet import DemonetError, workers
from demonet_study.bench import METHODS, GraphSpec, bench, methods, runner
from demonet_study.bench.floor import floor_bytes
from demonet_study.bench.measure import Row
from demonet_study.bench.runner import RESET
from demonet_study.experiments.rows import read_rows, write_rows

SPEC = GraphSpec("uniform", nodes=40)
FAST = {"repeats": 3, "seconds": 0.0, "bandwidth": 1e10, "command": "bench"}


@pytest.mark.parametrize("together", [True, False])
def test_rows_are_complete_and_come_back_from_their_file(together, tmp_path):
    rows = bench(SPEC, ["weight", "gcn", "mlp"], together=together, **FAST)
    write_rows(rows, tmp_path / "rows.csv")
    write_rows(again := read_rows(Row, tmp_path / "rows.csv"), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "rows.csv").read_text()
    assert [row.ms for row in again] == pytest.approx([row.ms for row in rows], rel=1e-5)
    assert [row.method for row in rows] == ["weight", "gcn", "mlp"]
    for row in rows:
        assert (row.graph, row.nodes, row.arcs, row.error) == ("uniform", 40, 160, "")
        assert row.largest < 40
        assert 1 < row.degrees <= row.largest + 1
        assert 0 < row.q1 <= row.ms <= row.q3
        assert (row.samples, row.command) == (3, "bench")
        assert "torch" in row.versions
        assert row.device
        assert row.threads >= 1
    ours, *others = rows
    assert 0 < ours.step_floor_ms < ours.floor_ms
    assert all(math.isnan(row.floor_ms) for row in others)


def test_a_method_that_fails_is_a_row_that_says_why(monkeypatch):
    def broken(graph, dtype):
        raise RuntimeError("no such\nkernel")

    monkeypatch.setitem(methods.METHODS, "gcn", replace(METHODS["gcn"], build=broken))
    failed, fine = bench(SPEC, ["gcn", "mlp"], **FAST)
    assert failed.error == "RuntimeError: no such kernel"
    assert failed.failed
    assert failed.samples == 0
    assert not fine.failed


def test_a_method_that_fails_while_it_is_timed_is_a_row_too(monkeypatch):
    def fragile(graph, dtype):
        built = METHODS["mlp"].build(graph, dtype)
        left = [None] * 6  # three to warm up, one to see how long it takes, two rounds

        def count_down(*_):
            left.pop()

        built.model.register_forward_pre_hook(count_down)
        return built

    monkeypatch.setitem(methods.METHODS, "gcn", replace(METHODS["gcn"], build=fragile))
    monkeypatch.setattr("demonet_study.bench.runner.SAMPLE_SECONDS", 0.0)
    failed, fine = bench(SPEC, ["gcn", "mlp"], **FAST)
    assert "pop from empty list" in failed.error
    assert failed.failed
    assert not fine.failed


def test_modes_that_cannot_run_here_are_rows_too():
    rows = bench(SPEC, ["mlp"], modes=("eager", "graphed"), **FAST)
    assert [(row.mode, row.failed) for row in rows] == [("eager", False), ("graphed", True)]
    assert "CUDA" in rows[1].error


def crash(asked):
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(asked):
    os._exit(3)


@pytest.mark.parametrize(("end", "words"), [(crash, "SIGSEGV"), (leave, "code 3")])
def test_a_compiled_network_that_ends_its_process_is_a_row_too(monkeypatch, end, words):
    monkeypatch.setattr(workers, "CONTEXT", FORK)
    monkeypatch.setattr(runner, "answer", end)
    eager, compiled = bench(SPEC, ["mlp"], modes=("eager", "compiled"), **FAST)
    assert not eager.failed
    assert words in compiled.error


def test_a_process_of_its_own_measures_its_memory():
    """20,000 nodes: features alone are 5 MB, activations and gradients several times that."""
    (row,) = bench(GraphSpec("uniform", nodes=20_000), ["weight"], apart=True, **FAST)
    assert (row.samples, row.error) == (3, "")
    assert 0 < row.q1 <= row.ms <= row.q3
    assert row.setup_ms > 0
    assert 10 < row.memory_mib < 500 if RESET.exists() else math.isnan(row.memory_mib)


def test_what_fails_in_a_process_of_its_own_is_reported():
    order = {"spec": asdict(SPEC), "method": "weight", "precision": "tf32", "mode": "eager"}
    assert "tf32" in runner.answer((order, 1))["error"]


def test_another_file_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DemonetError, match=r"a\.csv:1"):
        read_rows(Row, tmp_path / "a.csv")


def test_the_floor_by_hand():
    """n = 3, m = 4, F = 5, C = 2, s = 4, i = 4, P = 7: the tables of floor.py, line by line."""
    x, h, gather, parameters = 3 * 5 * 4, 3 * 2 * 4, 4 * 2 * 4 + 4 * 4, 10 * 7 * 4
    assert (x, h, gather, parameters) == (60, 24, 48, 280)
    layer = (2 * x + h) + (gather + 2 * h) + min(2 * h, gather) + (2 * h + 24) + (3 * h + gather + 1.5 * h)
    layer += (2 * x + h) + parameters
    step = (2 * x + h) + (gather + 2.5 * h + 24) + (gather + 1.5 * h + 2 * x) + parameters
    assert floor_bytes(3, 4, 7, width=5, hidden=2) == (layer, step) == (940, 760)


def test_the_floor_without_preparation_gathers_the_input():
    prepared, bare = (floor_bytes(3, 4, 7, width=5, hidden=2, prepared=prepared) for prepared in (True, False))
    gather_x = 4 * 5 * 4 + 4 * 4
    assert bare.by_layer - prepared.by_layer == gather_x + min(2 * 60, gather_x) - 2 * 60
