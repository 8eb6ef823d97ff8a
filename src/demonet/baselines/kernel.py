"""What all methods on graph kernels have in common: fitted on the training graphs, chosen on validation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from sklearn.svm import SVC
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.base import Baseline, Items
from demonet.baselines.choice import Choice, Rows, choose
from demonet.baselines.settings import changed
from demonet.baselines.settings_kernels import KernelSettings, SubtreeSettings
from demonet.data.splits import Split
from demonet.kernels.base import GraphKernel


class KernelMethod(Baseline):
    """A classifier on what a kernel makes of graphs; of several kernels the best on validation is kept.

    The kernels know the training graphs alone: a sub-structure that none of those has is met by nothing.

    Args:
        changes: Any of the method's settings, such as ``rounds``, where the default ones are not wanted.

    Attributes:
        kernel: After ``fit``, the kernel that was chosen.
        model: The classifier that was chosen with it.
    """

    kinds = ("graphs",)
    defaults: ClassVar[SubtreeSettings]
    kernel: GraphKernel
    model: Any

    def __init__(self, **changes: Any) -> None:
        self.chosen = changed(self.defaults, self.name, changes)

    @abstractmethod
    def _kernels(self, seed: int) -> Iterable[GraphKernel]:
        """The kernels to choose from, the plainest first."""

    @abstractmethod
    def _untuned(self, seed: int) -> GraphKernel:
        """The kernel for a split without a validation part."""

    @abstractmethod
    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int) -> Choice:
        """The best classifier on the rows of one kernel."""

    def _rows(self, kernel: GraphKernel, graphs: list[Data], split: Split) -> Rows:
        """What the classifier sees of every graph: its explicit features."""
        return kernel.features(graphs)

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        graphs = list(data)
        seen = [graphs[i] for i in split.train.tolist()]
        best = -1.0
        for kernel in self._kernels(seed) if split.val.numel() else [self._untuned(seed)]:
            rows = self._rows(kernel.fit(seen), graphs, split)
            choice = self._classify(rows, y, split, seed)
            if choice.accuracy > best:  # the first of equals
                best, self.kernel, self.model = choice.accuracy, kernel, choice.model
                self._prediction = choice.predict(rows)
        self._graphs = graphs

    def predict(self) -> Tensor:
        """The class that the chosen classifier gives."""
        return self._prediction

    def embeddings(self) -> Tensor:
        """The explicit features of the chosen kernel, a column a sub-structure of the training graphs."""
        features = self.kernel.features(self._graphs)
        return torch.from_numpy(features.toarray() if isinstance(features, sparse.csr_array) else features)


class KernelSVM(KernelMethod):
    """A support vector machine on the Gram matrix; C and the scaling of graphs to length one are chosen too."""

    defaults: ClassVar[KernelSettings]
    chosen: KernelSettings

    def _rows(self, kernel: GraphKernel, graphs: list[Data], split: Split) -> Rows:
        """The kernel with every training graph, in units of a training graph's mean kernel with itself.

        The unit is only a scale for C: counts of sub-structures grow with graphs, and so would the C that suits them.
        """
        gram = kernel.transform(graphs)
        unit = float(np.mean(np.diagonal(gram[split.train.numpy()])))
        return gram / unit if unit > 0 else gram

    def _classify(self, rows: Rows, y: Tensor, split: Split, seed: int) -> Choice:
        machines = [SVC(C=strength, kernel="precomputed") for strength in self.chosen.strengths]
        return choose(machines, rows, y, split, untuned=SVC(C=1.0, kernel="precomputed"))
