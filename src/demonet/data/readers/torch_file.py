"""A PyG ``Data`` that ``torch.save`` wrote (``.pt``), with ``x``, ``y``, ``edge_weight`` and masks.

Such a file is a pickle. Only tensors, plain values and the classes of a Data are loaded, so a file cannot run code.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from demonet.data.readers.base import Listing, ReadOptions
from demonet.data.readers.graphml import from_data
from demonet.errors import DemonetError

_ALLOWED = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


def read_pt(content: bytes, path: Path, options: ReadOptions) -> Listing:
    """The graph in a file."""
    hint = "torch.save(data, path) of one torch_geometric Data, with tensors and plain values alone"
    try:
        with torch.serialization.safe_globals(_ALLOWED):
            data = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise DemonetError("it cannot be loaded as a Data", file=path, hint=hint) from error
    if not isinstance(data, Data):
        raise DemonetError(f"it has a {type(data).__name__}, not a Data", file=path, hint=hint)
    try:
        listing = from_data(data)
    except DemonetError as error:
        raise DemonetError(error.message, file=path, hint=error.hint) from error
    listing.file = path
    return listing
