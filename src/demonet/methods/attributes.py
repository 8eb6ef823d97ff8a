"""``attribute-lr``, ``attribute-neighbour-lr``, ``attribute-adjacency-lr``: logistic regression on attributes.

The first shows how much of a task needs no graph. The other two add the simplest knowledge of the graph: the mean
attributes of the neighbours, or the identity of the neighbours.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, cast

import numpy as np
import torch
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler, normalize
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.rows import Rows, to_rows
from demonet.data.splits import Split
from demonet.errors import DemonetError
from demonet.features import FeatureMap
from demonet.features.attributes import MatrixKind, document_weights, matrix_kind, term_rows
from demonet.features.graph import adjacency
from demonet.methods.base import Items, Method, Predicted, Settings, register
from demonet.methods.selection import Selected, logistic, select
from demonet.train.metrics import Task

_SCALES = (0.0, 0.25, 0.5, 1.0, 2.0)
_DEFAULT_SCALE = 0.5
_RIDGES = (100.0, 10.0, 1.0, 0.1, 0.01)


@register
class AttributeLR(Method):
    """Multinomial logistic regression on attributes; C is selected on validation.

    A node has its tf-idf, or standardised attributes. A graph has the counts of its node labels, or mean attributes.
    """

    name = "attribute-lr"
    tasks: ClassVar[tuple[Task, ...]] = ("classify", "multilabel")
    beside_fit = True
    needs_attributes = True
    defaults = Settings("simple baseline of this project")

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        x = node_attributes(data) if isinstance(data, Data) else graph_attributes(data)
        selected = self._select(x, y, split)
        self.chosen = selected.model
        return selected.outputs(x)

    def _select(self, x: Rows, y: Tensor, split: Split) -> Selected:
        return logistic(x, y, split, kept=self.chosen, judge=self._judge)


@register
class AttributeRidge(AttributeLR):
    """Ridge regression on the same attributes; its strength is selected on validation."""

    name = "attribute-ridge"
    tasks = ("regress",)

    def _select(self, x: Rows, y: Tensor, split: Split) -> Selected:
        models = [Ridge(strength) for strength in _RIDGES]
        return select(models, x, y, split, default=Ridge(1.0), kept=self.chosen, judge=self._judge)


class _AttributesAndContext(Method):
    """Logistic regression on ``[attributes, scale * context]``, rows of the context scaled to length one.

    The scale and C are selected on validation, the smallest scale among equals.

    Attributes:
        scale: The selected scale; 0 where the context does not help.
    """

    kinds = ("nodes",)
    needs_attributes = True
    defaults = Settings("simple baseline of this project")
    scale: float

    @abstractmethod
    def _context(self, data: Data, attributes: Rows) -> Rows:
        """One row per node."""

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> Predicted:
        attributes = node_attributes(cast(Data, data))
        context = normalize(self._context(cast(Data, data), attributes))
        scales, kept, best = _SCALES if split.val.numel() else (_DEFAULT_SCALE,), None, -1.0
        if self.chosen is not None:
            scales, kept = (self.chosen[0],), self.chosen[1]
        for scale in scales:
            parts = [attributes, scale * context] if scale else [attributes]
            rows = sparse.hstack(parts, format="csr") if any(map(sparse.issparse, parts)) else np.hstack(parts)
            selected = logistic(rows, y, split, kept=kept)
            if selected.score > best:
                best, self.scale, prediction = selected.score, scale, selected.outputs(rows)
                self.chosen = scale, selected.model
        return prediction


@register
class AttributeNeighbourLR(_AttributesAndContext):
    """Logistic regression on the attributes of a node and the mean attributes of its neighbours."""

    name = "attribute-neighbour-lr"

    def _context(self, data: Data, attributes: Rows) -> Rows:
        return adjacency(data, weighted=False) @ attributes  # scaled to length one, the sum equals the mean


@register
class AttributeAdjacencyLR(_AttributesAndContext):
    """Logistic regression on the attributes of a node and its row of the adjacency matrix."""

    name = "attribute-adjacency-lr"

    def _context(self, data: Data, attributes: Rows) -> Rows:
        return adjacency(data).astype(np.float64)


def node_attributes(data: Data) -> Rows:
    """tf-idf where attributes are words, columns of unit variance otherwise.

    Term frequencies are 1 + log(count), which gains two points over plain counts on BlogCatalog and Flickr; weights of
    words are taken as they are.
    """
    kind = kind_of([data])
    rows = to_rows(FeatureMap("attributes").fit_transform(data))
    if kind != "numbers":
        return term_rows(rows, document_weights(rows, kind), kind)
    if isinstance(rows, np.ndarray):
        return StandardScaler().fit_transform(rows)
    return sparse.csr_array(StandardScaler(with_mean=False).fit_transform(rows))


def graph_attributes(graphs: Sequence[Data]) -> Rows:
    """One row per graph: summed counts (such as of node labels) or mean attributes, standardised."""
    counts = kind_of(graphs) != "numbers"
    features = FeatureMap("attributes").fit(list(graphs))
    rows = []
    for graph in graphs:
        x = features.transform(graph)
        total = (x if x.layout == torch.strided else x.to_dense()).double().sum(0)
        rows.append(total if counts else total / max(1, x.size(0)))
    return StandardScaler().fit_transform(torch.stack(rows).cpu().numpy())


def kind_of(graphs: Sequence[Data]) -> MatrixKind:
    """What the attributes are; it is an error if there are none."""
    kind = matrix_kind(graphs)
    if kind == "none":
        raise DemonetError("this method needs node attributes, but x is None", hint="structural-lr needs none")
    return kind
