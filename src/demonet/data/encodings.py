r"""The blocks of features that come from the graph itself: from degrees and from the adjacency matrix.

The degree :math:`d_v` of a node is the number of arcs that point at it. A radial basis over log-degree has 12
functions :math:`\exp(-\tfrac12 ((\log(1 + d) - c_i) / s)^2)`, with centres :math:`c_i` evenly spaced from 0 to
:math:`\log(1 + d_{max})` and :math:`s` their spacing, so near degrees get near features, and so do degrees never seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from demonet.degree.count import count_degree
from demonet.errors import DemonetError

Features = Tensor | sparse.csr_array
NUM_RADIAL = 12


class Block:
    """One named part of the features: ``info`` (JSON) and ``arrays`` (tensors) are all that it has learned."""

    def __init__(self) -> None:
        self.info: dict[str, Any] = {}
        self.arrays: dict[str, Tensor] = {}

    def fit(self, graphs: Sequence[Data]) -> None:
        """Learn from the training graphs."""

    def transform(self, data: Data) -> Features:
        """One row a node."""
        raise NotImplementedError

    @property
    def num_features(self) -> int:
        """Columns of what `transform` gives."""
        raise NotImplementedError


class Constant(Block):
    """The same 1 for every node."""

    num_features = 1

    def transform(self, data: Data) -> Tensor:
        """A column of ones."""
        return torch.ones(int(data.num_nodes), 1)


class DegreeOneHot(Block):
    """A column for each distinct degree of the training graphs, and a last one for any other degree."""

    def fit(self, graphs: Sequence[Data]) -> None:
        """Collect the distinct degrees."""
        self.arrays["degrees"] = torch.cat([degree(data) for data in graphs]).unique()

    def transform(self, data: Data) -> Tensor:
        """One 1 a row."""
        seen, degrees = self.arrays["degrees"], degree(data)
        column = torch.searchsorted(seen, degrees).clamp(max=len(seen) - 1)
        column[seen[column] != degrees] = len(seen)
        return torch.zeros(len(column), len(seen) + 1).scatter_(1, column[:, None], 1.0)

    @property
    def num_features(self) -> int:
        """Distinct degrees and one."""
        return len(self.arrays["degrees"]) + 1


class DegreeRadial(Block):
    """A radial basis of a node's log-degree."""

    num_features = NUM_RADIAL

    def fit(self, graphs: Sequence[Data]) -> None:
        """Note the largest degree."""
        self.info["max_degree"] = max(int(degree(data).max()) for data in graphs)

    def transform(self, data: Data) -> Tensor:
        """The twelve functions at log(1 + d)."""
        return self.radial(torch.log1p(degree(data).float()))

    def radial(self, value: Tensor) -> Tensor:
        """The twelve functions at each value."""
        centres = torch.linspace(0, float(np.log1p(self.info["max_degree"])), NUM_RADIAL)
        width = centres[1] if centres[1] > 0 else torch.tensor(1.0)  # training graphs without an edge
        return torch.exp(-0.5 * ((value[:, None] - centres) / width) ** 2)


class NeighbourDegree(DegreeRadial):
    """The same radial basis of the mean log-degree of a node's neighbours; zeros where there are none."""

    def transform(self, data: Data) -> Tensor:
        """The twelve functions at the mean."""
        degrees = degree(data)
        source, target = data.edge_index.cpu()
        total = torch.zeros(len(degrees)).index_add_(0, target, torch.log1p(degrees[source].float()))
        return self.radial(total / degrees.clamp(min=1)) * (degrees > 0)[:, None]


class Adjacency(Block):
    """A node's own row of the adjacency matrix: it knows nodes by number, so it fits the training graph only."""

    def fit(self, graphs: Sequence[Data]) -> None:
        """Remember which graph it was."""
        if len(graphs) != 1:
            raise DemonetError(f"features 'adjacency' of {len(graphs)} graphs", hint="they are for a single graph")
        self.info = {"nodes": int(graphs[0].num_nodes), "sha256": _fingerprint(graphs[0])}

    def transform(self, data: Data) -> sparse.csr_array:
        """The adjacency matrix."""
        if _fingerprint(data) != self.info["sha256"]:
            raise DemonetError(
                f"features 'adjacency' were made for another graph, of {self.info['nodes']} nodes",
                hint="choose features that carry over, such as degree-rbf",
            )
        return adjacency(data)

    @property
    def num_features(self) -> int:
        """The nodes of the training graph."""
        return int(self.info["nodes"])


def degree(data: Data) -> Tensor:
    """The number of arcs that point at each node."""
    return count_degree(data.edge_index.cpu(), int(data.num_nodes))


def adjacency(data: Data, weighted: bool = True) -> sparse.csr_array:
    """Row v holds the arcs that point at v, with their weights where the graph has some."""
    source, target = data.edge_index.cpu().numpy()
    weight = data.get("edge_weight") if weighted else None
    values = np.ones(source.size, np.float32) if weight is None else weight.cpu().numpy().astype(np.float32)
    n = int(data.num_nodes)
    return sparse.csr_array((values, (target, source)), shape=(n, n))


def _fingerprint(data: Data) -> str:
    matrix = adjacency(data)
    matrix.sort_indices()
    digest = hashlib.sha256(str(data.num_nodes).encode())
    for array in (matrix.indptr.astype("<i8"), matrix.indices.astype("<i8"), matrix.data):
        digest.update(array.tobytes())
    return digest.hexdigest()
