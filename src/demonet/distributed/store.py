"""A store: a graph that was read once, as arrays on disk, whole and in parts.

``edge_index``, ``x`` and the other arrays of the whole graph lie in the folder itself; ``part-000``, ``part-001``, ...
have what each process needs. All of them are memory-mapped: processes of one machine share the memory that they take,
and a process reads the part that it trains on, no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from demonet.arrayfolder import MANIFEST, ArrayFolder, write_folder
from demonet.checks import check_memory
from demonet.data.columns import Columns
from demonet.data.ids import LabelTable
from demonet.data.read import ReadResult
from demonet.distributed.partition import Part, assign, cut
from demonet.errors import DemonetError
from demonet.ops.sparse import csr
from demonet.schema import Array, check_arrays, values_of
from demonet.tensorfile import pack_texts, unpack_texts

FORMAT = "demonet-store-1"
_GRAPH = {
    "edge_index": Array("i", (2, "edges"), 0, "nodes"),
    "edge_weight": Array("f", ("edges",), optional=True),
    "node_ids": Array("iuf", ("nodes",), optional=True),
    "node_ids_bytes": Array("u", ("bytes",), optional=True),
    "node_ids_offsets": Array("i", ("nodes+1",), pointer="bytes", optional=True),
    "x": Array("f", ("nodes", "columns"), optional=True),
    "x_width": Array("i", (1,), 0, optional=True),
    "x_pointer": Array("i", ("nodes+1",), pointer="entries", optional=True),
    "x_column": Array("i", ("entries",), 0, "columns", optional=True),
    "x_value": Array("f", ("entries",), optional=True),
}
_FACTS: dict[str, Any] = {
    "name": str,
    "nodes": int,
    "directed": bool | None,
    "self_loops": str,
    "attributes": list | None,
    "label_name": str | None,
    "class_names": list | None,
    "columns": dict | None,
    "labels": dict | None,
    "parts": int | None,
}
_PART = {  # of a process; `rows` are its own nodes and its halo
    "nodes": Array("i", ("own",), 0, "nodes"),
    "halo": Array("i", ("halo",), 0, "nodes"),
    "received": Array("i", ("parts",), 0),
    "send": Array("i", ("send",), 0, "own"),
    "sent": Array("i", ("parts",), 0),
    "pointer": Array("i", ("own+1",), pointer="edges"),
    "neighbours": Array("i", ("edges",), 0, "rows"),
    "edge": Array("i", ("edges",), 0, "all edges"),
    "outgoing": Array("i", ("own",), 0),
}


def write_store(
    path: str | Path,
    read: ReadResult,
    name: str,
    *,
    parts: int | None = None,
    partition: str = "balanced",
    self_loops: str = "drop",
) -> None:
    """Write a graph as a store.

    Args:
        path: The folder, which must be new.
        read: The graph.
        name: A short name.
        parts: Number of parts; None for the whole graph alone.
        partition: How it is cut, see :func:`~demonet.distributed.partition.assign`.
        self_loops: Whether self-loops were dropped or kept when it was read.
    """
    data = read.data
    if not isinstance(data, Data):
        raise DemonetError("a set of graphs has no store", hint="a store is for the nodes of one graph")
    cuts: list[Part] = []
    if parts is not None:
        nodes = int(data.num_nodes or 0)
        cuts = cut(data.edge_index, assign(data.edge_index, nodes, parts, partition), parts)
    facts = {
        "name": name,
        "nodes": int(data.num_nodes or 0),
        "directed": read.directed,
        "self_loops": self_loops,
        "attributes": read.columns,
        "label_name": read.label_name,
        "class_names": data.get("class_names"),
        "columns": None if data.get("columns") is None else data.columns.state(),
        "labels": _label_facts(read.labels),
        "parts": parts,
        "partition": None if parts is None else partition,
    }
    with write_folder(Path(path), FORMAT, facts) as writer:
        for array_name, array in _arrays(data, read.labels).items():
            writer.add(array_name, array)
        for number, part in enumerate(cuts):
            for field in fields(part):
                writer.add(f"{_part_name(number)}/{field.name}", getattr(part, field.name).numpy())


def is_store(path: str | Path) -> bool:
    """Whether a path is a store."""
    return Path(path).is_dir() and (Path(path) / MANIFEST).is_file()


class Store:
    """An opened store.

    Args:
        path: The folder. Its arrays are checked when they are read for the first time.
    """

    def __init__(self, path: str | Path) -> None:
        self._folder = ArrayFolder(Path(path), FORMAT)
        self.path, self.facts, self.checksum = Path(path), self._folder.facts, self._folder.checksum
        for name, kinds in _FACTS.items():
            if name not in self.facts or not isinstance(self.facts[name], kinds):
                raise DemonetError(f"{name} is {self.facts.get(name)!r}", file=path, hint="write the store again")
        if not all(isinstance(name, str | int | float) for name in self.facts["class_names"] or ()):
            raise DemonetError("a name of a class is not a text or a number", file=path, hint="write the store again")

    @property
    def parts(self) -> int | None:
        """Number of parts; None if the graph was not cut."""
        number: int | None = self.facts["parts"]
        return number

    def read(self) -> ReadResult:
        """The whole graph. Its arrays are memory maps, none of which has to fit into memory."""
        names = [name for name in self._folder.names() if "/" not in name]
        self._folder.check(names)
        arrays = {name: self._folder.array(name) for name in names}
        with values_of(self.path):
            return self._graph(arrays)

    def _graph(self, arrays: dict[str, NDArray[Any]]) -> ReadResult:
        facts, sizes = self.facts, {"nodes": self.facts["nodes"]}
        if "x_width" in arrays:
            sizes["columns"] = int(arrays["x_width"].item())
            check_memory(64 * sizes["columns"], "its columns", file=self.path)
        check_arrays(arrays, _GRAPH, sizes)
        found = {name: torch.from_numpy(array) for name, array in arrays.items()}
        ids: Any = found.get("node_ids")
        if ids is None:
            ids = unpack_texts({"bytes": found["node_ids_bytes"], "offsets": found["node_ids_offsets"]})
        data = Data(edge_index=found["edge_index"], num_nodes=facts["nodes"], node_ids=ids)
        if "x_pointer" in found:
            size = (facts["nodes"], int(found["x_width"]))
            data.x = csr(found["x_pointer"], found["x_column"], found["x_value"], size)
        elif "x" in found:
            data.x = found["x"]
        for name in ("edge_weight", "y"):
            if name in found:
                data[name] = found[name]
        if "y" in found:
            _check_targets(found["y"], facts)
        if facts["class_names"] is not None:
            data.class_names = facts["class_names"]
        if facts["columns"] is not None:
            data.columns = Columns.from_state(facts["columns"])
        _check_names(data, facts["attributes"])
        table = _labels(facts["labels"], found.get("labels"))
        return ReadResult(data, facts["directed"], facts["attributes"], table, facts["label_name"])

    def part(self, number: int) -> Part:
        """The part with that number, checked."""
        names = [f"{_part_name(number)}/{field.name}" for field in fields(Part)]
        self._folder.check(names)
        part = Part(*(torch.from_numpy(self._folder.array(name)) for name in names))
        edges = self._folder.array("edge_index")
        rows = part.nodes.numel() + part.halo.numel()
        sizes = {"nodes": self.facts["nodes"], "parts": self.parts or 0, "rows": rows, "all edges": edges.shape[-1]}
        with values_of(self.path / _part_name(number)):
            check_arrays(vars(part), _PART, sizes)
            for total, count in ((part.halo, part.received), (part.send, part.sent)):
                if int(count.sum()) != total.numel():
                    raise DemonetError("parts do not fit together", hint="write the store again")
        return part


def _part_name(number: int) -> str:
    """The folder of a part."""
    return f"part-{number:03}"


def _arrays(data: Data, labels: LabelTable | None) -> dict[str, NDArray[Any]]:
    found: dict[str, Tensor] = {"edge_index": data.edge_index}
    for name in ("edge_weight", "y"):
        if data.get(name) is not None:
            found[name] = data[name]
    if data.x is not None and data.x.layout == torch.sparse_csr:
        found |= {"x_pointer": data.x.crow_indices(), "x_column": data.x.col_indices(), "x_value": data.x.values()}
        found["x_width"] = torch.tensor(data.x.size(1))
    elif data.x is not None:
        found["x"] = data.x
    ids: Tensor | Sequence[str] | None = data.get("node_ids")
    if ids is None:
        ids = torch.arange(int(data.num_nodes or 0))
    if isinstance(ids, Tensor):
        found["node_ids"] = ids
    else:
        found |= {f"node_ids_{part}": tensor for part, tensor in pack_texts(ids).items()}
    arrays: dict[str, NDArray[Any]] = {name: tensor.numpy() for name, tensor in found.items()}
    if labels is not None and labels.values is not None:
        arrays["labels"] = np.asarray(labels.values)
    return arrays


def _check_names(data: Data, names: list[Any] | None) -> None:
    """As many columns as the attributes have, by name and by what they were made of."""
    width = 0 if data.x is None else data.x.size(1)
    for columns in (names, data.columns.names if "columns" in data else None):
        if columns is not None and (len(columns) != width or not all(isinstance(name, str) for name in columns)):
            raise DemonetError(f"{len(columns)} names of {width} columns", hint="write the store again")


def _check_targets(y: Tensor, facts: dict[str, Any]) -> None:
    """Classes that have a name each, or -1; or numbers."""
    names, numbers = facts["class_names"] or (), y.is_floating_point()
    if bool(names) if numbers and y.dim() == 1 else not numbers and len(y[y >= 0].unique()) != len(names):
        raise DemonetError("the labels and the names of classes do not fit together", hint="write the store again")
    sizes = {"nodes": facts["nodes"], "classes": len(facts["class_names"] or ())}
    shape = ("nodes",) if y.dim() == 1 else ("nodes", "targets")
    check_arrays(
        {"y": y}, {"y": Array("f", shape) if y.is_floating_point() else Array("i", ("nodes",), -1, "classes")}, sizes
    )


def _label_facts(labels: LabelTable | None) -> dict[str, Any] | None:
    if labels is None:
        return None
    error = None if labels.error is None else str(labels.error)
    return {"names": labels.names, "error": error, "beside_classes": labels.beside_classes}


def _labels(facts: dict[str, Any] | None, values: Tensor | None) -> LabelTable | None:
    if facts is None:
        return None
    error = None if facts["error"] is None else DemonetError(facts["error"])
    if values is not None:
        check_arrays({"labels": values}, {"labels": Array("f", ("nodes", len(facts["names"])))})
    return LabelTable(facts["names"], None if values is None else values.numpy(), error, facts["beside_classes"])
