"""A random forest on local structural features."""

from __future__ import annotations

from sklearn.ensemble import RandomForestClassifier
from torch import Tensor

from demonet.baselines.base import Baseline, Items
from demonet.baselines.choice import choose
from demonet.baselines.structural_lr import structural_rows
from demonet.data.splits import Split

TREES = 200
LEAVES = (10, 5, 2, 1)  # the fewest training items that a leaf may have


class StructuralRF(Baseline):
    """A forest of 200 trees on ten structural features; the size of leaves is chosen on validation."""

    name = "structural-rf"

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        x = structural_rows(data)
        models = [_forest(leaf, seed) for leaf in LEAVES]
        self._prediction = choose(models, x, y, split, untuned=_forest(2, seed)).predict(x)

    def predict(self) -> Tensor:
        """The class that most trees vote for."""
        return self._prediction


def _forest(leaf: int, seed: int) -> RandomForestClassifier:
    return RandomForestClassifier(TREES, min_samples_leaf=leaf, random_state=seed)
