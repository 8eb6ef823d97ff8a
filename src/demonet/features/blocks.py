r"""Node features by name: fitted on the training graphs, saved with the model, then applied to any graph.

The degree :math:`d_v` of a node is the number of edges that point at it. The radial basis over log-degree has 12
functions :math:`\exp(-\tfrac12 ((\log(1 + d) - c_i) / s)^2)`, with centres :math:`c_i` evenly spaced from 0 to
:math:`\log(1 + d_{max})` and :math:`s` their spacing. Similar degrees get similar features, also degrees that were not
seen in training.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from scipy import sparse
from sklearn.preprocessing import StandardScaler, normalize
from torch import Tensor
from torch_geometric.data import Data

from demonet.checks import check_features
from demonet.data.columns import column_kinds
from demonet.data.rows import to_scipy, to_torch
from demonet.errors import DemonetError
from demonet.features.attributes import document_weights, matrix_kind
from demonet.features.graph import adjacency, degree
from demonet.features.structure import AROUND, GivenSurroundings

Features = Tensor | sparse.csr_array
NUM_RADIAL = 12
STRUCTURE_SCALE = 0.3
MOST_WALKS = 1e8  # walks of two steps up to which triangles are counted
NEIGHBOUR_SHARE = 0.5  # the scale of the neighbour block relative to a node's own tf-idf
LARGE = 20_000  # nodes from which on one-hot degrees may be stored as sparse rows
BLOCK_ROWS = 2**17  # rows of dense attributes that are converted at a time
DENSE_ENTRIES = 2**24  # entries up to which they are dense nevertheless


class Block:
    """One named part of the features; ``info`` (JSON) and ``arrays`` (tensors) are its fitted state."""

    def __init__(self) -> None:
        self.info: dict[str, Any] = {}
        self.arrays: dict[str, Tensor] = {}

    def fit(self, graphs: Sequence[Data]) -> None:
        """Learn from the training graphs."""

    def transform(self, data: Data) -> Features:
        """One row per node."""
        raise NotImplementedError

    @property
    def num_features(self) -> int:
        """The number of columns of `transform`."""
        raise NotImplementedError


class _Constant(Block):
    """The same 1 for every node."""

    num_features = 1

    def transform(self, data: Data) -> Tensor:
        return torch.ones(int(data.num_nodes), 1)


class _DegreeOneHot(Block):
    """A column for each distinct degree of the training graphs, and a last one for any other degree.

    The number of distinct degrees grows with the graph, so the rows of a large graph are sparse.
    """

    def fit(self, graphs: Sequence[Data]) -> None:
        self.arrays["degrees"] = torch.cat([degree(data) for data in graphs]).unique()

    def transform(self, data: Data) -> Features:
        seen, degrees = self.arrays["degrees"], degree(data)
        column = torch.searchsorted(seen, degrees).clamp(max=len(seen) - 1)
        column[seen[column] != degrees] = len(seen)
        shape = len(column), self.num_features
        if one_hot_is_dense(*shape):
            return torch.zeros(shape).scatter_(1, column[:, None], 1.0)
        ones = np.ones(shape[0], np.float32)
        return sparse.csr_array((ones, column.int().numpy(), np.arange(shape[0] + 1)), shape=shape)

    @property
    def num_features(self) -> int:
        return len(self.arrays["degrees"]) + 1


def one_hot_is_dense(nodes: int, columns: int) -> bool:
    """Whether one-hot degrees of this shape are stored as dense rows."""
    return nodes < LARGE or nodes * columns <= DENSE_ENTRIES


class _DegreeRadial(Block):
    """A radial basis of a node's log-degree."""

    num_features = NUM_RADIAL

    def fit(self, graphs: Sequence[Data]) -> None:
        self.info["max_degree"] = max(int(degree(data).max()) for data in graphs)

    def transform(self, data: Data) -> Tensor:
        return self.radial(torch.log1p(degree(data).float()))

    def radial(self, value: Tensor) -> Tensor:
        centres = torch.linspace(0, float(np.log1p(self.info["max_degree"])), NUM_RADIAL)
        width = centres[1] if centres[1] > 0 else torch.tensor(1.0)  # training graphs without an edge
        return torch.exp(-0.5 * ((value[:, None] - centres) / width) ** 2)


class _NeighbourDegree(_DegreeRadial):
    """The same radial basis of the mean log-degree of a node's neighbours; zeros for a node without neighbours."""

    def transform(self, data: Data) -> Tensor:
        degrees = degree(data)
        source, target = data.edge_index.cpu()
        total = torch.zeros(len(degrees)).index_add_(0, target, torch.log1p(degrees[source].float()))
        return self.radial(total / degrees.clamp(min=1)) * (degrees > 0)[:, None]


class _Adjacency(Block):
    """A node's row of the adjacency matrix; it is tied to the training graph."""

    def fit(self, graphs: Sequence[Data]) -> None:
        if len(graphs) != 1:
            raise DemonetError(f"features 'adjacency' of {len(graphs)} graphs", hint="use them with a single graph")
        self.info = {"nodes": int(graphs[0].num_nodes), "sha256": _fingerprint(graphs[0])}

    def transform(self, data: Data) -> sparse.csr_array:
        if _fingerprint(data) != self.info["sha256"]:
            raise DemonetError(
                f"features 'adjacency' were fitted on another graph, with {self.info['nodes']} nodes",
                hint="choose features that transfer to other graphs, such as degree-rbf",
            )
        return adjacency(data)

    @property
    def num_features(self) -> int:
        return int(self.info["nodes"])


class _Attributes(Block):
    """The attributes ``data.x``, dense or sparse as given; subclasses encode them."""

    def fit(self, graphs: Sequence[Data]) -> None:
        self.info["columns"] = int(_attributes(graphs[0]).size(1))
        for data in graphs[1:]:
            self._checked(data)

    def _checked(self, data: Data) -> Tensor:
        x = _attributes(data)
        if x.size(1) != self.info["columns"]:
            raise DemonetError(f"the graph has {x.size(1)} attributes, but training had {self.info['columns']}")
        return x

    def transform(self, data: Data) -> Features:
        x = self._checked(data)
        return self.encode(data, to_scipy(x)) if x.layout == torch.sparse_csr else self.dense(data, x)

    def dense(self, data: Data, x: Tensor) -> Tensor:
        return x

    def encode(self, data: Data, x: sparse.csr_array) -> sparse.csr_array:
        return x

    @property
    def num_features(self) -> int:
        return int(self.info["columns"])


class _BySparse(_Attributes):
    """Attributes whose encoding is written for sparse ones; dense ones stay dense."""

    def dense(self, data: Data, x: Tensor) -> Tensor:
        return torch.from_numpy(self.encode(data, to_scipy(x)).toarray())


class _RowNormalised(_BySparse):
    """Attributes divided by the sum of their absolute values in the row; a row of zeros stays."""

    def encode(self, data: Data, x: sparse.csr_array) -> sparse.csr_array:
        return normalize(x, norm="l1")


class _Standardised(_Attributes):
    """Attributes with mean 0 and standard deviation 1 over the training nodes; a constant column is only centred.

    Sparse attributes are only scaled: centred, they would be dense.
    """

    def fit(self, graphs: Sequence[Data]) -> None:
        super().fit(graphs)
        scaler = StandardScaler(with_mean=False)
        for rows in _attribute_rows(graphs):
            scaler.partial_fit(rows.astype(np.float64))
        self.arrays["mean"] = torch.from_numpy(scaler.mean_.astype(np.float32))
        self.arrays["scale"] = torch.from_numpy(scaler.scale_.astype(np.float32))

    def dense(self, data: Data, x: Tensor) -> Tensor:
        return (x.cpu() - self.arrays["mean"]).div_(self.arrays["scale"])

    def encode(self, data: Data, x: sparse.csr_array) -> sparse.csr_array:
        return sparse.csr_array(x.multiply(1 / self.arrays["scale"].numpy()))


class _ByKind(_Standardised):
    """Each attribute by its kind: counts as tf-idf, numbers standardised, columns of 0 and 1 as they are.

    The kinds are those of the table that was read, or else recognised by :func:`~demonet.data.columns.column_kinds`.
    Sparse attributes are only scaled.
    """

    def fit(self, graphs: Sequence[Data]) -> None:
        super().fit(graphs)
        known = graphs[0].get("columns")
        if graphs[0].x.layout == torch.sparse_csr:
            kinds = np.full(self.num_features, "number")
        else:
            rows = sparse.vstack([to_scipy(_attributes(data)) for data in graphs], format="csr")
            kinds = np.array(column_kinds(rows.toarray()) if known is None else known.kinds)
        counts, others = kinds == "count", torch.from_numpy(kinds != "number")
        self.arrays["mean"][others], self.arrays["scale"][others] = 0.0, 1.0
        if counts.any():
            weights = 1 / document_weights(rows[:, counts], "counts")
            self.arrays["scale"][torch.from_numpy(counts)] = torch.from_numpy(weights.astype(np.float32))
        self.arrays["counts"] = torch.from_numpy(counts)
        if known is not None:
            self.info["names"] = known.names

    def dense(self, data: Data, x: Tensor) -> Tensor:
        rows, counts = super().dense(data, x), self.arrays["counts"]
        if bool(counts.any()):  # together, the counts of a row have length one
            rows[:, counts] = torch.nn.functional.normalize(rows[:, counts])
        return rows


class _TfIdf(_BySparse):
    """Counts as term frequency times inverse document frequency, rows of length one, as scikit-learn defines it."""

    def fit(self, graphs: Sequence[Data]) -> None:
        super().fit(graphs)
        counts = sparse.vstack([to_scipy(_attributes(data)) for data in graphs])
        if counts.nnz and counts.data.min() < 0:
            raise DemonetError(f"attribute {counts.data.min()} with tf-idf", hint="tf-idf needs counts of at least 0")
        self.arrays["idf"] = torch.from_numpy(document_weights(counts, "counts").astype(np.float32))

    def encode(self, data: Data, x: sparse.csr_array) -> sparse.csr_array:
        return normalize(sparse.csr_array(x.multiply(self.arrays["idf"].numpy())))


class _NeighbourTfIdf(_TfIdf):
    """Half the mean of the neighbours' tf-idf, scaled to length 1; zeros for a node without neighbours."""

    def encode(self, data: Data, x: sparse.csr_array) -> sparse.csr_array:
        total = adjacency(data, weighted=False) @ super().encode(data, x)  # the mean is a multiple of the sum
        return normalize(total) * np.float32(NEIGHBOUR_SHARE)


class _Encoded(_Attributes):
    """Words as tf-idf (one-hot labels stay as they are), other numbers standardised, limited to eight deviations."""

    def fit(self, graphs: Sequence[Data]) -> None:
        found = matrix_kind(graphs)
        self.info["counts"] = found != "numbers"
        self._kind().fit(graphs)
        if found == "weights":
            rows = sparse.vstack([to_scipy(_attributes(data)) for data in graphs])
            self.arrays["idf"] = torch.from_numpy(document_weights(rows, found).astype(np.float32))
        if graphs[0].get("columns") is not None:
            self.info["names"] = graphs[0].columns.names

    def transform(self, data: Data) -> Features:
        encoded = self._kind().transform(data)
        return encoded.clamp_(-8, 8) if isinstance(encoded, Tensor) and not self.info["counts"] else encoded

    def _kind(self) -> _Attributes:
        kind = _TfIdf() if self.info["counts"] else _Standardised()
        kind.info, kind.arrays = self.info, self.arrays
        return kind


# The numbers of the block "structure", in their order.
STRUCTURE_NAMES = (*AROUND, "log-degree of neighbours, two hops", "triangles", "closed triangles")


class _Structure(_DegreeRadial):
    """The radial basis of a node's log-degree and eight numbers about the graph around it, at a scale of 0.3.

    The numbers: the log-degree; mean, deviation, minimum and maximum of the neighbours', and their mean over two hops;
    the number of triangles (logarithm) and the share of pairs of neighbours that are joined; triangles are zero where
    counting them takes long. They are standardised over the training nodes and limited to five deviations. The small
    scale lets them stand beside attributes: a network fits what has a larger scale first.
    """

    num_features = NUM_RADIAL + len(STRUCTURE_NAMES)

    def fit(self, graphs: Sequence[Data]) -> None:
        super().fit(graphs)
        walks = max(float((degree(data).double() ** 2).sum()) for data in graphs)
        self.info["triangles"] = walks <= MOST_WALKS
        rows = np.concatenate([self._raw(data) for data in graphs])
        deviation = rows.std(0)
        self.arrays["mean"] = torch.from_numpy(rows.mean(0).astype(np.float32))
        self.arrays["scale"] = torch.from_numpy(np.where(deviation > 1e-6, deviation, 1.0).astype(np.float32))

    def transform(self, data: Data) -> Tensor:
        rows = torch.from_numpy(self._raw(data).astype(np.float32))
        numbers = ((rows - self.arrays["mean"]) / self.arrays["scale"]).clamp(-5, 5)
        return STRUCTURE_SCALE * torch.cat([super().transform(data), numbers], 1)

    def _raw(self, data: Data) -> np.ndarray:
        around = GivenSurroundings(adjacency(data, weighted=False), degree(data).numpy())
        if not self.info["triangles"]:
            around.triangles = np.zeros(len(around.degree))
        return around.columns(STRUCTURE_NAMES)


BLOCKS: dict[str, type[Block]] = {
    "degree-onehot": _DegreeOneHot,
    "degree-rbf": _DegreeRadial,
    "neighbour-degree": _NeighbourDegree,
    "adjacency": _Adjacency,
    "attributes": _Attributes,
    "tfidf": _TfIdf,
    "row-normalised": _RowNormalised,
    "standardised": _Standardised,
    "columns": _ByKind,
    "neighbour-tfidf": _NeighbourTfIdf,
    "encoded": _Encoded,
    "structure": _Structure,
    "constant": _Constant,
}


class FeatureMap:
    """Concatenated blocks of features, such as ``FeatureMap("degree-rbf+tfidf")``.

    ==================  ============================================================================================
    block               columns
    ==================  ============================================================================================
    degree-onehot       one for each degree seen in training, and one for every other
    degree-rbf          12 radial basis functions of log(1 + degree)
    neighbour-degree    the same of the mean log(1 + degree) of the neighbours
    adjacency           the rows of the adjacency matrix (sparse; for this graph only)
    attributes          ``data.x``
    tfidf               ``data.x``, counts, as tf-idf
    row-normalised      ``data.x``, rows divided by their sum
    standardised        ``data.x``, columns with mean 0 and standard deviation 1
    columns             ``data.x``, each column by its kind: counts as tf-idf, numbers standardised, 0 and 1 as they are
    neighbour-tfidf     the mean of the neighbours' tf-idf, scaled to length one half
    encoded             ``data.x`` as tfidf if these are words or one-hot labels, standardised otherwise
    structure           degree-rbf and 8 numbers about the degrees and triangles around a node, at a small scale
    constant            1
    ==================  ============================================================================================

    The result is dense, or ``torch.sparse_csr`` if sparse attributes, the adjacency matrix or the one-hot degrees of a
    large graph are among the blocks.

    >>> from demonet.data.synthetic import cycle
    >>> FeatureMap("degree-onehot+constant").fit_transform(cycle(3))
    tensor([[1., 0., 1.],
            [1., 0., 1.],
            [1., 0., 1.]])
    """

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.blocks: dict[str, Block] = {}
        for name in spec.split("+"):
            if name not in BLOCKS:
                raise DemonetError(f"features {name!r} in {spec!r}", hint=f"choose from {', '.join(BLOCKS)}")
            if name in self.blocks:
                raise DemonetError(f"features {name!r} twice in {spec!r}")
            self.blocks[name] = BLOCKS[name]()
        self._fitted = False

    def fit(self, data: Data | Sequence[Data]) -> Self:
        """Fit on the training graph or graphs."""
        graphs = [data] if isinstance(data, Data) else list(data)
        if not graphs or any(graph.num_nodes == 0 for graph in graphs):
            raise DemonetError("features need at least one training graph, and nodes in each")
        for block in self.blocks.values():
            block.fit(graphs)
        self._fitted = True
        return self

    def transform(self, data: Data) -> Tensor:
        """Float32 features of one graph, one row per node, on the graph's device."""
        self._check_fitted()
        parts = [block.transform(data) for block in self.blocks.values()]
        dense = [part.cpu() for part in parts if isinstance(part, Tensor)]
        if len(dense) == len(parts):
            x = dense[0] if len(dense) == 1 else torch.cat(dense, dim=1)
        else:
            x = to_torch(sparse.hstack([to_scipy(p) if isinstance(p, Tensor) else p for p in parts], format="csr"))
        return x.to(data.edge_index.device)

    def fit_transform(self, data: Data) -> Tensor:
        """Fit on a graph and return its features."""
        return self.fit(data).transform(data)

    @property
    def num_features(self) -> int:
        """The number of columns of `transform`."""
        self._check_fitted()
        return sum(block.num_features for block in self.blocks.values())

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The fitted state: a part for JSON and a part for safetensors."""
        self._check_fitted()
        info = {"spec": self.spec, "blocks": {name: block.info for name, block in self.blocks.items()}}
        return info, {f"{name}.{key}": a for name, block in self.blocks.items() for key, a in block.arrays.items()}

    @classmethod
    def from_state(cls, info: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """The fitted map with this state."""
        features = cls(info["spec"])
        for name, block in features.blocks.items():
            block.info = dict(info["blocks"][name])
        for key, array in arrays.items():
            name, field = key.rsplit(".", 1)
            features.blocks[name].arrays[field] = array
        features._fitted = True
        return features

    def _check_fitted(self) -> None:
        if not self._fitted:
            raise DemonetError(f"features {self.spec!r} are not fitted", hint="call fit first")

    def __repr__(self) -> str:
        return f"FeatureMap({self.spec!r}{f', {self.num_features} features' if self._fitted else ''})"


def _attribute_rows(graphs: Sequence[Data]) -> Iterator[sparse.csr_array]:
    """The attributes of all nodes in blocks: all at once, sparse rows would take many times the memory."""
    waiting: list[sparse.csr_array] = []
    for data in graphs:
        x = _attributes(data)
        if data.x.layout == torch.sparse_csr or x.size(0) <= BLOCK_ROWS:
            waiting.append(to_scipy(x))
        else:
            yield from (to_scipy(x[start : start + BLOCK_ROWS]) for start in range(0, x.size(0), BLOCK_ROWS))
    if waiting:
        yield sparse.vstack(waiting)


def _fingerprint(data: Data) -> str:
    matrix = adjacency(data)
    matrix.sort_indices()
    digest = hashlib.sha256(str(data.num_nodes).encode())
    for array in (matrix.indptr.astype("<i8"), matrix.indices.astype("<i8"), matrix.data):
        digest.update(array.tobytes())
    return digest.hexdigest()


def _attributes(data: Data) -> Tensor:
    if data.x is None:
        raise DemonetError("these features need attributes, but the graph has none", hint="degree-rbf needs none")
    check_features(data.x, int(data.num_nodes))
    return data.x.float()
