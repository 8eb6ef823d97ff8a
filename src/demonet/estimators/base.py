"""What the two estimators share: parameters, presets, devices, saving and loading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.splits import Split, fractions
from demonet.errors import DemonetError
from demonet.estimators.model_file import SavedModel, load_model, save_model
from demonet.estimators.targets import weigh_classes
from demonet.nn.config import CHOICES
from demonet.nn.models import DEMONet
from demonet.train.loop import Epoch
from demonet.train.presets import Family, Preset, preset
from demonet.train.recipes import Trained

_NOT_SAVED = ("graph",)


class DEMONetEstimator(ClassifierMixin, BaseEstimator):
    """The parameters and the fitted state of both estimators."""

    model_: DEMONet

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "preset": [StrOptions({"default", "paper", "authors"})],
        "scheme": [StrOptions(set(CHOICES["scheme"])), None],
        "features": [str, None],
        "hidden": [Interval(Integral, 2, None, closed="left"), None],
        "lr": [Interval(Real, 0, None, closed="neither"), None],
        "epochs": [Interval(Integral, 1, None, closed="left"), None],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "random_state": [Interval(Integral, 0, 2**32, closed="left")],
        "device": [StrOptions({"cpu", "auto"})],
        "verbose": ["boolean"],
    }

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Train."""

    @abstractmethod
    def transform(self, X: Any) -> np.ndarray:
        """Embed."""

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Train on the items, and embed them: what a Pipeline calls."""
        return self.fit(X, y).transform(X)

    def _check_parameters(self) -> None:
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise DemonetError(str(error)) from None

    def _settle(self, family: Family) -> Preset:
        """The preset of that family with the parameters worked in."""
        base = preset(self.preset, family)
        model = {name: getattr(self, name) for name in ("scheme", "hidden") if getattr(self, name) is not None}
        train = {name: getattr(self, name) for name in ("epochs", "patience", "lr") if getattr(self, name) is not None}
        return replace(
            base,
            features=self.features or base.features,
            model=base.model.changed(**_plain(model), seed=int(self.random_state)),
            train=replace(base.train, **_plain(train), seed=int(self.random_state)),
        )

    def _hold_out(self, y: Tensor) -> Split:
        """Part of the labelled items chooses the epoch; each class stays in training."""
        share = float(self.validation_fraction)
        split = fractions(y, (1 - share, share, 0.0), int(self.random_state), stratified=True)
        if split.val.numel() == 0:
            labelled = int((y >= 0).sum())
            problem = f"validation_fraction={share} of {labelled} labelled items is none"
            raise DemonetError(problem, hint="give more labels, or hold out a larger part")
        return split

    def _device(self) -> torch.device:
        return torch.device("cuda" if self.device == "auto" and torch.cuda.is_available() else "cpu")

    def _class_weights(self, classes: np.ndarray, y: Tensor, split: Split) -> Tensor | None:
        """Weights by what training may know: how often a class is in the test part is not among it."""
        known = y[torch.cat([split.train, split.val])]
        return weigh_classes(self.class_weight, classes, known.numpy())

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

    def _keep(self, trained: Trained, classes: np.ndarray, split: Split, num_attributes: int) -> None:
        self.model_, self.features_, self.preset_ = trained.model.eval(), trained.features, trained.preset
        self.history_, self.split_ = trained.history, split
        self.classes_, self.n_features_in_ = classes, num_attributes

    def _check_attributes(self, data: Data, which: str = "the graph") -> None:
        """Attributes are those of training, or it is another kind of graph."""
        given = 0 if data.x is None else int(data.x.size(1))
        if given != self.n_features_in_:
            raise DemonetError(
                f"{which} has {given} attributes a node (columns of x), where training had {self.n_features_in_}",
                hint="the same columns in the same order",
            )

    def save(self, path: str | Path) -> None:
        """Write the fitted model as one safetensors file, whole or not at all; the graph is not in it."""
        check_is_fitted(self, "model_")
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in _NOT_SAVED}
        parameters = _plain(parameters)
        if isinstance(self.class_weight, dict):  # keys of any type, which JSON would make strings of
            parameters["class_weight"] = [[_item(key), _item(value)] for key, value in self.class_weight.items()]
        saved = SavedModel(
            estimator=type(self).__name__,
            parameters=parameters,
            preset=self.preset_,
            model=self.model_,
            features=self.features_,
            classes=self.classes_,
            num_attributes=self.n_features_in_,
            history=self.history_,
            split=self.split_,
        )
        save_model(path, saved)

    def to_onnx(self, path: str | Path, *, weighted: bool = False) -> None:
        """Write the fitted network as ONNX, for use without torch; the features of a graph are its input.

        Args:
            path: Where to.
            weighted: Whether edge weights are an input, too.
        """
        from demonet.estimators.onnx import export_onnx

        check_is_fitted(self, "model_")
        export_onnx(self.model_, self.features_, self.classes_, path, weighted=weighted)

    @classmethod
    def _restore(cls, path: str | Path) -> Self:
        saved = load_model(path, cls.__name__)
        try:
            if set(saved.parameters) != set(cls._get_param_names()) - set(_NOT_SAVED):
                raise DemonetError(f"the parameters {sorted(saved.parameters)} are not those of a {cls.__name__}")
            weights = saved.parameters["class_weight"]
            changes = {"class_weight": dict(map(tuple, weights))} if isinstance(weights, list) else {}
            estimator = cls(**saved.parameters | changes)
            estimator._check_parameters()
        except (TypeError, ValueError) as error:
            raise DemonetError(f"does not hold a model: {error}", file=path) from None
        estimator.model_ = saved.model.to(estimator._device())
        estimator.features_, estimator.preset_ = saved.features, saved.preset
        estimator.history_, estimator.split_ = saved.history, saved.split
        estimator.classes_, estimator.n_features_in_ = saved.classes, saved.num_attributes
        return estimator

    def __sklearn_tags__(self) -> Any:
        """Nodes or graphs come in, not a table of numbers; classes or embeddings come out."""
        from sklearn.utils import TransformerTags  # scikit-learn 1.6 brought tags, and this method's callers

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=["float32"])
        tags.input_tags.two_d_array = False
        return tags


def probabilities(scores: Tensor) -> np.ndarray:
    """The softmax of scores, in double precision so that rows sum to one closely."""
    return scores.double().softmax(1).cpu().numpy()


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _item(value) for name, value in values.items()}


def _item(value: Any) -> Any:
    """A NumPy scalar, as a search over parameters brings them, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
