"""DEMO-Net networks as members: several seeds averaged, the epoch of lowest validation loss, reused by a refit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from demonet.data.features import FeatureMap
from demonet.data.splits import Split
from demonet.degree.count import count_degree
from demonet.degree.tasks import DegreeTasks
from demonet.ensemble.member import Labelled, Member, seed_of
from demonet.ensemble.views import Float, GraphView, NodeView, View
from demonet.nn.models import DEMONet, GraphDEMONet, NodeDEMONet
from demonet.nn.prepared import GraphUnion
from demonet.train import Epoch, GraphProblem, NodeProblem, Preset, TrainConfig, fit, preset

DEGREE_FEATURES = "degree-rbf+degree-onehot"  # what nodes know where only the degree is read
SNAPSHOTS = 50_000_000  # weights that are kept at once, over all epochs


class NetworkMember(Member):
    """The default preset, a little smaller.

    Options: ``seeds`` (how many networks are averaged), ``epochs`` at most, ``hidden``, ``family`` (whose preset gives
    the layers) and ``features``.

    The epoch is the one at which the validation loss, averaged over the seeds, is lowest: of a single curve the lowest
    point is too often luck.
    """

    kind = "network"

    def _preset(self) -> Preset:
        base = preset("default", self.options["family"])
        epochs = self.options["epochs"]
        model = base.model.changed(hidden=self.options["hidden"])
        return replace(base, model=model, train=replace(base.train, epochs=epochs, patience=epochs))

    def _fit(self, view: View, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        known = np.isin(labelled.y[labelled.val], labelled.y[labelled.train])
        labelled = replace(labelled, val=labelled.val[known])
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
        seed, runs = seed_of(labelled, self.name) % 2**31, []
        epochs = made.train.epochs if chosen is None else chosen["epochs"]
        for number in range(self.options["seeds"]):
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
            config = replace(made.train, seed=seed + number, epochs=epochs, patience=epochs)
            runs.append(_train(model, problem, config, keep_all=chosen is None))
        losses = np.mean([loss for loss, _ in runs], axis=0)
        best = int(np.argmin(losses)) if chosen is None else epochs - 1
        self.facts["chosen"] = {"epochs": best + 1}
        for number, (own, weights) in enumerate(runs):
            kept = weights[best] if best in weights else weights[int(np.argmin(own))]
            self.arrays |= {f"model.{number}.{name}": value.numpy() for name, value in kept.items()}

    def _model(self, seed: int) -> DEMONet:
        made, features = self._preset(), self._features()
        make = GraphDEMONet if made.family == "graphs" else NodeDEMONet
        tasks = DegreeTasks.from_state(self.facts["tasks"])
        return make(features.num_features, self.facts["classes"], tasks, made.model.changed(seed=seed))

    def _features(self) -> FeatureMap:
        prefix = "features."
        arrays = {k[len(prefix) :]: torch.from_numpy(v) for k, v in self.arrays.items() if k.startswith(prefix)}
        return FeatureMap.from_state(self.facts["features"], arrays)

    def _inputs(self, model: DEMONet, features: FeatureMap, view: View) -> Callable[[Any], tuple[Any, ...]]:
        """From the numbers of some graphs, or None for all items, to what the model is called with."""
        if isinstance(view, NodeView):
            data = view.data
            whole = (model.prepare(features.transform(data), data.edge_index, edge_weight=data.get("edge_weight")),)
            return lambda rows: whole
        ready = [
            Data(x=features.transform(g), edge_index=g.edge_index, edge_weight=g.get("edge_weight")) for g in view.data
        ]
        union = Batch.from_data_list(ready)
        options = {"batch": union.batch, "num_graphs": union.num_graphs, "edge_weight": union.get("edge_weight")}
        every = model.prepare(union.x, union.edge_index, **options)
        prepared = GraphUnion(every, view.sizes.tolist(), [graph.edge_index.size(1) for graph in ready])
        return lambda rows: (every,) if rows is None else (prepared.take(rows),)

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
        width = 1 + (view.facts["columns"] / 64 if self.options["features"] != DEGREE_FEATURES else 0)
        return self.options["seeds"] * self.options["epochs"] * share * (6e-3 + 1e-6 * edges + 5e-6 * nodes * width)


def _train(
    model: DEMONet, problem: NodeProblem | GraphProblem, config: TrainConfig, keep_all: bool
) -> tuple[list[float], dict[int, dict[str, Tensor]]]:
    """Validation losses, and the weights after each epoch; after the best and the last alone, where they are large."""
    losses: list[float] = []
    weights: dict[int, dict[str, Tensor]] = {}
    keep_all = keep_all and config.epochs * sum(p.numel() for p in model.parameters()) <= SNAPSHOTS

    def watch(epoch: Epoch) -> None:
        losses.append(epoch.val_loss)
        last = epoch.number == config.epochs - 1
        if not keep_all and epoch.val_loss <= min(losses):
            weights.clear()
        if keep_all or last or epoch.val_loss <= min(losses):
            weights[epoch.number] = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}

    fit(model, problem, config, on_epoch=watch)
    return losses, weights
