"""Candidates in several processes: the result of one process, an interruption, a worker that dies, a limit."""

from __future__ import annotations

import os
import pickle
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.methods.problems import Broken, Ridge, graph_set, roles
from torch_geometric.data import Data

from demonet.data import thirds
from demonet.ensemble import Ensemble, fitting
from demonet.ensemble.checkpoint import FORMAT
from demonet.ensemble.fitting import Work
from demonet.features.views import view_of
from demonet.methods.boosted import BoostedTrees
from demonet.methods.forest import NodeForest
from demonet.methods.kernel_ridge import NodeKernel
from demonet.methods.model import Labelled
from demonet.methods.wl_models import WLForest, WLNeighbour
from demonet.tensorfile import read_tensors, write_tensors
from demonet.workers import RayEngine

pytestmark = pytest.mark.filterwarnings("ignore:member 'broken':RuntimeWarning")


class Deadly(Ridge):
    """Its fit is ended by the system, as one that takes too much memory is."""

    def _learn(self, view, labelled):
        os.kill(os.getpid(), signal.SIGKILL)


class Slow(Ridge):
    """A fit that takes far longer than it says."""

    def _learn(self, view, labelled):
        time.sleep(600)


def members():
    return [
        NodeForest("forest", columns="structure", trees=10, leaf=2),
        NodeKernel("kernel", kernel="structure"),
        Broken("broken"),
        Ridge("ridge"),
    ]


@pytest.fixture(autouse=True)
def processes(monkeypatch):
    """However little there is to do."""
    monkeypatch.setattr(fitting, "WORTH", 0.0)


def facts(ensemble):
    own = ("name", "status", "loss", "score", "weight", "inductive_weight")
    return [tuple(getattr(row, name) for name in own) for row in ensemble.candidates]


def test_graphs_that_are_parts_of_one_tensor_are_sent_as_such():
    """Each of them took the whole tensor with it: 1 GB for the 600 graphs of ENZYMES."""
    x, y = torch.arange(6000.0).view(2000, 3), torch.zeros(1000, dtype=torch.long)
    ends = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=x[2 * i : 2 * i + 2], edge_index=ends, y=y[i : i + 1]) for i in range(1000)]
    some = np.arange(1000)
    work = Work(view_of(graphs), Labelled(y.numpy(), 2, some[:500], some[500:]), 0)
    sent = pickle.dumps(work)
    assert len(sent) < 8e6
    for one, other in zip(pickle.loads(sent).view.data, graphs, strict=True):
        assert torch.equal(one.x, other.x)


@pytest.mark.long
@pytest.mark.parametrize("items", ["nodes", "graphs"])
def test_the_result_is_that_of_one_process(items):
    """With so few validation items that candidates are judged in folds."""
    if items == "nodes":
        data, tried = roles(motifs=12), members()
        split = thirds(data.y, 0)
        split = replace(split, val=split.val[:20])
    else:
        data, tried = graph_set(60, True), [WLNeighbour("near"), WLForest("forest", trees=10)]
        split = thirds(torch.cat([graph.y for graph in data]), 0)
    alone, other = (Ensemble.fit(data, split, members=tried, jobs=jobs) for jobs in (None, 2))
    assert alone.folds
    assert facts(other) == facts(alone)
    np.testing.assert_array_equal(other.outputs(data), alone.outputs(data))
    np.testing.assert_array_equal(other.strict_outputs, alone.strict_outputs)


@pytest.mark.long
def test_an_interrupted_fit_goes_on_with_another_number_of_processes(tmp_path):
    data, split = roles(), thirds(roles().y, 0)
    whole, told = Ensemble.fit(data, split, members=members()), []

    def interrupt(progress):
        told.append(progress.stage)
        if told.count("done") == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Ensemble.fit(data, split, members=members(), checkpoint=tmp_path, jobs=2, on_progress=interrupt)
    assert list(tmp_path.glob("*.fit.safetensors"))
    fitted = []
    found = Ensemble.fit(data, split, members=members(), checkpoint=tmp_path, on_progress=fitted.append)
    assert sum(each.stage == "fit" for each in fitted) < len(members())
    assert facts(found) == facts(whole)
    np.testing.assert_array_equal(found.outputs(data), whole.outputs(data))


@pytest.mark.long
def test_a_worker_that_dies_takes_its_candidate_alone():
    data = roles()
    with pytest.warns(RuntimeWarning, match="'deadly'.*SIGKILL"):
        found = Ensemble.fit(data, thirds(data.y, 0), members=[Ridge("ridge"), Deadly("deadly")], jobs=2)
    assert [row.status for row in found.candidates] == ["fitted", "failed"]


@pytest.mark.long
def test_what_runs_at_the_time_limit_is_ended():
    data = roles()
    tried = [Ridge("ridge", cost=0.01), Slow("slow", cost=0.02)]
    found = Ensemble.fit(data, thirds(data.y, 0), members=tried, jobs=2, time_limit=15.0)
    assert [row.status for row in found.candidates] == ["fitted", "skipped"]
    assert found.candidates[1].reason == "time limit"
    assert [member.name for member in found.members] == ["ridge"]


@pytest.mark.long
def test_a_ray_cluster_gives_the_result_of_one_process():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    data, tried = roles(motifs=12), members()[:2]
    split = thirds(data.y, 0)
    alone = Ensemble.fit(data, split, members=tried, jobs=1)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        found = Ensemble.fit(data, split, members=tried, engine=RayEngine)
        assert ray.is_initialized()  # it was there before
    finally:
        ray.shutdown()
    assert facts(found) == facts(alone)
    np.testing.assert_array_equal(found.outputs(data), alone.outputs(data))


FORGED = [
    ("outputs", torch.nan),
    ("judged", None),
    ("model.left", 7),
    ("chosen", 10**6),
    ("chosen", "x"),
    ("row", -1.0),
]


@pytest.mark.parametrize(("part", "value"), FORGED)
def test_a_stored_candidate_with_forged_values_is_refused(tmp_path, refuses, part, value):
    """Its checksum is right. What it had chosen and its tensors were taken as they were."""
    data, split = roles(), thirds(roles().y, 0)
    tried = {"model.left": NodeForest(trees=3)}.get(part, BoostedTrees(rounds=3))
    Ensemble.fit(data, split, members=[tried], checkpoint=tmp_path, refit=False)
    (path,) = tmp_path.iterdir()
    tensors, facts, _ = read_tensors(path, FORMAT)
    if part in tensors:
        tensors[part] = tensors[part][:-1] if value is None else torch.full_like(tensors[part], value)
    elif part == "row":
        facts["row"]["seconds"] = value
    else:
        facts["chosen"] = {"rounds": [value]}
    write_tensors(path, FORMAT, tensors, facts)
    refuses(lambda: Ensemble.fit(data, split, members=[tried], checkpoint=tmp_path, refit=False), path.name)
