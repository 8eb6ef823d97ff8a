"""What a linear model is given of attributes: tf-idf of nodes, counts or means of graphs, neighbours beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler, normalize
from torch import Tensor
from torch_geometric.data import Data

from demonet.baselines.choice import Choice, Rows
from demonet.baselines.linear import logistic
from demonet.data.features import FeatureMap, to_scipy
from demonet.data.splits import Split
from demonet.errors import DemonetError

SCALES = (0.0, 0.25, 0.5, 1.0, 2.0)  # of what stands beside a node's own attributes


def node_attributes(data: Data) -> Rows:
    """tf-idf where attributes are counts (whole numbers, 0 or more), columns of variance one otherwise.

    Term frequencies are 1 + log(count): on BlogCatalog and Flickr that is worth two points over the bare count.
    """
    counts = are_counts([data])
    x = FeatureMap("attributes").fit_transform(data)
    rows = to_scipy(x).astype(np.float64) if x.layout == torch.sparse_csr else x.double().cpu().numpy()
    if counts:
        return sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(rows))
    return StandardScaler(with_mean=not sparse.issparse(rows)).fit_transform(rows)


def graph_attributes(graphs: Sequence[Data]) -> Rows:
    """A row a graph: summed counts, such as of each node label, or mean attributes; columns of variance one."""
    counts = are_counts(graphs)
    features = FeatureMap("attributes").fit(list(graphs))
    rows = []
    for graph in graphs:
        x = features.transform(graph)
        total = (x if x.layout == torch.strided else x.to_dense()).double().sum(0)
        rows.append(total if counts else total / max(1, x.size(0)))
    return StandardScaler().fit_transform(torch.stack(rows).cpu().numpy())


def are_counts(graphs: Sequence[Data]) -> bool:
    """Whether every attribute is a whole number, 0 or more."""
    for graph in graphs:
        if graph.x is None:
            raise DemonetError("there are no attributes to regress on", hint="structural-lr needs none")
        values = graph.x.values() if graph.x.layout == torch.sparse_csr else graph.x
        if bool(((values < 0) | (values != values.round())).any()):
            return False
    return True


def beside(own: Rows, other: Rows, y: Tensor, split: Split) -> tuple[float, Choice, Rows]:
    """The regression on ``[own, scale * other]``, rows of ``other`` of length one, whose scale and C do best.

    Returns the scale, the regression, and the rows that it was given.
    """
    other = normalize(other)
    best = None
    for scale in SCALES if split.val.numel() else (0.5,):
        parts = [own, scale * other] if scale else [own]
        rows = sparse.hstack(parts, format="csr") if any(map(sparse.issparse, parts)) else np.hstack(parts)
        choice = logistic(rows, y, split)
        if best is None or choice.accuracy > best[1].accuracy:
            best = scale, choice, rows
    if best is None:
        raise ValueError("there is no scale to choose from")
    return best
