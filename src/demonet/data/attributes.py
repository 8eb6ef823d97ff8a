"""The blocks of features from the attributes ``data.x``: as they are, normalised, standardised, or as tf-idf."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler, normalize
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_features
from demonet.data.encodings import Block, Features, adjacency
from demonet.data.sparse import to_scipy
from demonet.errors import DemonetError

NEIGHBOUR_SHARE = 0.5  # the scale of the neighbour block beside a node's own tf-idf decides how well both do together


class Attributes(Block):
    """The attributes ``data.x`` as they are."""

    def fit(self, graphs: Sequence[Data]) -> None:
        """Note how many there are."""
        self.info["columns"] = int(_attributes(graphs[0]).size(1))
        for data in graphs[1:]:
            self.check(data)

    def check(self, data: Data) -> Tensor:
        """The attributes, if they are as many as in training."""
        x = _attributes(data)
        if x.size(1) != self.info["columns"]:
            raise DemonetError(f"a graph with {x.size(1)} attributes, where training had {self.info['columns']}")
        return x

    def transform(self, data: Data) -> Features:
        """Dense or sparse, as they came."""
        x = self.check(data)
        return self.encode(data, to_scipy(x)) if x.layout == torch.sparse_csr else self.dense(data, x)

    def dense(self, data: Data, x: Tensor) -> Tensor:
        """Dense attributes stay dense."""
        return torch.from_numpy(self.encode(data, to_scipy(x)).toarray())

    def encode(self, data: Data, x: sparse.csr_array) -> sparse.csr_array:
        """What the block does to the attributes."""
        return x

    @property
    def num_features(self) -> int:
        """The attributes."""
        return int(self.info["columns"])


class RowNormalised(Attributes):
    """Attributes divided by the sum of their absolute values in the row; a row of zeros stays."""

    def encode(self, data: Data, x: sparse.csr_array) -> sparse.csr_array:
        """Rows that sum to one."""
        return normalize(x, norm="l1")


class Standardised(Attributes):
    """Attributes of mean zero and deviation one over the training nodes; sparse ones keep their zeros in place."""

    def fit(self, graphs: Sequence[Data]) -> None:
        """Learn means and deviations; a column that never changes is only centred."""
        super().fit(graphs)
        rows = sparse.vstack([to_scipy(_attributes(data)) for data in graphs])
        scaler = StandardScaler(with_mean=False).fit(rows.astype(np.float64))
        self.arrays["mean"] = torch.from_numpy(scaler.mean_.astype(np.float32))
        self.arrays["scale"] = torch.from_numpy(scaler.scale_.astype(np.float32))

    def dense(self, data: Data, x: Tensor) -> Tensor:
        """Centred and scaled."""
        return (x.cpu() - self.arrays["mean"]) / self.arrays["scale"]

    def encode(self, data: Data, x: sparse.csr_array) -> sparse.csr_array:
        """Scaled only: centred, a sparse matrix would be full."""
        return sparse.csr_array(x.multiply(1 / self.arrays["scale"].numpy()))


class TfIdf(Attributes):
    """Counts as term frequency times inverse document frequency, rows of length one, as scikit-learn defines it."""

    def fit(self, graphs: Sequence[Data]) -> None:
        """Learn the inverse document frequencies."""
        super().fit(graphs)
        counts = sparse.vstack([to_scipy(_attributes(data)) for data in graphs])
        if counts.nnz and counts.data.min() < 0:
            raise DemonetError(f"attribute {counts.data.min()} under tf-idf", hint="tf-idf is for counts, 0 or more")
        self.arrays["idf"] = torch.from_numpy(TfidfTransformer().fit(counts).idf_.astype(np.float32))

    def encode(self, data: Data, x: sparse.csr_array) -> sparse.csr_array:
        """Weighted counts in rows of length one."""
        return normalize(sparse.csr_array(x.multiply(self.arrays["idf"].numpy())))


class NeighbourTfIdf(TfIdf):
    """Half the mean of the neighbours' tf-idf, scaled to length one; zeros where there are no neighbours."""

    def encode(self, data: Data, x: sparse.csr_array) -> sparse.csr_array:
        """Rows of length one half."""
        total = adjacency(data, weighted=False) @ super().encode(data, x)  # the mean is a multiple of the sum
        return normalize(total) * np.float32(NEIGHBOUR_SHARE)


def _attributes(data: Data) -> Tensor:
    if data.x is None:
        raise DemonetError("these features need attributes, and the graph has none", hint="degree-rbf needs none")
    check_features(data.x, int(data.num_nodes))
    return data.x.float()
