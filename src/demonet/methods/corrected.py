"""``corrected``: boosted trees, and what they miss about known targets near a node (correct and smooth)."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from demonet.features.views import Float, View
from demonet.methods.base import register
from demonet.methods.boosted import ROUNDS, BoostedSettings, BoostedTrees
from demonet.methods.model import Labelled, Model
from demonet.methods.propagation import Propagating, bounded, choose_walk, known_targets, walked
from demonet.options import Effort
from demonet.tensorfile import under

FOLDS = 4  # in which the trees predict training items, so that residuals are those of items that were not seen


@register
class Corrected(Propagating):
    r"""Boosted trees plus the residuals of known targets near a node, by the walk of ``propagation``.

    .. math:: \hat y(v) = f(v) + (F_v) / (N_v + t), \qquad F = \text{walk of } y - f_{-fold}

    where :math:`f_{-fold}` has not seen the item, and N is the walk of the number of known targets. Restart and trust t
    are chosen on validation, for each label or number.
    """

    name = "corrected"
    tasks = ("multilabel", "regress")
    defaults = BoostedSettings("Huang et al., ICLR'21 (correct and smooth), on boosted trees")
    settings: BoostedSettings

    @classmethod
    def candidates(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """One, where boosted trees are a candidate."""
        return [cls(rounds=ROUNDS[effort])] if BoostedTrees.candidates(view, labelled, effort) else []

    def _base(self) -> BoostedTrees:
        return BoostedTrees(**self.options)

    def _learn(self, view: View, labelled: Labelled) -> None:
        base, train = self._base(), labelled.train
        base.chosen = None if self.chosen is None else self.chosen["base"]
        keep = base.fit_on if self.chosen is None else base.keep_on
        whole = keep(view, labelled)
        base.chosen = whole.chosen
        order = np.random.default_rng(labelled.seed_of(self.name)).permutation(train)
        residual = np.empty((len(train), labelled.outputs))
        for number in range(FOLDS):
            fold = np.sort(order[number::FOLDS])
            part = replace(labelled, train=np.setdiff1d(train, fold), val=labelled.val[:0])
            residual[np.searchsorted(train, fold)] = labelled.y[fold] - base.keep_on(view, part).outputs(view)[fold]
        self.learn_targets(labelled)
        self.arrays["residual"] = residual
        none = np.zeros(labelled.outputs)
        if self.chosen is None:
            targets = self.counted(view, train, np.nan_to_num(residual), 1.0 - np.isnan(residual))
            walk, self.judged = choose_walk(view, labelled, *targets, none, whole.judged)
            self.chosen = {"base": whole.chosen} | walk
        self.facts["base"] = whole.state()[0]
        self.arrays |= {f"base.{name}": array for name, array in whole.arrays.items()}

    def outputs(self, view: View) -> Float:
        """The trees, and the walk of residuals on the edges of the view."""
        base = Model.from_state(self.facts["base"], under("base", self.arrays)).outputs(view)
        known = self.known_targets(view)
        fitted, residual = (known_targets(view, self.arrays["items"], self.arrays[name]) for name in ("y", "residual"))
        residual = np.where(np.isclose(known, fitted), residual, known - base)  # of new targets as they are
        rows = np.flatnonzero(~np.isnan(residual).all(1))
        targets = self.counted(view, rows, np.nan_to_num(residual[rows]), 1.0 - np.isnan(residual[rows]))
        none = np.zeros(self.facts["outputs"])
        return bounded(self.facts["task"], base + walked(view, rows, *targets, none, self.chosen, self.device))

    def estimate(self, view: View, num_train: int) -> float:
        """Five times boosted trees."""
        base = self._base()
        base.facts |= self.facts
        return (1 + FOLDS) * base.estimate(view, num_train) + 2e-6 * view.adjacency.nnz
