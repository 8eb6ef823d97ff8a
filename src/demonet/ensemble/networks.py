"""DEMO-Net networks as members: several seeds averaged, the epoch of lowest validation loss, that epoch when refitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from demonet.data.features import FeatureMap
from demonet.data.splits import Split
from demonet.degree.count import count_degree
from demonet.degree.tasks import DegreeTasks
from demonet.ensemble.member import Labelled, Member, seed_of
from demonet.ensemble.nodes import classes_by_degree
from demonet.ensemble.views import Float, GraphView, NodeView, View
from demonet.nn.kept import KeptGraphs
from demonet.nn.models import GraphDEMONet, NodeDEMONet
from demonet.train import Epoch, GraphProblem, NodeProblem, Preset, TrainConfig, fit, preset


class Ordinal(nn.Module):
    """A network with one output, read by a cumulative logit: log-probabilities of ordered classes.

    Args:
        network: Gives ``[n, 1]``.
        order: ``[classes]`` the classes in order.
    """

    def __init__(self, network: nn.Module, order: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("place", order.argsort())
        self.first = nn.Parameter(torch.tensor(-1.0))
        self.steps = nn.Parameter(torch.zeros(len(order) - 2))

    def forward(self, *inputs: Any) -> Tensor:
        """``[n, classes]``."""
        cuts = torch.cat([self.first[None], self.first + self.steps.exp().cumsum(0)])
        below = torch.sigmoid(cuts - self.network(*inputs))
        ends = below.new_zeros(len(below), 1), below.new_ones(len(below), 1)
        ordered = torch.cat([below, ends[1]], 1) - torch.cat([ends[0], below], 1)
        return ordered.clamp(min=1e-6).log()[:, cast(Tensor, self.place)]


class NetworkMember(Member):
    """The default preset, a little smaller.

    Options: ``seeds`` (how many networks are averaged), ``epochs`` at most, ``hidden``, ``ordinal`` (nodes only),
    ``family`` (whose preset gives the layers) and ``features``.
    """

    kind = "network"

    def _preset(self) -> Preset:
        base = preset("default", self.options["family"])
        epochs = self.options["epochs"]
        model = base.model.changed(hidden=self.options["hidden"])
        return replace(base, model=model, train=replace(base.train, epochs=epochs, patience=epochs))

    def _fit(self, view: View, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        made, train, val = self._preset(), torch.from_numpy(labelled.train), torch.from_numpy(labelled.val)
        y = torch.full((view.num_items,), -1)
        for rows in (train, val):
            y[rows] = torch.from_numpy(labelled.y)[rows]
        graphs = [view.data] if isinstance(view, NodeView) else [view.data[i] for i in labelled.train]
        features = FeatureMap(self.options["features"]).fit(graphs)
        degree = torch.cat([count_degree(graph.edge_index, int(graph.num_nodes or 0)) for graph in graphs])
        self.facts["tasks"] = made.make_tasks(degree).state()
        self.facts["features"], arrays = features.state()
        self.arrays |= {f"features.{name}": array.numpy() for name, array in arrays.items()}
        self.facts["order"] = None
        if self.options.get("ordinal"):
            self.facts["order"] = classes_by_degree(view, labelled)[0].tolist()
        seed = seed_of(labelled, self.name) % 2**31
        epochs = []
        for number in range(self.options["seeds"]):
            stop = None if chosen is None else chosen["epochs"][number]
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(seed + number)
                model = self._model(seed + number)
            take = self._inputs(model, features, view)
            problem: NodeProblem | GraphProblem
            split = Split("ensemble", 0, train, val, val[:0])
            if isinstance(view, NodeView):
                problem = NodeProblem(take(None), y, split)
            else:
                problem = GraphProblem(y, split, take, made.train.batch_size)
            if not len(val):  # the epoch is given; the loop wants a validation part nevertheless
                problem.validation = problem.train
            config = replace(made.train, seed=seed + number)
            if stop is not None:
                config = replace(config, epochs=stop + 1, patience=stop + 1)
            epochs.append(_train(model, problem, config, stop))
            self.arrays |= {f"model.{number}.{k}": v.cpu().numpy() for k, v in model.state_dict().items()}
        self.facts["chosen"] = {"epochs": epochs}

    def _model(self, seed: int) -> nn.Module:
        made, order = self._preset(), self.facts["order"]
        features = self._features()
        make = GraphDEMONet if made.family == "graphs" else NodeDEMONet
        tasks = DegreeTasks.from_state(self.facts["tasks"])
        outputs = self.facts["classes"] if order is None else 1
        model = make(features.num_features, outputs, tasks, made.model.changed(seed=seed))
        return model if order is None else Ordinal(model, torch.tensor(order))

    def _features(self) -> FeatureMap:
        prefix = "features."
        arrays = {k[len(prefix) :]: torch.from_numpy(v) for k, v in self.arrays.items() if k.startswith(prefix)}
        return FeatureMap.from_state(self.facts["features"], arrays)

    def _inputs(self, model: nn.Module, features: FeatureMap, view: View) -> Callable[[Any], tuple[Any, ...]]:
        """From the numbers of some graphs, or None for all items, to what the model is called with."""
        body = cast(Any, model.network if isinstance(model, Ordinal) else model)
        if isinstance(view, NodeView):
            data = view.data
            whole = (body.prepare(features.transform(data), data.edge_index, edge_weight=data.get("edge_weight")),)
            return lambda rows: whole
        ready = [
            Data(x=features.transform(g), edge_index=g.edge_index, edge_weight=g.get("edge_weight")) for g in view.data
        ]
        union = Batch.from_data_list(ready)
        options = {"batch": union.batch, "num_graphs": union.num_graphs, "edge_weight": union.get("edge_weight")}
        every = body.prepare(union.x, union.edge_index, **options)
        kept = KeptGraphs(every, view.sizes.tolist(), [graph.edge_index.size(1) for graph in ready])
        return lambda rows: (every,) if rows is None else (kept.take(rows),)

    def predict_proba(self, view: View) -> Float:
        """The mean over seeds of the softmax of scores."""
        features, total = self._features(), np.zeros((view.num_items, self.facts["classes"]))
        for number in range(self.options["seeds"]):
            model = self._model(0)
            prefix = f"model.{number}."
            state = {k[len(prefix) :]: torch.from_numpy(v) for k, v in self.arrays.items() if k.startswith(prefix)}
            model.load_state_dict(state)
            model.eval()
            inputs = self._inputs(model, features, view)(None)
            with torch.no_grad():
                total += model(*inputs).double().softmax(1).numpy()
        return total / self.options["seeds"]

    def cost(self, view: View, num_train: int) -> float:
        """Epochs over all edges."""
        if isinstance(view, GraphView):
            edges, nodes, share = view.adjacency.nnz, int(view.sizes.sum()), num_train / max(1, view.num_items)
        else:
            edges, nodes, share = view.adjacency.nnz, view.num_items, 1.0
        width = max(1, view.facts["columns"]) / 64
        return self.options["seeds"] * self.options["epochs"] * share * (6e-3 + 1e-6 * edges + 5e-6 * nodes * width)


def _train(model: nn.Module, problem: NodeProblem | GraphProblem, config: TrainConfig, stop: int | None) -> int:
    """Train, and leave the model as it was after the epoch of lowest validation loss, or after epoch ``stop``."""
    best: dict[str, Any] = {"loss": float("inf"), "epoch": 0, "weights": None}

    def watch(epoch: Epoch) -> None:
        better = epoch.val_loss < best["loss"] if stop is None else epoch.number == stop
        if better:
            weights = {name: value.clone() for name, value in model.state_dict().items()}
            best.update(loss=epoch.val_loss, epoch=epoch.number, weights=weights)

    fit(model, problem, config, on_epoch=watch)
    model.load_state_dict(best["weights"])
    return int(best["epoch"])
