"""What the attributes ``x`` of graphs are, and words of a text as rows of unit length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize
from torch import Tensor
from torch_geometric.data import Data

MatrixKind = Literal["none", "labels", "counts", "weights", "numbers"]


def matrix_kind(graphs: Iterable[Data]) -> MatrixKind:
    """What the attributes ``x`` of graphs are, taken together.

    ``"none"``: there are none. ``"labels"``: rows with at most a single 1, as node labels are. ``"counts"``: whole
    numbers, 0 or more, and mostly 0, as words of a text are; sparse storage counts as mostly 0. ``"weights"``: other
    numbers, 0 or more, at least three quarters 0, in 32 columns or more of about the same scale: words that were
    weighted before, as by dividing rows by their sum or by tf-idf. ``"numbers"``: anything else.
    """
    graphs = list(graphs)
    labels, whole, nonzero, size, is_sparse = True, True, 0, 0, False
    for graph in graphs:
        if graph.x is None or graph.x.size(1) == 0:
            return "none"
        x = graph.x.detach()
        values = x if x.layout == torch.strided else x.values()
        if (table := graph.get("columns")) is not None:  # of which every column has a kind
            if set(table.kinds) == {"count"}:
                return "counts"
            if "indicator" in table.kinds:
                return "numbers"
        parts = values.split(2**17)
        if any(bool(((part < 0) | part.isnan()).any()) for part in parts):
            return "numbers"
        whole = whole and not any(bool((part != part.round()).any()) for part in parts)
        is_sparse |= x.layout != torch.strided
        nonzero, size = nonzero + int(values.count_nonzero()), size + x.numel()
        if not whole and 4 * nonzero > size:
            return "numbers"
        labels = labels and whole and (values.numel() == 0 or int(values.max()) <= 1) and int(_row_sums(x).max()) <= 1
    if not whole:
        return "weights" if _one_scale([graph.x.detach() for graph in graphs]) else "numbers"
    if any(graph.get("columns") is not None for graph in graphs):
        return "numbers"
    return "labels" if labels else "counts" if is_sparse or 2 * nonzero <= size else "numbers"


WORDS, SCALES = 32, 20.0  # fewest columns; of the means of nine in ten of them, the largest by the smallest


def _one_scale(matrices: Sequence[Tensor]) -> bool:
    """Whether many columns have entries of about the same scale; zeros do not count."""
    total, count = torch.zeros(2, max(x.size(1) for x in matrices), dtype=torch.float64)
    for x in matrices:
        for part in x.split(2**14) if x.layout == torch.strided else [x]:
            column, value = _entries(part)
            total.index_add_(0, column, value)
            count.index_add_(0, column, torch.ones_like(value))
    mean = (total / count)[count > 0]
    if mean.numel() < WORDS:
        return False
    low, high = mean.quantile(torch.tensor([0.05, 0.95], dtype=mean.dtype)).tolist()
    return high <= SCALES * low


def _entries(x: Tensor) -> tuple[Tensor, Tensor]:
    """The columns and values of the entries that are not zero, on the CPU."""
    if x.layout != torch.strided:
        return x.col_indices().long().cpu(), x.values().double().cpu()
    place = x.nonzero(as_tuple=True)
    return place[1].cpu(), x[place].double().cpu()


def _row_sums(x: Tensor) -> Tensor:
    if x.layout == torch.strided:
        return x.sum(1) if x.numel() else x.new_zeros(1)
    rows = torch.repeat_interleave(torch.arange(x.size(0), device=x.device), x.crow_indices().diff())
    return torch.zeros(max(1, x.size(0)), device=x.device).index_add_(0, rows, x.values().float())


def fitting_features(spec: str, graphs: Sequence[Data]) -> str:
    """The blocks of a preset for these attributes: tf-idf is for counts alone, other columns are treated by their kind.

    Args:
        spec: Names of blocks, see :class:`~demonet.features.FeatureMap`.
        graphs: The graphs, with attributes or without.
    """
    if matrix_kind(graphs) != "numbers":
        return spec
    names = ["columns" if name in ("tfidf", "attributes") else name for name in spec.split("+")]
    return "+".join(dict.fromkeys(name for name in names if name != "neighbour-tfidf"))


def document_weights(rows: Any, kind: MatrixKind) -> NDArray[np.float64]:
    r"""``[columns]`` inverse document frequencies :math:`\log((1 + n) / (1 + n_w)) + 1` of words that n_w texts have.

    Weights get them if their rows sum to one, as frequencies of words do; others, such as tf-idf, have theirs already.

    Args:
        rows: ``[n, columns]``, dense or CSR.
        kind: What they are.
    """
    rows = _sparse(rows)
    total = np.asarray(rows.sum(1)).ravel()
    if kind == "weights" and not np.allclose(total[total > 0], 1, atol=1e-3):
        return np.ones(rows.shape[1])
    seen = np.bincount(rows.indices, minlength=rows.shape[1])
    return np.log((1 + rows.shape[0]) / (1 + seen)) + 1


def term_rows(rows: Any, weights: NDArray[np.float64], kind: MatrixKind) -> sparse.csr_array:
    """Rows of unit length: 1 + log(count), or weights as they are, times :func:`document_weights`."""
    rows = _sparse(rows)
    if kind != "weights":
        rows.data = 1 + np.log(np.maximum(rows.data, 1))
    return normalize(sparse.csr_array(rows.multiply(weights)))


def _sparse(rows: Any) -> sparse.csr_array:
    """A copy without stored zeros."""
    rows = sparse.csr_array(rows, dtype=np.float64, copy=True)
    rows.eliminate_zeros()
    return rows
