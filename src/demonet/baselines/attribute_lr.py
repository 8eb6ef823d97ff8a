"""Logistic regression on the attributes alone: how much of a task the graph is not needed for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.base import Baseline, Items
from demonet.baselines.choice import Rows
from demonet.baselines.linear import logistic
from demonet.data.features import FeatureMap
from demonet.data.sparse import to_scipy
from demonet.data.splits import Split
from demonet.errors import DemonetError


class AttributeLR(Baseline):
    """Multinomial logistic regression on attributes, C chosen on validation.

    Attributes of nodes become tf-idf, with logarithmic term frequencies, where they are counts (whole numbers, 0 or more), and are otherwise scaled to
    variance one, column by column. Graphs are described by the sum of their nodes' attributes where these are counts,
    such as how often each node label occurs, and by their mean otherwise, again scaled.
    """

    name = "attribute-lr"

    def _fit(self, data: Items, y: Tensor, split: Split, seed: int) -> None:
        x = node_attributes(data) if isinstance(data, Data) else graph_attributes(data)
        self._prediction = logistic(x, y, split).predict(x)

    def predict(self) -> Tensor:
        """The class that the attributes speak for."""
        return self._prediction


def node_attributes(data: Data) -> Rows:
    """tf-idf where attributes are counts, variance one otherwise.

    Term frequencies are 1 + log(count): on BlogCatalog and Flickr that is worth two points over the bare count.
    """
    x = FeatureMap("attributes").fit_transform(data)
    rows = to_scipy(x).astype(np.float64) if x.layout == torch.sparse_csr else x.double().cpu().numpy()
    if _are_counts([data]):
        return sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(rows))
    return StandardScaler(with_mean=not sparse.issparse(rows)).fit_transform(rows)


def graph_attributes(graphs: Sequence[Data]) -> Rows:
    """A row a graph: summed counts, or mean attributes, each column with variance one."""
    features = FeatureMap("attributes").fit(list(graphs))
    counts = _are_counts(graphs)
    rows = []
    for graph in graphs:
        x = features.transform(graph)
        total = (x if x.layout == torch.strided else x.to_dense()).double().sum(0)
        rows.append(total if counts else total / max(1, x.size(0)))
    return StandardScaler().fit_transform(torch.stack(rows).cpu().numpy())


def _are_counts(graphs: Sequence[Data]) -> bool:
    for graph in graphs:
        if graph.x is None:
            raise DemonetError("attribute-lr needs attributes, and there are none", hint="structural-lr needs none")
        values = graph.x.values() if graph.x.layout == torch.sparse_csr else graph.x
        if bool(((values < 0) | (values != values.round())).any()):
            return False
    return True
