"""What all estimators share: parameters, scikit-learn's interface, saving and loading.

The parameters are the fields of a dataclass, from which the constructor follows; it stores them unchanged, as
scikit-learn asks.
"""

from __future__ import annotations

import copy
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

import numpy as np
import torch
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, InvalidParameterError, Options, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from demonet import options
from demonet.checks import labelled
from demonet.closedform import DegreeEffect
from demonet.data.columns import Columns
from demonet.data.ids import ids_of
from demonet.data.splits import Split, check_split, warn_of_rare
from demonet.ensemble import Progress
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.estimators.core import Fitted, Items, check_parameters, fit_checked, plain, two_nodes
from demonet.estimators.explain import has_other_edges
from demonet.estimators.importance import importance_facts
from demonet.estimators.models import NetworkModel
from demonet.estimators.targets import Array, check_twice, check_weights, narrowed, scattered
from demonet.features import FeatureMap
from demonet.nn.weights import SCHEMES
from demonet.train.loop import Epoch, History
from demonet.train.metrics import METRICS
from demonet.train.objective import Objective
from demonet.train.presets import Preset
from demonet.train.problem import labels

_NOT_SAVED = ("graph", "attributes")
_COUNT = [Interval(Integral, 1, None, closed="left"), None]


class _Declared:
    """What others add to an estimator: the subclasses for tasks (``targets.py``) and for items, and a fit."""

    _encode: Callable[[Any, int], tuple[Tensor, Array | None]]
    _objective: Callable[[Tensor, Array | None], Objective]
    _own_objective: Callable[[Items], Objective]
    _own_targets: Callable[[Tensor, Any], Array]
    _weights: Callable[[Tensor, Array | None, Split, Array | None], Array | None]
    _decide: Callable[[Array, Fitted], Array]
    _score: Callable[..., float]

    _listed: Callable[[Any], Any]
    _learn: Callable[[Any], Any]

    fitted_: Fitted
    model_: Any  # a network, or a wrapper of the machine or the ensemble
    objective_: Objective
    features_: FeatureMap
    preset_: Preset
    history_: History
    candidates_: list[dict[str, Any]]
    classes_: Array
    split_: Split
    n_features_in_: int
    columns_: Columns
    feature_names_in_: Array
    weighted_: bool
    graph_: Data  # of nodes, as read


@dataclass(kw_only=True, eq=False, repr=False)
class DEMONetEstimator(_Declared, BaseEstimator):
    """Parameters and fitted state of all estimators."""

    _items: ClassVar[str]  # "nodes" or "graphs"

    model: str = "auto"
    effort: str = "standard"
    time_limit: float | None = None
    n_jobs: int | None = None
    preset: str = "strong"
    scheme: str | None = None
    features: str | None = None
    hidden: int | None = None
    layers: int | str | None = None
    lr: float | None = None
    epochs: int | None = None
    patience: int | None = None
    validation_fraction: float = 0.2
    metric: str | None = None
    random_state: int | None = 0
    device: str = "cpu"
    verbose: bool | int = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [StrOptions(set(get_args(options.Model)))],
        "effort": [StrOptions(set(get_args(options.Effort)))],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Options(Integral, {-1}), *_COUNT],
        "preset": [StrOptions(set(get_args(options.Preset)))],
        "scheme": [str, None],
        "features": [str, None],
        "hidden": [Interval(Integral, 2, None, closed="left"), None],
        "layers": [*_COUNT, StrOptions({"auto"})],
        "lr": [Interval(Real, 0, None, closed="neither"), None],
        "epochs": _COUNT,
        "patience": _COUNT,
        "batch_size": _COUNT,
        "neighbours": _COUNT,
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "metric": [str, None],
        "positive": [str, Real, np.bool_, None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "loss": [StrOptions({"mse", "mae"})],
        "directed": ["boolean", None],
        "random_state": [Interval(Integral, 0, 2**32, closed="left"), None],
        "device": [str],
        "verbose": ["verbose"],
    }

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train."""

    @abstractmethod
    def transform(self, X: Any) -> Array:
        """Embed."""

    def fit_split(
        self,
        data: Data | Sequence[Data],
        split: Split,
        *,
        sample_weight: Any = None,
        on_epoch: Callable[[Epoch], None] | None = None,
        checkpoint: str | Path | None = None,
        on_candidate: Callable[[Progress], None] | None = None,
    ) -> Self:
        """Train on a given split: nothing more is held out, and the test part is not used.

        Args:
            data: The graph, with targets in ``y``; or the graphs, each with its target.
            split: Training and validation items, by their index in ``data``.
            sample_weight: One weight for each item of ``data``, see :meth:`fit`.
            on_epoch: Callback after every epoch.
            checkpoint: Where the state is saved; training resumes from it if it exists. It is a file for a network,
                for ``layers="auto"`` a folder with a file for each depth, and for ``model="auto"`` a folder with a file
                for every finished candidate.
            on_candidate: Callback before and after every candidate of ``model="auto"``.
        """
        self._check_parameters()
        given = self._listed(data)
        rows, y, weight = self._labelled(given, sample_weight, split)
        callbacks = {"on_epoch": on_epoch, "checkpoint": checkpoint, "on_candidate": on_candidate}
        return self._fit(self._learn(given), rows, y, split, weight, **callbacks)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Train on the items and embed them, as a Pipeline does."""
        return self.fit(X, y, sample_weight).transform(X)

    def set_output(self, *, transform: str | None = None) -> Self:
        """What ``transform`` gives: ``"default"`` (an array), ``"pandas"`` or ``"polars"``; None changes nothing."""
        if transform not in (None, "default", "pandas", "polars"):
            raise DemonetError(f"{transform!r} is not 'default', 'pandas' or 'polars'", argument="transform")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # what sklearn.base.clone copies
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the columns of ``transform``, as scikit-learn writes them: ``demonetclassifier0``, ..."""
        check_is_fitted(self, "model_")
        fitted = self.fitted_
        items = getattr(self, "graph_", None) or two_nodes(self._items, fitted.num_attributes)
        return np.array(self._names(fitted.embed(items, np.arange(1)).shape[1]), dtype=object)

    def _names(self, width: int) -> list[str]:
        return [f"{type(self).__name__.lower()}{column}" for column in range(width)]

    def _framed(self, rows: Array, ids: Sequence[Any]) -> Any:
        """Rows as the array or the data frame that the user asked for; the index of a pandas frame has the ids."""
        wanted = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        if wanted == "default":
            return rows
        names = self._names(rows.shape[1])
        if wanted == "pandas":
            import pandas

            return pandas.DataFrame(rows, index=list(ids), columns=names)
        import polars  # type: ignore[import-not-found]

        return polars.DataFrame(rows, schema=names)

    def _check_parameters(self) -> None:
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise DemonetError(str(error)) from None
        for name, registry in (("scheme", SCHEMES), ("metric", METRICS)):  # to which users may add
            if (value := getattr(self, name)) is not None and value not in registry:
                known = ", ".join(map(repr, registry))
                raise DemonetError(
                    f"The {name!r} parameter of {type(self).__name__} must be one of {known}. Got {value!r}."
                )
        if not re.fullmatch(r"cpu|auto|cuda(:\d+)?", self.device):
            known = "'cpu', 'auto', 'cuda' or 'cuda:' and a number"
            raise DemonetError(f"The 'device' parameter of {type(self).__name__} must be {known}. Got {self.device!r}.")
        check_parameters(self.model, self.get_params(deep=False), {each.name: each.default for each in fields(self)})

    def _seed(self) -> int:
        """The seed of a fit: ``random_state``, or a new one if it is None."""
        return int(check_random_state(None).randint(2**31) if self.random_state is None else self.random_state)

    def _device(self) -> torch.device:
        count = torch.cuda.device_count()
        found = torch.device(("cuda" if count else "cpu") if self.device == "auto" else self.device)
        if found.type == "cuda" and (found.index or 0) >= count:
            raise DemonetError(
                f"device={self.device!r}, and torch sees {count} GPUs",
                hint='"auto" takes one if there is one, else the CPU',
            )
        return found

    def _plain_parameters(self) -> dict[str, Any]:
        """The parameters as JSON takes them, without the graph."""
        given = {k: plain(value) for k, value in self.get_params(deep=False).items() if k not in _NOT_SAVED}
        if isinstance(weights := given.get("class_weight"), dict):  # JSON would make strings of the keys
            given["class_weight"] = [[plain(key), plain(value)] for key, value in weights.items()]
        return given

    def _labelled(
        self, items: Items, sample_weight: Any = None, split: Split | None = None
    ) -> tuple[Array, Array, Array | None]:
        """The items of a Data, or of a list of them, that have a target in ``y``, these targets, and their weights."""
        if not isinstance(items, Data) and not all(isinstance(graph, Data) for graph in items):
            raise DemonetError("y is None, and not every graph is a Data with a y of its own", hint="pass y")
        y = labels(items, self._own_objective(items)).cpu()
        first = items if isinstance(items, Data) else items[0]
        if split is not None:
            check_split(split, y)
            warn_of_rare([split], y, names=first.get("class_names"))
        known = labelled(y)
        rows, weight = known.nonzero().view(-1).numpy(), check_weights(sample_weight, len(y))
        targets = self._own_targets(y[known], first.get("class_names"))
        return rows, targets, None if weight is None else weight[rows]

    def _fit(
        self, items: Any, rows: Array, y: Any, split: Split | None = None, sample_weight: Any = None, **callbacks: Any
    ) -> Self:
        """Fit on checked items, of which ``rows`` have these targets and weights; those of weight 0 are left out."""
        known, classes = self._encode(y, len(rows))
        weight = check_weights(sample_weight, len(rows))
        if weight is not None and not weight.all():
            kept = weight > 0
            known, classes = narrowed(known[torch.from_numpy(kept)], classes)
            rows, weight = rows[kept], weight[kept]
            if split is not None:
                train, val = (part[torch.isin(part, torch.from_numpy(rows))] for part in (split.train, split.val))
                split = replace(split, train=train, val=val)
        nodes = isinstance(items, Data)
        count, ready = (int(items.num_nodes or 0), copy.copy(items)) if nodes else (len(items), items)
        whole, every = scattered(known, rows, count), None
        if weight is not None:
            every = scattered(torch.from_numpy(weight), rows, count).numpy()
        if nodes:
            ready.y = whole
            check_twice(known, weight, whole, every, rows, ids_of(items), classes)
        else:
            for graph, target in zip(items, whole, strict=True):
                graph.y = target[None]
        self._adopt(fit_checked(self, ready, split, classes, every, **callbacks), ready)
        if nodes:
            self.graph_ = items
        return self

    def _adopt(self, fitted: Fitted, items: Items | None = None) -> Self:
        """Take over a fitted model: all attributes that end in ``_``; and what it was fitted on, with its targets."""
        model, columns = fitted.model, fitted.columns
        network = model if isinstance(model, NetworkModel) else None
        named = columns is not None and columns.named
        found = {
            "model_": model if network is None else network.network,
            "objective_": fitted.objective,
            "split_": fitted.split,
            "classes_": fitted.classes,
            "weighted_": fitted.weighted,
            "columns_": columns,
            "n_features_in_": fitted.num_attributes if columns is None else len(columns.sources),
            "feature_names_in_": np.array(columns.sources, dtype=object) if columns is not None and named else None,
            "candidates_": getattr(model, "candidates", None),
            **{f"{name}_": getattr(network, name, None) for name in ("features", "preset", "history")},
        }
        self.fitted_, self._fitted_on = fitted, items
        for name, value in found.items():
            if value is None:
                self.__dict__.pop(name, None)
            else:
                setattr(self, name, value)
        return self

    def degree_effect(self, seed: int = 0) -> DegreeEffect:
        """What the degree-specific term is worth on the fitted data, for ``model="kernel"`` and ``"auto"``.

        Accuracy and log-loss (R² and squared error of numbers) on items that were left out, with the term at its best,
        at zero, and with shuffled degrees; and the paired differences with their 95 % intervals. For ``"auto"``, these
        are those of the kernel machine among the members. Not for loaded models, which do not have their labels.

        Args:
            seed: Of the shuffled degrees.
        """
        check_is_fitted(self, "model_")
        return self.fitted_.model.degree_effect(seed)

    def importance(self, seed: int = 0) -> list[dict[str, Any]]:
        """What the metric loses on validation items without the structure, the degree, or a column.

        See :func:`~demonet.estimators.importance.importance_facts`, which ``demonet fit`` measures, too. The members of
        ``"auto"`` are those that were fitted on the training part alone, and so is a kernel machine; it needs a split.
        Not for loaded models, which do not have their labels.

        Args:
            seed: Of the permutations.
        """
        check_is_fitted(self, "model_")
        fitted, items, judge = self.fitted_, self._fitted_on, self.fitted_.model.strict
        if items is None:
            raise DemonetError("importance of a model that was loaded", hint="call it after fit")
        if judge is None:
            raise DemonetError("importance with model='kernel', which has seen all labels", hint='use model="auto"')
        objective, split = fitted.objective, fitted.split
        metric, positive = METRICS[objective.metric], getattr(objective, "positive", None)
        if positive is not None and fitted.classes is not None:
            metric = metric.of_class(positive, fitted.classes.tolist()[positive])
        metric = replace(metric, decision=objective.decision)
        effort: Any = self.effort if self.model == "auto" else "quick"
        y, parts = labels(items, objective).cpu().numpy(), (split.train.numpy(), split.val.numpy())
        given = judge.outputs, items, y, parts, metric, objective.task, effort, seed
        return importance_facts(*given, edges=has_other_edges(fitted))

    def save(self, path: str | Path) -> None:
        """Write the fitted model, without the graph, to one tensor file."""
        check_is_fitted(self, "model_")
        self.fitted_.save(path)

    def to_onnx(self, path: str | Path, *, weighted: bool = False) -> None:
        """Write the fitted network as ONNX, for use without torch; its input are the features of a graph.

        Args:
            path: The file.
            weighted: Whether edge weights are an input too.
        """
        from demonet.estimators.onnx import export_onnx

        check_is_fitted(self, "model_")
        model = self.fitted_.model
        if not isinstance(model, NetworkModel):
            hint = Hint("only a network can be exported, train one with {model}", model="network")
            raise DemonetError(f"a model of kind {model.name!r} has no ONNX form", hint=hint)
        export_onnx(model, self.fitted_.classes, path, weighted=weighted)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what :meth:`save` or ``demonet fit`` wrote.

        Args:
            path: The file; in the folder of a run it is ``model.safetensors``.
        """
        fitted = Fitted.load(path, cls.__name__, cls._items)
        try:
            given = dict(fitted.parameters)
            own = set(cls._get_param_names()) - set(_NOT_SAVED)
            if unknown := set(given) - own:  # those that came later than the file have their defaults
                raise DemonetError(f"the parameters {sorted(unknown)} are not those of a {cls.__name__}")
            if isinstance(weights := given.get("class_weight"), list):
                given["class_weight"] = dict(map(tuple, weights))
            estimator = cls(**given)
            estimator._check_parameters()
            if estimator.device.startswith("cuda") and not torch.cuda.is_available():
                warn(DemonetWarning(f"trained with device={estimator.device!r}, there is no GPU here", file=path))
                estimator.device = "cpu"
            if fitted.model.name != estimator.model:
                raise DemonetError(f"a model of kind {fitted.model.name!r} with model={estimator.model!r}")
        except (TypeError, ValueError) as error:
            raise DemonetError(f"does not hold a model: {error}", file=path) from None
        fitted.model.to(estimator._device())
        return estimator._adopt(fitted)

    def __sklearn_tags__(self) -> Any:
        """The input is nodes or graphs, not a table of numbers; embeddings are float32."""
        from sklearn.utils import TransformerTags  # scikit-learn 1.6 brought tags, and this method's callers

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=["float32"])
        tags.input_tags.two_d_array = False
        return tags
