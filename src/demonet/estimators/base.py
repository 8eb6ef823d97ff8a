"""What all estimators share: parameters, presets, devices, saving and loading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

import numpy as np
import torch
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from demonet import options
from demonet.checks import check_split, labelled
from demonet.closedform import DegreeEffect
from demonet.data.columns import Columns, fitting_features
from demonet.data.splits import Split, fractions
from demonet.ensemble import Progress as Candidate
from demonet.errors import DemonetError, DemonetWarning, Hint, warn
from demonet.estimators.closed_form import (
    AUTO_ONLY,
    MODELS,
    ClosedForm,
    Problem,
    check_parameters,
    check_targets,
    choose_model,
    everything,
)
from demonet.estimators.model_file import SavedModel, load_model, save_model
from demonet.estimators.targets import Array, Targets
from demonet.features import FeatureMap
from demonet.nn.weights import SCHEMES
from demonet.train.finite import check_outputs
from demonet.train.loop import Epoch, History
from demonet.train.metrics import METRICS
from demonet.train.objective import Objective
from demonet.train.presets import Family, Preset, preset
from demonet.train.problem import labels
from demonet.train.recipes import Trained

_NOT_SAVED = ("graph", "attributes")


class DEMONetEstimator(BaseEstimator):
    """Parameters and fitted state of all estimators."""

    model: str
    preset: str
    scheme: str | None
    features: str | None
    hidden: int | None
    lr: float | None
    epochs: int | None
    patience: int | None
    validation_fraction: float
    metric: str | None
    random_state: int
    device: str
    verbose: bool | int

    model_: Any  # a DegreeNetwork or a ClosedForm
    objective_: Objective
    features_: FeatureMap
    preset_: Preset
    history_: History
    split_: Split
    n_features_in_: int
    columns_: Columns
    feature_names_in_: Array
    weighted_: bool

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "model": [StrOptions(set(get_args(options.Model)))],
        "preset": [StrOptions(set(get_args(options.Preset)))],
        "scheme": [str, None],
        "features": [str, None],
        "hidden": [Interval(Integral, 2, None, closed="left"), None],
        "lr": [Interval(Real, 0, None, closed="neither"), None],
        "epochs": [Interval(Integral, 1, None, closed="left"), None],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "metric": [StrOptions(set(METRICS)), None],
        "random_state": [Interval(Integral, 0, 2**32, closed="left")],
        "device": [StrOptions({"cpu", "auto"})],
        "verbose": ["verbose"],
    }

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Train."""

    @abstractmethod
    def transform(self, X: Any) -> Array:
        """Embed."""

    # What the mixins of classifiers and regressors define.

    @abstractmethod
    def _targets(self, y: Any, num_items: int) -> Targets:
        """Encode ``y`` as the user gives it."""

    @abstractmethod
    def _own_objective(self, y: Tensor, num_items: int) -> Objective:
        """The objective for the ``y`` of a Data."""

    @abstractmethod
    def _own_targets(self, y: Tensor, names: Any) -> Array:
        """The ``y`` of a Data as a user would give it."""

    @abstractmethod
    def _class_weights(self, targets: Targets, y: Tensor, split: Split) -> Tensor | None:
        """``[classes]`` or None."""

    @abstractmethod
    def _decide(self, outputs: Array) -> Array:
        """Predictions from probabilities or values."""

    @abstractmethod
    def _score(self, y: Any, predicted: Array, sample_weight: Any = None) -> float:
        """Accuracy or R²."""

    @abstractmethod
    def _width(self) -> int:
        """The number of columns of ``transform``."""

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Train on the items and embed them, as a Pipeline does."""
        return self.fit(X, y).transform(X)

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
        return np.array([f"{type(self).__name__.lower()}{i}" for i in range(self._width())], dtype=object)

    def _framed(self, rows: Array, ids: Sequence[Any]) -> Any:
        """Rows as the array or the data frame that the user asked for; the index of a pandas frame has the ids."""
        wanted = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        if wanted == "default":
            return rows
        names = [f"{type(self).__name__.lower()}{i}" for i in range(rows.shape[1])]
        if wanted == "pandas":
            import pandas

            return pandas.DataFrame(rows, index=list(ids), columns=names)
        import polars  # type: ignore[import-not-found]

        return polars.DataFrame(rows, schema=names)

    def _store(self, parameters: dict[str, Any]) -> None:
        """Store the constructor's parameters, unchanged, as scikit-learn asks: ``self._store(locals())``."""
        for name in self._get_param_names():
            setattr(self, name, parameters[name])

    def _check_parameters(self) -> None:
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise DemonetError(str(error)) from None
        if self.scheme is not None and self.scheme not in SCHEMES:  # users may register more
            known = ", ".join(map(repr, SCHEMES))
            raise DemonetError(
                f"The 'scheme' parameter of {type(self).__name__} must be one of {known}. Got {self.scheme!r}."
            )
        defaults = {name: p.default for name, p in signature(type(self).__init__).parameters.items()}
        check_parameters(self.model, self.get_params(deep=False), defaults)

    def _labelled(self, data: Data | list[Any], split: Split | None = None) -> tuple[Array, Array]:
        """The items of a Data, or of a list of them, that have a target in ``y``, and these targets."""
        first = data if isinstance(data, Data) else data[0]
        y = getattr(first, "y", None)
        if y is not None and not isinstance(data, Data):
            y = y.view(1, -1)
        objective = self._own_objective(torch.empty(0) if y is None else y, 0)
        y = labels(data, objective).cpu()
        if split is not None:
            check_split(split, y)
        known = labelled(y)
        return known.nonzero().view(-1).numpy(), self._own_targets(y[known], first.get("class_names"))

    def _settle(self, family: Family, graphs: Sequence[Data]) -> Preset:
        """The preset of a family, changed by the parameters and by the kind of the attributes."""
        base = preset(self.preset, family)
        features = fitting_features(base.features, graphs) if base.name == "default" else base.features
        model = {name: getattr(self, name) for name in ("scheme", "hidden") if getattr(self, name) is not None}
        train = {name: getattr(self, name) for name in ("epochs", "patience", "lr") if getattr(self, name) is not None}
        if self.metric is not None:
            train["choose_by"] = "metric"
        elif getattr(self, "class_weight", None) is not None:
            train["choose_by"] = "loss"  # weights count in the loss alone
        return replace(
            base,
            features=self.features or features,
            model=base.model.changed(**_plain(model), seed=int(self.random_state)),
            train=replace(base.train, **_plain(train), seed=int(self.random_state)),
        )

    def _hold_out(self, y: Tensor) -> Split:
        """Hold out a validation part of the labelled items, stratified by class if there are classes."""
        share, classes = float(self.validation_fraction), not y.is_floating_point()
        codes = y if classes else labelled(y).long() - 1
        split = fractions(codes, (1 - share, share, 0.0), int(self.random_state), stratified=classes)
        if split.val.numel() == 0 or split.train.numel() == 0:
            problem = f"validation_fraction={share} of n_samples={int((codes >= 0).sum())} labelled items is none"
            raise DemonetError(problem, hint="give more labels, or a larger validation_fraction")
        return split

    def _device(self) -> torch.device:
        return torch.device("cuda" if self.device == "auto" and torch.cuda.is_available() else "cpu")

    @contextmanager
    def _progress(
        self, epochs: int, on_epoch: Callable[[Epoch], None] | None = None
    ) -> Iterator[Callable[[Epoch], None] | None]:
        if on_epoch is not None or not self.verbose:
            yield on_epoch
            return
        from demonet.train.progress import Progress

        with Progress(type(self).__name__, epochs) as progress:
            yield progress

    def _train(
        self,
        recipe: Callable[..., Trained],
        items: Any,
        y: Tensor,
        targets: Targets,
        settled: Preset,
        split: Split,
        on_epoch: Callable[[Epoch], None] | None,
        checkpoint: str | Path | None,
    ) -> None:
        """Train by a recipe, and store the fitted state."""
        with self._progress(settled.train.epochs, on_epoch) as callback:
            trained = recipe(
                items,
                split,
                settled,
                objective=targets.objective,
                seed=int(self.random_state),
                class_weight=self._class_weights(targets, y, split),
                on_epoch=callback,
                checkpoint=checkpoint,
            )
        self.model_, self.objective_, self.split_ = trained.model.eval(), trained.objective, split
        self.features_, self.preset_, self.history_ = trained.features, trained.preset, trained.history
        self._store_tables(targets.classes)

    def _fit_closed_form(
        self,
        model: str,
        items: Any,
        y: Tensor,
        targets: Targets,
        split: Split | None,
        on_candidate: Callable[[Candidate], None] | None,
        on_epoch: Callable[[Epoch], None] | None,
        checkpoint: str | Path | None,
    ) -> None:
        """Fit the kernel machine or the ensemble, and store the fitted state."""
        check_targets(model, targets)
        if on_epoch is not None:
            raise DemonetError(f"on_epoch with model={model!r}", hint="only networks have epochs")
        if checkpoint is not None and model == "kernel":
            raise DemonetError("checkpoint with model='kernel'", hint="it is fitted in one step")
        seed = int(self.random_state)
        if split is None:
            split = self._hold_out(y) if model == "auto" else everything(y, seed)
        with self._candidates(on_candidate) as callback:
            problem = Problem(
                items,
                y,
                split,
                seed=seed,
                device=str(self._device()),
                metric=self.metric,
                positive=getattr(targets.objective, "positive", None),
                checkpoint=checkpoint,
                on_candidate=callback,
                **_plain({name: getattr(self, name) for name in AUTO_ONLY if hasattr(self, name)}),
            )
            self.model_ = MODELS[model].fit(problem)
        self.objective_, self.split_ = targets.objective, split
        self._store_tables(targets.classes)

    @contextmanager
    def _candidates(
        self, on_candidate: Callable[[Candidate], None] | None
    ) -> Iterator[Callable[[Candidate], None] | None]:
        if on_candidate is not None or not self.verbose or self.model != "auto":
            yield on_candidate
            return
        from demonet.ensemble.progress import CandidateBar

        with CandidateBar(type(self).__name__) as progress:
            yield progress

    def _store_tables(self, classes: Array | None) -> None:
        """The attributes ``classes_`` and ``candidates_``, where the model has them."""
        if classes is not None:
            self.classes_ = classes
        if hasattr(self.model_, "candidates"):
            self.candidates_ = self.model_.candidates

    def _closed_form(self, wanted: str) -> ClosedForm:
        """The fitted model, which must not be a network."""
        check_is_fitted(self, "model_")
        if not isinstance(self.model_, ClosedForm):
            raise DemonetError(f"{wanted} of a network", hint='use model="kernel"')
        return self.model_

    def degree_effect(self, seed: int = 0) -> DegreeEffect:
        """What the degree-specific term is worth on the fitted data, for ``model="kernel"`` and ``"auto"``.

        Accuracy and log-loss (R² and squared error of numbers) on items that were left out, with the term at its best,
        at zero, and with shuffled degrees; and the paired differences with their 95 % intervals. For ``"auto"``, these
        are those of the kernel machine among the members. Not for loaded models, which do not have their labels.

        Args:
            seed: Of the shuffled degrees.
        """
        return self._closed_form("degree_effect").degree_effect(seed)

    def _activate(self, scores: Tensor) -> Array:
        """Probabilities or values from scores, in double precision so that probabilities sum to 1 closely."""
        return self.objective_.activate(scores.double()).cpu().numpy()

    def _finite(self, outputs: Array, data: Data | Sequence[Data], rows: Array | None = None) -> Array:
        """The outputs of these items, if all are finite."""
        check_outputs(outputs, data, rows, None if isinstance(self.model_, ClosedForm) else self.model_)
        return outputs

    def _check_attributes(self, data: Data, which: str = "the graph") -> None:
        """Refuse a graph whose attributes are not those of training."""
        given, columns = num_attributes(data), getattr(self, "columns_", None)
        trained = self.n_features_in_ if columns is None else len(columns.names)
        if given != trained:
            raise DemonetError(
                f"{which} has {given} attributes a node (columns of x), where training had {trained}",
                hint="use the same columns in the same order, such as read_graph(edges, features=...)",
            )
        own = data.get("columns")
        if columns is not None and own is not None and own.names != columns.names:
            different = next(pair for pair in zip(own.names, columns.names, strict=True) if pair[0] != pair[1])
            raise DemonetError(
                f"{which} has the attribute {different[0]!r} where training had {different[1]!r}",
                hint="read_graph(edges, features=..., columns=estimator.columns_)",
            )

    def _match_weights(self, graphs: Sequence[Data], given: bool | None = None, file: str | Path | None = None) -> None:
        """Tell of edge weights that differ from training; those that training did not have are removed.

        Args:
            graphs: The graphs, in which weights that are all 1 are left out.
            given: Whether their source has weights; without them, a model that needs them is refused. None if that is
                not known.
            file: The source.
        """
        trained = getattr(self, "weighted_", None)  # not known of a model of an earlier version
        if trained and not given and not has_weights(graphs) and any(graph.edge_index.numel() for graph in graphs):
            problem, hint = (
                "the edges have no weights, those of training had",
                Hint("{weight} is the column", weight=...),
            )
            if given is False:
                raise DemonetError(problem, file=file, hint=hint)
            warn(DemonetWarning(problem, file=file))
        if trained is False:
            if has_weights(graphs):
                warn(DemonetWarning("the weights of edges are not used, those of training had none", file=file))
            for graph in graphs:
                graph.pop("edge_weight", None)

    def _remember_columns(self, data: Data) -> None:
        """The attributes ``n_features_in_``, ``columns_`` and ``feature_names_in_`` for the training data."""
        for name in ("columns_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.n_features_in_ = num_attributes(data)
        self._store_columns(data.get("columns"))

    def _store_columns(self, columns: Columns | None) -> None:
        if columns is None:
            return
        self.columns_, self.n_features_in_ = columns, len(columns.sources)
        if columns.named:
            self.feature_names_in_ = np.array(columns.sources, dtype=object)

    def save(self, path: str | Path) -> None:
        """Write the fitted model, without the graph, to one tensor file."""
        check_is_fitted(self, "model_")
        parameters = _plain({k: value for k, value in self.get_params(deep=False).items() if k not in _NOT_SAVED})
        if isinstance(weights := parameters.get("class_weight"), dict):  # JSON would make strings of the keys
            parameters["class_weight"] = [[_item(key), _item(value)] for key, value in weights.items()]
        saved = SavedModel(
            estimator=type(self).__name__,
            parameters=parameters,
            model=self.model_,
            objective=self.objective_,
            classes=getattr(self, "classes_", None),
            num_attributes=len(self.columns_.names) if hasattr(self, "columns_") else self.n_features_in_,
            split=self.split_,
            columns=getattr(self, "columns_", None),
            weighted=getattr(self, "weighted_", None),
            **{name: getattr(self, f"{name}_", None) for name in ("preset", "features", "history")},
        )
        save_model(path, saved)

    def to_onnx(self, path: str | Path, *, weighted: bool = False) -> None:
        """Write the fitted network as ONNX, for use without torch; its input are the features of a graph.

        Args:
            path: The file.
            weighted: Whether edge weights are an input too.
        """
        from demonet.estimators.onnx import export_onnx

        check_is_fitted(self, "model_")
        if isinstance(self.model_, ClosedForm):
            hint = Hint("only a network can be exported, train one with {model}", model="network")
            raise DemonetError(f"a model of kind {self.model_.name!r} has no ONNX form", hint=hint)
        classes = getattr(self, "classes_", None)
        export_onnx(self.model_, self.objective_, self.features_, classes, path, weighted=weighted)

    @classmethod
    def _restore(cls, path: str | Path) -> Self:
        saved = load_model(path, cls.__name__)
        try:
            if set(saved.parameters) != set(cls._get_param_names()) - set(_NOT_SAVED):
                raise DemonetError(f"the parameters {sorted(saved.parameters)} are not those of a {cls.__name__}")
            weights = saved.parameters.get("class_weight")
            changes: dict[str, Any] = {"class_weight": dict(map(tuple, weights))} if isinstance(weights, list) else {}
            estimator = cls(**saved.parameters | changes)
            estimator._check_parameters()
            kind = choose_model(saved.objective.task, 1) if estimator.model == "auto" else estimator.model
            if isinstance(saved.model, ClosedForm) and kind != saved.model.name:
                raise DemonetError(f"a model of kind {saved.model.name!r} with model={estimator.model!r}")
        except (TypeError, ValueError) as error:
            raise DemonetError(f"does not hold a model: {error}", file=path) from None
        estimator.model_, estimator.objective_ = saved.model.to(estimator._device()), saved.objective
        estimator.split_, estimator.n_features_in_ = saved.split, saved.num_attributes
        estimator._store_columns(saved.columns)
        if saved.weighted is not None:
            estimator.weighted_ = saved.weighted
        for name in ("preset", "features", "history"):
            if (part := getattr(saved, name)) is not None:
                setattr(estimator, f"{name}_", part)
        estimator._store_tables(saved.classes)
        return estimator

    def __sklearn_tags__(self) -> Any:
        """The input is nodes or graphs, not a table of numbers; embeddings are float32."""
        from sklearn.utils import TransformerTags  # scikit-learn 1.6 brought tags, and this method's callers

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=["float32"])
        tags.input_tags.two_d_array = False
        return tags


def has_weights(graphs: Sequence[Data]) -> bool:
    """Whether an edge has another weight than 1."""
    return any(graph.get("edge_weight") is not None and bool((graph.edge_weight != 1).any()) for graph in graphs)


def num_attributes(data: Data) -> int:
    """Columns of ``x``, 0 if there is none."""
    return 0 if data.x is None else int(data.x.size(1))


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _item(value) for name, value in values.items()}


def _item(value: Any) -> Any:
    """A NumPy scalar, as parameter searches pass them, as a Python number."""
    return value.item() if isinstance(value, np.generic) else value
