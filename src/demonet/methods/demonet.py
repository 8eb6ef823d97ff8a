"""``demonet-hash``, ``demonet-weight`` and others: DEMO-Net with a preset, trained as a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.splits import Split
from demonet.features import FeatureMap
from demonet.methods.base import Conditions, Items, Method, Predicted, Settings, register
from demonet.methods.cost import Cost
from demonet.train.loop import History
from demonet.train.presets import Family, Preset
from demonet.train.presets import preset as find_preset
from demonet.train.recipes import family_of, node_model, train_graphs, train_nodes


@dataclass(frozen=True)
class PresetSettings(Settings):
    """A preset and changes to it.

    Attributes:
        preset: Its name, see :mod:`demonet.train.presets`.
        model, train: Fields of the model's and of the training configuration, by name.
        features, tasks: In place of those of the preset, unless None.
    """

    preset: str = "paper"
    model: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    features: str | None = None
    tasks: str | None = None


class DemoNet(Method):
    """DEMO-Net with a preset; ``chosen`` is the number of epochs after which it was best on validation."""

    group = "DEMO-Net"
    cost = Cost(2.0, 0.2)
    on_device = True
    defaults: ClassVar[PresetSettings] = PresetSettings("Wu et al., KDD'19, section 5")
    settings: PresetSettings
    model: ClassVar[dict[str, str]] = {}
    history: History

    def __init__(self, **changes: Any) -> None:
        super().__init__(**changes)
        self.preset("graphs")  # fails early on a wrong name

    @classmethod
    def under(cls, conditions: Conditions) -> Self:
        """With the limit of epochs, and standardised attributes where asked for."""
        base = cls().preset(conditions.family)
        wanted = {"attributes": "standardised", "tfidf": "standardised"} if conditions.standardise else {}
        features = "+".join(wanted.get(block, block) for block in base.features.split("+"))
        return cls(features=features, train={"epochs": min(conditions.epochs, base.train.epochs)})

    def preset(self, family: Family) -> Preset:
        """The preset for a family of problems, with the changes."""
        base, settings = find_preset(self.settings.preset, family), self.settings
        return replace(
            base,
            model=base.model.changed(**self.model | dict(settings.model)),
            train=base.train.changed(**settings.train),
            features=settings.features or base.features,
            tasks=settings.tasks or base.tasks,
        )

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        preset, choose = self.preset(family_of(data)), self.chosen is None
        if not choose:
            preset = replace(preset, train=preset.train.changed(epochs=self.chosen))
        if isinstance(data, Data):
            done = train_nodes(data, split, preset, seed=seed, choose=choose)
        else:
            done = train_graphs(data, split, preset, seed=seed, choose=choose)
        self.history = done.history
        if choose:
            self.chosen = done.history.best_epoch + 1
        with torch.no_grad():
            scores = done.model.eval()(*done.inputs)
            self._trained = done
            probability = done.objective.activate(scores.double())
        return probability.argmax(1), probability

    @torch.no_grad()
    def embeddings(self) -> Tensor:
        """``[items, width]`` the last hidden layer."""
        return self._trained.model.eval().embed(*self._trained.inputs)  # type: ignore[operator]

    @torch.no_grad()
    def first_embeddings(self, data: Data, seed: int = 0) -> Tensor:
        """The last hidden layer of every node before training."""
        preset = self.preset(family_of(data))
        x = FeatureMap(preset.features).fit_transform(data)
        model = node_model(data, x, preset, seed)
        return model.eval().embed(model.prepare(x, data.edge_index))


# Name, kinds, changes to the model, and the preset. DEMO-Net_m has mean pooling, and is for graphs only.
for _name, _kinds, _model, _preset in (
    ("demonet-hash", Method.kinds, {"scheme": "hash"}, "paper"),
    ("demonet-weight", Method.kinds, {"scheme": "weight"}, "paper"),
    ("demonet-smooth", Method.kinds, {"scheme": "smooth"}, "paper"),
    ("demonet-m-hash", ("graphs",), {"scheme": "hash", "pooling": "mean"}, "paper"),
    ("demonet-m-weight", ("graphs",), {"scheme": "weight", "pooling": "mean"}, "paper"),
    ("demonet-default", Method.kinds, {}, "default"),
):
    _defaults = replace(DemoNet.defaults, preset=_preset)
    _fields = {"name": _name, "kinds": _kinds, "model": _model, "defaults": _defaults, "__doc__": DemoNet.__doc__}
    register(type(_name, (DemoNet,), _fields))
