"""Node features by name: fitted on the training graphs, stored with the model, applied to any graph after that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from demonet.data.attributes import Attributes, NeighbourTfIdf, RowNormalised, Standardised, TfIdf
from demonet.data.encodings import Adjacency, Block, Constant, DegreeOneHot, DegreeRadial, NeighbourDegree
from demonet.data.sparse import to_scipy, to_torch
from demonet.errors import DemonetError

BLOCKS: dict[str, type[Block]] = {
    "degree-onehot": DegreeOneHot,
    "degree-rbf": DegreeRadial,
    "neighbour-degree": NeighbourDegree,
    "adjacency": Adjacency,
    "attributes": Attributes,
    "tfidf": TfIdf,
    "row-normalised": RowNormalised,
    "standardised": Standardised,
    "neighbour-tfidf": NeighbourTfIdf,
    "constant": Constant,
}


class FeatureMap:
    """Blocks of features side by side, such as ``FeatureMap("degree-rbf+tfidf")``.

    ==================  ========================================================================================
    block               columns
    ==================  ========================================================================================
    degree-onehot       one for each degree seen in training, and one for every other
    degree-rbf          12 radial basis functions of log(1 + degree)
    neighbour-degree    the same of the mean log(1 + degree) of the neighbours
    adjacency           the rows of the adjacency matrix (sparse; this graph and no other)
    attributes          ``data.x``
    tfidf               ``data.x``, counts, as tf-idf
    row-normalised      ``data.x``, rows divided by their sum
    standardised        ``data.x``, columns of mean zero and deviation one
    neighbour-tfidf     half the mean of the neighbours' tf-idf, scaled to length one
    constant            1
    ==================  ========================================================================================

    The result is dense, or ``torch.sparse_csr`` where sparse attributes or the adjacency matrix are among the blocks.

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
                raise DemonetError(f"features {name!r} in {spec!r}", hint=f"known are {', '.join(BLOCKS)}")
            if name in self.blocks:
                raise DemonetError(f"features {name!r} twice in {spec!r}")
            self.blocks[name] = BLOCKS[name]()
        self._fitted = False

    def fit(self, data: Data | Sequence[Data]) -> Self:
        """Learn from the training graph or graphs, and from nothing else."""
        graphs = [data] if isinstance(data, Data) else list(data)
        if not graphs or any(graph.num_nodes == 0 for graph in graphs):
            raise DemonetError("features fitted on no graph, or on one without nodes")
        for block in self.blocks.values():
            block.fit(graphs)
        self._fitted = True
        return self

    def transform(self, data: Data) -> Tensor:
        """Float32 features of one graph, a row a node, on the graph's device."""
        self._check_fitted()
        parts = [block.transform(data) for block in self.blocks.values()]
        dense = [part.cpu() for part in parts if isinstance(part, Tensor)]
        if len(dense) == len(parts):
            x = torch.cat(dense, dim=1)
        else:
            x = to_torch(sparse.hstack([to_scipy(p) if isinstance(p, Tensor) else p for p in parts], format="csr"))
        return x.to(data.edge_index.device)

    def fit_transform(self, data: Data) -> Tensor:
        """Fit on a graph and give its features."""
        return self.fit(data).transform(data)

    @property
    def num_features(self) -> int:
        """Columns of what `transform` gives."""
        self._check_fitted()
        return sum(block.num_features for block in self.blocks.values())

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All that was learned: a part for JSON and a part for safetensors."""
        self._check_fitted()
        info = {"spec": self.spec, "blocks": {name: block.info for name, block in self.blocks.items()}}
        return info, {f"{name}.{key}": a for name, block in self.blocks.items() for key, a in block.arrays.items()}

    @classmethod
    def from_state(cls, info: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """The fitted map that gave this state."""
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
            raise DemonetError(f"features {self.spec!r} are not fitted", hint="call fit with the training graph first")

    def __repr__(self) -> str:
        return f"FeatureMap({self.spec!r}{f', {self.num_features} features' if self._fitted else ''})"
