r"""Kernel ridge regression on class targets, settings by closed-form leave-one-out, and probabilities from its outputs.

Validation items are judged beside those that are left out: with few labels, twice as many to choose by.
Targets are one column a class; or, for ordered classes, one column of normal scores. Outputs become probabilities by a
softmax or a cumulative logit whose few parameters are fitted to these outputs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import linalg, stats
from scipy.special import softmax

from demonet.closedform.link import Link
from demonet.closedform.ridge import solve
from demonet.data.rows import pack, unpack
from demonet.ensemble.member import Labelled, Member, seed_of
from demonet.ensemble.selection import log_losses
from demonet.features.views import Float, Int, View

NOISES = tuple(0.02 * 10 ** (2 * i / 6) for i in range(7))  # .02 to 2
DUAL_ROWS, TUNING_ROWS = 3000, 1000  # training items a kernel member is fitted on, and its settings chosen on, at most
COARSE_ROWS, COARSE_TUNING = 1000, 400  # the same with the option ``coarse``
SHARPNESS = np.geomspace(0.5, 60.0, 40)


def fit_sharpness(output: Float, y: Int) -> float:
    """The factor of the softmax under which the outputs give the classes the least log-loss."""
    return float(SHARPNESS[np.argmin([log_losses(softmax(s * output, axis=1), y).mean() for s in SHARPNESS])])


def normal_scores(count: NDArray[Any]) -> Float:
    """``[classes]`` the mean of a standard normal between the quantiles that an ordered class covers."""
    share = count / count.sum()
    edge = stats.norm.pdf(stats.norm.ppf(np.clip(np.concatenate([[0.0], np.cumsum(share)]), 0, 1)))
    return np.diff(-edge) / np.maximum(share, 1e-12)


def fit_ordered(member: Member, output: Float, place: Int, order: Int) -> None:
    """Fit and keep the link from ``output`` to ordered classes of rank ``place``; weakly drawn to a slope of 3."""
    rank = np.argsort(order)
    link = Link.fit(output[:, None], order[place], tuple(rank.tolist()), slope=3.0, spread=1.0, gap=np.inf)
    member.facts["slope"] = link.scale
    member.arrays |= {"order": order, "cuts": link.scale * np.array(link.cuts)}


def ordered_link(member: Member) -> Link:
    """The link that :func:`fit_ordered` kept."""
    slope, rank = member.facts["slope"], np.argsort(member.arrays["order"])
    return Link(slope, tuple(member.arrays["cuts"] / slope), tuple(rank.tolist()))


class RidgeMember(Member):
    """A kernel on rows of a view, by kernel ridge regression.

    Subclasses say what a row is and what the kernel of two sets of rows is under each of their settings. With the
    option ``ordinal`` classes are regressed as normal scores, in the order that the subclass finds in training. With
    ``coarse`` it has fewer items, and a refit keeps the setting that was chosen; only the noise is new.
    """

    kind = "kernel"
    entries: ClassVar[int] = 2**24  # of the kernel between all items and training items that are computed at once

    @property
    def limits(self) -> tuple[int, int]:
        """Items to fit on, and to compare settings on, at most."""
        return (COARSE_ROWS, COARSE_TUNING) if self.options.get("coarse") else (DUAL_ROWS, TUNING_ROWS)

    @abstractmethod
    def rows(self, view: View) -> dict[str, Any]:
        """What the kernel reads of every item: arrays (dense or CSR) with a row an item."""

    @abstractmethod
    def settings(self) -> list[Any]:
        """The settings to choose from, as JSON values."""

    @abstractmethod
    def grams(self, left: dict[str, Any], right: dict[str, Any], settings: list[Any]) -> Iterator[Float]:
        """For each setting, ``[left, right]`` kernel values, around one on the diagonal."""

    def order(self, view: View, labelled: Labelled) -> Int:
        """The classes in order, for ``ordinal``."""
        raise NotImplementedError

    def _fit(self, view: View, labelled: Labelled, chosen: dict[str, Any] | None) -> None:
        train, every = labelled.train, self.rows(view)
        most, compared = self.limits
        if len(train) > most:
            drawn = np.random.default_rng(seed_of(labelled, self.name)).choice(train, most, replace=False)
            train = np.sort(drawn)
        rows, y = take(every, train), labelled.y
        if self.options.get("ordinal"):
            order = self.order(view, labelled)
            place = np.argsort(order)[y]
            score = normal_scores(np.bincount(place[train], minlength=labelled.classes) + 1e-9)[:, None]
        else:
            place, score = y, np.eye(labelled.classes)
        target = score[place[train]]
        mean = target.mean(0)
        few, val = np.arange(len(train)), labelled.val[np.isin(y[labelled.val], y[train])]
        if len(train) > compared:
            few = np.random.default_rng(seed_of(labelled, self.name) + 1).permutation(len(train))[:compared]
        if len(val) > compared:
            val = np.random.default_rng(seed_of(labelled, self.name) + 2).permutation(val)[:compared]
        settings = [chosen["setting"]] if chosen else self.settings()
        tuning, others = take(rows, few), take(every, val)
        judges = np.concatenate([train[few], val])
        grams = zip(self.grams(tuning, tuning, settings), self.grams(others, tuning, settings), strict=True)
        wanted = torch.from_numpy(score[place[judges]] - mean)
        tried = [solve(torch.from_numpy(gram), wanted, NOISES, torch.from_numpy(cross)) for gram, cross in grams]
        best = int(np.argmin([solution.error for solution in tried]))
        solution, setting = tried[best], settings[best]
        unseen, alpha = solution.unseen.numpy(), solution.alpha.numpy()
        if self.options.get("ordinal"):
            fit_ordered(self, unseen[:, 0], place[judges], order)
        else:
            self.facts["sharpness"] = fit_sharpness(unseen + mean, y[judges])
        if len(few) < len(train):
            gram = next(self.grams(rows, rows, [setting]))
            gram[np.diag_indices_from(gram)] += solution.noise
            alpha = linalg.solve(gram, target - mean, assume_a="pos", overwrite_a=True, check_finite=False)
        self.facts |= {"setting": setting, "noise": solution.noise}
        if self.options.get("coarse"):
            self.facts["chosen"] = {"setting": setting}
        self.arrays |= {"alpha": alpha, "mean": mean, **pack(rows, "rows.")}

    def predict_proba(self, view: View) -> Float:
        """The regression's outputs through the fitted link."""
        return self.probabilities(self.rows(view))

    def probabilities(self, rows: dict[str, Any]) -> Float:
        """Probabilities of items by their rows."""
        fitted, alpha, count = unpack(self.arrays, "rows."), self.arrays["alpha"], next(iter(rows.values())).shape[0]
        output = np.empty((count, alpha.shape[1]))
        step = max(1, self.entries // len(alpha))
        for start in range(0, count, step):
            block = slice(start, start + step)
            output[block] = next(self.grams(take(rows, block), fitted, [self.facts["setting"]])) @ alpha
        output += self.arrays["mean"]
        link = ordered_link(self) if self.options.get("ordinal") else Link(self.facts["sharpness"])
        return np.exp(link.log_probabilities(output))

    def cost(self, view: View, num_train: int) -> float:
        """Eigendecompositions of the tuning rows, and kernels with all items."""
        most, few = (min(num_train, limit) for limit in self.limits)
        return 0.02 + len(self.settings()) * 3e-10 * few**3 + 5e-11 * most**3 + 3e-8 * self.distinct(view) * most

    def distinct(self, view: View) -> int:
        """Items that a prediction computes the kernel for."""
        return int(view.num_items)

    def memory(self, view: View, num_train: int) -> float:
        """Kernels among training items, and between them and a block of all items."""
        most = min(num_train, self.limits[0])
        return super().memory(view, num_train) + 8.0 * 4 * (most**2 + self.entries)


def take(rows: dict[str, Any], index: Int | slice) -> dict[str, Any]:
    """Some of the rows."""
    return {name: value[index] for name, value in rows.items()}
