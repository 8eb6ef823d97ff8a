"""The core of the estimators: fit a model on checked items with encoded targets, and use it on checked items.

The public classes read what users pass, encode its targets and come here; ``runs`` has read its files and comes here at
once.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_split, labelled
from demonet.data.columns import Columns
from demonet.data.splits import Split, fractions
from demonet.ensemble import Progress as Candidate
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.estimators.closed_form import (
    AUTO_ONLY,
    MODELS,
    ClosedForm,
    EnsembleModel,
    Problem,
    check_targets,
    everything,
)
from demonet.estimators.network import NetworkModel
from demonet.estimators.targets import Array, Targets
from demonet.features.attributes import fitting_features
from demonet.train.finite import check_outputs
from demonet.train.loop import Epoch
from demonet.train.objective import Objective
from demonet.train.presets import Preset, preset
from demonet.train.problem import labels
from demonet.train.recipes import Trained, family_of, train_graphs, train_nodes

if TYPE_CHECKING:
    from demonet.estimators.base import DEMONetEstimator

Items: TypeAlias = Data | Sequence[Data]


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
    """

    estimator: str
    parameters: dict[str, Any]
    model: NetworkModel | ClosedForm
    objective: Objective
    classes: Array | None
    num_attributes: int
    split: Split
    columns: Columns | None = None
    weighted: bool | None = None

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
        known = self.model.of_fitted_items(items) if isinstance(self.model, EnsembleModel) else None
        outputs, embedding = known or self.model.outputs_and_embedding(items)
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

    def match_weights(self, graphs: Sequence[Data], given: bool | None = None, file: str | Path | None = None) -> None:
        """Tell of edge weights that differ from training; those that training did not have are removed.

        Args:
            graphs: The graphs, in which weights that are all 1 are left out.
            given: Whether their source has weights; without them, a model that needs them is refused. None if that is
                not known.
            file: The source.
        """
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


def fit_checked(
    estimator: DEMONetEstimator,
    items: Items,
    split: Split | None = None,
    classes: Sequence[Any] | Array | None = None,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | Path | None = None,
    on_candidate: Callable[[Candidate], None] | None = None,
    recipe: Callable[..., Trained] | None = None,
) -> Fitted:
    """Fit what an estimator's parameters ask for; neither the items nor the estimator are changed.

    Args:
        estimator: Its parameters say what is fitted.
        items: A checked graph, or checked graphs, with encoded targets in ``y``: see :mod:`demonet.train.objective`.
        split: The items to train on and to choose by; if None, a part of the labelled ones is held out.
        classes: The class of each number in ``y``, of which each has a labelled item, or the name of each label; not
            used in a regression.
        on_epoch: Called after every epoch of a network.
        checkpoint: Where the state is saved; training continues from an existing file.
        on_candidate: Called before and after every candidate of ``model="auto"``.
        recipe: Trains a network for nodes in place of :func:`~demonet.train.train_nodes`.
    """
    estimator._check_parameters()
    graphs = [items] if isinstance(items, Data) else items
    task = estimator._own_objective(items)
    y = labels(items, task).cpu()
    if split is not None:
        check_split(split, y)
    names = None if task.task == "regress" else np.asarray(classes)
    targets = Targets(y, estimator._objective(y, names), names)
    kind, seed = estimator.model, estimator._seed()
    check_targets(kind, targets)
    if split is None:
        share = estimator.validation_fraction
        split = everything(y, seed) if kind == "kernel" else hold_out(y, share, seed)
    if kind == "network":
        model: NetworkModel | ClosedForm = _fit_network(
            estimator, items, targets, split, seed, on_epoch, checkpoint, recipe
        )
    elif on_epoch is not None:
        raise DemonetError(f"on_epoch with model={kind!r}", hint="only networks have epochs")
    elif checkpoint is not None and kind == "kernel":
        raise DemonetError("checkpoint with model='kernel'", hint="it is fitted in one step")
    else:
        model = _fit_closed_form(kind, estimator, items, targets, split, seed, checkpoint, on_candidate)
    return Fitted(
        estimator=type(estimator).__name__,
        parameters=estimator._plain_parameters(),
        model=model,
        objective=model.objective if isinstance(model, NetworkModel) else targets.objective,
        classes=names,
        num_attributes=num_attributes(graphs[0]),
        split=split,
        columns=graphs[0].get("columns"),
        weighted=has_weights(graphs),
    )


def _fit_network(
    estimator: DEMONetEstimator,
    items: Items,
    targets: Targets,
    split: Split,
    seed: int,
    on_epoch: Callable[[Epoch], None] | None,
    checkpoint: str | Path | None,
    recipe: Callable[..., Trained] | None,
) -> NetworkModel:
    settled, device = settle(estimator, items, seed), estimator._device()
    if isinstance(items, Data):
        options = {name: getattr(estimator, name) for name in ("batch_size", "neighbours")}
        recipe, moved = recipe or partial(train_nodes, **options), copy.copy(items).to(device)
    else:
        recipe, moved = train_graphs, [copy.copy(graph).to(device) for graph in items]
    shown: AbstractContextManager[Any] = nullcontext(on_epoch)
    if on_epoch is None and estimator.verbose:
        from demonet.progress import EpochBar

        shown = EpochBar(type(estimator).__name__, settled.train.epochs)
    with shown as callback:
        trained = recipe(
            moved,
            split,
            settled,
            objective=targets.objective,
            seed=seed,
            class_weight=estimator._class_weights(targets, split),
            on_epoch=callback,
            checkpoint=checkpoint,
        )
    return NetworkModel.of(trained)


def _fit_closed_form(
    kind: str,
    estimator: DEMONetEstimator,
    items: Items,
    targets: Targets,
    split: Split,
    seed: int,
    checkpoint: str | Path | None,
    on_candidate: Callable[[Candidate], None] | None,
) -> ClosedForm:
    shown: AbstractContextManager[Any] = nullcontext(on_candidate)
    if on_candidate is None and estimator.verbose:
        from demonet.progress import CandidateBar

        shown = CandidateBar(type(estimator).__name__)
        if kind == "kernel":
            count = split.train.numel() + split.val.numel()
            print(f"{type(estimator).__name__}: a kernel machine on {count:,} labelled items", file=sys.stderr)
    with shown as callback:
        problem = Problem(
            items,
            targets.y,
            split,
            task=targets.objective.task,
            seed=seed,
            device=str(estimator._device()),
            metric=estimator.metric,
            positive=getattr(targets.objective, "positive", None),
            checkpoint=checkpoint,
            on_candidate=callback,
            **{name: plain(getattr(estimator, name)) for name in AUTO_ONLY},
        )
        return MODELS[kind].fit(problem)


def settle(estimator: DEMONetEstimator, items: Items, seed: int) -> Preset:
    """The preset for the items, changed by an estimator's parameters and by the kind of the attributes."""
    graphs = [items] if isinstance(items, Data) else items
    base = preset(estimator.preset, family_of(items))
    features = fitting_features(base.features, graphs) if base.name == "default" else base.features
    named = (estimator.features or "").split("+")
    if base.family == "graphs" and "attributes" in named and not num_attributes(graphs[0]):
        raise DemonetError(f"features={estimator.features!r}, but the graphs have no attributes")
    given = {name: plain(getattr(estimator, name)) for name in ("scheme", "hidden", "epochs", "patience", "lr")}
    given = {name: value for name, value in given.items() if value is not None}
    model = {name: given.pop(name) for name in ("scheme", "hidden") if name in given}
    if estimator.metric is not None:
        given["choose_by"] = "metric"
    elif getattr(estimator, "class_weight", None) is not None:
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
