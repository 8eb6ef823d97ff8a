"""Base class of the kernels: parameters, Gram matrices and normalisation, given an explicit feature map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval, InvalidParameterError
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from demonet.errors import DemonetError
from demonet.features.graph import Float, GraphUnion

Features = Any  # a float64 array, or a scipy CSR array where most features are zero


class Expansion(NamedTuple):
    """Graphs in feature space.

    Attributes:
        features: One row per graph, over the columns learned in ``fit``.
        self_kernel: ``k(G, G)`` of each graph, including what lies outside those columns.
    """

    features: Features
    self_kernel: Float


class GraphKernel(TransformerMixin, BaseEstimator, ABC):
    """A kernel that is the inner product of explicit features, summed over levels ``0 .. n_iter``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "normalize": ["boolean"],
    }

    normalize: bool

    def fit(self, graphs: Iterable[Data], y: object = None) -> Self:
        """Learn the feature columns of the graphs, and store their features.

        Args:
            graphs: A list of ``torch_geometric.data.Data``.
            y: Ignored; scikit-learn passes it.
        """
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise DemonetError(str(error)) from error
        union = GraphUnion.of(graphs)
        self.with_x_ = union.with_x
        self.features_ = self._scaled(self._learn(union))
        return self

    def transform(self, graphs: Iterable[Data]) -> Float:
        """The Gram matrix ``[len(graphs), len(fitted)]`` of graphs against the fitted ones."""
        return _inner_products(self.features(graphs), self.features_)

    def fit_transform(self, graphs: Iterable[Data], y: object = None) -> Float:
        """Fit the graphs and return their symmetric Gram matrix."""
        self.fit(graphs, y)
        return _inner_products(self.features_, self.features_)

    def features(self, graphs: Iterable[Data]) -> Features:
        """The explicit feature map ``[len(graphs), columns]``, over the columns learned in ``fit``.

        ``transform(graphs)`` is ``features(graphs) @ features(fitted).T``. A degree or colour that no
        fitted graph has contributes nothing to that product and has no column; :meth:`self_kernel` and normalisation
        include it.
        """
        return self._scaled(self._expanded(graphs))

    def self_kernel(self, graphs: Iterable[Data]) -> Float:
        """``k(G, G)`` of each graph by the equation, without normalisation."""
        return self._expanded(graphs).self_kernel

    @abstractmethod
    def _learn(self, union: GraphUnion) -> Expansion:
        """Learn the feature columns and expand the graphs over them."""

    @abstractmethod
    def _expand(self, union: GraphUnion) -> Expansion:
        """Expand graphs over the learned columns."""

    def _expanded(self, graphs: Iterable[Data]) -> Expansion:
        check_is_fitted(self, "features_")
        union = GraphUnion.of(graphs)
        if union.with_x != self.with_x_:
            fitted, given = ("have", "do not") if self.with_x_ else ("have no", "do")
            raise DemonetError(f"the fitted graphs {fitted} x, these {given}", hint="give x to all graphs or to none")
        return self._expand(union)

    def _scaled(self, expansion: Expansion) -> Features:
        if not self.normalize:
            return expansion.features
        # Where k(G, G) = 0 all features are zero at any finite scale.
        norm = np.sqrt(np.where(expansion.self_kernel > 0, expansion.self_kernel, 1.0))
        if isinstance(expansion.features, sparse.csr_array):
            return sparse.diags_array(1.0 / norm) @ expansion.features
        return expansion.features / norm[:, None]


def _inner_products(left: Features, right: Features) -> Float:
    products = left @ right.T
    return products.toarray() if isinstance(products, sparse.csr_array) else products
