"""The forms in which a layer takes edges, as the operators take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric import EdgeIndex
from torch_geometric.utils import is_torch_sparse_tensor

from demonet.checks import check_edge_index
from demonet.degree.count import By
from demonet.degree.keep import changes, lasting
from demonet.degree.layout import DegreeLayout
from demonet.errors import DemonetError
from demonet.ops import backend, neighbour_lists
from demonet.ops.reference import owner


class _Sorted(NamedTuple):
    """Edges that were sorted, their changes so far, and their layouts by number of nodes, degree and flow."""

    counts: list[tuple[int, int] | None]
    edges: Tensor
    layouts: dict[tuple[int, By, bool], DegreeLayout]


_LAYOUTS: Any = WeakTensorKeyDictionary()  # by the tensor that was given, as long as it lives


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
        self._given, self._size, self._forward = given, size, flow == "source_to_target"
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

    def layout(self, by: By, *, compare: bool) -> DegreeLayout:
        """The layout of edges between nodes of one set, sorted when they come for the first time: all layers share it.

        They are the same if the tensor is, and torch has counted no change of it. In main memory NumPy may have changed
        them as well.

        Args:
            by: Which degree decides the task.
            compare: Whether to compare edges in main memory number by number: a hundredth of sorting them.
        """
        inside = [self.index] if isinstance(self._given, EdgeIndex) else []  # it counts changes on its own
        counts = [changes(tensor) for tensor in (self._given, *inside)]
        known = _LAYOUTS.get(self._given)
        same = known is not None and known.counts == counts
        if same and (None in counts or (compare and self.index.device.type == "cpu")):
            same = torch.equal(known.edges, self.index)
        if not same:
            with lasting():
                known = _LAYOUTS[self._given] = _Sorted(counts, self.index.clone(), {})
        key = self._size[1], by, self._forward
        if key not in known.layouts:
            known.layouts[key] = DegreeLayout.from_edge_index(self.pairs, self._size[1], by=by)
        layout: DegreeLayout = known.layouts[key]
        return layout

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
