"""Models for graphs: a kernel, forests and the nearest neighbour on Weisfeiler-Lehman histograms."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Self

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from demonet.closedform.nodes import products
from demonet.closedform.pooled import unary
from demonet.data.rows import pack, unpack
from demonet.features.structure import settled
from demonet.features.views import LARGE, ROUNDS, Float, Int, View
from demonet.methods.base import Settings, register
from demonet.methods.forest import TREES, Forest, dense
from demonet.methods.kernel_ridge import KernelRidge, take
from demonet.methods.model import CoarseSettings, Labelled, Model
from demonet.options import Effort
from demonet.tensorfile import under

WIDTHS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # of the Laplacian kernel, in mean distances
COLUMNS = 2000  # colours that a forest reads, at most


def intersection(left: sparse.csr_array, right: sparse.csr_array, device: str = "cpu") -> Tensor:
    r"""``[left, right]``: :math:`\sum_j \min(x_j, y_j)` of rows of counts."""
    caps = np.zeros(right.shape[1], np.int64)
    np.maximum.at(caps, right.indices, right.data.astype(np.int64))
    return products(unary(left, caps), unary(right, caps), torch.float64, device)


class _Histograms:
    """Rows of counts for each round, over the colours of the graphs that a model was fitted on."""

    arrays: dict[str, Any]

    def learn_colours(self, view: View, train: Int) -> None:
        """Keep the colours of the training graphs, round by round."""
        for number in range(ROUNDS + 1):
            ids, counts = view.histogram(number, number)
            self.arrays[f"ids.{number}"] = ids[np.asarray(counts[train].sum(0)).ravel() > 0]

    def rows(self, view: View) -> dict[str, Any]:
        """Counts of known colours; how many nodes a graph has, known or not."""
        found = {f"counts{k}": view.counts(k, k, self.arrays[f"ids.{k}"]) for k in range(ROUNDS + 1)}
        return found | {"size": view.sizes.astype(np.float64)[:, None]}


def l1_distances(left: dict[str, Any], right: dict[str, Any], device: str = "cpu") -> Iterator[Tensor]:
    """The L1 distance of histograms of rounds 0 to k, for k = 0, 1, ..."""
    size = torch.from_numpy(left["size"] + right["size"].T).to(device)
    total = torch.zeros_like(size)
    for number in range(ROUNDS + 1):
        total = total + size - 2 * intersection(left[f"counts{number}"], right[f"counts{number}"], device)
        yield total


@register
class WLKernel(_Histograms, KernelRidge):
    """``exp(-|x - x'|_1 / h)`` on Weisfeiler-Lehman histograms; rounds and h by leave-one-out."""

    name = "kernel-wl"
    kinds = ("graphs",)
    defaults = CoarseSettings("this project")

    def lengths(self) -> list[list[float]]:
        """Rounds, and widths in mean distances."""
        return [[number, width] for number in range(ROUNDS + 1) for width in WIDTHS]

    def grams(self, left: dict[str, Any], right: dict[str, Any], lengths: list[Any]) -> Iterator[Tensor]:
        """The kernel at each number of rounds and width."""
        last = max(int(number) for number, _ in lengths)
        distances = list(islice(l1_distances(left, right, self.device), last + 1))
        for number, width in lengths:
            yield torch.exp(-distances[int(number)] / (width * self.facts["scale"][int(number)]))

    def told_apart(self, view: View) -> tuple[dict[str, Any], Int | slice]:
        """Of many graphs, one of each histogram: tiny ones have few."""
        if view.num_items < LARGE:
            return super().told_apart(view)
        some, place = view.alike
        return take(self.rows(view), some), place

    def distinct(self, view: View) -> int:
        """Of many graphs, those with another histogram."""
        return len(view.alike[0]) if view.num_items >= LARGE else super().distinct(view)

    def estimate(self, view: View, num_train: int) -> float:
        """Of many graphs, also counting colours and the products of counts, round by round."""
        seconds = super().estimate(view, num_train)
        if view.num_items < LARGE:
            return seconds
        return seconds + 5e-6 * float(view.sizes.sum()) + 1e-7 * self.distinct(view) * min(num_train, self.limits[0])

    def memory(self, view: View, num_train: int) -> float:
        """The counts of all rounds, and the distances of a block after each of them."""
        counts = 16.0 * (ROUNDS + 4) * float(view.sizes.sum())
        return super().memory(view, num_train) + counts + 8.0 * (ROUNDS + 1) * self.entries

    def _learn(self, view: View, labelled: Labelled) -> None:
        self.learn_colours(view, labelled.train)
        rows = take(self.rows(view), labelled.train[:500])
        self.facts["scale"] = [float(distance.mean()) or 1.0 for distance in l1_distances(rows, rows)]
        super()._learn(view, labelled)


@register
class WLNeighbour(_Histograms, Model):
    """The nearest training graph by the L1 distance of one-round histograms; equally near ones share the vote.

    The vote counts as much as it is right on the training part when the graph itself is left out; the rest goes to the
    classes by their shares.
    """

    name = "neighbour-wl"
    kind = "neighbours"
    kinds = ("graphs",)
    defaults = Settings("this project")

    def _learn(self, view: View, labelled: Labelled) -> None:
        self.learn_colours(view, labelled.train)
        rows = take(self.rows(view), labelled.train)
        target, weight = labelled.table(labelled.train), labelled.weights(labelled.train)
        target = target if weight is None else weight[:, None] * target
        self.arrays |= {"target": target, "prior": labelled.prior(), **pack(rows, "rows.")}
        distance = list(l1_distances(rows, rows))[1].numpy()
        np.fill_diagonal(distance, np.inf)
        right = (self._vote(distance) * target).sum()
        self.facts["trust"] = float((right + 1) / (labelled.total(labelled.train) + 2))

    def _vote(self, distance: Float) -> Float:
        vote = (distance <= distance.min(1, keepdims=True)) @ self.arrays["target"]
        return vote / vote.sum(1, keepdims=True)

    def outputs(self, view: View) -> Float:
        """The vote, and the shares of classes."""
        vote = self._vote(list(l1_distances(self.rows(view), unpack(under("rows", self.arrays))))[1].numpy())
        return self.facts["trust"] * vote + (1 - self.facts["trust"]) * self.arrays["prior"]

    def estimate(self, view: View, num_train: int) -> float:
        """Distances to the training graphs."""
        return 0.05 + 2e-6 * view.num_items * num_train

    def memory(self, view: View, num_train: int) -> float:
        """Distances to the training graphs, of two rounds and what they are sums of."""
        return super().memory(view, num_train) + 8.0 * 5 * num_train * view.num_items


@register
class WLForest(Forest):
    """A forest on one-round counts of colours that at least two training graphs have, and on graph descriptors."""

    name = "forest-wl"
    kinds = ("graphs",)

    @classmethod
    def candidates(cls, view: View, labelled: Labelled, effort: Effort) -> list[Self]:
        """A random forest, and extremely randomised trees."""
        return [cls(trees=TREES[effort]), cls("extra-trees-wl", trees=TREES[effort], extra=True)]

    def _learn(self, view: View, labelled: Labelled) -> None:
        self.arrays["ids"] = common_colours(view, labelled.train, COLUMNS)
        super()._learn(view, labelled)

    def rows(self, view: View) -> Float:
        """Counts and descriptors."""
        return graph_columns(view, self.arrays["ids"])

    def memory(self, view: View, num_train: int) -> float:
        """The columns of all graphs, in double precision twice and in single precision."""
        columns = min(COLUMNS, len(np.unique(np.concatenate(view.colours[:2])))) + view.descriptors.shape[1]
        return super().memory(view, num_train) + 20.0 * view.num_items * columns


def common_colours(view: View, train: Int, most: int) -> Int:
    """One-round colours that most training graphs have, and at least two of them."""
    ids, counts = view.histogram(0, 1)
    seen = np.asarray((counts[train] > 0).sum(0)).ravel()
    kept = np.argsort(-seen, kind="stable")[:most]
    return np.sort(ids[kept[seen[kept] >= 2]])


def graph_columns(view: View, ids: Int) -> Float:
    """``[graphs, columns]`` counts of the colours, and descriptors of each graph, settled as for nodes."""
    return np.hstack([dense(view.counts(0, 1, ids)), settled(view.descriptors)])
