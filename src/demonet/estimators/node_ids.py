"""Nodes as the user names them, by their ids, and their places in a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch_geometric.data import Data

from demonet.data.ids import Numbering, id_at, ids_of, make_ids
from demonet.errors import DemonetError
from demonet.train.problem import labels


def own_labels(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """The labelled nodes of a Data, and their classes by name where it has names."""
    y = labels(data).cpu().numpy()
    rows = np.flatnonzero(y >= 0)
    names = data.get("class_names")
    return rows, y[rows] if names is None else np.asarray(names)[y[rows]]


def find_nodes(data: Data, ids: Any) -> np.ndarray:
    """The places of nodes in a graph, by their ids."""
    array = np.asarray(ids)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DemonetError(f"node ids of shape {array.shape}", hint="a flat list of ids, or a graph as graph=")
    wanted = make_ids(array.tolist())
    own = ids_of(data)
    numbering = Numbering(np.array(own, dtype=object if isinstance(own[0], str) else np.int64))
    rows = numbering.find(wanted)
    if (rows < 0).any():
        stranger = id_at(wanted, int(np.flatnonzero(rows < 0)[0]))
        raise DemonetError(f"no node {stranger!r} in the graph ({int((rows < 0).sum())} such)")
    return rows


def labels_by_place(data: Data, rows: np.ndarray, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """``[nodes]`` class numbers, -1 for the others; a node listed again must have the same class."""
    y = np.full(int(data.num_nodes), -1, dtype=np.int64)
    y[rows[::-1]] = codes[::-1]
    clash = np.flatnonzero(y[rows] != codes)
    if clash.size:
        row = int(rows[clash[0]])
        first, second = classes.tolist()[y[row]], classes.tolist()[codes[clash[0]]]
        raise DemonetError(f"node {ids_of(data)[row]!r} is labelled {second!r}, and {first!r} before")
    return y
