"""Methods on graph kernels: their base classes, and ``wl-lr``, ``wl-rf``, ``wl-1nn``.

Kernels are fitted on the training graphs and selected on validation. The three methods are simple baselines: a graph is
described by how many of its nodes have each colour after 0, 1, ... rounds of colour refinement.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.rows import Rows
from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.kernels import DegreeWLKernel, GraphKernel, WLSubtreeKernel
from demonet.methods.base import Items, Method, Predicted, Settings, at_least, register
from demonet.methods.cost import Cost
from demonet.methods.selection import Selected, logistic, select


@dataclass(frozen=True)
class SubtreeSettings(Settings):
    """Settings of a method on Weisfeiler-Lehman iterations.

    Attributes:
        rounds: Candidate numbers of iterations, the smallest first.
        untuned: The number of iterations where a split has no validation part.
    """

    rounds: tuple[int, ...] = at_least(0)
    untuned: int = at_least(0, 2)


@dataclass(frozen=True)
class KernelSettings(SubtreeSettings):
    """Settings of a support vector machine on a kernel.

    Attributes:
        strengths: Candidate values of C.
        normalize: Candidates for whether graphs are scaled to length one.
    """

    strengths: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    normalize: tuple[bool, ...] = (False, True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for strength in self.strengths:
            if not strength > 0:
                raise DemonetError(f"C must be positive, got {strength!r}")


class KernelMethod(Method):
    """A classifier on a graph kernel; the kernel is selected on validation.

    Kernels are fitted on the training graphs: a substructure that none of them has contributes nothing.

    Attributes:
        kernel: The selected kernel, after ``fit``.
        model: The classifier selected with it.
    """

    kinds = ("graphs",)
    group = "kernel"
    defaults: ClassVar[SubtreeSettings]
    settings: SubtreeSettings
    kernel: GraphKernel
    model: Any

    @abstractmethod
    def _kernels(self, seed: int) -> Iterable[GraphKernel]:
        """The candidate kernels, the simplest first."""

    @abstractmethod
    def _default_kernel(self, seed: int) -> GraphKernel:
        """The kernel for a split without a validation part."""

    @abstractmethod
    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int, kept: Any) -> Selected:
        """The best classifier on the rows of one kernel; ``kept`` as in :func:`~demonet.methods.selection.select`."""

    def _unfitted(self, kernel: GraphKernel) -> GraphKernel:
        """A kernel with the settings of one that is fitted."""
        return clone(kernel)

    def _rows(self, kernel: GraphKernel, graphs: list[Data], split: Split) -> Rows:
        """The input of the classifier, one row per graph: by default the explicit features."""
        return kernel.features(graphs)

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        graphs = list(data)
        training = [graphs[i] for i in split.train.tolist()]
        kernels, kept, best = self._kernels(seed) if split.val.numel() else [self._default_kernel(seed)], None, -1.0
        if self.chosen is not None:
            kernels, kept = [self._unfitted(self.chosen[0])], self.chosen[1]
        for kernel in kernels:
            rows = self._rows(kernel.fit(training), graphs, split)
            selected = self._classify(rows, y, split, seed, kept)
            if selected.score > best:  # the first among equals
                best, self.kernel, self.model = selected.score, kernel, selected.model
                prediction = selected.outputs(rows)
        self.chosen = self.kernel, self.model
        self._graphs = graphs
        return prediction

    def embeddings(self) -> Tensor:
        """The explicit features of the selected kernel, one column per substructure of the training graphs."""
        features = self.kernel.features(self._graphs)
        return torch.from_numpy(features.toarray() if isinstance(features, sparse.csr_array) else features)


class KernelSVM(KernelMethod):
    """A support vector machine on the Gram matrix; C and whether graphs are scaled to length one are selected too."""

    defaults: ClassVar[KernelSettings]
    settings: KernelSettings
    kernel_class: ClassVar[type[WLSubtreeKernel | DegreeWLKernel]]

    def _kernels(self, seed: int) -> Iterable[GraphKernel]:
        for n_iter, normalize in product(self.settings.rounds, self.settings.normalize):
            yield self.kernel_class(n_iter, normalize)

    def _default_kernel(self, seed: int) -> GraphKernel:
        return self.kernel_class(self.settings.untuned)

    def _rows(self, kernel: GraphKernel, graphs: list[Data], split: Split) -> Rows:
        """The kernel with every training graph, divided by the mean kernel of a training graph with itself.

        The divisor only sets the scale of C: counts of substructures grow with the graphs, and the best C with them.
        """
        gram = kernel.transform(graphs)
        unit = float(np.mean(np.diagonal(gram[split.train.numpy()])))
        return gram / unit if unit > 0 else gram

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int, kept: Any) -> Selected:
        machines = [SVC(C=strength, kernel="precomputed") for strength in self.settings.strengths]
        return select(machines, rows, y, split, default=SVC(C=1.0, kernel="precomputed"), kept=kept)


class _WLHistogram(KernelMethod):
    """A classifier on counts of colours; the number of rounds is selected on validation."""

    defaults = SubtreeSettings("simple baseline of this project", rounds=(0, 1, 2, 3))

    def _kernels(self, seed: int) -> Iterator[WLSubtreeKernel]:
        for n_iter in self.settings.rounds:
            yield WLSubtreeKernel(n_iter)

    def _default_kernel(self, seed: int) -> WLSubtreeKernel:
        return WLSubtreeKernel(self.settings.untuned)


@register
class WLLR(_WLHistogram):
    """Multinomial logistic regression on counts of colours; C is selected on validation."""

    name = "wl-lr"
    cost = Cost(0.1, 0.03)

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int, kept: Any) -> Selected:
        return logistic(rows, y, split, kept=kept)


@dataclass(frozen=True)
class ForestSettings(SubtreeSettings):
    """``trees`` is the number of trees."""

    trees: int = at_least(1, 500)


@register
class WLRF(_WLHistogram):
    """Random forest of 500 fully grown trees on counts of colours."""

    name = "wl-rf"
    cost = Cost(1.0, 0.2)
    defaults = ForestSettings("Breiman, 2001, as in scikit-learn: fully grown trees", rounds=(0, 1, 2, 3))
    settings: ForestSettings

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int, kept: Any) -> Selected:
        forest = RandomForestClassifier(self.settings.trees, random_state=seed)
        return select([forest], rows, y, split, default=forest, kept=kept)


@register
class WL1NN(_WLHistogram):
    r"""The class of the nearest training graph, by the Manhattan distance of counts of colours.

    .. math::
        d(G, G') = \sum\nolimits_c | \varphi_c(G) - \varphi_c(G') |

    This is the number of nodes, over all rounds, that remain unpaired when nodes of equal colour are paired. Colours
    that no training graph has add the same to every distance.
    """

    name = "wl-1nn"
    cost = Cost(0.1, 0.01, graphs=1.0)

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int, kept: Any) -> Selected:
        nearest = KNeighborsClassifier(1, metric="manhattan")
        return select([nearest], rows, y, split, default=nearest, kept=kept)
