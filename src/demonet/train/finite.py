"""Results that are not finite are an error that names the first item and the likely cause."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch_geometric.data import Data

from demonet.data.ids import ids_of
from demonet.errors import DemonetError

_LARGE = 1e6  # inputs above this are named as the cause


def check_outputs(
    outputs: NDArray[np.floating],
    data: Data | Sequence[Data],
    rows: NDArray[np.integer] | None = None,
    model: nn.Module | None = None,
) -> None:
    """Check that all outputs are finite.

    Args:
        outputs: ``[items, ...]`` outputs or embeddings.
        data: The graph whose nodes are the items, or the graphs that are.
        rows: The nodes that the outputs are for; None for all.
        model: The network that gave them, if it is one.
    """
    finite = np.isfinite(outputs).reshape(len(outputs), -1)
    if finite.all():
        return
    item, column = (int(i) for i in np.argwhere(~finite)[0])
    value = outputs.reshape(len(outputs), -1)[item, column]
    place = item if rows is None else int(rows[item])
    name = f"node {ids_of(data)[place]!r}" if isinstance(data, Data) else f"graph {place}"
    count = int((~finite).any(1).sum())
    more = f", and of {count - 1:,} more" if count > 1 else ""
    graphs = [data] if isinstance(data, Data) else data
    raise DemonetError(f"the output of {name}{more} is {value}", hint=_cause(graphs, model))


def _cause(graphs: Sequence[Data], model: nn.Module | None) -> str:
    if model is not None and not all(bool(weight.isfinite().all()) for weight in model.parameters()):
        return "training has diverged: use a smaller lr"
    for name, what in (("edge_weight", "edge weights"), ("x", "attributes")):
        values = [graph.get(name) for graph in graphs]
        largest = max((_largest(value) for value in values if value is not None), default=0.0)
        if largest > _LARGE:
            return f"{what} are as large as {largest:.3g}: scale them down, as in training"
    return "the numbers inside the model overflow: train it with a smaller lr, or on inputs of a smaller scale"


def _largest(values: torch.Tensor) -> float:
    plain = values.values() if values.layout == torch.sparse_csr else values
    return float(plain.abs().max()) if plain.numel() else 0.0
