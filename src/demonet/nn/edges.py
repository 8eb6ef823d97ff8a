"""The forms in which a layer takes edges, as the operators take them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.utils import is_torch_sparse_tensor

from demonet.checks import check_edge_index
from demonet.degree.keep import lasting
from demonet.errors import DemonetError
from demonet.ops import backend, neighbour_lists
from demonet.ops.reference import owner


class Edges:
    """The edges between sources and targets, given as ``edge_index``, ``EdgeIndex`` or ``torch.sparse`` ``adj_t``.

    An ``EdgeIndex`` that is sorted by target and knows its size, and an ``adj_t`` in CSR, are used as they are.
    Anything else is sorted in every call.

    Args:
        given: The edges.
        weight: ``[m]`` their weights or None; None for ``adj_t``, whose values are the weights.
        size: Number of sources and of targets.
        flow: PyG's flow; with ``"target_to_source"`` row 0 of the ``edge_index`` has the targets.

    Attributes:
        index: ``[2, m]`` the edges as one tensor, rows as given.
        weight: ``[m]`` weights in that order, or None.
    """

    def __init__(self, given: Tensor, weight: Tensor | None, size: tuple[int, int], flow: str) -> None:
        self._size, self._forward = size, flow == "source_to_target"
        self._csr = self._sorted = None
        self.weight = weight
        if is_torch_sparse_tensor(given):
            if given.shape != (size[1], size[0]):
                raise DemonetError(f"adj_t has shape {tuple(given.shape)}, not (targets, sources) = {size[::-1]}")
            if weight is not None or not self._forward:
                raise DemonetError(f"adj_t with edge_weight or flow={flow!r}", hint="its values are the weights")
            self._csr = given.to_sparse_csr()
            self.weight = self._csr.values()
            targets = owner(self._csr.crow_indices(), self._csr.col_indices().numel())
            self.index = torch.stack([self._csr.col_indices(), targets])
            return
        self.index = given.as_tensor() if isinstance(given, EdgeIndex) else given
        if weight is not None:
            check_length("edge weights", "edge", weight, self.index.size(1))
        if isinstance(given, EdgeIndex) and not backend.tracing():
            by_target = given.is_sorted_by_col if self._forward else given.is_sorted_by_row
            if by_target and given.sparse_size() == (size if self._forward else size[::-1]):
                self._sorted = given

    @property
    def pairs(self) -> Tensor:
        """``[2, m]`` sources and targets."""
        return self.index if self._forward else self.index.flip(0)

    def lists(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Where the list of each target begins, the sources, and the weights, list after list."""
        if self._csr is not None:
            return self._csr.crow_indices(), self._csr.col_indices(), self.weight
        if self._sorted is not None:
            check_edge_index(self.pairs, self._size)
            with lasting():  # it keeps its lists
                (pointer, neighbours), _ = self._sorted.get_csc() if self._forward else self._sorted.get_csr()
            return pointer, neighbours, self.weight
        pointer, neighbours, edge = neighbour_lists(self.pairs, *self._size)
        return pointer, neighbours, None if self.weight is None else self.weight[edge]

    def reversed_lists(self) -> list[Tensor]:
        """The lists of the reversed edges, which an ``EdgeIndex`` keeps: pointer, targets, entry; otherwise empty."""
        if self._sorted is None:
            return []
        with lasting():
            lists, entry = self._sorted.get_csr() if self._forward else self._sorted.get_csc()
        assert entry is not None
        return [*lists, entry]


def check_length(name: str, what: str, values: Tensor, count: int, dim: int = 1) -> None:
    """Raise for anything but one entry per item."""
    if values.dim() != dim:
        raise DemonetError(f"{name} of shape {list(values.shape)}", hint=f"{dim}-dimensional, one for each {what}")
    if values.size(0) != count:
        raise DemonetError(f"{values.size(0)} {name} for {count} {what}s", hint=f"one for each {what}")
