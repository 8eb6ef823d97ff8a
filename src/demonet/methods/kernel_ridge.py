r"""Kernel ridge regression, settings by closed-form leave-one-out, and probabilities from its outputs.

Validation items are judged beside those that are left out: with few labels, twice as many to choose by.
Targets are one column a class; for ordered classes, one column of normal scores; or the columns of labels and numbers,
in which unknown entries count as the mean. Outputs become probabilities by a softmax, a cumulative logit or, of labels,
sigmoids, whose few parameters are fitted to these outputs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from demonet.closedform.link import LabelLink, Link, normal_scores
from demonet.closedform.ridge import ridge, solve
from demonet.data.rows import pack, unpack
from demonet.features.views import Float, Int, View
from demonet.methods.base import Settings, register
from demonet.methods.model import TASKS, CoarseSettings, Labelled, Model, ordered, ranks_by_degree
from demonet.options import Effort
from demonet.tensorfile import under

NOISES = tuple(0.02 * 10 ** (2 * i / 6) for i in range(7))  # .02 to 2
DUAL_ROWS, TUNING_ROWS = 3000, 1000  # training items that are fitted on, and that settings are chosen on, at most
COARSE_ROWS, COARSE_TUNING = 1000, 400  # the same with the setting ``coarse``
LANDMARKS, COMPONENTS = 500, 32  # fitted items whose kernel gives an embedding, and its columns
ENTRIES = 2**24  # of a kernel that another device computes at once: 128 MiB
OWN_COLUMNS = 256  # attributes up to which a kernel reads them
LENGTHS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
DEGREE_LENGTH = 0.3  # of the degree term beside another one, in deviations of log-degree


def ordered_link(output: Float, y: Int, ranks: Int, weight: Float | None) -> Link:
    """The link from one column to classes that are ordered by ``ranks``; weakly drawn to a slope of 3."""
    return Link.fit(output, y, tuple(ranks.tolist()), weight, slope=3.0, spread=1.0, gap=np.inf)


class KernelRidge(Model):
    """A kernel on rows of a view, by kernel ridge regression.

    Subclasses say what a row is and what the kernel of two sets of rows is under each of its lengths. With ``coarse``
    it has fewer items, and a refit keeps the length that was chosen; only the noise is new.
    """

    kind = "kernel"
    tasks = TASKS
    settings: CoarseSettings
    entries: ClassVar[int] = 2**24  # of the kernel between all items and training items that a CPU computes at once

    @property
    def limits(self) -> tuple[int, int]:
        """Items to fit on, and to compare lengths on, at most."""
        return (COARSE_ROWS, COARSE_TUNING) if self.settings.coarse else (DUAL_ROWS, TUNING_ROWS)

    @abstractmethod
    def rows(self, view: View) -> dict[str, Any]:
        """What the kernel reads of every item: arrays (dense or CSR) with a row an item."""

    def told_apart(self, view: View) -> tuple[dict[str, Any], Int | slice]:
        """Rows of the items that the kernel tells apart, and which of these an item has; by default each has its own.

        A prediction is made once for each of them.
        """
        return self.rows(view), slice(None)

    @abstractmethod
    def lengths(self) -> list[Any]:
        """What to choose from, as JSON values."""

    @abstractmethod
    def grams(self, left: dict[str, Any], right: dict[str, Any], lengths: list[Any]) -> Iterator[Tensor]:
        """For each of the lengths, ``[left, right]`` kernel values on the device, around one on the diagonal."""

    def times(self, rows: dict[str, Any], fitted: dict[str, Any], right: Float) -> Float:
        """The kernel between rows and fitted rows, times a matrix; a block of rows at a time."""
        factor, count = torch.from_numpy(right).to(self.device), next(iter(rows.values())).shape[0]
        step, length = max(1, (self.entries if self.device == "cpu" else ENTRIES) // len(right)), self.facts["length"]
        blocks = [take(rows, slice(start, start + step)) for start in range(0, count, step)]
        found = [next(self.grams(block, fitted, [length])) @ factor for block in blocks]
        return torch.cat([factor.new_empty(0, right.shape[1]), *found]).cpu().numpy()

    def ranks(self, view: View, labelled: Labelled) -> Int | None:
        """The rank of each class, where classes are regressed as normal scores."""
        return None

    def _learn(self, view: View, labelled: Labelled) -> None:
        train, every, y = labelled.train, self.rows(view), labelled.y
        most, compared = self.limits
        seed = labelled.seed_of(self.name)
        if len(train) > most:
            train = np.sort(np.random.default_rng(seed).choice(train, most, replace=False))
        rows, ranks = take(every, train), self.ranks(view, labelled)
        encode, weight = labelled.table, labelled.weights(train)
        if ranks is not None:
            code = normal_scores(np.bincount(ranks[y[train]], weight, minlength=labelled.outputs))[ranks][:, None]

            def encode(items: Int) -> Float:
                return code[y[items]]

        target = encode(train)
        mean = np.average(target, 0, weight)
        few, val = np.arange(len(train)), labelled.judges(train)
        if len(train) > compared:
            few = np.random.default_rng(seed + 1).permutation(len(train))[:compared]
        if len(val) > compared:
            val = np.random.default_rng(seed + 2).permutation(val)[:compared]
        lengths = [self.chosen["length"]] if self.chosen else self.lengths()
        tuning, others = take(rows, few), take(every, val)
        judges = np.concatenate([train[few], val])
        grams = zip(self.grams(tuning, tuning, lengths), self.grams(others, tuning, lengths), strict=True)
        wanted, own = torch.from_numpy(encode(judges) - mean).to(self.device), labelled.weights(judges)
        counts = None if own is None else torch.from_numpy(own).to(wanted)
        tried = [solve(gram, wanted, NOISES, cross, counts) for gram, cross in grams]
        best = int(np.argmin([solution.error for solution in tried]))
        solution, length = tried[best], lengths[best]
        unseen, alpha = solution.unseen.cpu().numpy() + mean, solution.alpha
        link: Link | LabelLink | None = None
        if labelled.task == "classify":
            classes = y[judges]
            link = Link.fit(unseen, classes, (), own) if ranks is None else ordered_link(unseen, classes, ranks, own)
        elif labelled.task == "multilabel":
            link = LabelLink.fit(unseen, labelled.table(judges), own)
        if len(few) < len(train):
            gram = next(self.grams(rows, rows, [length]))
            counts = None if weight is None else torch.from_numpy(weight)
            alpha = ridge(gram, torch.from_numpy(target - mean).to(gram), solution.noise, counts)[0]
        self.facts |= {"length": length, "link": link}
        self.chosen = {"length": length} if self.settings.coarse else None
        self.arrays |= {"alpha": alpha.cpu().numpy(), "mean": mean, **pack(rows, "rows.")}

    def outputs(self, view: View) -> Float:
        """The outputs of the regression through the fitted link."""
        rows, place = self.told_apart(view)
        return self.outputs_of(rows)[place]

    def some_outputs(self, view: View, rows: Int) -> Float:
        """The kernel of these rows alone."""
        return self.outputs_of(take(self.rows(view), rows))

    def outputs_of(self, rows: dict[str, Any]) -> Float:
        """Outputs for items by their rows."""
        output = self.times(rows, unpack(under("rows", self.arrays)), self.arrays["alpha"]) + self.arrays["mean"]
        if self.facts["task"] == "classify":
            return np.exp(Link(*self.facts["link"]).log_probabilities(output))
        return LabelLink(*self.facts["link"]).probabilities(output) if self.facts["task"] == "multilabel" else output

    def embed(self, view: View) -> Float:
        r"""``[items, 32]`` the leading components of the kernel, :math:`k(v, L) \, U \Lambda^{-1/2}`.

        L are at most 500 of the fitted items, and :math:`U \Lambda U^\top` is the kernel among them.
        """
        fitted, length = unpack(under("rows", self.arrays)), [self.facts["length"]]
        some = take(fitted, slice(None, None, -(-len(self.arrays["alpha"]) // LANDMARKS)))
        values, vectors = np.linalg.eigh(next(self.grams(some, some, length)).cpu().numpy())
        kept = np.flatnonzero(values > 1e-8 * values[-1])[::-1][:COMPONENTS]
        axes = vectors[:, kept] * np.sign(vectors[np.abs(vectors[:, kept]).argmax(0), kept]) / np.sqrt(values[kept])
        rows, place = self.told_apart(view)
        return self.times(rows, some, axes)[place]

    def estimate(self, view: View, num_train: int) -> float:
        """Eigendecompositions of the tuning rows, and kernels with all items."""
        most, few = (min(num_train, limit) for limit in self.limits)
        return 0.02 + len(self.lengths()) * 3e-10 * few**3 + 5e-11 * most**3 + 3e-8 * self.distinct(view) * most

    def distinct(self, view: View) -> int:
        """Items that a prediction computes the kernel for."""
        return int(view.num_items)

    def memory(self, view: View, num_train: int) -> float:
        """Kernels among training items, and between them and a block of all items."""
        most = min(num_train, self.limits[0])
        return super().memory(view, num_train) + 8.0 * 4 * (most**2 + self.entries)


def squared_distances(left: Float, right: Float, device: str) -> Tensor:
    """``[left, right]``, from differences: an entry does not depend on the rows beside it."""
    one, other = (torch.from_numpy(np.ascontiguousarray(rows)).to(device) for rows in (left, right))
    return torch.cdist(one, other, compute_mode="donot_use_mm_for_euclid_dist").square_()


def take(rows: dict[str, Any], index: Int | slice) -> dict[str, Any]:
    """Some of the rows."""
    return {name: value[index] for name, value in rows.items()}


@register
class OrderedLogit(Model):
    """Proportional odds on log-degree: as many cuts as classes but one, in the order of their mean log-degree."""

    name = "degree-ordinal"
    kind = "linear"
    kinds = ("nodes",)
    defaults = Settings("McCullagh, 1980")

    @classmethod
    def candidates(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """One, where the classes of nodes are ordered by degree."""
        return [cls()] if ordered(view, labelled) else []

    def _learn(self, view: View, labelled: Labelled) -> None:
        train, ranks = labelled.train, ranks_by_degree(view, labelled)[0]
        self.facts["link"] = ordered_link(view.log_degree[train], labelled.y[train], ranks, labelled.weights(train))

    def outputs(self, view: View) -> Float:
        """The cumulative logit."""
        return np.exp(Link(*self.facts["link"]).log_probabilities(view.log_degree))

    def estimate(self, view: View, num_train: int) -> float:
        """One small optimisation."""
        return 0.05 + 1e-5 * num_train * self.facts.get("outputs", 4)


@dataclass(frozen=True)
class NodeKernelSettings(CoarseSettings):
    """Settings of a kernel of nodes, l being the length that is chosen.

    Attributes:
        kernel: ``"degree"``: RBF of log-degree. ``"structure"``: half an RBF of log-degree, half one of all structural
            features. ``"ranks"``: RBF of the ranks of structural features. ``"demo"``: half an RBF of log-degree, half
            DEMO-Net's product: an RBF of log-degree (which degrees share) times an RBF of what the neighbourhood looks
            like, as means over neighbours of radial functions of their log-degree. ``"own"``: RBF of a node's own
            attributes, which are numbers.
        ordinal: Whether classes are regressed as normal scores, in the order of their mean log-degree.
    """

    kernel: str = "structure"
    ordinal: bool = False


@register
class NodeKernel(KernelRidge):
    """A kernel on log-degree and structure, or on a node's own attributes."""

    name = "node-kernel"
    kinds = ("nodes",)
    defaults = NodeKernelSettings("this project")
    settings: NodeKernelSettings
    entries = 2**18  # 2 MB: they stay in a processor's cache, and nothing has to be kept between blocks

    @classmethod
    def candidates(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """Every kernel; where classes are ordered by degree, also with ordered classes."""
        coarse, also = effort == "quick", ordered(view, labelled)
        own = view.facts["attributes"] == "numbers" and view.facts["columns"] <= OWN_COLUMNS
        found = [cls("kernel-own", kernel="own", coarse=coarse)] if own else []
        for kernel in ("degree", "structure", "demo", "ranks"):
            if kernel != "ranks" or not also:
                found.append(cls(f"kernel-{kernel}", kernel=kernel, coarse=coarse))
            if also:
                found.append(cls(f"kernel-{kernel}-ordinal", kernel=kernel, ordinal=True, coarse=coarse))
        return found

    def rows(self, view: View) -> dict[str, Float]:
        """Log-degree, and the columns of the kernel."""
        beside = {"degree": "log_degree", "structure": "structure", "ranks": "ranks", "demo": "radial", "own": "own"}
        return {"degree": view.log_degree, "other": getattr(view, beside[self.settings.kernel])}

    def lengths(self) -> list[float]:
        """The lengths l."""
        return list(LENGTHS)

    def grams(self, left: dict[str, Float], right: dict[str, Float], lengths: list[float]) -> Iterator[Tensor]:
        """The kernel at each length."""
        kernel = self.settings.kernel
        other = squared_distances(left["other"], right["other"], self.device)
        if kernel != "demo":  # radial functions are scaled to variance one all together
            other /= left["other"].shape[1]
        if kernel in ("degree", "ranks", "own"):
            yield from (torch.exp(-other / (2 * length**2)) for length in lengths)
            return
        degree = squared_distances(left["degree"], right["degree"], self.device)
        near = 0.5 * torch.exp(-degree / (2 * DEGREE_LENGTH**2))
        shared = 0.5 * torch.exp(-degree / 2) if kernel == "demo" else 0.5
        for length in lengths:
            yield near + shared * torch.exp(-other / (2 * length**2))

    def outputs(self, view: View) -> Float:
        """The outputs of the regression through the fitted link; of the bare degree once for each degree."""
        if self.settings.kernel != "degree":
            return super().outputs(view)
        degrees, place = np.unique(view.log_degree[:, 0], return_inverse=True)
        return self.outputs_of({"degree": degrees[:, None], "other": degrees[:, None]})[place]

    def distinct(self, view: View) -> int:
        """All items; of the bare degree, so few that they do not count."""
        return 0 if self.settings.kernel == "degree" else view.num_items

    def ranks(self, view: View, labelled: Labelled) -> Int | None:
        """By mean log-degree, with ``ordinal``."""
        return ranks_by_degree(view, labelled)[0] if self.settings.ordinal else None
