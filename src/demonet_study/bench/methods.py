"""The networks of the bench, ours and others, each with the input format in which it is fastest; presets on data sets.

The others are two convolutions of one width with ReLU, and a linear head. Where PyTorch Geometric has a faster input
format than ``edge_index`` for a layer, both are here: CSR is the transposed adjacency as ``torch.sparse_csr`` with
32-bit indices (for GCN with the normalisation already in its values), a sorted ``EdgeIndex`` is sorted by target and
has both directions. GAT has one head, the cheapest of that width, or eight, as published. PNA has the aggregators and
scalers of its paper. GIN's inner network has one hidden layer.

``module`` is what a user of PyTorch Geometric writes: two ``DEMOConv`` and a linear head, with the graph in degree
order, as CSR or ``EdgeIndex``, or as ``edge_index``; ``module-scale`` has the layer's defaults, ``module-weight``
the settings of the paper; with ``+head`` head and loss are :class:`~demonet.nn.LinearCrossEntropy`. ``preset`` is the
network of a preset, trained as the package trains it. With ``+drop`` a network has dropout of one half after every
activation (our module: inside the convolution); with ``+norm`` it is shaped as the preset ``default``: batch norm,
activation, a second linear map, activation and dropout after every convolution.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, GraphConv, MFConv, PNAConv, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor

from demonet.degree.layout import DegreeLayout
from demonet.degree.tasks import DegreeTasks
from demonet.errors import DemonetError
from demonet.features import FeatureMap
from demonet.nn.config import ModelConfig
from demonet.nn.conv import DEMOConv, Scheme
from demonet.nn.head import LinearCrossEntropy
from demonet.nn.models import NodeDEMONet
from demonet.transforms import ToDegreeLayout
from demonet_study.bench.graphs import WIDTH, Graph, node_set
from demonet_study.bench.step import Built, Precision
from demonet_study.protocol import paper_split

HEADS = 8
Form = Callable[[Graph, torch.dtype], tuple[Any, ...]]  # the inputs of a network besides the features
Layer = Callable[[int, Graph], nn.Module]  # a layer, given its input width
Build = Callable[[Graph, torch.dtype], Built]


@dataclass(frozen=True)
class Method:
    """A network."""

    name: str  # its name in tables
    # "ours", "module", "preset", "peer", or "no messages" for the MLP.
    kind: Literal["ours", "module", "preset", "peer", "no messages"]
    form: str  # its input format
    build: Build  # builds it from a graph and a data type. All inputs are copied, so that its memory can be measured
    prepared: bool = False  # whether the constant part of the first layer is computed before training


def build(method: Method, graph: Graph, precision: Precision) -> Built:
    """The network on the graph's device; with ``"bfloat16"``, parameters and features have that type."""
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return method.build(graph, dtype)


def find(names: list[str]) -> list[Method]:
    """The methods with these names."""
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise DemonetError(f"unknown method {unknown[0]!r}", hint=f"expected one of {', '.join(METHODS)}")
    return [METHODS[name] for name in names]


DROPOUT = 0.5
INSIDE = "inside"  # the convolution has its activation and dropout inside
# What follows a convolution.
AFTER: dict[str, Callable[[], nn.Module]] = {
    "": nn.ReLU,
    "+drop": lambda: nn.Sequential(nn.ReLU(), nn.Dropout(DROPOUT)),
    "+norm": lambda: nn.Sequential(
        nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Dropout(DROPOUT)
    ),
    INSIDE: nn.Identity,
}
# The settings of the paper's layer, which are not the layer's defaults.
PAPER: dict[str, Any] = {"scheme": "weight", "aggr": "sum", "combine": "concat"}
DEFAULTS: dict[str, Any] = {"scheme": "scale", "aggr": "sym", "combine": "share"}
SMOOTH: dict[str, Any] = {"scheme": "smooth", "aggr": "mean", "combine": "add"}


class Stack(nn.Module):
    """Two convolutions, each with what follows it, and a linear head: ``model(x, *edges)``."""

    def __init__(self, convolutions: list[nn.Module], num_classes: int, after: str = "") -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(convolutions)
        self.after = nn.ModuleList(AFTER[after]() for _ in convolutions)
        self.head = LinearCrossEntropy(WIDTH, num_classes)

    def embed(self, x: Tensor, *edges: Any) -> Tensor:
        """``[n, WIDTH]`` rows before the head."""
        for convolution, after in zip(self.convolutions, self.after, strict=True):
            x = after(convolution(x, *edges))
        return x

    def forward(self, x: Tensor, *edges: Any) -> Tensor:
        """``[n, num_classes]`` scores."""
        return self.head(self.embed(x, *edges))

    def loss(self, y: Tensor, x: Tensor, *edges: Any) -> Tensor:
        """The mean cross-entropy, of head and loss as one function."""
        return self.head.loss(self.embed(x, *edges), y)


class OfDGL(nn.Module):
    """A layer of DGL, which takes the graph before the features."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, graph: Any) -> Tensor:
        """One convolution."""
        return self.layer(graph, x)


def csr(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """The transposed adjacency in CSR."""
    return (_csr(graph.edge_index, torch.ones(graph.num_arcs, dtype=dtype, device=graph.x.device), graph.num_nodes),)


def normalised_csr(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """The same with self-loops and GCN's symmetric normalisation in its values."""
    edges, weight = gcn_norm(graph.edge_index, None, graph.num_nodes, dtype=torch.float32)
    return (_csr(edges, weight.to(dtype), graph.num_nodes),)


def sorted_edges(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """An undirected ``EdgeIndex`` sorted by target, with both pointers cached."""
    size = (graph.num_nodes, graph.num_nodes)
    edges = EdgeIndex(graph.edge_index.clone(), sparse_size=size, is_undirected=True).sort_by("col").values
    return (edges.fill_cache_(),)


def dgl_graph(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """DGL's graph with self-loops, in every format that its kernels use."""
    dgl = _dgl()
    made = dgl.add_self_loop(dgl.graph(tuple(graph.edge_index), num_nodes=graph.num_nodes))
    made.create_formats_()
    return (made,)


def _csr(edges: Tensor, weight: Tensor, n: int) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # CSR tensors are in beta
        wide = to_torch_csr_tensor(edges.flip(0), weight, size=(n, n))
        if max(n, edges.size(1)) >= 2**31:
            return wide
        # CPU libraries and cuSPARSE use 32-bit indices; wider ones are converted in every product, or cost bandwidth.
        return torch.sparse_csr_tensor(
            wide.crow_indices().int(), wide.col_indices().int(), wide.values(), (n, n), check_invariants=False
        )


def _dgl() -> Any:
    try:
        return import_module("dgl")
    except Exception as error:  # a build for another torch may fail in any way
        raise DemonetError(f"DGL does not load: {type(error).__name__}: {error}", hint="pip install dgl") from error


def _layer(convolution: Callable[..., nn.Module], **options: Any) -> Layer:
    """A layer of the class ``convolution``."""
    return lambda width, graph: convolution(width, WIDTH, **options)


def _gin(width: int, graph: Graph) -> nn.Module:
    return GINConv(nn.Sequential(nn.Linear(width, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)))


def _pna(width: int, graph: Graph) -> nn.Module:
    histogram = torch.bincount(graph.degree).cpu()
    aggregators, scalers = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]
    return PNAConv(width, WIDTH, aggregators, scalers, deg=histogram)


def _dgl_conv(width: int, graph: Graph) -> nn.Module:
    _dgl()
    return OfDGL(import_module("dgl.nn").GraphConv(width, WIDTH))


def edge_index(graph: Graph, dtype: torch.dtype) -> tuple[Any, ...]:
    """The edges as they are."""
    return (graph.edge_index.clone(),)


def _peer(layer: Layer, form: Form = edge_index, after: str = "") -> Build:
    def make(graph: Graph, dtype: torch.dtype) -> Built:
        layers = [layer(width, graph) for width in (graph.x.size(1), WIDTH)]
        x = graph.x.clone() if dtype == graph.x.dtype else graph.x.to(dtype)
        model = Stack(layers, graph.num_classes, after).to(graph.x.device, dtype)
        return Built(model, (x, *form(graph, dtype)), graph.y.clone())

    return make


def _demo_conv(**options: Any) -> Layer:
    """Our layer with its activation inside."""
    options = SMOOTH | {"bias": True, "act": "relu"} | options
    return lambda width, graph: DEMOConv(width, WIDTH, DegreeTasks.exact(graph.degree), **options)


def _module(*, head: bool = False, **options: Any) -> Build:
    """A user's module on a graph that was put into degree order; with ``head``, head and loss are one function."""

    def make(graph: Graph, dtype: torch.dtype) -> Built:
        data = ToDegreeLayout()(Data(x=graph.x.to(dtype), y=graph.y, edge_index=graph.edge_index))
        layers = [_demo_conv(**options)(width, graph) for width in (data.x.size(1), WIDTH)]
        model = Stack(layers, graph.num_classes, INSIDE).to(data.x.device, dtype)
        loss = partial(model.loss, data.y, data.x, data.layout) if head else None
        return Built(model, (data.x, data.layout), data.y, loss=loss)

    return make


def _preset(name: str, **changes: Any) -> Build:
    """The network of a preset for the features of the bench, with its dropout and weight decay."""

    def make(graph: Graph, dtype: torch.dtype) -> Built:
        # Imported here, because training imports a library for checkpoints that timing does not need.
        from demonet.train.presets import preset
        from demonet.train.steps import parameter_groups

        chosen = preset(name, "nodes")
        tasks = chosen.make_tasks(graph.degree)
        model = NodeDEMONet(graph.x.size(1), graph.num_classes, tasks, chosen.model, **changes)
        model = model.to(graph.x.device, dtype)
        inputs = (model.prepare(graph.x.to(dtype), graph.edge_index),)
        share = torch.full((graph.num_nodes,), 1 / graph.num_nodes, device=graph.y.device)
        loss = partial(model.loss, inputs[0], graph.y.clone(), share)
        return Built(model, inputs, graph.y.clone(), groups=parameter_groups(model, chosen.train), loss=loss)

    return make


def _ours(scheme: Scheme, *, prepared: bool) -> Build:
    """DEMO-Net with the activation and biases of the others; nodes and labels are sorted by degree once."""

    def make(graph: Graph, dtype: torch.dtype) -> Built:
        layout = DegreeLayout.from_edge_index(graph.edge_index, graph.num_nodes)
        x, y = layout.enter(graph.x).to(dtype), layout.enter(graph.y)
        layout = layout.sorted()
        shape = PAPER | {"scheme": scheme, "bias": True}
        config = ModelConfig(**shape, hidden=WIDTH, dropout=0.0, activation="relu", recompute=not prepared)
        tasks = DegreeTasks.exact(graph.degree)
        model = NodeDEMONet(x.size(1), graph.num_classes, tasks, config).to(x.device, dtype)
        share = torch.full((y.numel(),), 1 / y.numel(), device=y.device)
        inputs = (model.prepare(x, layout),) if prepared else (x, layout)
        loss = partial(model.loss, inputs[0], y, share, *inputs[1:])
        return Built(model, inputs, y, loss=loss)

    return make


def _shaped(after: str) -> Iterator[Method]:
    """The others that are also timed with dropout, or in the shape of the preset ``default``."""
    for name, form, layer, make in (
        ("mlp", "features", _layer(nn.Linear), lambda graph, dtype: ()),
        ("gcn", "edge_index", _layer(GCNConv), edge_index),  # it computes the normalisation in every call
        ("gcn-csr", "CSR, normalised", _layer(GCNConv, normalize=False), normalised_csr),
        ("sage-csr", "CSR", _layer(SAGEConv), csr),
        ("gin-csr", "CSR", _gin, csr),
        # The most similar one: a map of the node and one of the sum of its neighbours, without degrees.
        ("graphconv", "sorted EdgeIndex", _layer(GraphConv), sorted_edges),
    ):
        yield Method(name + after, "no messages" if name == "mlp" else "peer", form, _peer(layer, make, after))


def _modules(name: str, **settings: Any) -> Iterator[Method]:
    """A user's module with some settings of the layer."""
    yield Method(name, "module", "layout, cached", _module(cached=True, **settings))
    yield Method(f"{name}+drop", "module", "layout, cached", _module(cached=True, dropout=DROPOUT, **settings))
    edges = _peer(_demo_conv(cached=True, **settings), edge_index, INSIDE)
    yield Method(f"{name}-edges", "module", "edge_index, cached", edges)
    yield Method(f"{name}-plain", "module", "edge_index", _peer(_demo_conv(**settings), edge_index, INSIDE))


_ALL = (
    Method("weight", "ours", "prepared layout", _ours("weight", prepared=True), prepared=True),
    Method("hash", "ours", "prepared layout", _ours("hash", prepared=True), prepared=True),
    Method("smooth", "ours", "prepared layout", _ours("smooth", prepared=True), prepared=True),
    Method("weight-lean", "ours", "layout", _ours("weight", prepared=False)),
    *_shaped(""),
    Method("sage", "peer", "edge_index", _peer(_layer(SAGEConv))),
    Method("gin", "peer", "edge_index", _peer(_gin)),
    Method("gat", "peer", "edge_index", _peer(_layer(GATConv))),
    Method("gat-8", "peer", "edge_index", _peer(lambda width, _: GATConv(width, WIDTH // HEADS, heads=HEADS))),
    Method("pna", "peer", "sorted EdgeIndex", _peer(_pna, sorted_edges)),
    # PyTorch Geometric's degree-specific layer: a matrix for each degree up to 10.
    Method("mfconv", "peer", "edge_index", _peer(_layer(MFConv))),
    Method("dgl", "peer", "DGL graph", _peer(_dgl_conv, dgl_graph)),
    *_modules("module"),
    Method("module-once", "module", "layout", _module()),
    Method("module-csr", "module", "CSR, cached", _peer(_demo_conv(cached=True), csr, INSIDE)),
    Method("module-sorted", "module", "sorted EdgeIndex", _peer(_demo_conv(), sorted_edges, INSIDE)),
    *_modules("module-scale", **DEFAULTS),
    Method("module-scale+head", "module", "layout, cached", _module(head=True, cached=True, **DEFAULTS)),
    Method(
        "module-scale+drop+head",
        "module",
        "layout, cached",
        _module(head=True, cached=True, dropout=DROPOUT, **DEFAULTS),
    ),
    *_modules("module-weight", **PAPER),
    *(Method(name, "preset", "prepared layout", _preset(name)) for name in ("default", "strong", "paper", "authors")),
    Method("paper-hash", "preset", "prepared layout", _preset("paper", scheme="hash")),
    *_shaped("+drop"),
    *_shaped("+norm"),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}
OURS = [method.name for method in _ALL if method.kind == "ours" and method.prepared]


def build_preset(name: str, preset: str, scheme: Scheme) -> Built:
    """A preset with one of the schemes, on the first training split of a data set: with dropout and L2, as trained."""
    # Imported here, because training imports a library for checkpoints that timing does not need.
    from demonet.train.presets import preset as find_preset
    from demonet.train.problem import LabelledBatch
    from demonet.train.recipes import family_of, node_model
    from demonet.train.steps import parameter_groups

    data = node_set(name)
    chosen = find_preset(preset, family_of(data))
    if chosen.self_loops == "keep":
        data = node_set(name, self_loops="keep")
    chosen = replace(chosen, model=replace(chosen.model, scheme=scheme))
    x = FeatureMap(chosen.features).fit_transform(data)
    model = node_model(data, x, chosen, seed=0)
    rows = paper_split(name, data.y, seed=0).train
    inputs, y = (model.prepare(x, data.edge_index),), data.y[rows]
    loss = partial(model.loss, inputs[0], *LabelledBatch(inputs, rows, y).spread)
    return Built(model, inputs, y, rows, parameter_groups(model, chosen.train), loss=loss)
