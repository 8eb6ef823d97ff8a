"""Members of the ensemble on a GPU: the outputs of the CPU up to rounding, in bounded memory, stored for any device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.methods.problems import graph_set, roles

from demonet.data import thirds
from demonet.ensemble import Ensemble
from demonet.features.views import view_of
from demonet.methods.closed_form import Kernel
from demonet.methods.demonet_average import NetworkAverage
from demonet.methods.kernel_ridge import NodeKernel
from demonet.methods.model import Labelled, Model
from demonet.methods.propagation import Propagation
from demonet.methods.wl_models import WLKernel
from demonet.train.objective import Classify
from demonet.train.problem import fitted_objective

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
NODES = [
    *(NodeKernel(f"kernel-{kernel}", kernel=kernel) for kernel in ("degree", "structure", "demo", "ranks")),
    NodeKernel("ordinal", kernel="structure", ordinal=True),
    Propagation(),
    Kernel("machine", task="classes", members=2),
    Kernel("primal", task="classes", members=2, dual=20),
]
GRAPHS = [WLKernel(), Kernel("machine", task="classes", members=2)]


def problem(items):
    data = roles(motifs=24) if items == "nodes" else graph_set(90, True)
    y = data.y if items == "nodes" else torch.cat([graph.y for graph in data])
    split = thirds(y, 0)
    return data, Labelled.of(y, fitted_objective(Classify(), y, split), split)


@pytest.mark.parametrize(
    ("items", "model"),
    [("nodes", model) for model in NODES] + [("graphs", model) for model in GRAPHS],
    ids=lambda part: getattr(part, "name", part),
)
def test_a_member_gives_what_it_gives_on_a_cpu(items, model):
    """The machine computes in float32, the others in float64; settings are those that the CPU has chosen."""
    data, labelled = problem(items)
    view, tolerance = view_of(data), 2e-3 if isinstance(model, Kernel) else 1e-7
    on_cpu = model.fit_on(view, labelled)
    on_gpu = on_cpu.keep_on(view, replace(labelled, device="cuda"))
    again = on_cpu.keep_on(view, labelled)
    np.testing.assert_allclose(on_gpu.outputs(view), again.outputs(view), atol=tolerance)
    assert model.fit_on(view, replace(labelled, device="cuda")).device == "cuda"
    facts, arrays = on_gpu.state()
    loaded = Model.from_state(facts, arrays)
    assert loaded.device == "cpu"
    np.testing.assert_allclose(loaded.outputs(view), on_gpu.outputs(view), atol=tolerance)


def test_a_network_predicts_on_the_gpu_what_it_predicts_on_a_cpu():
    data, labelled = problem("nodes")
    view = view_of(data)
    network = NetworkAverage(seeds=1, epochs=20).fit_on(view, replace(labelled, device="cuda"))
    loaded = Model.from_state(*network.state())
    assert (network.device, loaded.device) == ("cuda", "cpu")
    np.testing.assert_allclose(network.outputs(view), loaded.outputs(view), atol=1e-4)


def test_an_ensemble_is_fitted_stored_and_loaded():
    data, _ = problem("nodes")
    torch.cuda.reset_peak_memory_stats()
    found = Ensemble.fit(data, thirds(data.y, 0), effort="quick", device="cuda")
    assert not [row for row in found.candidates if row.status == "failed"]
    assert torch.cuda.max_memory_allocated() < 2 * 2**30
    loaded = Ensemble.from_state(*found.state())
    np.testing.assert_allclose(loaded.outputs(data), found.outputs(data), atol=5e-3)
