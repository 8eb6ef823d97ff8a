"""A PyG ``Data`` that ``torch.save`` wrote (``.pt``), with ``x``, ``y``, ``edge_weight`` and masks.

Such a file is a pickle. Only tensors, plain values and the classes of a Data are loaded, so a file cannot run code.
"""

from __future__ import annotations

import io
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from demonet.checks import check_node_count
from demonet.data.readers.base import MASKS, Listing, ReadOptions
from demonet.data.readers.graphml import from_data
from demonet.errors import DemonetError
from demonet.schema import check_sparse, values_of

_ALLOWED = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


def read_pt(content: bytes, path: Path, options: ReadOptions) -> Listing:
    """The graph in a file."""
    hint = "torch.save(data, path) of one torch_geometric Data, with tensors and plain values alone"
    try:
        with torch.serialization.safe_globals(_ALLOWED):
            data = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # its unpickler raises whatever a damaged file leads to
        raise DemonetError("it cannot be loaded as a Data", file=path, hint=hint) from error
    if not isinstance(data, Data):
        raise DemonetError(f"it has a {type(data).__name__}, not a Data", file=path, hint=hint)
    with values_of(path, "a graph"):
        for name, value in data.to_dict().items():
            if isinstance(value, torch.Tensor):
                if value.is_quantized or value.is_meta:
                    raise DemonetError(f"{name} is quantized, or has no values", hint="use a plain tensor")
                check_sparse(value)
            if name in ("x", "y", *MASKS) and value.size(0) != data.num_nodes:
                raise DemonetError(f"{name} has {value.size(0)} rows for {data.num_nodes} nodes")
        check_node_count(int(data.num_nodes), data.num_edges)
        listing = from_data(data)
    listing.file = path
    return listing
