"""`fit` opens each input file once, checks the graph once, and turns labels in words into numbers once."""

from __future__ import annotations

import builtins
import gzip
import io
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.runs.files import FAST, fit, write_tu
from torch_geometric.data import Data

from demonet import DEMONetClassifier
from demonet.data import read
from demonet.ensemble import Ensemble
from demonet.estimators import core
from demonet.estimators import graphs as graph_estimator
from demonet.estimators import nodes as node_estimator
from demonet.estimators.models import KernelModel, NetworkModel
from demonet.runs import Settings, fit_run, predict_run
from demonet.runs import fit as fit_module
from demonet.runs.plan import make_plan


@pytest.fixture
def opened(monkeypatch):
    """How often each file is opened, by Python or by Arrow."""
    from pyarrow import parquet

    counts: Counter[str] = Counter()
    original = io.open

    def counting(file, *arguments, **options):
        if isinstance(file, str | Path):
            counts[Path(file).name] += 1
        return original(file, *arguments, **options)

    def counting_arrow(function):
        def read(source, *arguments, **options):
            if isinstance(source, str | Path):
                counts[Path(source).name] += 1
            return function(source, *arguments, **options)

        return read

    monkeypatch.setattr(io, "open", counting)
    monkeypatch.setattr(builtins, "open", counting)
    for name in ("read_schema", "read_table"):
        monkeypatch.setattr(parquet, name, counting_arrow(getattr(parquet, name)))
    return counts


def test_each_file_of_a_graph_or_a_set_of_graphs_is_opened_once(problem, opened):
    fit_run("edges.csv", "labels.csv", "features.csv", out="run", settings=FAST)
    assert {name: opened[name] for name in ("edges.csv", "labels.csv", "features.csv")} == {
        **{"edges.csv": 1, "labels.csv": 1, "features.csv": 1}
    }
    opened.clear()
    predict_run("run", "edges.csv", "features.csv")
    assert (opened["edges.csv"], opened["features.csv"]) == (1, 1)
    fit_run("graphs.csv", "kinds.csv", out="graphs", settings=FAST)
    assert (opened["graphs.csv"], opened["kinds.csv"]) == (1, 1)


def test_each_file_of_a_folder_is_opened_once(problem, opened):
    texts = write_tu(problem, 12, graph_labels=[str(g % 2) for g in range(12)])
    for part, text in texts.items():
        (problem / "SET" / f"SET_{part}.txt").unlink()
        (problem / "SET" / f"SET_{part}.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (problem / "SET" / "README.md").write_text("about it")
    opened.clear()
    fit_run("SET", out="run", settings=FAST)
    assert {name: times for name, times in opened.items() if name.startswith(("SET_", "README"))} == {
        **{f"SET_{part}.txt.gz": 1 for part in texts},
        "README.md": 1,
    }


def test_a_graph_that_was_read_does_not_pass_the_estimators_reader(problem, monkeypatch):
    """It is for what users pass: a run would check its graph twice."""

    def read_again(*arguments, **options):
        raise AssertionError("read again")

    monkeypatch.setattr(node_estimator, "read_graph", read_again)
    monkeypatch.setattr(graph_estimator, "read_graph", read_again)
    fit()
    predict_run("run", "edges.csv")
    fit_run("graphs.csv", "kinds.csv", out="graphs", settings=FAST)
    predict_run("graphs", "graphs.csv")


@pytest.mark.parametrize(
    ("edges", "labels", "settings"),
    [
        ("edges.csv", "labels.csv", FAST),
        ("edges.csv", "labels.csv", Settings(model="kernel")),
        ("graphs.csv", "kinds.csv", FAST),
    ],
)
def test_labels_are_encoded_once(problem, monkeypatch, edges, labels, settings):
    """Words become codes in the reader; every model of nodes is fitted on the same tensor."""
    calls, tensors, made = [], [], []
    for name, module in [*sys.modules.items()]:
        if name.startswith("demonet.") and hasattr(module, "encode_classes"):
            encode = module.encode_classes
            monkeypatch.setattr(
                module, "encode_classes", lambda *given, encode=encode: (calls.append(given), encode(*given))[1]
            )

    def remembering(function):
        return lambda *given, **options: (tensors.append(given[0].y), function(*given, **options))[1]

    monkeypatch.setattr(core, "train_nodes", remembering(core.train_nodes))
    monkeypatch.setattr(KernelModel, "fit", remembering(KernelModel.fit))
    monkeypatch.setattr(fit_module, "make_plan", lambda *given: (made.append(make_plan(*given)), made[0])[1])
    fit_run(edges, labels, out="run", settings=settings)
    assert len(calls) == 1
    assert all(y.data_ptr() == made[0].inputs.data.y.data_ptr() for y in tensors)
    assert bool(tensors) == (edges == "edges.csv")


@pytest.fixture
def no_reasons(monkeypatch):
    """Without importance and reasons, which are predictions for changed data."""
    for name in ("importance_facts", "reason_facts"):
        monkeypatch.setattr(fit_module, name, lambda *given, **options: [])


def test_members_of_an_ensemble_are_not_asked_again_for_the_page(problem, monkeypatch, no_reasons):
    def asked_again(*arguments):
        raise AssertionError("asked again")

    with monkeypatch.context() as patch:
        patch.setattr(Ensemble, "member_outputs", asked_again)
        run = fit_run("edges.csv", "labels.csv", out="run", settings=Settings(model="auto", effort="quick"))
    model = DEMONetClassifier.load("run/model.safetensors", graph="edges.csv")
    np.testing.assert_allclose(run.outputs, model.predict_proba(), atol=1e-6)


def test_a_network_prepares_its_graph_once_for_predictions_and_page(problem, monkeypatch, no_reasons):
    calls, original = [], NetworkModel.prepare
    monkeypatch.setattr(NetworkModel, "prepare", lambda *given: (calls.append(given), original(*given))[1])
    fit()
    assert len(calls) == 1


def test_the_table_of_edges_is_parsed_once_and_its_direction_remembered(problem, monkeypatch):
    """PyG's check for undirected edges takes 69 bytes an edge; what the reader did is known without it."""

    def check(*arguments, **options):
        raise AssertionError("directedness is checked again")

    parsed, original = [], read.open_table
    monkeypatch.setattr(read, "open_table", lambda content, path, *rest, **options: (
        parsed.append(path.name), original(content, path, *rest, **options))[1])  # fmt: skip
    monkeypatch.setattr(Data, "is_undirected", check)
    monkeypatch.setattr("torch_geometric.utils.is_undirected", check)
    monkeypatch.setattr("torch_geometric.utils.undirected.is_undirected", check)
    run = fit()
    assert parsed.count("edges.csv") == 1
    assert run.config["sizes"]["edges"] == len((problem / "edges.csv").read_text().split()) - 1
