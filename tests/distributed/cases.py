"""Training over processes in every configuration, on small graphs of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from tests.distributed.graphs import random_graph
from tests.reference.layers import PAPER

from demonet.degree.count import count_degree
from demonet.degree.tasks import DegreeTasks
from demonet.distributed.partition import assign, cut
from demonet.distributed.training import deal, fit_part, make_problem
from demonet.nn.models import NodeDEMONet
from demonet.train import Classify, Multilabel, Objective, Regress, TrainConfig

FEATURES, CLASSES = 5, 3


class Case(NamedTuple):
    """A graph, how it is cut, and a model.

    Attributes:
        model: Options of the model, besides those that are small.
        directed: Whether edges have one direction.
        partition: A method, or ``"empty part"``: the last process has no node.
        by: Which degree decides the task.
        task: What is predicted.
        weighted: Whether edges and items have weights.
        sparse: Whether features are sparse.
        dtype: Of features and model.
    """

    model: dict[str, Any]
    directed: bool = False
    partition: str = "hash"
    by: str = "in"
    task: str = "classify"
    weighted: bool = False
    sparse: bool = False
    dtype: torch.dtype = torch.float64

    @property
    def name(self) -> str:
        model = ", ".join(f"{name}={value}" for name, value in self.model.items())
        words = [model, "directed" if self.directed else "undirected", self.partition, self.by, self.task]
        words += ["weighted"] * self.weighted + ["sparse"] * self.sparse + [str(self.dtype).removeprefix("torch.")]
        return "; ".join(words)


SCHEMES = ("weight", "hash", "smooth")
MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "batch norm": {"norm": "batch"},
    "refined": {"refine": True, "combine": "add", "bias": True},
    "stem": {"stem": True, "norm": "batch", "input_dropout": 0.3},
    "degree head": {"head": "degree", "combine": "add", "aggr": "mean", "bias": True},
}


def full_product() -> Iterator[Case]:
    """Every scheme, batch norm on and off, directed or not, balanced, hashed, and with an empty part."""
    cuts = ("hash", "balanced", "empty part")
    for scheme, model, directed, partition in product(SCHEMES, MODELS.values(), (False, True), cuts):
        yield Case({"scheme": scheme, **model}, directed, partition)
    for scheme, by in product(SCHEMES, ("out", "pair")):
        yield Case({"scheme": scheme, **MODELS["batch norm"]}, True, "empty part", by)
    for task, weighted in product(("classify", "multilabel", "regress"), (False, True)):
        yield Case(MODELS["stem"], True, "empty part", task=task, weighted=weighted)
    for model in (MODELS["plain"], MODELS["stem"]):
        yield Case(model, False, "empty part", sparse=True)
    for scheme, model in product(SCHEMES, ("plain", "batch norm", "refined", "stem")):
        yield Case({"scheme": scheme, **MODELS[model]}, False, "hash", dtype=torch.float32)


def histories(cases: list[Case], epochs: int) -> list[tuple[list[float], list[float], list[float]]]:
    """Training and validation losses and validation metrics of every case; every process calls this."""
    found = []
    for case in cases:
        history = train(case, epochs)
        found.append((history.train_loss, history.val_loss, history.val_metric))
    return found


def train(case: Case, epochs: int, **options: Any) -> Any:
    """The history of one case."""
    rank, world = dist.get_rank(), dist.get_world_size()
    edge_index, n = random_graph(directed=case.directed)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(n, FEATURES, generator=generator, dtype=torch.float64).to(case.dtype)
    y, objective = targets(case, n, generator)
    split = torch.randperm(n, generator=generator).split([30, 15, 15])
    some = torch.rand(n, generator=generator, dtype=torch.float64) + 0.5
    weight = tuple(some[rows] if case.weighted else None for rows in split)
    edge_weight = torch.rand(edge_index.size(1), generator=generator, dtype=torch.float64) if case.weighted else None
    last = case.partition == "empty part" and world > 1
    owner = assign(edge_index, n, world - last, "hash" if last else case.partition.replace("empty part", "hash"))
    parts = cut(edge_index, owner, world)
    assert (parts[-1].nodes.numel() == 0) == last
    network = model(case, edge_index, n, objective.outputs)
    rows = (x * (x > 0)).to_sparse_csr() if case.sparse else x
    shares = deal(parts, rows, y, split, weight, edge_weight, halo=network.stem is None)
    problem = make_problem(network, list(shares)[rank], objective, ["case"])
    return fit_part(network, problem, TrainConfig(epochs=epochs, patience=epochs, lr=0.01), **options)


def model(case: Case, edge_index: torch.Tensor, n: int, outputs: int) -> NodeDEMONet:
    tasks = DegreeTasks.exact(count_degree(edge_index, n, case.by), by=case.by)
    torch.manual_seed(0)
    options = {"hidden": 8, "dropout": 0.4, "hash_size": 4, **case.model}
    return NodeDEMONet(FEATURES, outputs, tasks, PAPER, **options).to(case.dtype)


def targets(case: Case, n: int, generator: torch.Generator) -> tuple[torch.Tensor, Objective]:
    if case.task == "classify":
        return torch.randint(CLASSES, (n,), generator=generator), Classify(outputs=CLASSES)
    if case.task == "multilabel":
        table = torch.randint(2, (n, CLASSES), generator=generator).float()
        table[::7, 0] = torch.nan
        return table, Multilabel(outputs=CLASSES)
    return torch.randn(n, 2, generator=generator), Regress(outputs=2, mean=(0.0, 1.0), scale=(1.0, 2.0))
