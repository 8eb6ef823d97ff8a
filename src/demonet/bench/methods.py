"""Every network of the bench under one name, with the inputs it is fastest on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch

from demonet.bench import peers
from demonet.bench.graphs import WIDTH, Graph
from demonet.bench.step import Built, Precision
from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.nn.config import ModelConfig
from demonet.nn.conv import Scheme
from demonet.nn.models import NodeDEMONet


@dataclass(frozen=True)
class Method:
    """One network.

    Attributes:
        name: What tables call it.
        kind: ``"ours"``, ``"peer"``, or ``"no messages"`` for the MLP.
        form: What it is given for a graph.
        build: From a graph and the type of its numbers to the network; everything it needs is copied, so that its
            memory is its own.
        prepared: Whether the constant part of the first layer is computed before training.
    """

    name: str
    kind: Literal["ours", "peer", "no messages"]
    form: str
    build: Callable[[Graph, torch.dtype], Built]
    prepared: bool = False


def build(method: Method, graph: Graph, precision: Precision, seed: int = 0) -> Built:
    """The network on the graph's device; ``"bfloat16"`` holds parameters and features in that type."""
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return method.build(graph, dtype)


def find(names: list[str]) -> list[Method]:
    """The methods of those names."""
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise DemonetError(f"no method {unknown[0]!r}", hint=f"there are {', '.join(METHODS)}")
    return [METHODS[name] for name in names]


def _peer(layer: peers.Layer, form: peers.Form) -> Callable[[Graph, torch.dtype], Built]:
    def make(graph: Graph, dtype: torch.dtype) -> Built:
        model = peers.stack(layer, graph).to(graph.x.device, dtype)
        x = graph.x.clone() if dtype == graph.x.dtype else graph.x.to(dtype)
        return Built(model, (x, *form(graph, dtype)), graph.y.clone())

    return make


def _ours(scheme: Scheme, *, prepared: bool) -> Callable[[Graph, torch.dtype], Built]:
    """DEMO-Net with the peers' activation and biases; nodes are numbered by degree once, labels with them."""

    def make(graph: Graph, dtype: torch.dtype) -> Built:
        layout = DegreeLayout.from_edge_index(graph.edge_index, graph.num_nodes)
        x, y = layout.enter(graph.x).to(dtype), layout.enter(graph.y)
        layout = layout.sorted()
        config = ModelConfig(scheme=scheme, hidden=WIDTH, dropout=0.0, activation="relu", bias=True)
        tasks = DegreeTasks.exact(graph.degree)
        model = NodeDEMONet(x.size(1), graph.num_classes, tasks, config).to(x.device, dtype)
        share = torch.full((y.numel(),), 1 / y.numel(), device=y.device)
        inputs = (model.prepare(x, layout),) if prepared else (x, layout)
        loss = partial(model.loss, inputs[0], y, share, *inputs[1:])
        return Built(model if prepared else model.save_memory(), inputs, y, loss=loss)

    return make


_ALL = (
    Method("weight", "ours", "prepared layout", _ours("weight", prepared=True), prepared=True),
    Method("hash", "ours", "prepared layout", _ours("hash", prepared=True), prepared=True),
    Method("smooth", "ours", "prepared layout", _ours("smooth", prepared=True), prepared=True),
    Method("weight-lean", "ours", "layout", _ours("weight", prepared=False)),
    Method("mlp", "no messages", "features", _peer(peers.dense, peers.none)),
    Method("gcn", "peer", "edge_index", _peer(peers.gcn, peers.edge_index)),
    Method("gcn-csr", "peer", "CSR, normalised", _peer(peers.gcn_normalised, peers.normalised_csr)),
    Method("sage", "peer", "edge_index", _peer(peers.sage, peers.edge_index)),
    Method("sage-csr", "peer", "CSR", _peer(peers.sage, peers.csr)),
    Method("gin", "peer", "edge_index", _peer(peers.gin, peers.edge_index)),
    Method("gin-csr", "peer", "CSR", _peer(peers.gin, peers.csr)),
    Method("graphconv", "peer", "sorted EdgeIndex", _peer(peers.graph_conv, peers.sorted_arcs)),
    Method("gat", "peer", "edge_index", _peer(peers.gat, peers.edge_index)),
    Method("gat-8", "peer", "edge_index", _peer(peers.gat_heads, peers.edge_index)),
    Method("pna", "peer", "sorted EdgeIndex", _peer(peers.pna, peers.sorted_arcs)),
    Method("mfconv", "peer", "edge_index", _peer(peers.mf, peers.edge_index)),
    Method("dgl", "peer", "DGL graph", _peer(peers.dgl_conv, peers.dgl_graph)),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}
