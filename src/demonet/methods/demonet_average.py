"""DEMO-Net networks of several seeds, averaged; validation chooses the epoch, which a refit reuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
import torch
from torch_geometric.data import Batch
from torch_geometric.utils import add_self_loops

from demonet.data.splits import Split
from demonet.degree.count import count_degree
from demonet.degree.tasks import DegreeTasks
from demonet.features import FeatureMap
from demonet.features.views import Float, GraphView, NodeView, View
from demonet.methods.base import Settings, at_least, register
from demonet.methods.model import MOST_SECONDS, TASKS, Labelled, Model, OutOfTimeError
from demonet.nn.models import DegreeNetwork, GraphDEMONet, NodeDEMONet
from demonet.nn.prepared import GraphUnion
from demonet.options import Effort
from demonet.schema import Array, check_arrays
from demonet.tensorfile import under
from demonet.train import GraphProblem, NodeProblem, Preset, fit_together, preset
from demonet.train.batches import step_values
from demonet.train.metrics import METRICS
from demonet.train.objective import OBJECTIVES, Classify, Objective, Regress
from demonet.train.presets import DEPTHS, Family
from demonet.train.recipes import prepare_batch, replace_features

SEEDS: dict[Effort, int] = {"quick": 0, "standard": 3, "best": 8}  # networks that are averaged
EPOCHS, EPOCHS_SUMS, EPOCHS_GRAPHS = 300, 80, 150  # of a network, at most
TYPICAL_EPOCHS = 120  # after which most networks have stopped
DEEP: dict[Effort, dict[str, Any]] = {  # deep networks that are tried
    "quick": {},
    "standard": {f"network-{depth}": {"preset": f"deep-{depth}", "seeds": 1, "epochs": 300} for depth in DEPTHS},
    "best": {f"network-{depth}": {"preset": f"deep-{depth}", "seeds": 2, "epochs": 1000} for depth in DEPTHS},
}
CACHED = 2**23  # bytes of a layer's values beyond which a processor's cache is too small for them
DEEP_ITEMS = 1000  # training items from which on they are
DEEP_PATIENCE, DEEP_LEAST = 100, 100  # epochs without improvement; epochs that a deep network needs
WIDE_ATTRIBUTES = 64  # columns above which a deep network drops half of its values and normalises rows
SCORE_SCALES = (1.0, 0.8, 0.65, 0.5, 0.35, 0.25)  # of the scores of a network that was not chosen by its loss


@dataclass(frozen=True)
class AverageSettings(Settings):
    """Settings of networks that are averaged.

    Attributes:
        preset, family: Give the layers, see :mod:`demonet.train.presets`.
        features: See :class:`~demonet.features.FeatureMap`.
        model: Single fields of the architecture that differ from the preset.
        loops: Whether a node is a neighbour of itself.
        seeds: How many networks are averaged.
        epochs: At most.
        lr, patience: Of the training, if they differ from the preset.
        choose_by: ``"loss"`` or ``"metric"``: what chooses the epoch. The metric is that of the problem. It goes on
            improving when a network has become too sure of itself, so scores are then scaled as validation asks for it.
    """

    preset: str = "strong"
    family: Family = "nodes"
    features: str = "structure"
    model: Mapping[str, Any] = field(default_factory=dict)
    loops: bool = False
    seeds: int = at_least(1, 3)
    epochs: int = at_least(1, EPOCHS)
    lr: float | None = None
    patience: int | None = None
    choose_by: Literal["loss", "metric"] = "loss"


@register
class NetworkAverage(Model):
    """Networks of a preset with several seeds, averaged.

    The epoch is the one at which the validation loss, averaged over the seeds, is lowest: of a single curve the lowest
    point is too often luck. A refit has the mean weights over the epochs around that one. Where many items are
    labelled, networks of five and twelve layers are tried, too.
    """

    name = "network"
    kind = "network"
    tasks = TASKS
    stops_early = True
    defaults = AverageSettings("this project")
    settings: AverageSettings

    @classmethod
    def candidates(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """Two for nodes: on structure and on degrees, or on attributes with structure and smoothed; one for graphs.

        With many labelled nodes also deep ones, as far as they are affordable.
        """
        if not SEEDS[effort]:
            return []
        wanted: dict[str, dict[str, Any]]
        if view.family == "graphs":
            base = preset("strong", "graphs")
            features = (base if view.facts["columns"] else base.without_attributes()).features
            wanted = {"network": {"family": "graphs", "features": features, "epochs": EPOCHS_GRAPHS}}
        elif view.facts["attributes"]:
            smoothing = {"features": "encoded", "model": {"without": "seed"}, "loops": True}  # as in a GCN
            wanted = {"network": {"features": "encoded+structure"}, "network-smooth": smoothing}
            wanted = {name: {"family": "attributes"} | options for name, options in wanted.items()}
        else:
            sums = {"preset": "default", "features": "degree-rbf+degree-onehot", "model": {"hidden": 32}}
            wanted = {"network": {}, "network-degree": sums | {"epochs": EPOCHS_SUMS}}
        found = [cls._affordable(name, view, effort, **options) for name, options in wanted.items()]
        return found + cls._deep(view, labelled, effort)

    @classmethod
    def _affordable(cls, name: str, view: View, effort: Effort, epochs: int = EPOCHS, **options: Any) -> Self:
        """With fewer seeds and epochs where it would take too long."""
        seeds = SEEDS[effort]
        for some, most in ((seeds, epochs), (seeds, epochs // 3), (1, epochs // 3), (1, epochs // 6)):
            found = cls(name, seeds=some, epochs=most, **options)
            if found.estimate(view, view.num_items) <= MOST_SECONDS[effort]:
                break
        return found

    @classmethod
    def _deep(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """Deep networks, for as many epochs as are affordable; none where these are too few.

        The deepest is tried at any rate with the effort ``"best"`` alone; otherwise beside few attributes or none,
        and only if the shallower one was worth something.
        """
        if view.family == "graphs" or len(labelled.train) < DEEP_ITEMS:
            return []
        wide = view.facts["columns"] > WIDE_ATTRIBUTES
        family: dict[str, Any] = {"family": "attributes", "lr": 0.005} if wide else {"family": "nodes"}
        columns = "encoded+structure" if view.facts["attributes"] else "structure"
        found = []
        for name, options in DEEP[effort].items():
            if name == "network-12" and wide and effort != "best":
                continue
            few = name == "network-12" and view.facts["attributes"] and not wide
            family["features"] = "encoded" if few else columns  # it finds structure by itself, and overfits with more
            one = cls(name, **family, **options, patience=DEEP_PATIENCE, choose_by="metric")
            share = MOST_SECONDS[effort] / one.estimate(view, view.num_items)
            epochs = min(1.0, share) * one.settings.epochs
            if epochs >= DEEP_LEAST:
                found.append(cls(name, **one.options | {"epochs": int(epochs)}))
        if effort != "best":
            for shallow, deep in pairwise(found):
                deep.after = shallow.name
        return found

    def _preset(self) -> Preset:
        base = preset(self.settings.preset, self.settings.family)
        return replace(base, model=base.model.changed(**self.settings.model))

    def _learn(self, view: View, labelled: Labelled) -> None:
        made, train, val = self._preset(), torch.from_numpy(labelled.train), torch.from_numpy(labelled.judges())
        if labelled.task == "classify":
            self.facts["unseen"] = np.setdiff1d(np.arange(labelled.outputs), labelled.y[labelled.train]).tolist()
        y, objective = torch.from_numpy(labelled.y).to(labelled.device), self._objective(labelled.metric)
        graphs = [view.data] if isinstance(view, NodeView) else [view.data[i] for i in labelled.train]
        features = FeatureMap(self.settings.features).fit(graphs)
        degree = torch.cat([count_degree(graph.edge_index, int(graph.num_nodes or 0)) for graph in graphs])
        self.facts["tasks"] = made.make_tasks(degree).state()
        self.facts["features"], arrays = features.state()
        self.arrays |= {f"features.{name}": array.numpy() for name, array in arrays.items()}
        seed, models = labelled.seed_of(self.name) % 2**31, []
        for number in range(self.settings.seeds):
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(seed + number)
                models.append(self._model(seed + number).to(labelled.device))
        take = self._inputs(models[0], features, view, labelled.device)
        split = Split("ensemble", 0, train, val, val[:0])
        weight = None if labelled.weight is None else torch.from_numpy(labelled.weight)
        problem: NodeProblem | GraphProblem
        if isinstance(view, NodeView):
            problem = NodeProblem(take(None), y, split, weight, objective)
        else:
            problem = GraphProblem(y, split, take, made.train.batch_size, weight, objective)
        if not len(val):  # the epoch is given; the loop wants a validation part nevertheless
            problem.validation = problem.train
        epochs = self.settings.epochs if self.chosen is None else self.chosen["epochs"]
        changes = ((name, getattr(self.settings, name)) for name in ("lr", "patience", "choose_by"))
        own = {name: value for name, value in changes if value is not None}
        if weight is not None and labelled.metric is None:
            own["choose_by"] = "loss"  # weights count in the loss alone
        config, choose = replace(made.train, seed=seed, epochs=epochs, **own), self.chosen is None
        best = fit_together(models, [problem] * len(models), config, choose=choose, deadline=labelled.deadline)
        if not choose and best < epochs:
            raise OutOfTimeError(f"{self.name} has trained {best} of {epochs} epochs")
        for number, model in enumerate(models):
            self.arrays |= {f"model.{number}.{name}": value.cpu().numpy() for name, value in model.state_dict().items()}
        if choose:
            self.chosen = {"epochs": best, "scale": 1.0}
            if own["choose_by"] == "metric" and len(val):
                scores = [each[val] for each in self._scores(view)]
                scales = (1.0,) if labelled.task == "regress" else SCORE_SCALES
                losses = [labelled.loss(self._mean(scores, scale), val.numpy()) for scale in scales]
                self.chosen["scale"] = scales[int(np.argmin(losses))]

    def check_chosen(self, chosen: Any) -> None:
        """No more epochs than a fit without a choice trains."""
        super().check_chosen(chosen)
        check_arrays(chosen, {"epochs": Array("i", (), 1, self.settings.epochs + 1)})

    def in_folds(self) -> Self:
        """One network a fold: the folds are averaged over, too."""
        return type(self)(self.name, **self.options | {"seeds": 1})

    def _objective(self, metric: str | None = None) -> Objective:
        """Fitted; numbers are standardised already. AUC stands for metrics that ask which of two classes is meant."""
        outputs, task = self.facts["outputs"], self.facts["task"]
        if task == "classify" and metric and METRICS[metric].has_positive:
            metric = "auc"
        found = replace(OBJECTIVES[task](metric=metric or ""), outputs=outputs)
        if isinstance(found, Classify):
            return replace(found, unseen=tuple(self.facts.get("unseen", ())))
        return replace(found, mean=(0.0,) * outputs, scale=(1.0,) * outputs) if isinstance(found, Regress) else found

    def _model(self, seed: int) -> DegreeNetwork:
        made, features = self._preset(), self._features()
        make = GraphDEMONet if made.family == "graphs" else NodeDEMONet
        tasks = DegreeTasks.from_state(self.facts["tasks"])
        return make(features.num_features, self.facts["outputs"], tasks, made.model.changed(seed=seed))

    def _features(self) -> FeatureMap:
        arrays = {name: torch.from_numpy(array) for name, array in under("features", self.arrays).items()}
        return FeatureMap.from_state(self.facts["features"], arrays)

    def _inputs(self, model: DegreeNetwork, features: FeatureMap, view: View, device: str) -> Callable[[Any], Any]:
        """What the model is called with: for all items, given None; otherwise for each batch of numbers of graphs."""
        if isinstance(view, NodeView):
            edges, weight = view.data.edge_index, view.data.get("edge_weight")
            if self.settings.loops:
                edges, weight = add_self_loops(edges, weight, fill_value="mean", num_nodes=view.num_items)
            weight = weight if weight is None else weight.to(device)
            whole = (model.prepare(features.transform(view.data).to(device), edges.to(device), edge_weight=weight),)
            return lambda rows: whole
        ready = Batch.from_data_list([replace_features(graph, features.transform(graph)) for graph in view.data])
        every = prepare_batch(model, ready.to(device))
        prepared = GraphUnion(every[0], view.sizes.tolist(), [graph.edge_index.size(1) for graph in view.data])
        return lambda batches: every if batches is None else zip(prepared.take(batches))

    def outputs(self, view: View) -> Float:
        """The mean over seeds of probabilities or values."""
        return self._mean(self._scores(view), self.chosen["scale"])

    def _mean(self, scores: list[torch.Tensor], scale: float) -> Float:
        objective = self._objective()
        return np.mean([objective.activate(scale * each).numpy() for each in scores], axis=0)

    def _scores(self, view: View) -> list[torch.Tensor]:
        """``[items, outputs]`` of each network."""
        return self._run(view, "forward", self.settings.seeds)

    def embed(self, view: View) -> Float:
        """``[items, width]`` the input of the head, of the first network."""
        return self._run(view, "embed", 1)[0].numpy()

    def _run(self, view: View, method: str, seeds: int) -> list[torch.Tensor]:
        """What a method of the first networks gives for all items, in double precision; one module stands for all."""
        model, found = self._model(0).eval().to(self.device), []
        inputs = self._inputs(model, self._features(), view, self.device)(None)
        for number in range(seeds):
            state = under(f"model.{number}", self.arrays)
            model.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
            with torch.no_grad():
                found.append(getattr(model, method)(*inputs).double().cpu())
        return found

    def estimate(self, view: View, num_train: int) -> float:
        """Steps of training, most of which is products of all nodes with the matrices of a layer."""
        nodes, edges, share = view.num_items, view.adjacency.nnz, 1.0
        if isinstance(view, GraphView):
            nodes, share = int(view.sizes.sum()), num_train / max(1, view.num_items)
        model, epochs = self._preset().model, self.settings.epochs
        if self.settings.choose_by == "loss":
            epochs = min(epochs, TYPICAL_EPOCHS)
        width = model.hidden
        matrices = 2 + (0 if model.scheme == "scale" else model.basis_size)
        row = 1e-10 * (2 * view.facts["columns"] + width * matrices * model.layers) + 1.2e-8 * model.layers
        edge = 2e-9 if 4 * nodes * width > CACHED else 5e-10
        return self.settings.seeds * epochs * (3e-3 + share * width * (nodes * row + edge * edges * model.layers))

    def memory(self, view: View, num_train: int) -> float:
        """What a step on all nodes keeps for the derivatives, and the features."""
        nodes = int(view.sizes.sum()) if isinstance(view, GraphView) else view.num_items
        model = self._preset().model
        kept = step_values(model) + 3 * (32 + view.facts["columns"])
        return super().memory(view, num_train) + 4.0 * nodes * kept
