"""The core of the estimators: fit a model on checked items with encoded targets, and use it on checked items.

The public classes read what users pass, encode its targets and come here; ``runs`` has read its files and comes here at
once.
"""

from __future__ import annotations

import copy
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_classes, labelled
from demonet.data.columns import ColumnEncoding, Columns, encodings, tell_others
from demonet.data.splits import Split, check_split, fractions
from demonet.ensemble import Progress
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.estimators.models import MODELS, EnsembleModel, KernelModel, LabelledItems, Model, NetworkModel
from demonet.estimators.targets import Array, class_state, classes_from_state
from demonet.features.attributes import fitting_features
from demonet.progress import CandidateBar, EpochBar
from demonet.tensorfile import by_prefix, read_tensors, write_tensors
from demonet.train.finite import check_outputs
from demonet.train.loop import Epoch
from demonet.train.metrics import METRICS, needs_decision
from demonet.train.objective import Objective, objective_from_state
from demonet.train.presets import Preset, preset, with_layers
from demonet.train.problem import labels
from demonet.train.recipes import Trained, family_of, train_best, train_graphs, train_nodes
from demonet.workers import Engine

if TYPE_CHECKING:
    from demonet.estimators.base import DEMONetEstimator

Items: TypeAlias = Data | Sequence[Data]
FORMAT = "demonet-model-3"
NETWORK_ONLY: tuple[str, ...] = ("preset", "scheme", "features", "hidden", "layers", "lr", "epochs", "patience")
NETWORK_ONLY += ("loss", "batch_size", "neighbours")
AUTO_ONLY = ("effort", "time_limit", "n_jobs")
WEIGHTS, ATTRIBUTES = "weights", "attributes"  # numbers that are compared with those of training
SAMPLE = 10_000  # of so many
_PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model, and what is needed to use it on checked items: the nodes of a graph, or graphs.

    Attributes:
        estimator: The name of the class of its estimator.
        parameters: The estimator's parameters, as plain values.
        model: The network, the kernel machine or the ensemble.
        objective: The fitted objective.
        classes: The classes in the order of the outputs, None for a regression.
        num_attributes: Columns of ``x`` in training, 0 if there were none.
        split: Training and validation items.
        columns: What the columns of a table of attributes are, if the attributes come from one.
        weighted: Whether edges had weights in training; None if that is not known.
        numbers: What weights, and attributes that come from no table, were like in training.
    """

    estimator: str
    parameters: dict[str, Any]
    model: Model
    objective: Objective
    classes: Array | None
    num_attributes: int
    split: Split
    columns: Columns | None = None
    weighted: bool | None = None
    numbers: tuple[ColumnEncoding, ...] = ()

    def outputs(self, items: Items, rows: Array | None = None) -> Array:
        """``[items, outputs]`` probabilities, or values in the units of the targets; of ``rows`` alone, if given."""
        self.check_attributes(items)
        return self._finite(self.model.outputs(items, rows), items, rows)

    def embed(self, items: Items, rows: Array | None = None) -> Array:
        """``[items, width]`` embeddings; of ``rows`` alone, if given."""
        self.check_attributes(items)
        return self._finite(self.model.embed(items, rows), items, rows)

    def outputs_and_embedding(self, items: Items) -> tuple[Array, Array]:
        """:meth:`outputs` and :meth:`embed` of the items that were fitted; an ensemble has them from the fit."""
        outputs, embedding = self.model.outputs_and_embedding(items)
        return self._finite(outputs, items), self._finite(embedding, items)

    def _finite(self, outputs: Array, items: Items, rows: Array | None = None) -> Array:
        check_outputs(outputs, items, rows, getattr(self.model, "network", None))
        return outputs

    def check_attributes(self, items: Items) -> None:
        """Refuse items whose attributes are not those of training."""
        data, which = (items, "the graph") if isinstance(items, Data) else (items[0], "graph 0")
        given, columns = num_attributes(data), self.columns
        if given != self.num_attributes:
            raise DemonetError(
                f"{which} has {given} attributes a node (columns of x), where training had {self.num_attributes}",
                hint="use the same columns in the same order, such as read_graph(edges, features=...)",
            )
        own = data.get("columns")
        if columns is not None and own is not None and own.names != columns.names:
            different = next(pair for pair in zip(own.names, columns.names, strict=True) if pair[0] != pair[1])
            raise DemonetError(
                f"{which} has the attribute {different[0]!r} where training had {different[1]!r}",
                hint="read_graph(edges, features=..., columns=estimator.columns_)",
            )

    def match_numbers(
        self,
        graphs: Sequence[Data],
        given: bool | None = None,
        file: str | Path | None = None,
        features: str | Path | None = None,
    ) -> None:
        """Tell of weights and attributes that differ from training; weights that training did not have are removed.

        Args:
            graphs: The graphs, in which weights that are all 1 are left out.
            given: Whether their source has weights; without them, a model that needs them is refused. None if that is
                not known.
            file, features: The sources of edges and attributes.
        """
        found = _numbers(graphs) if self.numbers else {}
        if given and WEIGHTS not in found:
            found[WEIGHTS] = np.ones(sum(graph.num_edges for graph in graphs))
        for column in self.numbers:
            if (values := found.get(column.name)) is not None:
                tell_others([column.difference(values)], file if column.name == WEIGHTS else features or file)
        if self.weighted and not given and not has_weights(graphs) and any(one.edge_index.numel() for one in graphs):
            problem, hint = "the edges have no weights, those of training had", "{weight} is the column"
            if given is False:
                raise DemonetError(problem, file=file, hint=Hint(hint, weight=...))
            warn(DemonetWarning(problem, file=file))
        if self.weighted is False:
            if has_weights(graphs):
                warn(DemonetWarning("the weights of edges are not used, those of training had none", file=file))
            for graph in graphs:
                graph.pop("edge_weight", None)

    def save(self, path: str | Path) -> None:
        """Write the model to one tensor file, atomically and without pickle. The graph is not in it: users have it."""
        state, arrays = self.model.state()
        tensors = {f"model.{name}": value for name, value in arrays.items()}
        tensors |= {f"split.{part}": getattr(self.split, part) for part in _PARTS}
        facts = {
            "estimator": self.estimator,
            "parameters": self.parameters,
            "kind": self.model.name,
            "model": state,
            "objective": self.objective.state(),
            "classes": class_state(self.classes),
            "num_attributes": self.num_attributes,
            "columns": None if self.columns is None else self.columns.state(),
            "weighted": self.weighted,
            "numbers": [asdict(column) for column in self.numbers],
            "split": {"name": self.split.name, "seed": self.split.seed},
        }
        write_tensors(path, FORMAT, tensors, facts)

    @classmethod
    def load(cls, path: str | Path, estimator: str, items: str) -> Fitted:
        """Read a model; a file that is damaged, incomplete, of another format or class is refused.

        Args:
            path: The file.
            estimator: The name of the class of its estimator.
            items: ``"nodes"`` or ``"graphs"``: it is tried on two nodes, so that a missing part is found at once.
        """
        tensors, facts, _ = read_tensors(path, FORMAT)
        try:
            if facts["estimator"] != estimator:
                problem = f"a {facts['estimator']}, not a {estimator}"
                raise DemonetError(problem, file=path, hint="load it with its class")
            fitted = cls._assemble(facts, by_prefix(tensors, "model", "split"))
            if not fitted.model.needs_fitted_graph:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DemonetWarning)  # that this is another graph
                    fitted.model.outputs(two_nodes(items, fitted.num_attributes))
        except DemonetError as error:
            if error.file is not None:
                raise
            raise DemonetError(f"does not hold a model: {error}", file=path) from None
        except (RuntimeError, KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise DemonetError(f"does not hold a model: {error!r}", file=path) from error
        return fitted

    @classmethod
    def _assemble(cls, facts: dict[str, Any], parts: dict[str, dict[str, Tensor]]) -> Fitted:
        classes, objective = classes_from_state(facts["classes"]), objective_from_state(facts["objective"])
        if (classes is None) != (objective.task == "regress"):
            raise DemonetError(f"classes do not match the task {objective.task!r}")
        outputs = facts["model"].get("outputs") or objective.outputs
        if classes is not None and outputs not in (0, len(classes)):
            raise DemonetError(f"{outputs} outputs for {len(classes)} classes")
        if len(objective.decision) not in (0, 0 if classes is None else len(classes)):
            raise DemonetError(f"a decision of {len(objective.decision)} numbers")
        columns = None if facts["columns"] is None else Columns.from_state(facts["columns"])
        if columns is not None and len(columns.names) != int(facts["num_attributes"]):
            raise DemonetError(f"{len(columns.names)} columns for {facts['num_attributes']} attributes")
        weighted, split = facts["weighted"], facts["split"]
        if weighted is not None and not isinstance(weighted, bool):
            raise DemonetError(f"weighted is {weighted!r}")
        return cls(
            estimator=facts["estimator"],
            parameters=facts["parameters"],
            model=MODELS[facts["kind"]].from_state(facts["model"], parts["model"], objective),
            objective=objective,
            classes=classes,
            num_attributes=int(facts["num_attributes"]),
            split=Split(split["name"], split["seed"], **{part: parts["split"][part] for part in _PARTS}),
            columns=columns,
            weighted=weighted,
            numbers=encodings(facts.get("numbers", ())),
        )


def fit_checked(
    estimator: DEMONetEstimator,
    items: Items,
    split: Split | None = None,
    classes: Sequence[Any] | Array | None = None,
    weight: Array | None = None,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
    on_candidate: Callable[[Progress], None] | None = None,
    recipe: Callable[..., Trained] | None = None,
    engine: Callable[..., Engine] | None = None,
) -> Fitted:
    """Fit what an estimator's parameters ask for; neither the items nor the estimator are changed.

    Args:
        estimator: Its parameters say what is fitted.
        items: A checked graph, or checked graphs, with encoded targets in ``y``: see :mod:`demonet.train.objective`.
        split: The items to train on and to choose by; if None, a part of the labelled ones is held out.
        classes: The class of each number in ``y``, of which each has a labelled item, or the name of each label; not
            used in a regression.
        weight: ``[items]`` how much each counts, besides its class; above 0 where it is labelled. None if all are 1.
        on_epoch: Called after every epoch of a network.
        checkpoint: Where the state is saved; training continues from an existing file.
        on_candidate: Called before and after every candidate of ``model="auto"``.
        recipe: Trains a network for nodes in place of :func:`~demonet.train.train_nodes`.
        engine: Makes the workers that fit candidates, see :meth:`demonet.ensemble.Ensemble.fit`.
    """
    estimator._check_parameters()
    graphs = [items] if isinstance(items, Data) else items
    task = estimator._own_objective(items)
    y = labels(items, task).cpu()
    if split is not None:
        check_split(split, y)
    names = None if task.task == "regress" else np.asarray(classes)
    if task.task == "classify" and names is not None:
        check_classes(len(names))
    objective = estimator._objective(y, names)
    kind, seed, device = estimator.model, estimator._seed(), estimator._device()
    if kind == "kernel" and objective.task == "multilabel":
        raise DemonetError(f"y is a table of labels, model={kind!r} predicts one class", hint='use model="auto"')
    if on_epoch is not None and kind != "network":
        raise DemonetError(f"on_epoch with model={kind!r}", hint="only networks have epochs")
    if checkpoint is not None and kind == "kernel":
        raise DemonetError("checkpoint with model='kernel'", hint="it is fitted in one step")
    decides = needs_decision(objective.metric)
    if split is None and kind == "kernel" and not (decides and estimator.metric):
        none = torch.empty(0, dtype=torch.int64)
        split = Split("all labelled", seed, labelled(y).nonzero().view(-1), none, none)
    elif split is None:
        split = hold_out(y, estimator.validation_fraction, seed)
    title, shown = type(estimator).__name__, estimator.verbose
    weight = estimator._weights(y, names, split, weight)
    decides = decides and (weight is None or estimator.metric is not None)  # weights move probabilities
    problem = LabelledItems(items, y, split, objective.task, seed, str(device), weight)
    if kind == "kernel":
        if shown:
            count = split.train.numel() + split.val.numel()
            print(f"{title}: a kernel machine on {count:,} labelled items", file=sys.stderr)
        model: Model = KernelModel.fit(problem)
    elif kind == "auto":
        bar = CandidateBar(title) if on_candidate is None and shown else nullcontext(on_candidate)
        options = {name: plain(getattr(estimator, name)) for name in AUTO_ONLY}
        own = None if objective.metric == type(objective).default_metric else objective.metric  # none: by its loss
        if weight is not None and not estimator.metric:
            own, options["told"] = None, objective.metric
        jobs = options.pop("n_jobs")
        options |= {"jobs": os.cpu_count() if jobs == -1 else jobs, "engine": engine}
        options |= {"metric": estimator.metric or own, "positive": getattr(objective, "positive", None)}
        with bar as callback:
            model = EnsembleModel.fit(problem, checkpoint=checkpoint, on_progress=callback, **options)
    else:
        presets = settle(estimator, items, seed, weighted=weight is not None)
        if isinstance(items, Data):
            batches = {name: getattr(estimator, name) for name in ("batch_size", "neighbours")}
            train, moved = recipe or partial(train_nodes, **batches), copy.copy(items).to(device)
        else:
            train, moved = train_graphs, [copy.copy(graph).to(device) for graph in items]
        most = max(each.train.epochs for each in presets)
        epochs = EpochBar(title, most) if on_epoch is None and shown else nullcontext(on_epoch)
        weights = None if weight is None else torch.from_numpy(weight)
        with epochs as callback:
            more: dict[str, Any] = {"objective": objective, "seed": seed, "weight": weights}
            more |= {"on_epoch": callback, "checkpoint": checkpoint}
            if estimator.layers == "auto":
                trained = train_best(train, moved, split, presets, **more)
            else:
                trained = train(moved, split, *presets, **more)
            model = NetworkModel.of(trained, problem)
    if isinstance(model, NetworkModel):
        objective = model.objective
    if decides:
        objective = replace(objective, decision=_decision(model, objective, items, y, split))
    return Fitted(
        estimator=title,
        parameters=estimator._plain_parameters(),
        model=model,
        objective=objective,
        classes=names,
        num_attributes=num_attributes(graphs[0]),
        split=split,
        columns=graphs[0].get("columns"),
        weighted=has_weights(graphs),
        numbers=tuple(ColumnEncoding.learn(name, "number", values) for name, values in _numbers(graphs).items()),
    )


def _decision(model: Model, objective: Objective, items: Items, y: Tensor, split: Split) -> tuple[float, ...]:
    """What validation items, by a model that was not fitted on them, say about predictions for the metric."""
    if isinstance(model, EnsembleModel):
        return model.ensemble.decision
    judge, judged = model.strict, split.val.numpy()
    if judge is None or not judged.size:
        return ()
    return METRICS[objective.metric].choose_decision(judge.outputs(items, judged), y.numpy()[judged])


def check_parameters(model: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Refuse parameters of an estimator that its model does not read, if they are not those of the class."""
    unread = (*(() if model == "auto" else AUTO_ONLY), *(() if model == "network" else NETWORK_ONLY))
    if model == "kernel":  # the metric chooses thresholds alone
        unread += ("positive",) if needs_decision(given.get("metric")) else ("positive", "metric")
    for name in unread:
        if name in given and given[name] is not defaults[name] and given[name] != defaults[name]:
            raise DemonetError(
                f"{name}={given[name]!r} with model={model!r}, which does not read it",
                hint=f"leave {name} at {defaults[name]!r}, or use model={'auto' if name in AUTO_ONLY else 'network'!r}",
            )


def settle(estimator: DEMONetEstimator, items: Items, seed: int, *, weighted: bool = False) -> list[Preset]:
    """The preset for the items, or presets to choose from, see :func:`~demonet.train.with_layers`.

    They are changed by an estimator's parameters, by the kind of the attributes and by whether items are ``weighted``.
    """
    graphs, family = [items] if isinstance(items, Data) else items, family_of(items)
    named = (estimator.features or "").split("+")
    if family == "graphs" and "attributes" in named and not num_attributes(graphs[0]):
        raise DemonetError(f"features={estimator.features!r}, but the graphs have no attributes")
    bases = with_layers(preset(estimator.preset, family), plain(estimator.layers))
    return [_settled(estimator, base, graphs, seed, weighted) for base in bases]


def _settled(estimator: DEMONetEstimator, base: Preset, graphs: Sequence[Data], seed: int, weighted: bool) -> Preset:
    features = fitting_features(base.features, graphs) if base.name == "default" else base.features
    given = {name: plain(getattr(estimator, name)) for name in ("scheme", "hidden", "epochs", "patience", "lr")}
    given = {name: value for name, value in given.items() if value is not None}
    model = {name: given.pop(name) for name in ("scheme", "hidden") if name in given}
    if estimator.layers == "auto" and "epochs" in given:
        given["epochs"] = min(given["epochs"], base.train.epochs)
    if estimator.metric is not None:
        given["choose_by"] = "metric"
    elif weighted:
        given["choose_by"] = "loss"  # weights count in the loss alone
    return replace(
        base,
        features=estimator.features or features,
        model=base.model.changed(**model, seed=seed),
        train=replace(base.train, **given, seed=seed),
    )


def hold_out(y: Tensor, share: float, seed: int) -> Split:
    """Hold out a validation part of the labelled items, stratified by class if there are classes."""
    share, classes = float(share), not y.is_floating_point()
    codes = y if classes else labelled(y).long() - 1
    split = fractions(codes, (1 - share, share, 0.0), seed, stratified=classes)
    if split.val.numel() == 0 or split.train.numel() == 0:
        problem = f"validation_fraction={share} of n_samples={int((codes >= 0).sum())} labelled items is none"
        raise DemonetError(problem, hint="give more labels, or a larger validation_fraction")
    return split


def has_weights(graphs: Sequence[Data]) -> bool:
    """Whether an edge has another weight than 1."""
    return any(graph.get("edge_weight") is not None and bool((graph.edge_weight != 1).any()) for graph in graphs)


def _numbers(graphs: Sequence[Data]) -> dict[str, Array]:
    """The weights of edges and the attributes without columns of a table, if there are any; of many, a sample."""
    weights = [graph.edge_weight for graph in graphs if has_weights([graph])]
    x = [graph.x for graph in graphs if graph.x is not None and graph.get("columns") is None]
    flat = [part.values() if part.layout == torch.sparse_csr else part.reshape(-1) for part in x]
    found = {}
    for name, parts in ((WEIGHTS, weights), (ATTRIBUTES, flat)):
        if count := sum(part.numel() for part in parts):
            values = torch.cat(parts) if len(parts) > 1 else parts[0]
            if count > SAMPLE:
                values = values[torch.from_numpy(np.random.default_rng(0).integers(0, count, SAMPLE)).to(values.device)]
            found[name] = values.detach().cpu().double().numpy()
    return found


def num_attributes(data: Data) -> int:
    """Columns of ``x``, 0 if there is none."""
    return 0 if data.x is None else int(data.x.size(1))


def two_nodes(items: str, attributes: int) -> Items:
    """The smallest input of a model of ``"nodes"`` or ``"graphs"`` with so many attributes."""
    x = torch.zeros(2, attributes) if attributes else None
    pair = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    return pair if items == "nodes" else [pair]


def plain(value: Any) -> Any:
    """A NumPy scalar, as parameter searches pass them, as a Python number."""
    return value.item() if isinstance(value, np.generic) else value
